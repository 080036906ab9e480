//! The processes of MPI as a stage sees them.
//!
//! A stage talks from any of its threads, but MPI wants to be called from the main thread: a [`Relay`] hands requests over to it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Communicator, Error, InternalError};
use miette::Diagnostic;
use mpi::Count;
use mpi::datatype::PartitionMut;
use mpi::point_to_point::{send_receive, send_receive_into};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};

/// What a stage wants, and where the answer goes.
pub(crate) enum Request {
    Shift(Vec<u8>, Sender<Result<Vec<u8>, Error>>),
    Gather(Vec<u8>, Sender<Result<Vec<Vec<u8>>, Error>>),
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
}

/// Answers requests until nobody can make one any more.
pub(crate) fn serve(world: &SimpleCommunicator, requests: &Receiver<Request>) {
    for request in requests {
        // Whoever asked waits for the answer.
        match request {
            Request::Shift(bytes, answer) => drop(answer.send(shift(world, &bytes))),
            Request::Gather(bytes, answer) => drop(answer.send(all_gather(world, &bytes))),
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

/// A number of bytes as MPI counts them.
fn count(bytes: u64) -> Result<Count, Error> {
    Ok(Count::try_from(bytes).map_err(|_| TooLarge(bytes))?)
}

#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("a message of {0} bytes is too large for MPI")]
#[diagnostic(code(ranks::too_large), help("use fewer islands, a smaller problem or smaller messages"))]
struct TooLarge(u64);
