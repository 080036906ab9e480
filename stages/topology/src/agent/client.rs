//! The coordinator side: a connection to one agent.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use miette::Diagnostic;

use super::handshake::{
    ANSWER_BYTES, FrameError, Frames, HandshakeError, Keys, Role, Token, VERSION, call, random_bytes,
};
use super::protocol::{Answer, CorePair, Description, Link, Request, watch};
use crate::probe::{Sampling, Timing};

/// Extra time for an agent beyond its measurement, for connecting to its peer and for sending the reply.
const GRACE: Duration = Duration::from_secs(15);

/// Errors of an agent. The first field is its address, with its host name once known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ClientError {
    /// The connection was refused or timed out.
    #[error("agent {0} cannot be reached: {1}")]
    #[diagnostic(
        code(topology::unreachable),
        help(
            "check that it is running and that no firewall blocks the connection; --bind sets its listen address"
        )
    )]
    Unreachable(String, io::Error),
    /// The agent has a different token.
    #[error("agent {0} rejected the token")]
    #[diagnostic(
        code(topology::refused),
        help("it was started with another token; give both sides the same HOPMAP_AGENT_TOKEN")
    )]
    Refused(String),
    /// The listener accepted the token without proving that it knows it.
    #[error("{0} accepted the token without proving that it knows it")]
    #[diagnostic(
        code(topology::impostor),
        help("another program listens there or intercepts the connection; no request was sent to it")
    )]
    Impostor(String),
    /// The agent serves another coordinator.
    #[error("agent {0} already has a coordinator")]
    #[diagnostic(
        code(topology::busy),
        help("an agent serves one coordinator at a time; check whether another one is still connected")
    )]
    Busy(String),
    /// The listener is not an agent.
    #[error("{0} is not a hopmap agent")]
    #[diagnostic(code(topology::not_an_agent), help("an agent prints its address and port when it is ready"))]
    NotAnAgent(String),
    /// Agent and coordinator have different protocol versions.
    #[error("agent {0} uses protocol version {1}, not {VERSION}")]
    #[diagnostic(code(topology::other_version), help("use the same version of hopmap for the agent"))]
    OtherVersion(String, u16),
    /// The agent sent nothing for too long.
    #[error("no data from agent {0} for {1:.0} s")]
    #[diagnostic(code(topology::silent), help("its host or the network hangs or is overloaded"))]
    Silent(String, f64),
    /// The reply is not valid.
    #[error("invalid reply from agent {0}: {1}")]
    #[diagnostic(
        code(topology::nonsense),
        help(
            "use the same version of hopmap for the agent, and check that nothing intercepts the connection"
        )
    )]
    Nonsense(String, String),
    /// The connection was lost.
    #[error("lost the connection to agent {0}: {1}")]
    #[diagnostic(
        code(topology::gone),
        help("it was stopped, reached its time limit (--time-limit), or its host went down")
    )]
    Gone(String, String),
    /// The agent could not execute the request. The connection remains usable.
    #[error("agent {0}: {1}")]
    #[diagnostic(code(topology::failed))]
    Failed(String, String),
    /// No random bytes are available.
    #[error("cannot get random bytes from the operating system: {0}")]
    #[diagnostic(code(topology::random))]
    Random(rand::rngs::SysError),
}

/// An authenticated connection to an agent.
pub struct AgentConnection<L: Link = TcpStream> {
    link: L,
    frames: Frames,
    agent: String,
    timeout: Duration,
}

impl AgentConnection {
    /// Connects to an agent. `timeout` limits the connection and every reply that needs no measurement.
    pub fn connect(address: SocketAddr, token: &Token, timeout: Duration) -> Result<Self, ClientError> {
        let agent = address.to_string();
        let timeout = timeout.max(Duration::from_millis(1));
        let until = Instant::now() + timeout;
        let opened = TcpStream::connect_timeout(&address, timeout);
        let opened = opened.and_then(|stream| {
            stream.set_nodelay(true)?;
            watch(&stream)?;
            Ok(stream)
        });
        let mut stream = opened.map_err(|error| ClientError::Unreachable(agent.clone(), error))?;
        let nonce = random_bytes().map_err(ClientError::Random)?;
        let keys = call(&mut stream, Role::Coordinator, token, &nonce, until);
        let keys = keys.map_err(|error| not_opened(error, agent.clone(), timeout))?;
        Ok(Self::over(stream, &keys, agent, timeout))
    }
}

impl<L: Link> AgentConnection<L> {
    /// A connection after a successful handshake.
    pub fn over(link: L, keys: &Keys, agent: String, timeout: Duration) -> Self {
        Self { link, frames: Frames::new(Role::Coordinator, keys), agent, timeout }
    }

