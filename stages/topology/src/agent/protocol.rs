//! Requests of a coordinator, replies of an agent, their limits, and the connections that carry them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::probe::{Sampling, Timing};

/// Largest measured message, in bytes.
pub const MESSAGE_BYTES: u64 = 64 << 20;
/// Largest number of messages of one batch, and of one size.
pub const MESSAGES: u32 = 1_000_000;
/// Largest number of sizes of one measurement.
pub const SIZES: usize = 64;
/// Time limit of one measurement, in seconds.
pub const SECONDS: f64 = 86_400.0;

/// Requests to an agent; it does nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Request {
    /// Describe yourself.
    Describe,
    /// Measure messages to another agent.
    Measure {
        /// Listen address of the other agent.
        address: SocketAddr,
        /// What to measure.
        sampling: Sampling,
        /// Time limit in seconds.
        seconds: f64,
    },
    /// Measure messages between the cores of the host.
    Cores {
        /// Cores to measure; all usable ones by default.
        cores: Option<Vec<u32>>,
        /// Whether all pairs of a round are measured at once.
        together: bool,
        /// What to measure.
        sampling: Sampling,
        /// Time limit in seconds.
        seconds: f64,
    },
    /// Stop as soon as this connection is closed.
    End,
}

/// Replies of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Answer {
    /// Reply to [`Request::Describe`].
    Description(Description),
    /// Reply to [`Request::Measure`].
    Timings(Vec<Timing>),
    /// Reply to [`Request::Cores`], any number of times before [`Self::Done`].
    Cores(Vec<CorePair>),
    /// End of a reply.
    Done,
    /// The request failed; the connection remains usable.
    Failed(String),
}

/// Description of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Name of its host.
    pub host: String,
    /// Cores it may use, in the numbering of the operating system.
    pub cores: Vec<u32>,
    /// Program version.
    pub version: String,
    /// Seconds until it exits.
    pub seconds_left: f64,
}

/// Message times between two cores of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePair {
    /// The core that sent and measured.
    pub source: u32,
    /// The core that replied.
    pub destination: u32,
    /// The times by size.
    pub timings: Vec<Timing>,
}

/// Why a measurement request is rejected, if it is.
pub(super) fn refusal(sampling: &Sampling, seconds: f64) -> Option<String> {
    let Sampling { sizes, warm_up, warm_up_bytes: _, batch, most, calm_batches: _, tolerance, seconds: each } =
        sampling;
    let within = |seconds: f64| seconds.is_finite() && seconds > 0.0 && seconds <= SECONDS;
    let is_size = |bytes: &u64| (1..=MESSAGE_BYTES).contains(bytes);
    match () {
        () if sizes.is_empty() || sizes.len() > SIZES => {
            Some(format!("{} sizes requested, allowed are 1 to {SIZES}", sizes.len()))
        }
        () if !sizes.iter().all(is_size) => {
            Some(format!("message sizes must be from 1 to {MESSAGE_BYTES} bytes"))
        }
        () if *most == 0 || *batch == 0 => Some("`batch` and `most` must be at least 1".to_owned()),
        () if (*most).max(*warm_up) > MESSAGES => {
            Some(format!("at most {MESSAGES} messages are sent per size"))
        }
        () if !tolerance.is_finite() => Some("`tolerance` is not a finite number".to_owned()),
        () if !within(*each) || !within(seconds) => {
            Some(format!("seconds must be above 0 and at most {SECONDS}"))
        }
        () => None,
    }
}

/// A host whose kernel sends no TCP acknowledgement for this long is lost.
const GONE: Duration = Duration::from_secs(5);
/// Interval of TCP keep-alive probes to an idle host.
const QUESTION: Duration = Duration::from_secs(1);

/// A connection whose reads and writes can have a time limit.
pub trait Link: Read + Write {
    /// Sets the time after which a read or write without progress fails.
    fn limit(&mut self, each: Duration) -> io::Result<()>;
}

impl Link for TcpStream {
    fn limit(&mut self, each: Duration) -> io::Result<()> {
        // Zero would mean no limit.
        let each = Some(each.max(Duration::from_millis(1)));
        self.set_read_timeout(each)?;
        self.set_write_timeout(each)
    }
}

/// Makes a connection fail soon after its other host is cut off, however long both sides are silent. Kernels
/// acknowledge each other even if a process is busy for longer.
pub(super) fn watch(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, QUESTION)?;
    sockopt::set_tcp_keepintvl(stream, QUESTION)?;
    sockopt::set_tcp_keepcnt(stream, GONE.as_secs() as u32)?;
    Ok(sockopt::set_tcp_user_timeout(stream, GONE.as_millis() as u32)?)
}

/// Fills the buffer before a deadline, however slowly data arrives.
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

/// Writes everything before a deadline, however slowly it is accepted.
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

/// Time until a deadline; an error if it has passed.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sockets report `WouldBlock` for a timeout.
pub(super) fn timed(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}
