//! A multilevel graph partitioner with exact part sizes.
//!
//! [`partition`] coarsens a [`Graph`] level by level, cuts the coarsest one by recursive bisection, and
//! refines pairs of parts during uncoarsening (Hendrickson and Leland 1995; Karypis and Kumar 1998; Sanders
//! and Schulz 2011). V-cycles of coarsening inside the parts and refinement follow. The same arguments give
//! the same parts with any number of threads. [`bisection`] cuts into two parts that vertices prefer differently.

mod balance;
mod coarsening;
mod foreign;
mod graph;
mod multilevel;
mod pairs;
mod two_way;

pub use foreign::scotch;

#[cfg(feature = "metis")]
pub use foreign::metis;
pub use graph::{Graph, PartitionError, cut};
pub use multilevel::{Effort, bisection, partition};
