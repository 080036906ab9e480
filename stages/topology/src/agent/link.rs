//! Connections whose reads and writes end in time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

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
