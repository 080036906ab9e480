//! Mappers: algorithms that assign a slot to every rank.
//!
//! Stages: [`LinearStage`], `map/linear`; [`RoundRobinStage`], `map/round-robin`; [`RandomStage`],
//! `map/random`; [`AnnealingStage`], `map/annealing`; [`GeneticStage`], `map/genetic`; [`CompositeStage`],
//! `map/composite`; [`AutoStage`], `map/auto`; [`TabuStage`], `map/tabu`; [`ExactStage`], `map/exact`;
//! [`ExternalStage`], `map/external`; [`HierarchicalStage`], `map/hierarchical`; [`ImportStage`],
//! `map/import`. Each stage runs a [`Mapper`], which solves a [`Problem`](hopmap_objective::Problem), and
//! adds all metrics to its mapping.

mod annealing;
mod auto;
mod baseline;
mod blocks;
mod borders;
mod composite;
mod dual;
mod error;
mod exact;
mod external;
mod genetic;
mod grids;
mod hierarchical;
mod import;
mod makespan;
mod mapper;
mod moves;
mod params;
mod plan;
mod predicted_time;
mod stage;
mod starts;
mod tabu;
#[cfg(test)]
mod test_problems;

pub use annealing::Annealing;
pub use auto::Auto;
pub use baseline::{Linear, Random, RoundRobin, greedy};
pub use blocks::{BlockName, Blocks};
pub use composite::Composite;
pub use error::{MapError, ProgramError};
pub use exact::{BOUND, Exact, GAP, NODES, PROVEN};
pub use external::{Answer, External};
pub use genetic::Genetic;
pub use hierarchical::Hierarchical;
pub use import::{Placed, import, read_placement};
pub use makespan::{MAKESPAN, MAKESPAN_BOUND};
pub use mapper::{Mapper, SearchResult};
pub use moves::descend;
pub use params::{
    AfterExchange, AnnealingParams, AnnealingPart, AutoGoal, AutoParams, CompositeParams, Cooling, Crossover,
    ExactParams, ExternalCommand, ExternalParams, GeneticParams, GeneticPart, Goal, HierarchicalParams,
    ImportParams, Iteration, LevelChoice, LinearParams, Master, MoveType, MovesUnit, Mutations, Numbering,
    OtherLevels, Partitioner, Pin, PlacementFormat, Preset, RandomParams, Replacement, Scheme, TabuParams,
    TaskGoal, TimedGoal,
};
pub use predicted_time::{IMPROVING_REPLAYS, PREDICTED};
pub use stage::{
    AnnealingStage, AutoStage, BANDWIDTH, CompositeStage, ExactStage, ExternalStage, GeneticStage,
    HierarchicalStage, ImportStage, LATENCY, LinearStage, RandomStage, RoundRobinStage, TabuStage,
};
pub use tabu::Tabu;
