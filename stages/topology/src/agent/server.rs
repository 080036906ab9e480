//! The agent: listens on one address, lets in who knows the token, measures what it is asked for, and ends in time.

use std::io::{PipeReader, PipeWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use miette::Diagnostic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cores::{measure_cores, own_cores};
use super::guests::{Guest, Guests, Refusals, Standing};
use super::handshake::{
    FrameError, Frames, HandshakeError, REQUEST_BYTES, Role, Token, VERSION, answer, random_bytes,
};
use super::protocol::{Answer, CorePair, Description, Link, Request, refusal, watch};
use super::wire::{TcpWire, respond};
use crate::probe::{Sampling, Timing, sample};

/// Within which a caller has to prove that it knows the token, however slowly it speaks.
const HANDSHAKE: Duration = Duration::from_secs(2);
/// So long a place may be taken by somebody who is just leaving.
const LEAVING: Duration = Duration::from_millis(500);

/// How an agent is to be.
#[derive(Debug)]
pub struct AgentSettings {
    /// Where it listens; port 0 is any that is free.
    pub address: SocketAddr,
    /// Name of its host.
    pub host: String,
    /// How long it lives at most.
    pub lifetime: Duration,
    /// What whoever wants something from it has to know.
    pub token: Token,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum AgentError {
    /// The address is not free or not of this host.
    #[error("cannot listen on {address}: {error}")]
    #[diagnostic(help(
        "give an address of this host with --bind, or a network that it is in, such as 10.1.0.0/16"
    ))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The name would not fit into a line of words.
    #[error("a host cannot be called {0:?}")]
    #[diagnostic(help("give its name with --name: no spaces, no control characters, at most 255 bytes"))]
    Name(String),
    /// The system refuses something that an agent needs.
    #[error("the operating system refuses: {0}")]
    System(io::Error),
}

/// Why an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its coordinator asked for it.
    End,
    /// Its [`Stopper`] was used.
    Stopped,
    /// It has lived as long as it may.
    TimeLimit,
}

/// An agent that listens, and serves nobody yet.
pub struct Agent {
    listener: TcpListener,
    address: SocketAddr,
    wake: PipeReader,
    shared: Arc<Shared>,
}

/// What all threads of an agent know.
struct Shared {
    token: Token,
    host: String,
    cores: Vec<u32>,
    until: Instant,
    guests: Arc<Guests>,
    requests: AtomicU64,
    refusals: Refusals,
    is_ended: AtomicBool,
    waker: Mutex<PipeWriter>,
}

/// Ends an agent from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl Stopper {
    /// Ends the agent at once, whatever it does.
    pub fn stop(&self) {
        self.0.wake();
    }
}

