//! Benchmark instances and generators: programs and machines with known solutions or structure.
//!
//! Stages: [`Qaplib`], `instance/qaplib`; [`TaillardE`], `instance/taillard-e`; [`Stencil`], `instance/stencil`;
//! [`Graph`], `instance/graph`; [`Geometric`], `instance/geometric`; [`RandomGraph`], `instance/random`; [`PowerLaw`],
//! `instance/power-law`; [`Parallel`], `instance/parallel`.

mod error;
mod geometric;
mod metis;
mod parallel;
mod params;
mod qaplib;
mod random;
mod stage;
mod stencil;
mod taillard;

pub use error::InstanceError;
pub use geometric::geometric;
pub use metis::read_graph;
pub use parallel::{
    GroupAlgorithm, GroupAlgorithms, GroupBytes, GroupSizes, ModelSize, ParallelParams, RankOrder,
    TrainingStep, training_step,
};
pub use params::{
    FlowMatrix, GeometricParams, GeometricWeights, GraphParams, Neighbours, PowerLawParams, QaplibParams,
    RandomGraphParams, StencilParams, TaillardEParams,
};
pub use qaplib::{AssignmentProblem, Reading, Solution, check_solution, read};
pub use random::{power_law, random_graph};
pub use stage::{Geometric, Graph, Parallel, PowerLaw, Qaplib, RandomGraph, Stencil, TaillardE};
pub use stencil::stencil;
pub use taillard::{LookAlike, taillard_e};
