//! What a parallel program did: traces to task graphs.
//!
//! | stage | reads |
//! |---|---|
//! | `trace/otf2` | an OTF2 archive, as Score-P and EZTrace write it (feature `libotf2`) |
//! | `trace/otf` | an OTF 1 archive, as VampirTrace writes it |
//! | `trace/csv` | a matrix of messages and bytes as text |
//!
//! Each gives a [`TaskGraph`](hopmap_model::TaskGraph): messages and bytes per ordered pair of processes, counted
//! where they are sent. `trace/events` lists the messages of an OTF2 archive one by one. `trace/generate` writes the trace of a program whose messages are known, and the task graph that
//! reading it must give (feature `libotf2`).

mod call_stack;
#[cfg(feature = "libotf2")]
mod collectives;
mod csv_matrix;
#[cfg(feature = "libotf2")]
mod dag;
mod error;
mod generate;
mod headings;
mod matrix;
#[cfg(feature = "libotf2")]
mod messages;
mod numbering;
mod otf1;
mod otf2;
mod params;
mod replay;
mod selection;
mod stage;

pub use error::{CsvError, DagError, GenerateError, Otf2Error, OtfError, ReplayError, SelectionError};
pub use params::{
    Collectives, CsvParams, DagParams, EventsParams, GenerateParams, Otf2Params, OtfParams, Pattern, Phases,
    Reader, ReplayParams, Select, Simulator,
};
pub use stage::{Csv, Dag, Generate, ListEvents, Otf, Otf2, Replay};
