//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/import` | traces, profiles and matrices of other tools, recognised by what is in them |
//!
//! Each gives a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent.
//!
//! | stage | gives |
//! |---|---|
//! | `trace/events` | the messages of an OTF2 archive one by one |
//! | `trace/dag` | the tasks of a program and what each waits for |
//! | `trace/replay` | such tasks as files that simulators read |
//! | `trace/summary` | a task graph in a few numbers |
//! | `trace/export` | a task graph as text that other programs read |
//! | `trace/generate` | the trace of a program whose messages are known, and the task graph that reading it must give |
//!
//! OTF2 archives are read and written by this crate itself, chunk by chunk. With the feature `libotf2` whatever the native reader does not
//! know is left to libotf2, whose definitions of an archive must be those of the native reader. A `trace` artifact holds files, which never
//! pass through memory as a whole. Names, sizes and ranks that a file claims reserve no memory beyond 2²⁴ ranks.

mod archive;
mod call_stack;
mod dag;
mod error;
mod export;
mod generate;
mod import;
mod matrix;
mod numbering;
mod otf1;
mod otf2;
mod params;
mod selection;
mod stage;
mod summary;

pub use error::TraceError;
pub use import::Format;
pub use params::{
    Algorithm, Algorithms, Collectives, DagParams, EventsParams, ExportFormat, ExportParams, GenerateParams,
    ImportParams, Otf2Params, OtfParams, Pattern, Phases, Reader, ReplayParams, Select, Simulator,
    SummaryParams,
};
pub use stage::{Dag, Export, Generate, Import, ListEvents, Otf, Otf2, Replay, Summary};

use hopmap_model::Library;

const LIBOTF2: &Library = &Library {
    name: "libotf2",
    install: Some("libotf2 (Debian: libopen-trace-format2-dev)"),
    is_built: cfg!(feature = "libotf2"),
};
