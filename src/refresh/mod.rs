//! Keeping the topology of a machine true: look at it, compare by meaning, publish what changed, tell a consumer, and only then
//! accept it.
//!
//! A publish folder:
//!
//! ```text
//! DIR/
//!   current         a symbolic link to the entry of the history that is published
//!   accepted.json   the entry that the consumer has taken, as `hopmap accept` writes it
//!   history/TIME-DIGEST/   system/, measurements/ if it was measured, changes.json, changes.txt
//!   state/          lock, refreshes.jsonl (every refresh), pending (the consumer has to run), consumer.log, report.html, store/
//! ```
//!
//! An entry is complete and on disk before `current` leads to it. `accepted.json` is advanced after the consumer has succeeded, so
//! that a kill at any moment leaves either the old or the new state, and what has still to be done can be seen from outside.

mod compare;
mod consumer;
mod entry;
mod error;
mod log;
mod prometheus;
mod publication;
mod retention;
mod update;

pub use consumer::Consumer;
pub(crate) use entry::change_as_json;
pub use entry::{Entry, read_machine};
pub use error::RefreshError;
pub use log::{Outcome, Record, last_success, read_records};
pub use prometheus::exposition;
pub use publication::Publication;
pub use retention::Retention;
pub use update::{Checked, Look, Settings, Updated, check, refresh};
