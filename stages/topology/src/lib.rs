//! What the machine is: synthetic shapes and measurements to system graphs.
//!
//! Stages: [`Synthetic`], `topology/synthetic`; [`LevelsStage`], `topology/levels`.

pub mod agent;
mod error;
mod fit;
pub mod levels;
mod params;
pub mod probe;
mod shape;
mod stage;
mod synthetic;

pub use error::SyntheticError;
pub use fit::fits;
pub use levels::{LevelsError, LevelsParams, LevelsStage};
pub use params::SyntheticParams;
pub use stage::Synthetic;
pub use synthetic::synthetic;
