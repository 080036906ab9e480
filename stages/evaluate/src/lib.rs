//! How good a mapping is beside linear and random.
//!
//! Stages: [`MappingStage`], `evaluate/mapping`.

mod compare;
mod error;
mod params;
mod stage;
mod summary;

pub use compare::{Comparison, compare};
pub use error::EvaluateError;
pub use params::MappingParams;
pub use stage::MappingStage;
pub use summary::summary;
