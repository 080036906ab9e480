//! Messages between two agents, measured by the sender.
//!
//! A batch is announced by u64 bytes per message and u32 messages, big endian, and acknowledged by one byte,
//! so that the receiver is reading when the first message leaves. Each message is then acknowledged by one
//! byte.
//!
//! Both sides wait in a blocking read. Polling saves a quarter of a round trip over loopback if there are
//! idle cores. Without idle cores it takes milliseconds, and load on the hosts must not look like a change of
//! the pair.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::handshake::{HandshakeError, Role, Token, call, random_bytes};
use super::protocol::{Link, MESSAGE_BYTES, MESSAGES, read_all, timed, watch, write_all};
use crate::probe::Wire;

/// Bytes per read or write; messages may be larger.
const PORTION: usize = 256 << 10;
/// Timeout for a silent peer within a batch.
const SILENCE: Duration = Duration::from_secs(10);
/// Time that a replying agent waits for the next batch.
const IDLE: Duration = Duration::from_mins(1);
/// Time limit for the connection and its handshake.
const OPENING: Duration = Duration::from_secs(5);
const ANSWER: [u8; 1] = [b'.'];

/// A connection to another agent.
pub struct TcpWire<L: Link = TcpStream> {
    link: L,
    until: Instant,
    portion: Vec<u8>,
}

/// Errors of a connection to another agent.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection was refused or timed out.
    #[error("cannot be reached: {0}")]
    Unreachable(io::Error),
    /// The listener is not an agent with the same token.
    #[error("{0}")]
    Handshake(HandshakeError),
    /// The time limit was reached.
    #[error("answers, but not all sizes were measured in time")]
    OutOfTime,
    /// The agent sent nothing for too long.
    #[error("sent no data for {} s", SILENCE.as_secs())]
    Silent,
    /// The connection was lost.
    #[error("the connection was lost: {0}")]
    Broken(io::Error),
    /// No random bytes are available.
    #[error("cannot get random bytes from the operating system: {0}")]
    Random(rand::rngs::SysError),
    /// The batch exceeds the limits.
    #[error("{messages} messages of {bytes} bytes exceed the limit")]
    TooMuch {
        /// Bytes per message.
        bytes: u64,
        /// Messages of the batch.
        messages: u32,
    },
}

impl TcpWire {
    /// Connects to another agent that knows the token; measurements end at a deadline.
    pub fn connect(address: SocketAddr, token: &Token, until: Instant) -> Result<Self, WireError> {
        let opened = until.min(Instant::now() + OPENING);
        let left = opened.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut stream = TcpStream::connect_timeout(&address, left).map_err(WireError::Unreachable)?;
        stream.set_nodelay(true).and_then(|()| watch(&stream)).map_err(WireError::Broken)?;
        let nonce = random_bytes().map_err(WireError::Random)?;
        call(&mut stream, Role::Peer, token, &nonce, opened).map_err(|error| match error {
            error if error.is_silence() => WireError::Silent,
            HandshakeError::Io(error) => WireError::Broken(error),
            error => WireError::Handshake(error),
        })?;
        Ok(Self::over(stream, until))
    }

    /// The stream, to close it from another thread.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.link
    }
}

