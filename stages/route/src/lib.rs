//! Routing of data streams through a network: the `RapidIO` system of Solovyov and others.
//!
//! Hosts have performance, links have bandwidth in each direction, and switches have one table (type 1) or one per input port
//! (type 2). Processes need performance, streams need bandwidth. An [`Instance`] is read from a file. A
//! [`Problem`](problem::Problem) adds the rules, and an [`Engine`](engine::Engine) finds a [`Plan`](problem::Plan): [`search`]
//! and [`router`] are combinatorial searches, [`compact`] and [`paper`] are integer programs for a solver. [`answer`](mod@answer)
//! converts a plan to tables. [`check`] follows them entry by entry, as the switches do; it shares no code with the engines.
//! [`network::cycle`] finds cycles of links that wait for each other; [`export`] writes tables for networks.

pub mod answer;
pub mod check;
pub mod compact;
mod demands;
pub mod diagnosis;
pub mod engine;
mod error;
pub mod export;
mod fabric;
pub mod failures;
pub mod goals;
pub mod instance;
pub mod linear;
pub mod network;
pub mod paper;
mod params;
pub mod problem;
mod quantity;
pub mod router;
pub mod search;
pub mod solver;
mod stage;
mod synthesis;

pub use demands::DemandsStage;
pub use error::RouteError;
pub use fabric::{FabricParams, FabricStage};
pub use failures::FailuresStage;
pub use instance::Instance;
pub use network::Network;
pub use params::{
    BuildParams, CheckParams, DemandsParams, ExportFormat, ExportParams, FailuresParams, Fallible, Family,
    Goal, ImportParams, LinkParams, Method, ModelFormat, ModelParams, Performance, SolveParams,
};
pub use problem::{Rules, Weights};
pub use stage::{CheckStage, ExportStage, ImportStage, MapStage, ModelStage, TablesStage};
pub use synthesis::{BuildStage, check_inventory};
