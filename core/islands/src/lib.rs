//! Parallel search: budgets, islands over threads and processes, and resumable searches.
//!
//! A [`Budget`] limits the evaluations or the time of a number of islands. [`Budget::search`] runs
//! independent islands; [`Budget::evolve`] runs an [`Evolution`], whose islands exchange solutions after
//! every epoch. Both distribute the islands over the threads and processes of the context. Results do not
//! depend on the number of either, unless the budget is a time limit. A [`TimePlan`] says what the phases of a
//! search may take of it.

mod budget;
mod curve;
mod evolution;
mod meter;
mod plan;
mod resumable;
mod spread;

pub use budget::{Budget, Candidate, Counts, Island, Point, SearchResult, time_limit};
pub use evolution::{Evolution, Exchange};
pub use meter::{Meter, Progress};
pub use plan::{DESCENT, LIMIT, Phase, TIME_PLAN, TimePlan};
pub use resumable::{Resumable, Save};
pub use spread::{DistributedError, saved_epoch, saved_islands};
