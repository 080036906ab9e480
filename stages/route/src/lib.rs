//! Routing of data streams through a network: the `RapidIO` system of Solovyov and others.
//!
//! An [`Instance`] is read from a file, or made of the traffic of a program. `hopmap_routing` finds and checks routes and tables;
//! here are the stages, what survives failures ([`failures`]), machines from an inventory, regular fabrics, and tables in
//! the formats of networks ([`export`]).

mod demands;
pub mod export;
mod fabric;
pub mod failures;
pub mod instance;
mod params;
mod stage;
mod synthesis;

pub use demands::DemandsStage;
pub use fabric::{FabricParams, FabricStage};
pub use failures::FailuresStage;
pub use instance::Instance;
pub use params::{
    BuildParams, CheckParams, DemandsParams, ExportFormat, ExportParams, FailuresParams, Fallible, Family,
    ImportParams, LinkParams, ModelFormat, ModelParams, Performance, SolveParams,
};
pub use stage::{CheckStage, ExportStage, ImportStage, MapStage, ModelStage, TablesStage};
pub use synthesis::{BuildStage, check_inventory};
