//! The engine: plans, keys, runs, stores. Knows pipelines and nothing of graphs.
//!
//! `docs/design/engine.md` explains the loop, the states of a cell, keys, deadlines, and what survives a kill.
//!
//! A store knows a pipeline by its name and its file, relative to the folder that holds the store (`PipelineId`), since a name alone made one
//! pipeline of two files. Lines of older versions have the name alone: they count for the first file of that name that has the same key in
//! the same cell, and otherwise stay. At the end of a complete run the log drops cells that the pipeline no longer has.
//!
//! Copies for people (`save.rs`) replace what is known for a copy of the same pipeline: bytes that the log says were put there (it says so
//! before they are), or that carry the mark of a copy, an extended attribute over bytes, name of the pipeline and the way to its file, which
//! outlives the store (of an artifact its description carries it); or the very bytes that would be written. Where a file system takes no marks, a file that the
//! store does not know is let pass before a run whose result is not known, and refused after it unless it is the same. Where a pipeline has
//! gates, its copies wait until these are judged.
//!
//! The store:
//!
//! ```text
//! .hopmap/
//!   artifacts/DIGEST/   artifact.json, TABLE.parquet, files/, provenance.json
//!   state.log           results by key with what they were made of; the current key of each cell, the one it began with last, and what
//!                       it gave when it was stopped early; what copies for people were made of; which results may not be on disk yet
//!   jobs/KEY/           job.json and ATTEMPT/: what a batch system was given
//!   states/KEY          what a search goes on with that was killed, failed or was cut short
//!   hashes.log          BLAKE3 of input files with what stat said
//!   runs/TIME/          journal.jsonl (wall times live here and nowhere else), request.json (what was asked for), logs/CELL.log
//!   requests/DIGITS.json what was asked for when each pipeline ran last, by its file
//!   verify-PID-N/       the second store of `hopmap verify`, while it runs
//!   reports/NAME.html   the newest report of a pipeline
//!   lock  format  work/
//! ```
//!
//! An artifact's digest is the BLAKE3 of its `artifact.json`, which holds the BLAKE3 of every table and file; reading an
//! artifact checks them. `provenance.json` is outside the digest.
//!
//! A partial result is stored so that it can be used, and its own dependents run on it when a deadline cut it short, but no key
//! points to it: the next run goes on from its state, or does it again. The log says which cell it belongs to (`partial`), so that `show`
//! finds it and `gc` keeps it, until the cell has a result or another key.
//!
//! A search may keep its state in `states/KEY`. The file outlives its run and goes when the result of the key is committed; nothing
//! else reads it. A stage that observes the machine gets none, because its key does not contain what it saw; `exec` has no store and gives none.
//! `gc` keeps the state of a key that some cell began with last and that has no result (`store::unfinished`).

mod batch;
mod catalogue;
#[cfg(test)]
pub(crate) mod cores_tests;
mod execute;
#[cfg(test)]
mod input_tests;
mod key;
mod launch;
mod metrics;
mod notes;
mod outcome;
mod plan;
mod programs;
mod record;
mod resources;
mod run;
mod save;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub(crate) use crate::pipeline::STORE_FOLDER;
pub(crate) use batch::time_left_of_job;
pub(crate) use catalogue::by_matrix;
pub use catalogue::{Catalogue, StageForm, StoredCell};
pub use key::Manifest;
pub(crate) use key::{Key, Reason, differences, inputs as different_inputs, short};
pub(crate) use launch::{Launch, Launched, launch, ranks_program};
pub(crate) use metrics::check_metrics;
pub(crate) use notes::{placeholders, warnings};
pub(crate) use outcome::{
    Events, RunReport, Saved, Settled, State, ended_otherwise, read_run, read_runs_below, state_name,
};
pub use outcome::{RunSummary, StageEvent, read_runs};
pub(crate) use plan::{check_memory, check_saves, plan};
pub(crate) use programs::{missing_programs, unasked_commands, visible};
pub(crate) use record::{Current, Ending, PipelineId};
pub use record::{OutputRecord, OutputRecords, ResultRecord};
pub(crate) use resources::{Limits, memory, time_of_experiments};
pub(crate) use run::run;
pub(crate) use save::{
    beside_the_artifact, hold_back, launch_command, launch_files, save_all, save_file, save_texts,
};
pub use store::{Store, StoreError};
pub(crate) use store::{entries, is_store};
pub(crate) use writer::{Garbage, Policy, Writer, collect, find_garbage, keep_runs, requests};
