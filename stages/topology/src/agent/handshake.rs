//! The handshake, in which both sides prove that they know the token, and the frames authenticated with its
//! keys.
//!
//! Each side sends its role and 32 random bytes in the clear. Each then proves knowledge of the token with a
//! hash of both greetings, keyed by the token: the caller first, so that an agent reveals nothing to
//! strangers. The labels of the two proofs differ and the random bytes are new for every connection, so a
//! proof can be neither reflected nor replayed.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use miette::Diagnostic;
use rand::TryRng;
use rand::rngs::{SysError, SysRng};

use super::protocol::{Link, read_all, write_all};

/// Start of a greeting.
const MAGIC: [u8; 8] = *b"hopmap-a";
/// Protocol version; both sides must use the same one.
pub const VERSION: u16 = 1;
/// Bytes of a greeting: magic, version, role, random bytes.
const GREETING: usize = 8 + 2 + 1 + 32;

const WELCOME: u8 = 1;
const REFUSED: u8 = 2;
const BUSY: u8 = 3;

/// Random bytes that are used once.
pub type Nonce = [u8; 32];
type Greeting = [u8; GREETING];

/// Role of a side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends requests to an agent.
    Coordinator,
    /// Another agent that measures messages.
    Peer,
    /// Replies.
    Agent,
}

/// Keys that authenticate the frames of one connection.
#[derive(Clone, Copy)]
pub struct Keys {
    /// For frames to the agent.
    pub(super) to_agent: [u8; 32],
    /// For frames from the agent.
    pub(super) from_agent: [u8; 32],
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection was lost or timed out.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The other side does not use this protocol.
    #[error("does not use hopmap's protocol")]
    Stranger,
    /// The other side uses another version.
    #[error("uses protocol version {0}, not {VERSION}")]
    Version(u16),
    /// The other side does not know the token.
    #[error("does not know the token")]
    Unproven,
    /// The other side rejects this side's token.
    #[error("rejected the token")]
    Refused,
    /// The other side knows the token but accepts no further connection.
    #[error("accepts no further connections")]
    Busy,
}

/// Connects to an agent: both sides prove that they know the token.
pub fn call<L: Link>(
    link: &mut L,
    role: Role,
    token: &Token,
    nonce: &Nonce,
    until: Instant,
) -> Result<Keys, HandshakeError> {
    let ours = greeting(role, nonce);
    write_all(link, &ours, until)?;
    let mut theirs = [0; GREETING];
    read_all(link, &mut theirs, until)?;
    if understood(&theirs)? != Role::Agent {
        return Err(HandshakeError::Stranger);
    }
    let transcript = Transcript { token, call: &ours, answer: &theirs };
    write_all(link, transcript.hash(b"proof of caller ").as_bytes(), until)?;
    let mut verdict = [0; 1 + 32];
    read_all(link, &mut verdict[..1], until)?;
    match verdict[0] {
        WELCOME => read_all(link, &mut verdict[1..], until)?,
        REFUSED => return Err(HandshakeError::Refused),
        BUSY => return Err(HandshakeError::Busy),
        _ => return Err(HandshakeError::Stranger),
    }
    if !transcript.is_proven(b"proof of agent  ", &verdict[1..]) {
        return Err(HandshakeError::Unproven);
    }
    Ok(transcript.keys())
}

/// A caller that knows the token.
pub struct Caller {
    /// The role of the caller.
    pub role: Role,
    /// Keys of the connection.
    pub keys: Keys,
    proof: blake3::Hash,
}

/// Receives a handshake and checks that the caller knows the token. The caller is neither accepted nor
/// rejected yet.
pub fn answer<L: Link>(
    link: &mut L,
    token: &Token,
    nonce: &Nonce,
    until: Instant,
) -> Result<Caller, HandshakeError> {
    let mut theirs = [0; GREETING];
    read_all(link, &mut theirs, until)?;
    let role = understood(&theirs);
    let ours = greeting(Role::Agent, nonce);
    // A caller with another version learns the version from the greeting; other callers learn nothing.
    if matches!(role, Ok(_) | Err(HandshakeError::Version(_))) {
        write_all(link, &ours, until)?;
    }
    let role = role?;
    if role == Role::Agent {
        return Err(HandshakeError::Stranger);
    }
    let mut proof = [0; 32];
    read_all(link, &mut proof, until)?;
    let transcript = Transcript { token, call: &theirs, answer: &ours };
    if !transcript.is_proven(b"proof of caller ", &proof) {
        // It does not matter whether this arrives.
        let _ = write_all(link, &[REFUSED], until);
        return Err(HandshakeError::Unproven);
    }
    Ok(Caller { role, keys: transcript.keys(), proof: transcript.hash(b"proof of agent  ") })
}

impl Caller {
    /// Accepts the caller and proves that this side knows the token.
    pub fn welcome<L: Link>(&self, link: &mut L, until: Instant) -> Result<(), HandshakeError> {
        let mut verdict = [WELCOME; 1 + 32];
        verdict[1..].copy_from_slice(self.proof.as_bytes());
        Ok(write_all(link, &verdict, until)?)
    }

    /// Rejects the caller because all places are taken.
    pub fn send_away<L: Link>(&self, link: &mut L, until: Instant) -> Result<(), HandshakeError> {
        write_all(link, &[BUSY], until)?;
        Err(HandshakeError::Busy)
    }
}

impl HandshakeError {
    /// Whether the other side sent nothing in time.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::TimedOut)
    }
}

/// The greetings of both sides.
struct Transcript<'a> {
    token: &'a Token,
    call: &'a Greeting,
    answer: &'a Greeting,
}

