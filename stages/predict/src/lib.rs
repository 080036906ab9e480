//! Predicted run times of programs.
//!
//! Stages: [`TimeStage`], `predict/time`; [`BoundStage`], `predict/bound`.

mod bound;
mod params;
mod perfetto;
mod time;
mod uncounted;

pub use bound::BoundStage;
pub use params::{BoundParams, MessageCosts, PairRateParams, SharingName, TimeParams};
pub use time::TimeStage;
