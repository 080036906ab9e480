//! Other programs, started in process groups of their own and never left behind. See the `README.md`.

mod group;
mod run;
mod streams;

pub use group::Group;
pub use run::{Cause, Limits, Output, RunError, run};
pub use streams::{Capture, for_each_line};
