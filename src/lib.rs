//! hopmap: topology-aware process mapping for MPI applications, from a trace and a machine topology to a mapping of ranks.
//!
//! The library behind the `hopmap` binary: the app layer. It knows pipelines and nothing of graphs; everything that knows
//! graphs is a stage below `stages/`, and [`registry`] is the only place where the two meet.

mod accepted;
mod archive;
pub mod cli;
mod compare;
pub mod engine;
mod gates;
mod input_files;
mod lock;
mod outputs;
mod pipeline;
mod pipeline_text;
mod provenance;
pub mod query;
pub mod ranks;
pub mod refresh;
mod registry;
mod report;
mod selector;
pub mod source;
mod toml_line;
mod verdict;
