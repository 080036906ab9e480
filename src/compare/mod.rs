//! What is different between two artifacts, or between two runs, and why.
//!
//! Knows what the keys of artifacts were made of, and nothing of pipeline files; what is inside artifacts `core/compare` compares.
//!
//! # Parts
//!
//! `src/compare` compares two artifacts of a kind (`artifacts`) or the cells of two runs (`runs`); `src/cli/diff.rs` decides what a name
//! stands for (`src/cli/locate.rs` which cells, for all commands) and prints. Why two artifacts differ is read off their manifests
//! (`provenance.json`, or the result of the cell that was named); inputs are found beside the artifact in its store.

mod artifacts;
mod runs;

pub use artifacts::{Cause, Comparison, Settings, Side, artifacts, origin};
pub use runs::{CellChange, CellState, FirstCause, RunChanges, StageSummary, runs};
