//! The stages of this room.

mod delta;

pub use delta::DeltaStage;
