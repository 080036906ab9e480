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
//!
//! # Decisions
//!
//! `src/refresh` runs no pipeline itself: it is given a function that looks at the machine (`src/cli/topology/refresh.rs` runs the
//! pipeline) and works on the publish folder, described in `refresh/mod.rs`. `compare` looks until it is certain what has changed,
//! `update` decides, `publication` writes, `consumer` runs, `log` remembers.
//!
//! | what was seen | what happens |
//! |---|---|
//! | the machine is as it is published, and that is accepted | a line in the log, nothing else |
//! | … and the consumer has still to run (`pending`, or `current` is not `accepted`) | the consumer runs, then it is accepted |
//! | … as it was accepted, but something else is published | `current` goes back, the consumer runs |
//! | another one | a new entry, `current`, the consumer, `accepted.json`, in this order |
//!
//! `core/changes` compares two snapshots by names; switches with made-up names, and groups of a level, stand for each other when they
//! have most hosts in common. What a source cannot know of a host that is down is taken from what is published (`keep_down`).
//!
//! A consumer that is still running when its refresh is killed goes on: the next refresh runs it once more, at the same time if need be.

mod compare;
mod error;
mod log;
mod publication;
mod update;

pub use compare::{Look, LookSettings};
pub use error::RefreshError;
pub use log::{Outcome, Record, exposition, last_success, read_records};
pub use publication::{Entry, Publication, Retention, read_machine};
pub use update::{Checked, Consumer, Settings, Updated, check, refresh};
