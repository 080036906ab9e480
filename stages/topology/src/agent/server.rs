//! The agent: listens on one address, admits callers that know the token, executes their requests, and exits
//! at its time limit.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use miette::Diagnostic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cores::{measure_cores, own_cores};
use super::guests::{AuthState, Guest, Guests, Refusals};
use super::handshake::{
    FrameError, Frames, HandshakeError, REQUEST_BYTES, Role, Token, VERSION, answer, random_bytes,
};
use super::protocol::{Answer, CorePair, Description, Link, Request, refusal, watch};
use super::wire::{TcpWire, respond};
use crate::probe::{Sampling, Timing, sample};

/// Time limit for the handshake of a caller, however slowly it sends.
const HANDSHAKE: Duration = Duration::from_secs(2);
/// Time that a closing connection may still occupy its place.
const LEAVING: Duration = Duration::from_millis(500);

/// Settings of an agent.
#[derive(Debug)]
pub struct AgentSettings {
    /// Listen address; port 0 selects a free port.
    pub address: SocketAddr,
    /// Name of its host.
    pub host: String,
    /// Time limit of the agent.
    pub lifetime: Duration,
    /// The shared secret of its callers.
    pub token: Token,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum AgentError {
    /// The address is in use or not one of this host.
    #[error("cannot listen on {address}: {error}")]
    #[diagnostic(
        code(topology::bind),
        help("give an address of this host with --bind, or a network of it, such as 10.1.0.0/16")
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system error.
        error: io::Error,
    },
    /// The name would not fit into the ready line.
    #[error("invalid host name {0:?}")]
    #[diagnostic(
        code(topology::name),
        help("set the name with --name: no spaces or control characters, at most 255 bytes")
    )]
    Name(String),
    /// A system call that an agent needs failed.
    #[error("the operating system reported: {0}")]
    #[diagnostic(code(topology::system))]
    System(io::Error),
}

/// Why an agent stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At the request of its coordinator.
    End,
    /// By its [`Stopper`].
    Stopped,
    /// At its time limit.
    TimeLimit,
}

/// An agent that listens and does not serve yet.
pub struct Agent {
    listener: TcpListener,
    address: SocketAddr,
    wake: PipeReader,
    shared: Arc<Shared>,
}

/// State shared by all threads of an agent.
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

/// Stops an agent from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl Stopper {
    /// Stops the agent at once, whatever it does.
    pub fn stop(&self) {
        self.0.wake();
    }
}

impl Agent {
    /// Starts listening; the time limit starts now. `refused` receives rejected callers at a limited rate.
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
        // Accepting must not block on a caller that disconnected in the meantime.
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

    /// Listen address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The ready line: `hopmap agent VERSION HOST ADDRESS:PORT CORES`, the last a number.
    #[must_use]
    pub fn line(&self) -> String {
        format!("hopmap agent {VERSION} {} {} {}", self.shared.host, self.address, self.shared.cores.len())
    }

    /// A handle that stops the agent.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Serves until the agent stops, then closes all its connections.
    pub fn serve(self) -> Result<Ending, AgentError> {
        let ending = self.listen();
        self.shared.guests.close();
        self.shared.refusals.log_rest();
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
                // For example when no file descriptors are left: wait instead of retrying at once.
                self.shared.refusals.log(&format!("cannot accept connections: {error}"));
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
                            "was displaced by a newer caller: too many callers at once".to_owned()
                        } else {
                            fault
                        };
                        shared.refusals.log(&format!("rejected {caller}, which {fault}"));
                    }
                };
                thread::Builder::new().name("agent".to_owned()).spawn(visit).map(drop)
            }
            Ok(None) => Err(io::Error::other("the agent is about to stop")),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            self.shared.refusals.log(&format!("rejected {caller}: {error}"));
        }
    }
}

fn prepared(shared: &Shared, stream: &TcpStream) -> io::Result<Option<Guest>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    watch(stream)?;
    shared.guests.enter(AuthState::Stranger, stream)
}

impl Shared {
    fn wake(&self) {
        // A closed pipe means that no thread is left to wake.
        let _ = self.waker.lock().unwrap_or_else(PoisonError::into_inner).write_all(b".");
    }

