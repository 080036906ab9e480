//! The slots of ranks whose tasks stay together and in order: what is looked for where a program is known by its trace.
//!
//! Every rank takes a slot of its own, so a placement is the slot of every rank, and what is minimised is the makespan. A quadratic
//! assignment problem adds up what all messages cost; the makespan only counts those that somebody waits for.

mod auto;
mod exact;
mod genetic;
mod search;
mod starts;
#[cfg(test)]
mod tests;

pub use auto::auto;
pub use exact::exact;
pub use genetic::genetic;
pub use search::RankSearch;
pub use starts::{Start, list, starts};
