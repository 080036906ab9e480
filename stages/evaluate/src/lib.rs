//! Comparison of mappings with baselines and known optima, of collective algorithms under a mapping, and of metrics with
//! run times.
//!
//! Stages: [`MappingStage`], `evaluate/mapping`; [`AccuracyStage`], `evaluate/accuracy`;
//! [`CollectivesStage`], `evaluate/collectives`; [`CorrelationStage`], `evaluate/correlation`;
//! [`GroupsStage`], `evaluate/groups`.

mod accuracy;
mod collectives;
mod compare;
mod correlation;
mod error;
mod groups;
mod params;
mod stage;

pub use accuracy::{Search, Table, accuracy};
pub use collectives::{CollectiveComparison, CollectivesParams, compare_collectives};
pub use compare::{Comparison, compare, summary};
pub use correlation::CorrelationParams;
pub use error::EvaluateError;
pub use groups::{GroupTables, GroupsParams, groups};
pub use params::{AccuracyParams, MappingParams};
pub use stage::{AccuracyStage, CollectivesStage, CorrelationStage, GroupsStage, MappingStage};
