//! How streams of data go through a network: the system of Solovyov and others for `RapidIO`.
//!
//! Hosts have performance, links have bandwidth in each direction, switches have one table (type 1) or one for every port (type 2).
//! Processes need performance, streams need bandwidth. An [`Instance`] is all of that from a file, a [`Problem`](problem::Problem) is
//! what is asked about it, and an [`Engine`](engine::Engine) finds a [`Plan`](problem::Plan): [`search`] and [`router`] are our own,
//! [`compact`] and [`paper`] are programs for a solver. [`answer`](mod@answer) makes tables of a plan, and [`check`] follows them entry by entry,
//! as the switches would; it shares no code with what found them. [`network::cycle`] finds links that can wait for each other
//! in a cycle; [`export`] writes tables in formats that networks load.

pub mod answer;
pub mod check;
pub mod compact;
mod demands;
pub mod diagnosis;
pub mod engine;
mod error;
pub mod export;
pub mod failures;
pub mod goals;
pub mod instance;
pub mod linear;
pub mod network;
pub mod paper;
mod params;
pub mod problem;
pub mod router;
pub mod search;
pub mod solver;
mod stage;
mod synthesis;

pub use demands::DemandsStage;
pub use error::RouteError;
pub use failures::FailuresStage;
pub use instance::Instance;
pub use network::Network;
pub use params::{
    BuildParams, CheckParams, DemandsParams, ExportFormat, ExportParams, FailuresParams, Fallible, Family,
    Goal, ImportParams, LinkParams, Method, ModelFormat, ModelParams, Performance, SolveParams,
};
pub use problem::{Rules, Weights};
pub use stage::{CheckStage, ExportStage, ImportStage, MapStage, ModelStage, TablesStage};
pub use synthesis::{BuildStage, check_kit};
