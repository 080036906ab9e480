//! What a coordinator asks of an agent and what the agent answers, the limits of both, and the connections that carry it.

use std::io;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

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
