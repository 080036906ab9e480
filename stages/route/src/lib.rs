//! How streams of data go through a network: the system of Solovyov and others for `RapidIO`.
//!
//! Hosts have performance, links have bandwidth in each direction, switches have one table (type 1) or one for every port (type 2).
//! Processes need performance, streams need bandwidth. An [`Instance`] is all of that from a file; [`check`] follows the tables of
//! switches entry by entry, as the switches would, and says what the streams take of every link; [`deadlock`] finds links that
//! can wait for each other in a circle; [`export`] writes tables in formats that networks load.

pub mod answer;
pub mod check;
pub mod deadlock;
mod error;
pub mod export;
pub mod instance;
pub mod linear;
mod network;
pub mod paper;
mod params;
pub mod solver;
mod stage;

pub use error::{CheckError, ExportError, InstanceError, SolverError};
pub use instance::Instance;
pub use network::Network;
pub use params::{
    CheckParams, ExportFormat, ExportParams, Family, ImportParams, ModelFormat, ModelParams, SolveParams,
    Weights,
};
pub use stage::{CheckStage, ExportStage, ImportStage, MapStage, ModelStage, TablesStage};
