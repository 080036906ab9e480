//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/csv` | a matrix of messages and bytes as text |
//! | `trace/import` | traces, profiles and matrices of other tools, recognised by what is in them |
//!
//! Each gives a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent. `trace/generate` writes the trace of a program whose messages are known, and the task graph that
//! reading it must give (feature `libotf2`). `trace/export` writes a task graph as text that other programs read.

mod call_stack;
#[cfg(feature = "libotf2")]
mod collectives;
mod csv_matrix;
mod error;
mod export;
mod generate;
mod headings;
mod import;
mod matrix;
mod numbering;
mod otf1;
mod otf2;
mod params;
mod selection;
mod stage;

pub use error::{CsvError, GenerateError, ImportError, Otf2Error, OtfError, SelectionError};
pub use params::{
    Collectives, CsvParams, ExportFormat, ExportParams, Format, GenerateParams, ImportParams, Otf2Params,
    OtfParams, Pattern, Phases, Reader, Select,
};
pub use stage::{Csv, Export, Generate, Import, Otf, Otf2};
