//! Delta compression of checkpoint series by published rules, and a delta-compressed checkpoint store.
//!
//! Stages: `checkpoint/delta` computes what ADCA and two simpler rules (002: Pavsky, Kurnosov, Polyakov)
//! store of a series; `checkpoint/store` puts a series into a store; `checkpoint/generate` generates a series
//! with known changes.

pub mod chunk;
pub mod codec;
pub mod commands;
pub mod cut;
pub mod delta;
mod error;
mod params;
pub mod series;
mod stage;
pub mod store;
pub mod tree;

pub use error::CheckpointError;
pub use params::{
    Align, Change, DeltaParams, GenerateParams, Layout, Matching, Reading, Rule, StoreParams, StoreRule,
    Width,
};
pub use series::generate::GenerateError;
pub use stage::{DeltaStage, Generate, StoreStage};
