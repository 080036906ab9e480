//! Frames of a control connection: what was sent by whom, in order.
//!
//! u32 length of the body, big endian; 32 bytes BLAKE3 of the frame's number (u64, little endian) and body, keyed by the keys of the
//! handshake; the body. Whoever sits on the way can neither change a frame, nor repeat, leave out or add one, without being noticed.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use super::handshake::{Keys, Role};
use super::link::{Link, read_all, write_all};

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
