//! The engine: plans, keys, runs, stores. Knows pipelines and nothing of graphs.
//!
//! Planning and running are one code path: [`Planner::decide`](plan::Planner::decide) says what a cell needs, and a plan is
//! a run that stops before executing.
//!
//! # Contracts
//!
//! 1. **Planning and running are one code path.** `plan::decide` says of a cell: settled, or execute for these reasons. A plan
//!    stops there, so it never lies.
//! 2. **A key is BLAKE3 over a length-prefixed encoding** of kind, revision, parsed parameters, digests of inputs, names and
//!    hashes of files (`key.rs`; `every_field_changes_the_key`). No path, time, host, thread count or formatting is in it
//!    (`run::comments_order_and_names_of_folders_change_nothing`). The name of an input enters only where a port takes many.
//!    **What a stage reads is in its key**: every kind that reads files has a sample in `engine/input_tests.rs`, whose files are changed and
//!    renamed one by one (`what_stages_read_is_in_their_keys`). All files of people are opened by `model::open_input`, which takes regular
//!    files only and never waits, and notes what it opens for that test (`architecture::stages_open_inputs_in_one_way`).
//!    **A result is of the files that its key names**: `src/input_files.rs` keeps what `stat` said of each when it was hashed, and looks again when
//!    the stage has run, also in `hopmap-ranks` and jobs, whose `task.json` has the same (`inputs::an_input_that_changes_while_its_cell_waits_…`,
//!    `inputs::a_process_elsewhere_looks_at_its_inputs_before_and_after`). A file younger than two seconds when hashing began is compared by
//!    its bytes, since a change might not show.
//! 3. **Outputs are written aside and renamed into the store**, then one line is appended to `state.log`. `kill -9` at any
//!    moment leaves a store from which the next run goes on (`crash_points::a_command_that_is_killed_at_any_point_…`;
//!    at random moments `crash::a_killed_run_goes_on_where_it_was` in `make soak`,
//!    `sweep::a_sweep_that_was_killed_goes_on_with_the_cells_that_are_left`). Large outputs are synced before they are renamed. Small
//!    ones are synced together, half a minute apart, between the lines `unsynced` (with the boot of the machine) and `synced`; after
//!    another boot, results behind the last `unsynced` count only if their bytes are right (`store.rs`;
//!    `engine::tests::artifacts_that_were_not_on_disk_when_the_machine_went_down_are_made_again`).
//!    **What a killed process was writing does not stay**: in the root of a store until the next writer, in `reports` until `gc`, in the
//!    folder of a run as long as that; next to a copy, an archive or a restored checkpoint until that is written again (`crash_points`,
//!    `durable::replace::tests::what_a_killed_process_left_beside_a_place_goes`).
//! 4. **Locks are flock(2)** and die with their process (`run::a_second_run_at_the_same_time_is_refused`).
//! 5. **Nothing to do costs almost nothing**: files are hashed only when `stat` changes, artifacts are looked at by size, and a run
//!    with nothing to do writes nothing. `make bench` measures it.
//! 6. **A failed stage stops only what needs it** (`run::a_failed_stage_stops_only_what_needs_it`,
//!    `sweep::one_failing_cell_fails_alone`).
//! 7. **The same inputs give the same bytes**, see above.
//! 8. **A cell owns its cores** from its begin to its end (`resources.rs`): its thread waits while its stage runs in a pool of exactly that many
//!    threads, none of which ever works for another cell (`cores_tests::no_thread_of_a_cell_ever_works_for_another_cell`). So a budget in
//!    seconds, and the seconds on record, are wall time of that cell. Where `threads` is not given, cells that are ready share the free cores
//!    equally, and one alone has all (`cells_that_are_ready_share_the_cores_and_one_alone_has_all`). Processes of a launcher count as many
//!    cores as `threads` says, or one.
//! 9. **A deadline is shared** (`resources.rs`): a cell has the time left, less what the stages behind it took when they last ended, but no less
//!    than an equal share. A search that never ended takes what it is given, so it counts as much as the one before it; any other stage that
//!    never ended counts a twentieth of the whole time. Cells that wait for the same cores all get as much
//!    (`run::a_search_has_all_the_time_that_what_follows_it_does_not_need`, `searches_that_wait_for_the_same_core_all_get_a_part_of_the_time`).
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

pub use crate::pipeline::STORE_FOLDER;
pub(crate) use batch::time_left_of_job;
pub(crate) use catalogue::by_matrix;
pub use catalogue::{Catalogue, StageForm, StoredCell};
pub(crate) use key::differences;
pub use key::{InputDigest, Key, Manifest, Reason, short};
pub(crate) use launch::ranks_program;
pub use launch::{Launch, Launched, launch};
pub use metrics::check_metrics;
pub(crate) use notes::{placeholders, warnings};
pub(crate) use outcome::state_name;
pub use outcome::{
    Event, Events, RunReport, RunSummary, Saved, Settled, StageEvent, State, ended_otherwise, read_run,
    read_runs, read_runs_below,
};
pub use plan::{TooLarge, check_memory, check_saves, plan};
pub(crate) use programs::visible;
pub use programs::{UnaskedCommands, missing_programs, unasked_commands};
pub use record::{Current, Ending, OutputRecord, OutputRecords, Partial, PipelineId, ResultRecord};
pub(crate) use resources::SHARE_OF_EXPERIMENTS;
pub use resources::{Limits, memory};
pub use run::run;
pub use save::{InTheWay, hold_back, save_all, save_file, save_texts};
pub(crate) use save::{beside_the_artifact, launch_command, launch_files};
pub use store::{Store, StoreError};
pub(crate) use store::{entries, is_store};
pub(crate) use writer::requests;
pub use writer::{Garbage, Policy, Writer, collect, find_garbage, keep_runs};
