//! The recorder with the MPIs of this machine.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod cache;
mod command;
mod endings;
mod events;
mod intercommunicators;
mod programs;
mod prototypes;
mod reorder;
mod support;
