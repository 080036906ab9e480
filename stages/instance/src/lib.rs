//! Benchmark instances and generators: programs and machines with known answers, or of a known structure.
//!
//! Stages: [`Qaplib`], `instance/qaplib`; [`TaillardE`], `instance/taillard-e`; [`Stencil`], `instance/stencil`.

mod draws;
mod error;
mod numbers;
mod params;
mod problem;
mod qaplib;
mod solution;
mod stage;
mod stencil;
mod taillard;

pub use error::InstanceError;
pub use params::{FlowMatrix, QaplibParams, StencilParams, TaillardEParams};
pub use problem::AssignmentProblem;
pub use qaplib::read;
pub use solution::{Reading, Solution, check_solution};
pub use stage::{Qaplib, Stencil, TaillardE};
pub use stencil::stencil;
pub use taillard::{LookAlike, taillard_e};
