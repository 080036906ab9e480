//! Graphs cut into parts of exact sizes: a multilevel partitioner.
//!
//! [`partition`] contracts a [`Graph`] level by level, cuts the smallest one by recursive bisection, and refines the parts pair by
//! pair on the way back (Hendrickson and Leland 1995; Karypis and Kumar 1998; Sanders and Schulz 2011). Cycles of
//! contraction inside the parts and refinement follow. The same arguments give the same parts with any number of threads.

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
pub use multilevel::{Effort, partition};
