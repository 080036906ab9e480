//! Formats of task graphs, schedules, and what PARUS measured.

pub mod dot;
mod graph;
pub mod grf;
mod import;
pub mod ini;
pub mod procs;
pub mod sch;
pub mod stg;
pub mod wfformat;
mod words;

pub use import::{GraphFile, read_graph};
pub(crate) use import::{MOST_BYTES, check};
