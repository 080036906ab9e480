//! Where every rank runs: mappers.
//!
//! Stages: [`LinearStage`], `map/linear`; [`RandomStage`], `map/random`; [`AnnealingStage`], `map/annealing`. Each is a
//! [`Mapper`], an algorithm that solves a [`Problem`](hopmap_objective::Problem), and what turns its placement into a mapping
//! with all metrics.

mod annealing;
mod baseline;
mod descent;
mod error;
mod greedy;
mod mapper;
mod params;
mod stage;

pub use annealing::Annealing;
pub use baseline::{Linear, Random};
pub use descent::descend;
pub use error::AnnealingError;
pub use greedy::greedy;
pub use mapper::{Found, Mapper};
pub use params::{AnnealingParams, Cooling, LinearParams, RandomParams};
pub use stage::{AnnealingStage, LinearStage, RandomStage};
