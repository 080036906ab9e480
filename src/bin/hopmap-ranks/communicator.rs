//! The processes of MPI as a stage sees them.
//!
//! A stage talks from any of its threads, but MPI wants to be called from the main thread: a [`Relay`] hands requests over to it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Communicator, Error, InternalError, Timed, TimedCall};
use miette::Diagnostic;
use mpi::Count;
use mpi::datatype::PartitionMut;
use mpi::point_to_point::{send_receive, send_receive_into};
use mpi::topology::{Process, Rank, SimpleCommunicator};
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};

/// What a stage wants, and where the answer goes.
pub(crate) enum Request {
    Shift(Vec<u8>, Sender<Result<Vec<u8>, Error>>),
    Gather(Vec<u8>, Sender<Result<Vec<Vec<u8>>, Error>>),
    Send(u32, Vec<u8>, Sender<Result<(), Error>>),
    Receive(u32, Sender<Result<Vec<u8>, Error>>),
    Time(u32, Timed, Sender<Result<Vec<f64>, Error>>),
    Answer(u32, Timed, Sender<Result<(), Error>>),
}

/// Hands requests over to the thread that calls MPI.
pub(crate) struct Relay {
    process: u32,
    processes: u32,
    requests: Mutex<Sender<Request>>,
}

/// A relay of this process, and what comes out of it.
pub(crate) fn relay(world: &SimpleCommunicator) -> (Relay, Receiver<Request>) {
    let (sender, requests) = channel();
    let (process, processes) = (world.rank().unsigned_abs(), world.size().unsigned_abs());
    (Relay { process, processes, requests: Mutex::new(sender) }, requests)
}

impl Relay {
    fn ask<A>(&self, request: impl FnOnce(Sender<Result<A, Error>>) -> Request) -> Result<A, Error> {
        let (sender, answer) = channel();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || InternalError::new("the thread that calls MPI has ended");
        requests.send(request(sender)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Communicator for Relay {
    fn process(&self) -> u32 {
        self.process
    }

    fn processes(&self) -> u32 {
        self.processes
    }

    fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.ask(|answer| Request::Shift(bytes, answer))
    }

    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        self.ask(|answer| Request::Gather(bytes, answer))
    }

    fn send(&self, process: u32, bytes: Vec<u8>) -> Result<(), Error> {
        self.ask(|answer| Request::Send(process, bytes, answer))
    }

    fn receive(&self, process: u32) -> Result<Vec<u8>, Error> {
        self.ask(|answer| Request::Receive(process, answer))
    }

    fn time(&self, process: u32, timed: Timed) -> Result<Vec<f64>, Error> {
        self.ask(|answer| Request::Time(process, timed, answer))
    }

    fn answer(&self, process: u32, timed: Timed) -> Result<(), Error> {
        self.ask(|answer| Request::Answer(process, timed, answer))
    }
}

/// Answers requests until nobody can make one any more.
pub(crate) fn serve(world: &SimpleCommunicator, requests: &Receiver<Request>) {
    for request in requests {
        // Whoever asked waits for the answer.
        match request {
            Request::Shift(bytes, answer) => drop(answer.send(shift(world, &bytes))),
            Request::Gather(bytes, answer) => drop(answer.send(all_gather(world, &bytes))),
            Request::Send(process, bytes, answer) => drop(answer.send(send(world, process, &bytes))),
            Request::Receive(process, answer) => drop(answer.send(receive(world, process))),
            Request::Time(process, timed, answer) => drop(answer.send(time(world, process, timed))),
            Request::Answer(process, timed, answer) => drop(answer.send(answer_all(world, process, timed))),
        }
    }
}

/// Lengths first, then the bytes.
fn shift(world: &SimpleCommunicator, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let (rank, size) = (world.rank(), world.size());
    let next = world.process_at_rank((rank + 1) % size);
    let before = world.process_at_rank((rank + size - 1) % size);
    let (length, _): (u64, _) = send_receive(&(bytes.len() as u64), &next, &before);
    count(bytes.len() as u64)?;
    count(length)?;
    let mut heard = vec![0; length as usize];
    send_receive_into(bytes, &next, &mut heard[..], &before);
    Ok(heard)
}

fn all_gather(world: &SimpleCommunicator, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut lengths = vec![0_u64; world.size().unsigned_abs() as usize];
    world.all_gather_into(&(bytes.len() as u64), &mut lengths[..]);
    count(lengths.iter().sum())?;
    let counts = lengths.iter().map(|&length| count(length)).collect::<Result<Vec<Count>, _>>()?;
    let begin = |begin: &mut Count, &count: &Count| {
        let this = *begin;
        *begin += count;
        Some(this)
    };
    let displacements: Vec<Count> = counts.iter().scan(0, begin).collect();
    let mut all = vec![0_u8; lengths.iter().sum::<u64>() as usize];
    world.all_gather_varcount_into(
        bytes,
        &mut PartitionMut::new(&mut all[..], counts.as_slice(), displacements.as_slice()),
    );
    let mut rest = all.as_slice();
    let split = |&length: &u64| {
        let (one, others) = rest.split_at(length as usize);
        rest = others;
        one.to_vec()
    };
    Ok(lengths.iter().map(split).collect())
}

fn other(world: &SimpleCommunicator, process: u32) -> Result<Process<'_>, Error> {
    let rank = Rank::try_from(process).ok().filter(|&rank| rank < world.size() && rank != world.rank());
    let rank = rank.ok_or_else(|| InternalError::new(format!("there is no other process {process}")))?;
    Ok(world.process_at_rank(rank))
}

