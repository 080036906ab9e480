//! Comparison of mappings with baselines and known optima, and of collective algorithms under a mapping.
//!
//! Stages: [`MappingStage`], `evaluate/mapping`; [`AccuracyStage`], `evaluate/accuracy`;
//! [`CollectivesStage`], `evaluate/collectives`.

mod accuracy;
mod collectives;
mod compare;
mod error;
mod params;
mod stage;

pub use accuracy::{Search, Table, accuracy};
pub use collectives::{CollectiveComparison, CollectivesParams, compare_collectives};
pub use compare::{Comparison, compare, summary};
pub use error::EvaluateError;
pub use params::{AccuracyParams, MappingParams};
pub use stage::{AccuracyStage, CollectivesStage, MappingStage};