    /// Address of the agent, with its host name after [`Self::describe`].
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Requests the description of the agent.
    pub fn describe(&mut self) -> Result<Description, ClientError> {
        match self.ask(&Request::Describe, self.timeout)? {
            Answer::Description(description) => {
                if !self.agent.contains('(') {
                    // Non-printable names would garble messages.
                    let host: String = description.host.escape_debug().take(255).collect();
                    self.agent = format!("{host} ({})", self.agent);
                }
                Ok(description)
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Requests measurements to another agent with the same token, taking at most `seconds`.
    pub fn measure(
        &mut self,
        address: SocketAddr,
        sampling: &Sampling,
        seconds: f64,
    ) -> Result<Vec<Timing>, ClientError> {
        let request = Request::Measure { address, sampling: sampling.clone(), seconds };
        match self.ask(&request, grace(seconds))? {
            Answer::Timings(timings) if is_answer_to(&timings, sampling) => Ok(timings),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Requests measurements between cores of the host, all usable ones by default, taking at most `seconds`;
    /// with `together` all pairs of a round at once.
    pub fn cores(
        &mut self,
        cores: Option<&[u32]>,
        together: bool,
        sampling: &Sampling,
        seconds: f64,
    ) -> Result<Vec<CorePair>, ClientError> {
        let cores = cores.map(<[u32]>::to_vec);
        let request = Request::Cores { cores, together, sampling: sampling.clone(), seconds };
        let mut answer = self.ask(&request, grace(seconds))?;
        let mut found = Vec::new();
        loop {
            match answer {
                Answer::Done => return Ok(found),
                Answer::Cores(pairs)
                    if !pairs.is_empty()
                        && pairs.iter().all(|pair| is_answer_to(&pair.timings, sampling)) =>
                {
                    found.extend(pairs);
                    // An agent that reports too many pairs must not keep the coordinator busy forever.
                    if found.len() > MOST_PAIRS {
                        return Err(self.nonsense(format!("more than {MOST_PAIRS} pairs of cores")));
                    }
                }
                other => return Err(self.unexpected(&other)),
            }
            answer = self.receive(grace(seconds))?;
        }
    }

    /// Requests the agent to stop, which it does as soon as the connection is closed.
    pub fn end(mut self) -> Result<(), ClientError> {
        match self.ask(&Request::End, self.timeout)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&mut self, request: &Request, within: Duration) -> Result<Answer, ClientError> {
        let body = serde_json::to_vec(request).map_err(|error| self.nonsense(error.to_string()))?;
        let begun = Instant::now();
        self.frames.write(&mut self.link, &body).map_err(|error| self.lost(error.into(), begun))?;
        self.receive(within)
    }

    fn receive(&mut self, within: Duration) -> Result<Answer, ClientError> {
        let begun = Instant::now();
        let body = self.frames.read(&mut self.link, ANSWER_BYTES, begun + within);
        let body = body.map_err(|error| self.lost(error, begun))?;
        match serde_json::from_slice(&body) {
            Ok(Answer::Failed(message)) => {
                let message = message.escape_debug().take(1000).collect();
                Err(ClientError::Failed(self.agent.clone(), message))
            }
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.nonsense(error.to_string())),
        }
    }

    fn lost(&self, error: FrameError, begun: Instant) -> ClientError {
        let agent = self.agent.clone();
        match error {
            FrameError::Closed => ClientError::Gone(agent, "it closed the connection".to_owned()),
            FrameError::Io(error) if error.kind() == ErrorKind::TimedOut => {
                ClientError::Silent(agent, begun.elapsed().as_secs_f64())
            }
            FrameError::Io(error) => ClientError::Gone(agent, error.to_string()),
            FrameError::TooLong { .. } | FrameError::Forged => self.nonsense(format!("it {error}")),
        }
    }

    fn unexpected(&self, answer: &Answer) -> ClientError {
        let what = match answer {
            Answer::Description(_) => "a description",
            Answer::Timings(_) => "times of unrequested messages",
            Answer::Cores(_) => "times of unrequested cores",
            Answer::Done => "the end of a request",
            Answer::Failed(_) => "a failure",
        };
        self.nonsense(format!("unexpected {what}"))
    }

    fn nonsense(&self, what: String) -> ClientError {
        ClientError::Nonsense(self.agent.clone(), what)
    }
}

/// Number of pairs of 2048 cores.
const MOST_PAIRS: usize = 2048 * 2047 / 2;

/// Whether there is one valid timing per requested size.
fn is_answer_to(timings: &[Timing], sampling: &Sampling) -> bool {
    let can_be = |timing: &Timing| {
        let times = &timing.times;
        timing.messages > 0 && times.iter().all(|time| time.is_finite() && *time >= 0.0) && times.is_sorted()
    };
    timings.iter().map(|timing| timing.bytes).eq(sampling.sizes.iter().copied()) && timings.iter().all(can_be)
}

fn grace(seconds: f64) -> Duration {
    // Requests beyond this are rejected by every agent.
    Duration::try_from_secs_f64(seconds.min(super::protocol::SECONDS)).unwrap_or_default() + GRACE
}

fn not_opened(error: HandshakeError, agent: String, timeout: Duration) -> ClientError {
    match error {
        error if error.is_silence() => ClientError::Silent(agent, timeout.as_secs_f64()),
        HandshakeError::Io(error) => ClientError::Gone(agent, error.to_string()),
        HandshakeError::Stranger => ClientError::NotAnAgent(agent),
        HandshakeError::Version(found) => ClientError::OtherVersion(agent, found),
        HandshakeError::Unproven => ClientError::Impostor(agent),
        HandshakeError::Refused => ClientError::Refused(agent),
        HandshakeError::Busy => ClientError::Busy(agent),
    }
}
