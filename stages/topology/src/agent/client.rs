//! The side of a coordinator: one connection to one agent.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use miette::Diagnostic;

use super::handshake::{
    ANSWER_BYTES, FrameError, Frames, HandshakeError, Keys, Role, Token, VERSION, call, random_bytes,
};
use super::protocol::{Answer, CorePair, Description, Link, Request, watch};
use crate::probe::{Sampling, Timing};

/// What an agent may take longer than a measurement, for connecting to its peer and for the way of the answer.
const GRACE: Duration = Duration::from_secs(15);

/// What can go wrong with an agent. The first text is its address, with the name of its host once that is known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ClientError {
    /// Nobody listens there, or nobody can get there.
    #[error("agent {0} cannot be reached: {1}")]
    #[diagnostic(help(
        "is it still running, and does no firewall stand between? --bind says on which address it listens"
    ))]
    Unreachable(String, io::Error),
    /// The agent has another token.
    #[error("agent {0} does not take the token")]
    #[diagnostic(help("it was started with another one: give both sides the same HOPMAP_AGENT_TOKEN"))]
    Refused(String),
    /// Who listens there does not know the token.
    #[error("agent {0} takes the token without knowing it: it is not ours")]
    #[diagnostic(help("somebody else listens there or sits on the way; nothing was told to them"))]
    Impostor(String),
    /// The agent serves somebody else.
    #[error("agent {0} has a coordinator already")]
    #[diagnostic(help("an agent serves one coordinator at a time; is another one still connected?"))]
    Busy(String),
    /// Who listens there is something else.
    #[error("{0} is not an agent of hopmap")]
    #[diagnostic(help("the address and port of an agent are in the line that it prints when it is ready"))]
    NotAnAgent(String),
    /// Agent and coordinator are of different versions.
    #[error("agent {0} speaks version {1} of the protocol, not {VERSION}")]
    #[diagnostic(help("start the agent from the same hopmap"))]
    OtherVersion(String, u16),
    /// Nothing came for long.
    #[error("agent {0} has said nothing for {1:.0} s")]
    #[diagnostic(help("its host or the way to it is stuck, or far too busy"))]
    Silent(String, f64),
    /// What came is not what agents say.
    #[error("agent {0} answers what cannot be: {1}")]
    #[diagnostic(help("start the agent from the same hopmap, and see that nobody sits on the way"))]
    Nonsense(String, String),
    /// The connection broke.
    #[error("agent {0} is gone: {1}")]
    #[diagnostic(help("it was ended, its time limit was reached (--seconds), or its host went down"))]
    Gone(String, String),
    /// The agent could not do what it was asked for. The connection can be used further.
    #[error("agent {0}: {1}")]
    Failed(String, String),
    /// Random bytes could not be had.
    #[error("the operating system gives no random bytes: {0}")]
    Random(rand::rngs::SysError),
}

/// A connection to an agent that knows the same token.
pub struct AgentConnection<L: Link = TcpStream> {
    link: L,
    frames: Frames,
    agent: String,
    timeout: Duration,
}

impl AgentConnection {
    /// Connects to an agent. Connecting, and every answer that needs no measuring, may take as long as `timeout`.
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
    /// A connection whose handshake was made.
    pub fn over(link: L, keys: &Keys, agent: String, timeout: Duration) -> Self {
        Self { link, frames: Frames::new(Role::Coordinator, keys), agent, timeout }
    }

    /// Address of the agent, with the name of its host once it was asked.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Asks who it is.
    pub fn describe(&mut self) -> Result<Description, ClientError> {
        match self.ask(&Request::Describe, self.timeout)? {
            Answer::Description(description) => {
                if !self.agent.contains('(') {
                    // A name that is not printable would spoil every message.
                    let host: String = description.host.escape_debug().take(255).collect();
                    self.agent = format!("{host} ({})", self.agent);
                }
                Ok(description)
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Has it time messages to another agent with the same token, for so many seconds at most.
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

    /// Has it time messages between cores of its host, all that it may use if none are given, for so many seconds at most; all pairs
    /// of a round at once if they are to be measured together.
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
                    // A host that answers more pairs than there can be does not answer for ever.
                    if found.len() > MOST_PAIRS {
                        return Err(self.nonsense(format!("more than {MOST_PAIRS} pairs of cores")));
                    }
                }
                other => return Err(self.unexpected(&other)),
            }
            answer = self.hear(grace(seconds))?;
        }
    }

    /// Asks it to end, which it does as soon as the connection is closed.
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
        self.hear(within)
    }

    fn hear(&mut self, within: Duration) -> Result<Answer, ClientError> {
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
            Answer::Timings(_) => "times of other messages",
            Answer::Cores(_) => "times of other cores",
            Answer::Done => "that it is done",
            Answer::Failed(_) => "a failure",
        };
        self.nonsense(format!("{what} where that was not asked for"))
    }

    fn nonsense(&self, what: String) -> ClientError {
        ClientError::Nonsense(self.agent.clone(), what)
    }
}

/// Pairs of 2048 cores.
const MOST_PAIRS: usize = 2048 * 2047 / 2;

/// One timing for every size, in numbers that can be.
fn is_answer_to(timings: &[Timing], sampling: &Sampling) -> bool {
    let can_be = |timing: &Timing| {
        let times = &timing.times;
        timing.messages > 0 && times.iter().all(|time| time.is_finite() && *time >= 0.0) && times.is_sorted()
    };
    timings.iter().map(|timing| timing.bytes).eq(sampling.sizes.iter().copied()) && timings.iter().all(can_be)
}

fn grace(seconds: f64) -> Duration {
    // What no agent would accept need not be waited for.
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
