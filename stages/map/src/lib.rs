//! Where every rank runs: mappers.
//!
//! Stages: [`LinearStage`], `map/linear`; [`RandomStage`], `map/random`; [`AnnealingStage`], `map/annealing`;
//! [`GeneticStage`], `map/genetic`; [`CompositeStage`], `map/composite`; [`AutoStage`], `map/auto`;
//! [`TabuStage`], `map/tabu`. Each is a [`Mapper`], an algorithm that solves a [`Problem`](hopmap_objective::Problem), and what turns its placement into a mapping
//! with all metrics.

mod annealing;
mod auto;
mod baseline;
mod composite;
mod descent;
mod error;
mod finish;
mod genetic;
mod greedy;
mod incumbent;
mod mapper;
mod moves;
mod params;
mod stage;
mod tabu;
mod temperature;

pub use annealing::Annealing;
pub use auto::Auto;
pub use baseline::{Linear, Random};
pub use composite::Composite;
pub use descent::descend;
pub use error::{ParameterError, SearchError};
pub use genetic::Genetic;
pub use greedy::greedy;
pub use mapper::{Found, Mapper};
pub use params::{
    AnnealingParams, AutoParams, CompositeParams, Cooling, Crossover, GeneticParams, Iteration, LinearParams,
    Master, Neighbourhood, NeighboursUnit, RandomParams, Reheat, Scheme, TabuParams,
};
pub use stage::{
    AnnealingStage, AutoStage, CompositeStage, GeneticStage, LinearStage, RandomStage, TabuStage,
};
pub use tabu::Tabu;
