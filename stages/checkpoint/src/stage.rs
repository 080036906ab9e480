//! The stages of this room.

mod delta;
mod generate;

pub use delta::DeltaStage;
pub use generate::Generate;
