//! Agents: processes on hosts that time messages to each other over TCP, for machines without MPI.
//!
//! [`Agent`] is what runs on every host, [`AgentConnection`] how a coordinator talks to one. Both know the same [`Token`]; an agent
//! does nothing for anybody else, and nothing but what [`Request`] lists for those who know it.
//!
//! # Protocol
//!
//! `hopmap agent` (`stages/topology/src/agent`) times messages where there is no MPI. A coordinator connects to every agent and has it
//! connect to others. Threads and blocking sockets; nothing runs while nothing is asked for.
//!
//! | accepted | from whom | limit |
//! |---|---|---|
//! | a handshake of 75 bytes | anybody who reaches the one address | 5 s in all, 8 at once |
//! | `Describe`, `Measure`, `Cores`, `End` as JSON in frames | one coordinator, who knows the token | 64 KiB each, a million |
//! | batches of messages | up to four peers, who know the token | 64 MiB a message, a million a batch; 10 s of silence, 5 s of the other kernel |
//!
//! Both sides of a connection give 32 random bytes and prove with a keyed BLAKE3 over both greetings that they know the token, the caller
//! first: a stranger hears only the greeting, with the version, and only if it spoke the protocol. Frames of a coordinator are sealed
//! with keys of the handshake and numbered, so that whoever sits on the way can change, add or repeat none. Nothing is encrypted, as nothing
//! is secret, and the bytes of timed messages are not sealed: who sits on the way can delay them anyway. The token has 256 random bits, so
//! a recorded handshake does not help to guess it. Whoever knows it can make agents connect to any address, where they send one greeting
//! and go on only if it is answered by an agent with the same token.
//!
//! Both sides wait in blocking reads. Round trips of one byte over loopback, minimum/median in µs on two cores: blocking 12–13/13–14 idle, 13–17/14–20
//! with four busy loops beside; asking without waiting and yielding in between 10–14/11–15 and 12–55/12–10,900; without yielding 7 or, where both
//! are on one core, 65–216. The quarter that yielding saves is not worth a value that depends on what else a host does.

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
