//! The stages of this room.

mod delta;
mod generate;
mod names;
mod store;

pub use delta::DeltaStage;
pub use generate::Generate;
pub use store::StoreStage;
