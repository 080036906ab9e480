//! Where every rank runs: mappers.
//!
//! Stages: [`LinearStage`], `map/linear`; [`RandomStage`], `map/random`; [`AnnealingStage`], `map/annealing`;
//! [`TabuStage`], `map/tabu`. Each is a [`Mapper`], an algorithm that solves a [`Problem`](hopmap_objective::Problem), and what turns its placement into a mapping
//! with all metrics.

mod annealing;
mod baseline;
mod descent;
mod greedy;
mod mapper;
mod params;
mod stage;
mod tabu;

pub use annealing::Annealing;
pub use baseline::{Linear, Random};
pub use descent::descend;
pub use greedy::greedy;
pub use hopmap_islands::SearchError;
pub use mapper::{Found, Mapper};
pub use params::{AnnealingParams, Cooling, LinearParams, RandomParams, TabuParams};
pub use stage::{AnnealingStage, LinearStage, RandomStage, TabuStage};
pub use tabu::Tabu;
