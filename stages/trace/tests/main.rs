//! Integration tests: one binary with a module per subject.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests may")]

mod communication;
mod dag;
mod damage;
#[path = "../../../core/recording/tests/support/encode.rs"]
mod encode;
mod events;
mod generate;
mod import;
mod not_built;
mod otf;
mod otf2;
mod otf_damage;
mod program;
mod program_events;
mod program_simgrid;
mod replay;
mod samples;
mod support;
mod truncated;
mod written;
