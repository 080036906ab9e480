//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/csv` | a matrix of messages and bytes as text |
//!
//! Each gives a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent. `trace/generate` writes the trace of a program whose messages are known, and the task graph that
//! reading it must give (feature `libotf2`).

mod call_stack;
#[cfg(feature = "libotf2")]
mod collectives;
mod csv_matrix;
mod error;
mod generate;
mod headings;
mod matrix;
mod numbering;
mod otf1;
mod otf2;
mod params;
mod selection;
mod stage;

pub use error::{CsvError, GenerateError, Otf2Error, OtfError, SelectionError};
pub use params::{
    Collectives, CsvParams, GenerateParams, Otf2Params, OtfParams, Pattern, Phases, Reader, Select,
};
pub use stage::{Csv, Generate, Otf, Otf2};