impl Agent {
    /// Listens; from now on the time of the agent runs. `refused` is told about who is turned away, but not more often than is good.
    pub fn bind(
        settings: AgentSettings,
        refused: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, AgentError> {
        let AgentSettings { address, host, lifetime, token } = settings;
        let is_word = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if host.is_empty() || host.len() > 255 || !host.chars().all(is_word) {
            return Err(AgentError::Name(host));
        }
        let listener = TcpListener::bind(address).map_err(|error| AgentError::Bind { address, error })?;
        // A caller that is gone before it was let in must not make accepting wait.
        listener.set_nonblocking(true).map_err(AgentError::System)?;
        let address = listener.local_addr().map_err(AgentError::System)?;
        let (wake, waker) = io::pipe().map_err(AgentError::System)?;
        let shared = Shared {
            token,
            host,
            cores: own_cores(),
            until: Instant::now() + lifetime,
            guests: Arc::default(),
            requests: AtomicU64::new(0),
            refusals: Refusals::new(Box::new(refused)),
            is_ended: AtomicBool::new(false),
            waker: Mutex::new(waker),
        };
        Ok(Self { listener, address, wake, shared: Arc::new(shared) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The line that says that it is ready, and where: `hopmap agent VERSION HOST ADDRESS:PORT CORES`, the last a number.
    #[must_use]
    pub fn line(&self) -> String {
        format!("hopmap agent {VERSION} {} {} {}", self.shared.host, self.address, self.shared.cores.len())
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Serves until it ends; then all its connections are closed.
    pub fn serve(self) -> Result<Ending, AgentError> {
        let ending = self.listen();
        self.shared.guests.close();
        self.shared.refusals.tell_rest();
        ending
    }

    fn listen(&self) -> Result<Ending, AgentError> {
        loop {
            let left = self.shared.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Ending::TimeLimit);
            }
            let mut ready =
                [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            let left = Timespec::try_from(left)
                .map_err(|_| AgentError::System(io::ErrorKind::InvalidInput.into()))?;
            match poll(&mut ready, Some(&left)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(AgentError::System(error.into())),
            }
            let [has_caller, is_over] = ready.map(|descriptor| !descriptor.revents().is_empty());
            if is_over {
                let is_ended = self.shared.is_ended.load(Ordering::Acquire);
                return Ok(if is_ended { Ending::End } else { Ending::Stopped });
            }
            if has_caller {
                self.let_in();
            }
        }
    }

    fn let_in(&self) {
        let (stream, caller) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                // Such as no descriptors left: waiting is better than asking again at once.
                self.shared.refusals.tell(&format!("no connection is taken: {error}"));
                thread::sleep(Duration::from_millis(50));
                return;
            }
        };
        let shared = Arc::clone(&self.shared);
        let begun = match prepared(&self.shared, &stream) {
            Ok(Some(guest)) => {
                let visit = move || {
                    if let Err(fault) = shared.receive(stream, &guest) {
                        let fault = if guest.is_displaced() {
                            "proved nothing, for a newer caller: too many callers at once".to_owned()
                        } else {
                            fault
                        };
                        shared.refusals.tell(&format!("refused {caller}, who {fault}"));
                    }
                };
                thread::Builder::new().name("agent".to_owned()).spawn(visit).map(drop)
            }
            Ok(None) => Err(io::Error::other("the agent is about to end")),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            self.shared.refusals.tell(&format!("refused {caller}: {error}"));
        }
    }
}

fn prepared(shared: &Shared, stream: &TcpStream) -> io::Result<Option<Guest>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    watch(stream)?;
    shared.guests.enter(Standing::Stranger, stream)
}

impl Shared {
    fn wake(&self) {
        // A pipe that is closed has nobody left to wake.
        let _ = self.waker.lock().unwrap_or_else(PoisonError::into_inner).write_all(b".");
    }

