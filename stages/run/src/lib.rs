//! Measured run times of programs.
//!
//! Stage: [`TrialStage`], `run/trial`. [`Runner`] is what it is made of: it runs a program under several mappings, block by
//! block.

mod command;
mod error;
mod measure;
mod params;
mod runner;
mod stage;

pub use command::LaunchCommand;
pub use error::TrialError;
pub use params::TrialParams;
pub use runner::{Candidate, Runner};
pub use stage::TrialStage;
