//! hopmap: topology-aware process mapping for MPI applications, from a trace and a machine topology to a mapping of ranks.
//!
//! The library behind the `hopmap` binary: the app layer. It knows pipelines and nothing of graphs; everything that knows
//! graphs is a stage below `stages/`, and [`registry`] is the only place where the two meet.

pub mod accepted;
pub mod archive;
pub mod cli;
pub mod compare;
pub mod engine;
pub mod gates;
pub mod input_files;
pub mod lock;
pub mod outputs;
pub mod pipeline;
mod pipeline_text;
pub mod provenance;
pub mod query;
pub mod ranks;
pub mod refresh;
pub mod registry;
pub mod report;
pub mod selector;
pub mod source;
mod toml_line;
pub mod verdict;
