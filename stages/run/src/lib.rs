//! Measured run times of programs.
//!
//! Stages: [`TrialStage`], `run/trial`, and [`BestStage`], `run/best`, which returns the best mapping of a trial. [`Runner`] is what a
//! trial is made of: it runs a program under several mappings, block by block.

mod best;
mod candidates;
mod command;
mod error;
mod measure;
mod params;
mod printed;
mod runner;
mod stage;

pub use best::{BestParams, BestStage};
pub use candidates::Candidate;
pub use command::LaunchCommand;
pub use error::TrialError;
pub use params::TrialParams;
pub use runner::{Block, Runner};
pub use stage::TrialStage;