fn send(world: &SimpleCommunicator, process: u32, bytes: &[u8]) -> Result<(), Error> {
    let other = other(world, process)?;
    count(bytes.len() as u64)?;
    other.send(bytes);
    Ok(())
}

fn receive(world: &SimpleCommunicator, process: u32) -> Result<Vec<u8>, Error> {
    Ok(other(world, process)?.receive_vec().0)
}

/// Times a call. Nothing but the clock is between two round trips; around other calls, the other process is made
/// ready and asked for an answer, so that messages do not pile up.
fn time(world: &SimpleCommunicator, process: u32, call: Timed) -> Result<Vec<f64>, Error> {
    let other = other(world, process)?;
    count(call.bytes)?;
    if call.what == TimedCall::Stream {
        let seconds = stream(&other, call) / f64::from(call.messages.max(1));
        return Ok(vec![seconds; call.messages as usize]);
    }
    let mut message = vec![0_u8; call.bytes as usize];
    let mut answer = [0_u8];
    let mut times = Vec::with_capacity(call.messages as usize);
    let mut before = mpi::time();
    for _ in 0..call.messages {
        let now = match call.what {
            TimedCall::RoundTrip => {
                other.send(&message[..]);
                other.receive_into(&mut answer[..]);
                mpi::time()
            }
            TimedCall::Send => {
                before = mpi::time();
                other.send(&message[..]);
                let now = mpi::time();
                other.receive_into(&mut answer[..]);
                now
            }
            TimedCall::Isend => mpi::request::scope(|scope| {
                before = mpi::time();
                let request = other.immediate_send(scope, &message[..]);
                let now = mpi::time();
                request.wait();
                other.receive_into(&mut answer[..]);
                now
            }),
            TimedCall::Recv => {
                other.send(&answer[..]);
                std::thread::sleep(call.pause);
                before = mpi::time();
                other.receive_into(&mut message[..]);
                mpi::time()
            }
            TimedCall::Stream => before,
        };
        times.push(now - before);
        before = now;
    }
    Ok(times)
}

fn answer_all(world: &SimpleCommunicator, process: u32, timed: Timed) -> Result<(), Error> {
    let other = other(world, process)?;
    count(timed.bytes)?;
    if timed.what == TimedCall::Stream {
        answer_stream(&other, timed);
        return Ok(());
    }
    let mut message = vec![0_u8; timed.bytes as usize];
    let mut answer = [0_u8];
    for _ in 0..timed.messages {
        match timed.what {
            TimedCall::Recv => {
                other.receive_into(&mut answer[..]);
                other.send(&message[..]);
            }
            _ => {
                if !timed.pause.is_zero() {
                    std::thread::sleep(timed.pause);
                }
                other.receive_into(&mut message[..]);
                other.send(&answer[..]);
            }
        }
    }
    Ok(())
}

/// Messages of a stream in progress: enough to hide the handshakes of long messages.
const WINDOW: usize = 4;

/// Sends a stream; the seconds until all of it has arrived.
fn stream(other: &Process<'_>, timed: Timed) -> f64 {
    let message = vec![0_u8; timed.bytes as usize];
    let begin = mpi::time();
    let mut left = timed.messages as usize;
    while left > 0 {
        let width = left.min(WINDOW);
        mpi::request::scope(|scope| {
            let sends: Vec<_> = (0..width).map(|_| other.immediate_send(scope, &message[..])).collect();
            sends.into_iter().for_each(|send| {
                send.wait();
            });
        });
        left -= width;
    }
    other.receive_into(&mut [0_u8][..]);
    mpi::time() - begin
}

fn answer_stream(other: &Process<'_>, timed: Timed) {
    let mut messages = vec![vec![0_u8; timed.bytes as usize]; WINDOW];
    let mut left = timed.messages as usize;
    while left > 0 {
        let width = left.min(WINDOW);
        mpi::request::scope(|scope| {
            let receives: Vec<_> = messages[..width]
                .iter_mut()
                .map(|message| other.immediate_receive_into(scope, &mut message[..]))
                .collect();
            receives.into_iter().for_each(|receive| {
                receive.wait();
            });
        });
        left -= width;
    }
    other.send(&[0_u8][..]);
}

/// A number of bytes as MPI counts them.
fn count(bytes: u64) -> Result<Count, Error> {
    Ok(Count::try_from(bytes).map_err(|_| TooLarge(bytes))?)
}

#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("a message of {0} bytes is too large for MPI")]
#[diagnostic(code(ranks::too_large), help("use fewer islands, a smaller problem or smaller messages"))]
struct TooLarge(u64);
