//! What a placement costs: F, T, hop-bytes, link loads and dilation, and the exact integer costs of a search.
//!
//! [`Quality`] measures any placement in the units of the trace. [`Problem`] holds the same costs as integers, so that a
//! search adds and compares them without rounding, or any other [`Objective`], under [`Constraints`]; [`Assignment`] is a placement of its ranks that knows its cost and
//! what an exchange would change, and [`Deltas`] one that knows this of all exchanges. [`Dense`] is the fast way for any two matrices of small integers.

mod adjacency;
mod assignment;
mod baseline;
mod constraints;
mod deltas;
mod dense;
mod distance;
mod error;
mod forms;
mod objective;
mod problem;
mod quality;
mod scale;
mod traffic;

pub use adjacency::Neighbour;
pub use assignment::Assignment;
pub use baseline::{linear, random, round_robin};
pub use constraints::{Constraints, Pin, Place};
pub use deltas::Deltas;
pub use dense::{Dense, DenseAssignment, Matrix};
pub use distance::Distance;
pub use error::ObjectiveError;
pub use objective::Objective;
pub use problem::Problem;
pub use quality::{EVALUATIONS, METRICS, Metric, NetworkQuality, Quality, link_loads};
pub use scale::check_weight;
