//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/csv` | a matrix of messages and bytes as text |
//!
//! All give a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent.

mod call_stack;
mod csv_matrix;
mod error;
mod matrix;
mod numbering;
mod otf1;
mod otf2;
mod params;
mod stage;

pub use error::{CsvError, Otf2Error, OtfError};
pub use params::{CsvParams, Otf2Params, OtfParams};
pub use stage::{Csv, Otf, Otf2};
