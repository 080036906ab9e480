//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/csv` | a matrix of messages and bytes as text |
//!
//! Both give a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent.

mod csv_matrix;
mod error;
mod matrix;
mod otf2;
mod params;
mod stage;

pub use error::{CsvError, Otf2Error};
pub use params::{CsvParams, Otf2Params, Reader};
pub use stage::{Csv, Otf2};
