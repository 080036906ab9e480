//! What the machine is: synthetic shapes and measured machines to system graphs.
//!
//! Stages: [`Synthetic`], `topology/synthetic`; [`Probe`], `topology/probe`; [`LevelsStage`], `topology/levels`.

pub mod agent;
mod cost_metric;
mod error;
pub mod export;
mod fit;
pub mod import;
pub mod levels;
mod params;
pub mod probe;
mod stage;
mod synthetic;

pub use cost_metric::CostMetric;
pub use error::{ProbeError, SyntheticError};
pub use fit::fits;
pub use levels::{LevelsError, LevelsParams, LevelsStage};
pub use params::{BandwidthPhase, ProbeParams, SyntheticParams};
pub use stage::{Probe, Synthetic};
pub use synthetic::synthetic;
