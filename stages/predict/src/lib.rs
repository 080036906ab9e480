//! Predicted run times of programs.
//!
//! Stages: [`TimeStage`], `predict/time`.

mod params;
mod perfetto;
mod time;

pub use params::{MessageCosts, PairRateParams, SharingName, TimeParams};
pub use time::TimeStage;
