//! Benchmark instances and generators: programs and machines with known solutions or structure.
//!
//! Stages: [`Qaplib`], `instance/qaplib`; [`TaillardE`], `instance/taillard-e`; [`Stencil`], `instance/stencil`;
//! [`Graph`], `instance/graph`; [`Geometric`], `instance/geometric`; [`RandomGraph`], `instance/random`; [`PowerLaw`],
//! `instance/power-law`.

mod error;
mod geometric;
mod metis;
mod params;
mod qaplib;
mod random;
mod stage;
mod stencil;
mod taillard;

pub use error::InstanceError;
pub use geometric::geometric;
pub use metis::read_graph;
pub use params::{
    FlowMatrix, GeometricParams, GeometricWeights, GraphParams, Neighbours, PowerLawParams, QaplibParams,
    RandomGraphParams, StencilParams, TaillardEParams,
};
pub use qaplib::{AssignmentProblem, Reading, Solution, check_solution, read};
pub use random::{power_law, random_graph};
pub use stage::{Geometric, Graph, PowerLaw, Qaplib, RandomGraph, Stencil, TaillardE};
pub use stencil::stencil;
pub use taillard::{LookAlike, taillard_e};