impl<L: Link> TcpWire<L> {
    /// A wire over an open connection.
    pub fn over(link: L, until: Instant) -> Self {
        // Incompressible data, for networks that compress.
        let mut noise = 0_u64;
        let bytes = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (noise >> 56) as u8
        });
        Self { link, until, portion: bytes.take(PORTION).collect() }
    }

    fn exchange(&mut self, bytes: u64) -> Result<(), WireError> {
        let mut left = bytes;
        while left > 0 {
            let portion = left.min(PORTION as u64) as usize;
            self.link.write_all(&self.portion[..portion]).map_err(broken)?;
            left -= portion as u64;
            if left > 0 && Instant::now() > self.until {
                return Err(WireError::OutOfTime);
            }
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<(), WireError> {
        let mut answer = [0];
        match receive(&mut self.link, &mut answer).map_err(broken)? {
            0 => Err(WireError::Broken(ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}

impl<L: Link> Wire for TcpWire<L> {
    type Error = WireError;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), WireError> {
        if !may_be_sent(bytes, messages) {
            return Err(WireError::TooMuch { bytes, messages });
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WireError::OutOfTime);
        }
        self.link.limit(left.min(SILENCE)).map_err(WireError::Broken)?;
        self.link.write_all(&announcement(bytes, messages)).map_err(broken)?;
        self.answer()?;
        for _ in 0..messages {
            let begun = Instant::now();
            self.exchange(bytes)?;
            let ended = Instant::now();
            times.push((ended - begun).as_secs_f64());
            if ended > self.until {
                return Err(WireError::OutOfTime);
            }
        }
        Ok(())
    }
}

fn broken(error: io::Error) -> WireError {
    match timed(error) {
        error if error.kind() == ErrorKind::TimedOut => WireError::Silent,
        error => WireError::Broken(error),
    }
}

fn may_be_sent(bytes: u64, messages: u32) -> bool {
    (1..=MESSAGE_BYTES).contains(&bytes) && messages <= MESSAGES
}

fn announcement(bytes: u64, messages: u32) -> [u8; 12] {
    let mut announcement = [0; 12];
    announcement[..8].copy_from_slice(&bytes.to_be_bytes());
    announcement[8..].copy_from_slice(&messages.to_be_bytes());
    announcement
}

/// Replies to messages until the other side closes the connection or the deadline passes. Memory does not
/// depend on announced sizes.
pub fn respond<L: Link>(link: &mut L, until: Instant) -> io::Result<()> {
    let mut portion = vec![0; PORTION];
    loop {
        let mut head = [0; 12];
        let idle = until.min(Instant::now() + IDLE);
        match read_all(link, &mut head[..1], idle) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            begun => begun?,
        }
        read_all(link, &mut head[1..], until.min(Instant::now() + SILENCE))?;
        let [b0, b1, b2, b3, b4, b5, b6, b7, m0, m1, m2, m3] = head;
        let bytes = u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
        let messages = u32::from_be_bytes([m0, m1, m2, m3]);
        if !may_be_sent(bytes, messages) {
            return Err(ErrorKind::InvalidData.into());
        }
        let left = until.saturating_duration_since(Instant::now());
        link.limit(left.min(SILENCE))?;
        write_all(link, &ANSWER, until)?;
        link.limit(left.min(SILENCE))?;
        for _ in 0..messages {
            swallow(link, bytes, &mut portion)?;
            link.write_all(&ANSWER)?;
            if Instant::now() > until {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}

fn swallow<L: Link>(link: &mut L, bytes: u64, portion: &mut [u8]) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let most = left.min(portion.len() as u64) as usize;
        match receive(link, &mut portion[..most])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}

fn receive<L: Link>(link: &mut L, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match link.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.map_err(timed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A connection and the behaviour of its other end.
    fn answered_by(other: impl FnOnce(TcpStream) + Send + 'static) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nodelay(true).unwrap();
        std::thread::spawn(move || other(accepted));
        stream
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn messages_of_all_sizes_are_answered() {
        let stream = answered_by(|mut other| respond(&mut other, soon()).unwrap());
        let mut wire = TcpWire::over(stream, soon());
        let mut times = Vec::new();
        for bytes in [1, 7, PORTION as u64 - 1, PORTION as u64 + 1, 3 << 20] {
            wire.time(bytes, 3, &mut times).unwrap();
        }
        wire.time(9, 0, &mut times).unwrap();
        assert_eq!(times.len(), 15);
        assert!(times.iter().all(|time| *time > 0.0));
    }

    #[test]
    fn oversized_batches_are_not_sent() {
        let stream = answered_by(|_| {});
        let mut wire = TcpWire::over(stream, soon());
        for (bytes, messages) in [(0, 1), (MESSAGE_BYTES + 1, 1), (1, MESSAGES + 1)] {
            let error = wire.time(bytes, messages, &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains("exceed the limit"));
            let mut stream = answered_by(move |mut other| {
                let _ = io::Write::write_all(&mut other, &announcement(bytes, messages));
            });
            assert_eq!(respond(&mut stream, soon()).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_broken_connection_differs_from_a_completed_one() {
        let stream = answered_by(|mut other| {
            let mut some = [0; 12];
            io::Read::read_exact(&mut other, &mut some).unwrap();
            let _ = io::Write::write_all(&mut other, &ANSWER);
        });
        let error = TcpWire::over(stream, soon()).time(1 << 20, 1, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, WireError::Broken(_)), "{error}");
        let mut stream = answered_by(|mut other| {
            let _ = io::Write::write_all(&mut other, &announcement(100, 1));
        });
        assert!(respond(&mut stream, soon()).is_err());
        let mut stream = answered_by(|_| {});
        respond(&mut stream, soon()).unwrap();
    }

    #[test]
    fn a_wire_ends_at_its_deadline() {
        let stream = answered_by(|mut other| respond(&mut other, soon()).unwrap());
        let mut wire = TcpWire::over(stream, Instant::now() + Duration::from_millis(50));
        let ended = (0..).find_map(|_| wire.time(1, 1000, &mut Vec::new()).err()).unwrap();
        assert!(matches!(ended, WireError::OutOfTime), "{ended}");
    }
}
