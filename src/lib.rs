//! hopmap: from the trace of a parallel program and the topology of a machine to a placement of its ranks.
//!
//! The library behind the `hopmap` binary: the app layer. It knows pipelines and nothing of graphs; everything that knows
//! graphs is a stage below `stages/`, and [`registry`] is the only place where the two meet.

pub mod accepted;
pub mod archive;
pub mod cli;
pub mod compare;
pub mod engine;
pub mod gates;
pub mod lock;
pub mod pipeline;
pub mod provenance;
pub mod query;
pub mod ranks;
pub mod refresh;
pub mod registry;
pub mod renames;
pub mod report;
