//! Machine topologies: synthetic shapes, imports and measurements to system graphs.
//!
//! Stages: [`Synthetic`], `topology/synthetic`; [`Probe`], `topology/probe`; [`LevelsStage`], `topology/levels`.

pub mod agent;
pub mod export;
mod fit;
// A number of a file that does not fit is an error, and not another number.
#[cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]
pub mod import;
pub mod levels;
mod params;
pub mod probe;
mod synthetic;

pub use fit::fits;
pub use levels::{LevelsError, LevelsParams, LevelsStage};
pub use params::MachineError;
pub use probe::{BandwidthPhase, Probe, ProbeParams};
pub use synthetic::{CostMetric, Synthetic, SyntheticParams, synthetic};
