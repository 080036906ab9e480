//! Agents: processes on hosts that time messages to each other over TCP, for machines without MPI.
//!
//! [`Agent`] is what runs on every host, [`AgentConnection`] how a coordinator talks to one. Both know the same [`Token`]; an agent
//! does nothing for anybody else, and nothing but what [`Request`] lists for those who know it.

mod bind;
mod client;
mod conversation;
mod cores;
mod frames;
mod guests;
mod handshake;
mod link;
mod protocol;
mod refusals;
mod server;
#[cfg(test)]
mod tests;
mod token;
mod wire;

pub use bind::{Bind, BindError, default_address, host_name};
pub use client::{AgentConnection, ClientError};
pub use conversation::{Parting, REQUESTS, Work, converse};
pub use cores::{CORE_MESSAGE_BYTES, CoresError, measure_cores, own_cores};
pub use frames::{ANSWER_BYTES, FrameError, Frames, REQUEST_BYTES};
pub use handshake::{Caller, HandshakeError, Keys, Nonce, Role, VERSION, answer, call};
pub use link::Link;
pub use protocol::{Answer, CorePair, Description, MESSAGE_BYTES, MESSAGES, Request, SECONDS, SIZES};
pub use server::{Agent, AgentError, AgentSettings, Ending, Stopper};
pub use token::{Token, TokenError};
pub use wire::{TcpWire, WireError, respond};
