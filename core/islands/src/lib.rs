//! Parallel search: budgets, islands over threads and processes, and searches that survive a kill.
//!
//! A [`Budget`] is a number of evaluations or seconds for a number of islands. [`Budget::search`] runs islands that know nothing of
//! each other; [`Budget::evolve`] runs an [`Evolution`], whose islands exchange what they found after every epoch. Both spread the
//! islands over the threads of the context and over its processes, and give the same with any number of either, unless
//! the budget is a time.

mod budget;
mod evolution;
mod meter;
mod spread;

pub use budget::{Budget, Candidate, Counts, Island, Point, SearchError, SearchResult, time_limit};
pub use evolution::{Evolution, Exchange};
pub use meter::{Meter, Progress};
pub use spread::DistributedError;
