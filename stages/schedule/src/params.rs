//! Parameters of the stages.

mod auto;
mod check;
mod exact;
mod export;
mod genetic;
mod import;
mod list;
mod machine;
mod mapping;

pub use auto::AutoParams;
pub use check::CheckParams;
pub use exact::ExactParams;
pub use export::{ExportFormat, ExportParams};
pub use genetic::{Admissible, GeneticParams};
pub use import::{GraphFormat, ImportParams};
pub use list::{Heuristic, ListParams};
pub use machine::{Distance, Lookup, MachineParams, Ranks};
pub use mapping::MappingParams;

pub(crate) fn first_seed() -> u64 {
    1
}

pub(crate) fn two_islands() -> u32 {
    2
}

pub(crate) fn four_islands() -> u32 {
    4
}
