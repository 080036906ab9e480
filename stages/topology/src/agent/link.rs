//! Connections whose reads and writes end in time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection whose reads and writes can be given a limit.
pub trait Link: Read + Write {
    /// From now on a read or write that gets nowhere for so long fails.
    fn limit(&mut self, each: Duration) -> io::Result<()>;

    /// Reads as [`Read::read`] does, for who waits for an answer that is timed.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(buffer)
    }
}

impl Link for TcpStream {
    fn limit(&mut self, each: Duration) -> io::Result<()> {
        // Zero would mean no limit at all.
        let each = Some(each.max(Duration::from_millis(1)));
        self.set_read_timeout(each)?;
        self.set_write_timeout(each)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let spin = *SPIN.get_or_init(|| std::env::var("SPIN").ok().and_then(|s| s.parse().ok()).unwrap_or(0));
        let yields = *YIELD.get_or_init(|| std::env::var("YIELD").is_ok());
        if spin > 0 {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(spin) {
                match rustix::net::recv(&*self, &mut *buffer, rustix::net::RecvFlags::DONTWAIT) {
                    Ok((_, count)) => return Ok(count),
                    Err(rustix::io::Errno::AGAIN) => {}
                    Err(error) => return Err(error.into()),
                }
                if yields {
                    std::thread::yield_now()
                }
            }
        }
        self.read(buffer)
    }
}
static SPIN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
static YIELD: std::sync::OnceLock<bool> = std::sync::OnceLock::new();

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