    /// Authenticates a caller and executes its requests; returns a description of its fault.
    fn receive(&self, mut stream: TcpStream, guest: &Guest) -> Result<(), String> {
        let until = self.until.min(Instant::now() + HANDSHAKE);
        let nonce = random_bytes().map_err(|error| format!("cannot be served: {error}"))?;
        let caller = answer(&mut stream, &self.token, &nonce, until).map_err(|error| in_words(&error))?;
        let state = match caller.role {
            Role::Coordinator => AuthState::Coordinator,
            Role::Peer | Role::Agent => AuthState::Peer,
        };
        if !rises(guest, state, until.min(Instant::now() + LEAVING)) {
            let _ = caller.send_away(&mut stream, until);
            return Err(format!("exceeds the limit of its role ({state:?})").to_lowercase());
        }
        caller.welcome(&mut stream, until).map_err(|error| in_words(&error))?;
        if state == AuthState::Peer {
            // A peer that disconnects reports its own error.
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
        let described = |error: &dyn std::fmt::Display| format!("{address} {error}");
        let mut wire = TcpWire::connect(address, &self.token, until).map_err(|error| described(&error))?;
        let guest = self.guests.enter(AuthState::Host, wire.stream()).map_err(|error| described(&error))?;
        let Some(_guest) = guest else { return Err("the agent is about to stop".to_owned()) };
        sample(&mut wire, sampling).map_err(|error| described(&error))
    }

    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        together: bool,
        sampling: &Sampling,
        until: Instant,
        send: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String> {
        let cores = cores.unwrap_or_else(|| self.cores.clone());
        measure_cores(&cores, together, sampling, until, send).map_err(|error| error.to_string())
    }
}

/// Changes the role of a guest as soon as there is room.
fn rises(guest: &Guest, state: AuthState, until: Instant) -> bool {
    while !guest.rise(state) {
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn in_words(error: &HandshakeError) -> String {
    match error {
        error if error.is_silence() => "did not authenticate in time".to_owned(),
        HandshakeError::Io(error) => format!("disconnected: {error}"),
        error => error.to_string(),
    }
}

/// Limit of requests during the lifetime of an agent.
pub const REQUESTS: u64 = 1_000_000;
/// Largest number of timings in one frame of a reply.
const TIMINGS_IN_FRAME: usize = 2048;

/// Operations of an agent.
pub trait Work {
    /// Describes the agent.
    fn describe(&self) -> Description;

    /// Measures messages to another agent; returns a description of the failure.
    fn measure(
        &self,
        address: SocketAddr,
        sampling: &Sampling,
        until: Instant,
    ) -> Result<Vec<Timing>, String>;

    /// Measures messages between cores, all usable ones by default, and passes on the results as long as they
    /// are accepted; returns a description of the failure.
    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        together: bool,
        sampling: &Sampling,
        until: Instant,
        send: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String>;
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The coordinator requested the agent to stop.
    End,
    /// The coordinator closed the connection and may reconnect.
    Closed,
}

/// Executes the requests of a coordinator until it closes the connection or the time limit is reached.
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
            // After an end request the coordinator may disconnect in any way.
            Err(_) if parting == Parting::End => return Ok(parting),
            body => body?,
        };
        let answer = match serde_json::from_slice(&body) {
            _ if requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS => {
                Answer::Failed(format!("an agent serves at most {REQUESTS} requests"))
            }
            Err(error) => Answer::Failed(format!("cannot parse the request: {error}")),
            Ok(Request::Describe) => Answer::Description(work.describe()),
            Ok(Request::End) => {
                parting = Parting::End;
                Answer::Done
            }
            Ok(request) => {
                let mut send = |answer: &Answer| send_answer(link, frames, answer);
                measured(request, work, until, &mut send)?
            }
        };
        send_answer(link, frames, &answer)?;
    }
}

/// Measures; returns the final reply.
fn measured<W: Work>(
    request: Request,
    work: &W,
    until: Instant,
    send: &mut dyn FnMut(&Answer) -> Result<(), FrameError>,
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
            let mut outcome = Ok(());
            let mut send_pairs = |pairs: Vec<CorePair>| {
                for part in pairs.chunks(in_frame) {
                    if outcome.is_ok() {
                        outcome = send(&Answer::Cores(part.to_vec()));
                    }
                }
                outcome.is_ok()
            };
            let done = work.cores(cores, together, &sampling, until, &mut send_pairs);
            outcome?;
            Ok(done.map_or_else(Answer::Failed, |()| Answer::Done))
        }
        Request::Describe | Request::End => Ok(Answer::Done),
    }
}

fn send_answer<L: Link>(link: &mut L, frames: &mut Frames, answer: &Answer) -> Result<(), FrameError> {
    // Replies are plain data with finite numbers, which always serialize to JSON.
    let body = serde_json::to_vec(answer).map_err(std::io::Error::from)?;
    Ok(frames.write(link, &body)?)
}
