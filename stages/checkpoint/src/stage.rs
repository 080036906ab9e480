//! The stages of this crate.

mod delta;
mod generate;
mod names;
mod store;

pub use delta::DeltaStage;
pub use generate::Generate;
pub use store::StoreStage;
