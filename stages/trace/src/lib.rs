//! Traces of parallel programs: reading, conversion, generation and export.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/import` | traces, profiles and matrices of other tools, recognised by their contents |
//!
//! Each gives a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes,
//! counted at the sender.
//!
//! | stage | gives |
//! |---|---|
//! | `trace/events` | every message of an OTF2 archive |
//! | `trace/dag` | the tasks of a program and their dependencies |
//! | `trace/program` | what every rank computes, sends and receives, in order |
//! | `trace/replay` | a task DAG or a program as input files of simulators |
//! | `trace/summary` | key figures of a task graph |
//! | `trace/export` | a task graph as text for other programs |
//! | `trace/generate` | the trace of a program with known messages, and the expected task graph |
//!
//! This crate reads and writes OTF2 archives natively, chunk by chunk. With the feature `libotf2`, libotf2
//! reads archives that the native reader does not support; a test ensures that both see the same
//! definitions. A `trace` artifact contains files, which are never loaded completely into memory. Names,
//! sizes and ranks that a file claims reserve no memory beyond 2²⁴ ranks.

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod archive;
mod call_stack;
mod dag;
mod error;
mod export;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of our own programs, not of files"
)]
mod generate;
mod import;
mod matching;
mod matrix;
mod numbering;
mod order;
mod otf1;
mod otf2;
mod params;
mod program;
mod selection;
mod stage;

pub use error::TraceError;
pub use import::{Format, ImportParams};
pub use params::{
    Algorithm, Algorithms, Collectives, DagParams, EventsParams, ExportFormat, ExportParams, GenerateParams,
    Otf2Params, OtfParams, Pattern, Phases, ProgramFormat, ProgramParams, Reader, ReplayParams, Select,
    Simulator, SummaryParams,
};
pub use stage::{Dag, Export, Generate, Import, ListEvents, Otf, Otf2, ProgramStage, Replay, Summary};

use hopmap_model::Library;

const LIBOTF2: &Library = &Library {
    name: "libotf2",
    install: Some("libotf2 (Debian: libopen-trace-format2-dev)"),
    is_built: cfg!(feature = "libotf2"),
};