    /// Finds out who is there and does what it may ask for; what was wrong with it, in words.
    fn receive(&self, mut stream: TcpStream, guest: &Guest) -> Result<(), String> {
        let until = self.until.min(Instant::now() + HANDSHAKE);
        let nonce = random_bytes().map_err(|error| format!("cannot be received: {error}"))?;
        let caller = answer(&mut stream, &self.token, &nonce, until).map_err(|error| in_words(&error))?;
        let standing = match caller.role {
            Role::Coordinator => Standing::Coordinator,
            Role::Peer | Role::Agent => Standing::Peer,
        };
        if !rises(guest, standing, until.min(Instant::now() + LEAVING)) {
            let _ = caller.send_away(&mut stream, until);
            return Err(format!("is one {standing:?} too many").to_lowercase());
        }
        caller.welcome(&mut stream, until).map_err(|error| in_words(&error))?;
        if standing == Standing::Peer {
            // A peer that breaks off has its own words for it.
            let _ = respond(&mut stream, self.until);
            return Ok(());
        }
        let mut frames = Frames::new(Role::Agent, &caller.keys);
        match converse(&mut stream, &mut frames, self, &self.requests, self.until) {
            Ok(Parting::Closed) => Ok(()),
            Ok(Parting::End) => {
                self.is_ended.store(true, Ordering::Release);
                self.wake();
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Work for Shared {
    fn describe(&self) -> Description {
        Description {
            host: self.host.clone(),
            cores: self.cores.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seconds_left: self.until.saturating_duration_since(Instant::now()).as_secs_f64(),
        }
    }

    fn measure(
        &self,
        address: SocketAddr,
        sampling: &Sampling,
        until: Instant,
    ) -> Result<Vec<Timing>, String> {
        let says = |error: &dyn std::fmt::Display| format!("{address} {error}");
        let mut wire = TcpWire::connect(address, &self.token, until).map_err(|error| says(&error))?;
        let guest = self.guests.enter(Standing::Host, wire.stream()).map_err(|error| says(&error))?;
        let Some(_guest) = guest else { return Err("the agent is about to end".to_owned()) };
        sample(&mut wire, sampling).map_err(|error| says(&error))
    }

    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        together: bool,
        sampling: &Sampling,
        until: Instant,
        tell: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String> {
        let cores = cores.unwrap_or_else(|| self.cores.clone());
        measure_cores(&cores, together, sampling, until, tell).map_err(|error| error.to_string())
    }
}

/// Gives a guest its standing as soon as there is room for it.
fn rises(guest: &Guest, standing: Standing, until: Instant) -> bool {
    while !guest.rise(standing) {
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn in_words(error: &HandshakeError) -> String {
    match error {
        error if error.is_silence() => "proved nothing in time".to_owned(),
        HandshakeError::Io(error) => format!("went away: {error}"),
        error => error.to_string(),
    }
}

/// Most requests in the life of an agent.
pub const REQUESTS: u64 = 1_000_000;
/// Most sizes of all pairs in one frame of an answer.
const TIMINGS_IN_FRAME: usize = 2048;

/// What an agent is able to do.
pub trait Work {
    /// Who it is.
    fn describe(&self) -> Description;

    /// Times messages to another agent; else what failed, in words.
    fn measure(
        &self,
        address: SocketAddr,
        sampling: &Sampling,
        until: Instant,
    ) -> Result<Vec<Timing>, String>;

    /// Times messages between cores, all of them if none are given, and hands over the results as they come, as long as they are
    /// taken; else what failed, in words.
    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        together: bool,
        sampling: &Sampling,
        until: Instant,
        tell: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String>;
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The coordinator asked the agent to end.
    End,
    /// The coordinator closed the connection and may come back.
    Closed,
}

/// Does what a coordinator asks for, until it closes the connection or time is over.
pub fn converse<L: Link, W: Work>(
    link: &mut L,
    frames: &mut Frames,
    work: &W,
    requests: &AtomicU64,
    until: Instant,
) -> Result<Parting, FrameError> {
    let mut parting = Parting::Closed;
    loop {
        let body = match frames.read(link, REQUEST_BYTES, until) {
            Err(FrameError::Closed) => return Ok(parting),
            // Who asked for the end may leave as it likes.
            Err(_) if parting == Parting::End => return Ok(parting),
            body => body?,
        };
        let answer = match serde_json::from_slice(&body) {
            _ if requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS => {
                Answer::Failed(format!("an agent does {REQUESTS} requests at most"))
            }
            Err(error) => Answer::Failed(format!("the request is not understood: {error}")),
            Ok(Request::Describe) => Answer::Description(work.describe()),
            Ok(Request::End) => {
                parting = Parting::End;
                Answer::Done
            }
            Ok(request) => {
                let mut tell = |answer: &Answer| say(link, frames, answer);
                measured(request, work, until, &mut tell)?
            }
        };
        say(link, frames, &answer)?;
    }
}

/// Measures; the last answer.
fn measured<W: Work>(
    request: Request,
    work: &W,
    until: Instant,
    tell: &mut dyn FnMut(&Answer) -> Result<(), FrameError>,
) -> Result<Answer, FrameError> {
    let (Request::Measure { ref sampling, seconds, .. } | Request::Cores { ref sampling, seconds, .. }) =
        request
    else {
        return Ok(Answer::Done);
    };
    if let Some(refusal) = refusal(sampling, seconds) {
        return Ok(Answer::Failed(refusal));
    }
    let until = until.min(Instant::now() + Duration::from_secs_f64(seconds));
    match request {
        Request::Measure { address, sampling, .. } => {
            Ok(work.measure(address, &sampling, until).map_or_else(Answer::Failed, Answer::Timings))
        }
        Request::Cores { cores, together, sampling, .. } => {
            let in_frame = (TIMINGS_IN_FRAME / sampling.sizes.len().max(1)).max(1);
            let mut told = Ok(());
            let mut tell_pairs = |pairs: Vec<CorePair>| {
                for part in pairs.chunks(in_frame) {
                    if told.is_ok() {
                        told = tell(&Answer::Cores(part.to_vec()));
                    }
                }
                told.is_ok()
            };
            let done = work.cores(cores, together, &sampling, until, &mut tell_pairs);
            told?;
            Ok(done.map_or_else(Answer::Failed, |()| Answer::Done))
        }
        Request::Describe | Request::End => Ok(Answer::Done),
    }
}

fn say<L: Link>(link: &mut L, frames: &mut Frames, answer: &Answer) -> Result<(), FrameError> {
    // Answers are plain data with finite numbers: they always have a form in JSON.
    let body = serde_json::to_vec(answer).map_err(std::io::Error::from)?;
    Ok(frames.write(link, &body)?)
}
