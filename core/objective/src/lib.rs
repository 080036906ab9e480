//! Cost of a mapping: F, T, hop-bytes, link loads and dilation, and exact integer costs for searches.
//!
//! [`Quality`] measures any mapping in the units of the trace. [`Problem`] holds the same costs, or any other
//! [`Objective`], as integers under [`Constraints`], so that a search adds and compares them without
//! rounding. [`Assignment`] is a mapping with its cost and the delta of an exchange, and [`Deltas`] stores
//! the deltas of all exchanges. [`Dense`] is the fast path for two matrices of small integers.

mod adjacency;
mod assignment;
mod baseline;
mod constraints;
mod cost;
mod deltas;
mod dense;
mod distance;
mod error;
mod forms;
mod maximum;
mod objective;
mod problem;
mod quality;
mod scale;
mod traffic;

pub use adjacency::Neighbour;
pub use assignment::Assignment;
pub use baseline::{linear, random, round_robin};
pub use constraints::{Constraints, Location, Pin};
pub use deltas::Deltas;
pub use dense::{Dense, DenseAssignment, Matrix};
pub use distance::Distance;
pub use error::ObjectiveError;
pub use objective::{Objective, OnlyMaximum};
pub use problem::{OrderedPairs, Problem};
pub use quality::{EVALUATIONS, METRICS, Metric, NetworkQuality, Quality, link_loads};
pub use scale::check_weight;
pub use traffic::LinkLoads;
