//! Machine topologies: regular shapes and measurements to system graphs, and export.
//!
//! Stages: [`Synthetic`], `topology/synthetic`; [`Probe`], `topology/probe`; [`LevelsStage`], `topology/levels`.

pub mod agent;
pub mod export;
mod fit;
pub mod levels;
mod params;
pub mod probe;
mod synthetic;

pub use fit::fits;
pub use levels::{LevelsError, LevelsParams, LevelsStage};
pub use probe::{BandwidthPhase, Probe, ProbeParams};
pub use synthetic::Synthetic;
