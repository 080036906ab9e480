//! Agents: processes that measure message times between hosts over TCP, for machines without MPI.
//!
//! [`Agent`] runs on every host; a coordinator talks to it through an [`AgentConnection`]. Both share a
//! [`Token`]. An agent serves only callers that know the token, and only the requests in [`Request`].
//!
//! # Protocol
//!
//! `hopmap agent` (`stages/topology/src/agent`) measures message times where MPI is not available. A
//! coordinator connects to every agent and makes agents connect to each other. Threads and blocking sockets;
//! an idle agent uses no CPU time.
//!
//! | accepted | from | limit |
//! |---|---|---|
//! | a handshake of 75 bytes | anyone who can reach the address | 5 s in total, 8 at once |
//! | `Describe`, `Measure`, `Cores`, `End` as JSON in frames | one coordinator that knows the token | 64 KiB
//! each, a million |
//! | batches of messages | up to four peers that know the token | 64 MiB per message, a million per batch; 10
//! s of silence, 5 s without a TCP acknowledgement |
//!
//! Both sides of a connection send 32 random bytes and prove knowledge of the token with a keyed BLAKE3 hash
//! over both greetings, the caller first: strangers receive only the greeting with the version, and only if
//! they used the protocol. Frames of a coordinator are authenticated with keys from the handshake and
//! numbered, so a man in the middle cannot change, insert or replay any. Nothing is encrypted, since nothing
//! is secret. The bytes of measured messages are not authenticated, because a man in the middle can delay
//! them anyway. The token has 256 random bits, so recorded handshakes do not help to guess it. A caller with
//! the token can make agents connect to any address; there they send one greeting and continue only if an
//! agent with the same token answers.
//!
//! Both sides wait in blocking reads. Round trips of one byte over loopback, minimum/median in µs on two
//! cores: blocking 12–13/13–14 idle and 13–17/14–20 with four busy loops; polling with yield 10–14/11–15 and
//! 12–55/12–10,900; polling without yield 7 or, with both on one core, 65–216. The quarter that polling saves
//! is not worth a value that depends on other load on the host.

mod bind;
mod client;
mod command;
mod cores;
mod guests;
mod handshake;
mod protocol;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use bind::{Bind, BindError, default_address};
pub use client::{AgentConnection, ClientError};
pub use command::AgentCommand;
pub use cores::{CORE_MESSAGE_BYTES, measure_cores, own_cores};
pub use handshake::{
    ANSWER_BYTES, Caller, FrameError, Frames, HandshakeError, Keys, Nonce, REQUEST_BYTES, Role, Token,
    TokenError, VERSION, answer, call,
};
pub use protocol::{Answer, CorePair, Description, Link, MESSAGE_BYTES, MESSAGES, Request, SECONDS, SIZES};
pub use server::{Agent, AgentError, AgentSettings, Ending, Parting, REQUESTS, Stopper, Work, converse};
pub use wire::{TcpWire, WireError, respond};
