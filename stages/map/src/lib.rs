//! Where every rank runs: mappers.
//!
//! Stages: [`LinearStage`], `map/linear`; [`RandomStage`], `map/random`; [`AnnealingStage`], `map/annealing`;
//! [`AutoStage`], `map/auto`;
//! [`TabuStage`], `map/tabu`. Each is a [`Mapper`], an algorithm that solves a [`Problem`](hopmap_objective::Problem), and what turns its placement into a mapping
//! with all metrics.

mod annealing;
mod auto;
mod baseline;
mod cycles;
mod descent;
mod error;
mod greedy;
mod mapper;
mod params;
mod stage;
mod tabu;

pub use annealing::Annealing;
pub use auto::Auto;
pub use baseline::{Linear, Random};
pub use descent::descend;
pub use error::SearchError;
pub use greedy::greedy;
pub use mapper::{Found, Mapper};
pub use params::{AnnealingParams, AutoParams, Cooling, Goal, LinearParams, Pin, RandomParams, TabuParams};
pub use stage::{AnnealingStage, AutoStage, LinearStage, RandomStage, TabuStage};
pub use tabu::Tabu;
