//! The engine: plans, keys, runs, stores. Knows pipelines and nothing of graphs.
//!
//! Planning and running are one code path: [`Walk::decide`](walk::Walk::decide) says what a cell needs, and a plan is
//! a run that stops before executing.

mod batch;
mod catalogue;
mod check_saves;
mod cores;
#[cfg(test)]
pub(crate) mod cores_tests;
mod deadline;
mod events;
mod execute;
mod garbage;
mod hashes;
mod identity;
#[cfg(test)]
mod input_tests;
mod journal;
mod key;
mod launch;
mod lost;
mod machine;
mod outcome;
mod place;
mod plan;
mod reason;
mod record;
mod run;
mod save;
mod seen;
mod settled;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod unsynced;
mod walk;
mod writer;

pub use crate::pipeline::STORE_FOLDER;
pub(crate) use catalogue::by_matrix;
pub use catalogue::{Catalogue, StoredCell};
pub use check_saves::check_saves;
pub use events::{Events, NoEvents};
pub use execute::{WriteError, write_outputs};
pub use garbage::{Garbage, Policy, collect, find_garbage, keep_runs};
pub use identity::PipelineId;
pub(crate) use journal::state_name;
pub use journal::{Event, RunSummary, StageEvent, ended_otherwise, read_run, read_runs, read_runs_below};
pub use key::{InputDigest, Key, Manifest};
pub use launch::{Launch, Launched, launch};
pub use machine::memory;
pub use outcome::RunReport;
pub use place::InTheWay;
pub(crate) use place::only_an_artifact;
pub use plan::{TooLarge, check_memory, plan};
pub(crate) use reason::differences;
pub use reason::{Reason, short};
pub use record::{Current, Ending, OutputRecord, OutputRecords, Partial, ResultRecord};
pub use run::{Limits, run};
pub use save::{hold_back, save_all, save_file};
pub(crate) use seen::look_again;
pub use seen::{InputFault, SeenFile};
pub use settled::{Saved, Settled, State};
pub use store::{Store, StoreError};
pub use writer::Writer;