impl Transcript<'_> {
    /// Hash of a label and both greetings, keyed by the token.
    fn hash(&self, label: &[u8; 16]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(self.token.key());
        hasher.update(label).update(self.call).update(self.answer).finalize()
    }

    fn is_proven(&self, label: &[u8; 16], proof: &[u8]) -> bool {
        // `blake3::Hash` compares in constant time, so timing reveals nothing.
        blake3::Hash::from_slice(proof).is_ok_and(|proof| proof == self.hash(label))
    }

    fn keys(&self) -> Keys {
        Keys {
            to_agent: *self.hash(b"frames to agent ").as_bytes(),
            from_agent: *self.hash(b"frames by agent ").as_bytes(),
        }
    }
}

fn greeting(role: Role, nonce: &Nonce) -> Greeting {
    let mut greeting = [0; GREETING];
    greeting[..8].copy_from_slice(&MAGIC);
    greeting[8..10].copy_from_slice(&VERSION.to_be_bytes());
    greeting[10] = role as u8;
    greeting[11..].copy_from_slice(nonce);
    greeting
}

fn understood(greeting: &Greeting) -> Result<Role, HandshakeError> {
    if greeting[..8] != MAGIC {
        return Err(HandshakeError::Stranger);
    }
    let version = u16::from_be_bytes([greeting[8], greeting[9]]);
    if version != VERSION {
        return Err(HandshakeError::Version(version));
    }
    let roles = [Role::Coordinator, Role::Peer, Role::Agent];
    roles.into_iter().find(|role| *role as u8 == greeting[10]).ok_or(HandshakeError::Stranger)
}

/// Bytes of a token.
const BYTES: usize = 32;

/// The shared secret of agents and coordinators. It is never sent over a connection or shown.
#[derive(Clone)]
pub struct Token([u8; BYTES]);

/// Text that is not a token. The message does not repeat the text, which may be most of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("a token has 64 hexadecimal digits, and this text has {letters} letters{}", if *.letters == 64 { ", not all of them digits" } else { "" })]
#[diagnostic(code(topology::token), help("create one with `(umask 077; openssl rand -hex 32 > token)`"))]
pub struct TokenError {
    letters: usize,
}

impl Token {
    /// A new random token.
    pub fn random() -> Result<Self, SysError> {
        random_bytes().map(Self)
    }

    /// Parses 64 hexadecimal digits, ignoring surrounding space.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let digits = text.trim().as_bytes();
        let error = TokenError { letters: text.trim().chars().count() };
        let mut bytes = [0; BYTES];
        if digits.len() != 2 * BYTES {
            return Err(error);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(error);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(Self(bytes))
    }

    /// The 64 hexadecimal digits, to pass the token on.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The key for keyed hashes.
    pub(super) fn key(&self) -> &[u8; BYTES] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Bytes of the cryptographic generator of the operating system.
pub(super) fn random_bytes() -> Result<[u8; BYTES], SysError> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(bytes)
}

/// Largest request, in bytes.
pub const REQUEST_BYTES: usize = 64 << 10;
/// Largest reply, in bytes.
pub const ANSWER_BYTES: usize = 1 << 20;
/// Time limit for the rest of a frame that has begun.
const WITHIN: Duration = Duration::from_secs(10);

const SEAL: usize = 32;

/// Why no frame was received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection was closed between two frames.
    #[error("closed the connection")]
    Closed,
    /// The connection was lost within a frame, or timed out.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The frame exceeds the limit; nothing of it was read.
    #[error("announced {length} bytes, more than {limit}")]
    TooLong {
        /// Announced bytes.
        length: usize,
        /// Allowed bytes.
        limit: usize,
    },
    /// The frame was not sent by the peer of the handshake, or not in order.
    #[error("sent a frame with an invalid authentication code")]
    Forged,
}

/// One side of a connection after the handshake.
///
/// Frames of a control connection, authenticated and ordered.
///
/// u32 length of the body, big endian; 32 bytes BLAKE3 of the frame's number (u64, little endian) and body,
/// keyed by the keys of the handshake; the body. Frames that a man in the middle changes, replays, drops or
/// inserts are detected.
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

    /// Receives the next frame of at most `limit` bytes, which must begin before a deadline.
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
        // Hashes compare in constant time.
        let is_sealed = blake3::Hash::from_slice(&head[4..])
            .is_ok_and(|found| found == seal(&self.receiving, self.received, &body));
        self.received += 1;
        if is_sealed { Ok(body) } else { Err(FrameError::Forged) }
    }
}

fn seal(key: &[u8; 32], number: u64, body: &[u8]) -> blake3::Hash {
    blake3::Hasher::new_keyed(key).update(&number.to_le_bytes()).update(body).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_parsed_and_written_but_not_shown() {
        let token = Token::random().unwrap();
        let hex = token.to_hex();
        assert_eq!(Token::parse(&format!(" {hex}\r\n")).unwrap().to_hex(), hex);
        assert_eq!(Token::parse(&hex.to_uppercase()).unwrap().to_hex(), hex);
        assert_ne!(Token::random().unwrap().to_hex(), hex);
        assert!(!format!("{token:?}").contains(&hex[..4]));
    }

    #[test]
    fn other_text_is_not_a_token() {
        let message = |text: &str| Token::parse(text).unwrap_err().to_string();
        assert!(message("").ends_with("has 0 letters"));
        assert!(message(&"0".repeat(65)).ends_with("65 letters"));
        assert!(message(&"g".repeat(64)).ends_with("not all of them digits"));
        assert!(message(&"é".repeat(32)).ends_with("32 letters"));
        assert!(message(&"+1".repeat(32)).ends_with("not all of them digits"));
    }
}
