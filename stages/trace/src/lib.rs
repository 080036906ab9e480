//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/csv` | a matrix of messages and bytes as text |
//!
//! Both give a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent. `trace/generate` writes the trace of a program whose messages are known, and the task graph that
//! reading it must give (feature `libotf2`).

mod csv_matrix;
mod error;
mod generate;
mod matrix;
mod otf2;
mod params;
mod stage;

pub use error::{CsvError, GenerateError, Otf2Error};
pub use params::{CsvParams, GenerateParams, Otf2Params, Pattern, Reader};
pub use stage::{Csv, Generate, Otf2};
