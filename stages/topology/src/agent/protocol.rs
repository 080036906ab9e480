//! What a coordinator asks of an agent and what the agent answers, the limits of both, and the frames and connections that carry it.

use std::io;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use super::handshake::{Keys, Role};
use crate::probe::{Sampling, Timing};

/// Most bytes of a message that is timed.
pub const MESSAGE_BYTES: u64 = 64 << 20;
/// Most messages of one batch, and of one size.
pub const MESSAGES: u32 = 1_000_000;
/// Most sizes of one measurement.
pub const SIZES: usize = 64;
/// Most seconds of one measurement.
pub const SECONDS: f64 = 86_400.0;

/// What an agent may be asked for. There is nothing else it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Request {
    /// Who it is.
    Describe,
    /// Time messages to another agent.
    Measure {
        /// Where the other agent listens.
        address: SocketAddr,
        /// What to measure.
        sampling: Sampling,
        /// Seconds for all of it.
        seconds: f64,
    },
    /// Time messages between the cores of the host.
    Cores {
        /// Which cores; all that the agent may use if not said.
        cores: Option<Vec<u32>>,
        /// Whether all pairs of a round are measured at once.
        together: bool,
        /// What to measure.
        sampling: Sampling,
        /// Seconds for all of it.
        seconds: f64,
    },
    /// Stop as soon as this connection is closed.
    End,
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Describe`].
    Description(Description),
    /// To [`Request::Measure`].
    Timings(Vec<Timing>),
    /// To [`Request::Cores`], any number of times, before [`Self::Done`].
    Cores(Vec<CorePair>),
    /// That was all.
    Done,
    /// The request could not be fulfilled; the connection goes on.
    Failed(String),
}

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Name of its host.
    pub host: String,
    /// Cores it may use, as the operating system numbers them.
    pub cores: Vec<u32>,
    /// Version of its program.
    pub version: String,
    /// Seconds until it ends by itself.
    pub seconds_left: f64,
}

/// How long messages took between two cores of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePair {
    /// The core that sent and timed.
    pub source: u32,
    /// The core that answered.
    pub destination: u32,
    /// The times, size by size.
    pub timings: Vec<Timing>,
}

/// Says what is wrong with a measurement that nobody should do, whoever asks for it.
pub(super) fn refusal(sampling: &Sampling, seconds: f64) -> Option<String> {
    let Sampling { sizes, warm_up, warm_up_bytes: _, batch, most, calm_batches: _, tolerance, seconds: each } =
        sampling;
    let within = |seconds: f64| seconds.is_finite() && seconds > 0.0 && seconds <= SECONDS;
    let is_size = |bytes: &u64| (1..=MESSAGE_BYTES).contains(bytes);
    match () {
        () if sizes.is_empty() || sizes.len() > SIZES => {
            Some(format!("{} sizes are asked for; 1 to {SIZES} can be measured", sizes.len()))
        }
        () if !sizes.iter().all(is_size) => Some(format!("messages have 1 to {MESSAGE_BYTES} bytes")),
        () if *most == 0 || *batch == 0 => Some("`batch` and `most` are at least 1".to_owned()),
        () if (*most).max(*warm_up) > MESSAGES => {
            Some(format!("at most {MESSAGES} messages are sent of a size"))
        }
        () if !tolerance.is_finite() => Some("`tolerance` is not a number".to_owned()),
        () if !within(*each) || !within(seconds) => {
            Some(format!("seconds are more than 0 and at most {SECONDS}"))
        }
        () => None,
    }
}

/// Most bytes of a request.
pub const REQUEST_BYTES: usize = 64 << 10;
/// Most bytes of an answer.
pub const ANSWER_BYTES: usize = 1 << 20;
/// Within which a frame that has begun has to be there.
const WITHIN: Duration = Duration::from_secs(10);

const SEAL: usize = 32;

/// Why no frame came.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection was closed between two frames.
    #[error("closed the connection")]
    Closed,
    /// The connection broke in the middle, or time was over.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The frame is longer than it may be; nothing of it was read.
    #[error("announced {length} bytes, more than {limit}")]
    TooLong {
        /// Bytes it was said to have.
        length: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// The frame is not from whom the handshake was with, or not the next one.
    #[error("sent a frame that is not sealed as it should be")]
    Forged,
}

/// One side of a connection after the handshake.
///
/// Frames of a control connection: what was sent by whom, in order.
///
/// u32 length of the body, big endian; 32 bytes BLAKE3 of the frame's number (u64, little endian) and body, keyed by the keys of the
/// handshake; the body. Whoever sits on the way can neither change a frame, nor repeat, leave out or add one, without being noticed.
pub struct Frames {
    sending: [u8; 32],
    receiving: [u8; 32],
    sent: u64,
    received: u64,
}

impl Frames {
    /// The frames of the side with this role.
    #[must_use]
    pub fn new(role: Role, keys: &Keys) -> Self {
        let (sending, receiving) = match role {
            Role::Agent => (keys.from_agent, keys.to_agent),
            Role::Coordinator | Role::Peer => (keys.to_agent, keys.from_agent),
        };
        Self { sending, receiving, sent: 0, received: 0 }
    }

    /// Sends a frame.
    pub fn write<L: Link>(&mut self, link: &mut L, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let seal = seal(&self.sending, self.sent, body);
        self.sent += 1;
        let frame = [&length.to_be_bytes()[..], seal.as_bytes(), body].concat();
        write_all(link, &frame, Instant::now() + WITHIN)
    }

    /// Receives the next frame, which has to begin before a moment and may have so many bytes.
    pub fn read<L: Link>(
        &mut self,
        link: &mut L,
        limit: usize,
        begins: Instant,
    ) -> Result<Vec<u8>, FrameError> {
        let mut head = [0; 4 + SEAL];
        if let Err(error) = read_all(link, &mut head[..1], begins) {
            let is_closed = error.kind() == ErrorKind::UnexpectedEof;
            return Err(if is_closed { FrameError::Closed } else { error.into() });
        }
        let until = Instant::now() + WITHIN;
        read_all(link, &mut head[1..4], until)?;
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        read_all(link, &mut head[4..], until)?;
        let mut body = vec![0; length];
        read_all(link, &mut body, until)?;
        // Equality of hashes takes the same time wherever the difference is.
        let is_sealed = blake3::Hash::from_slice(&head[4..])
            .is_ok_and(|found| found == seal(&self.receiving, self.received, &body));
        self.received += 1;
        if is_sealed { Ok(body) } else { Err(FrameError::Forged) }
    }
}

fn seal(key: &[u8; 32], number: u64, body: &[u8]) -> blake3::Hash {
    blake3::Hasher::new_keyed(key).update(&number.to_le_bytes()).update(body).finalize()
}

/// A host that not even the kernel of which answers for so long is gone.
const GONE: Duration = Duration::from_secs(5);
/// Time between two questions to a host that has nothing to say.
const QUESTION: Duration = Duration::from_secs(1);

/// A connection whose reads and writes can be given a limit.
pub trait Link: Read + Write {
    /// From now on a read or write that gets nowhere for so long fails.
    fn limit(&mut self, each: Duration) -> io::Result<()>;
}

impl Link for TcpStream {
    fn limit(&mut self, each: Duration) -> io::Result<()> {
        // Zero would mean no limit at all.
        let each = Some(each.max(Duration::from_millis(1)));
        self.set_read_timeout(each)?;
        self.set_write_timeout(each)
    }
}

/// Lets a connection break soon after its other host is cut off, however long nobody has anything to say. Kernels answer each other:
/// a process may be busy for longer.
pub(super) fn watch(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, QUESTION)?;
    sockopt::set_tcp_keepintvl(stream, QUESTION)?;
    sockopt::set_tcp_keepcnt(stream, GONE.as_secs() as u32)?;
    Ok(sockopt::set_tcp_user_timeout(stream, GONE.as_millis() as u32)?)
}

/// Fills the buffer before a moment, however slowly its parts trickle in.
pub(super) fn read_all<L: Link>(link: &mut L, buffer: &mut [u8], until: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        link.limit(left(until)?)?;
        match link.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(timed(error)),
        }
    }
    Ok(())
}

/// Writes everything before a moment, however slowly it is taken.
pub(super) fn write_all<L: Link>(link: &mut L, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        link.limit(left(until)?)?;
        match link.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(timed(error)),
        }
    }
    link.flush()
}

/// Time until a moment, if any is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sockets say `WouldBlock` when their time is over.
pub(super) fn timed(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}
