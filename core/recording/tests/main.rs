//! Integration tests: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod damage;
mod events;
mod graph;
mod monitoring;
mod read;
mod support;
