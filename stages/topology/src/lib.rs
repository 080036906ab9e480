//! What the machine is: synthetic shapes and measured machines to system graphs.
//!
//! Stages: [`Synthetic`], `topology/synthetic`; [`Probe`], `topology/probe`; [`LevelsStage`], `topology/levels`.

pub mod agent;
pub mod export;
mod fit;
pub mod import;
pub mod levels;
pub mod probe;
mod synthetic;

pub use fit::fits;
pub use levels::{LevelsError, LevelsParams, LevelsStage};
pub use probe::{BandwidthPhase, Probe, ProbeError, ProbeParams};
pub use synthetic::{CostMetric, Synthetic, SyntheticError, SyntheticParams, synthetic};
