//! How streams of data go through a network: the system of Solovyov and others for `RapidIO`.
//!
//! Hosts have performance, links have bandwidth in each direction, switches have one table (type 1) or one for every port (type 2).
//! Processes need performance, streams need bandwidth. An [`Instance`] is all of that from a file, a [`Problem`](problem::Problem) is
//! what is asked about it, and an [`Engine`](engine::Engine) finds a [`Plan`](problem::Plan): [`search`] and [`router`] are our own,
//! [`compact`] and [`paper`] are programs for a solver. [`answer`](mod@answer) makes tables of a plan, and [`check`] follows them entry by entry,
//! as the switches would; it shares no code with what found them. [`deadlock`] finds links that can wait for each other in a circle;
//! [`export`] writes tables in formats that networks load.
//!
//! # Algorithms
//!
//! A `Problem` (`stages/route/src/problem.rs`) is a program on a machine under rules, in numbers: what links and hosts have left, who may be
//! where, what needs a route. An `Engine` looks for a `Plan` and says what it knows: a bound, and whether the search came to its end.
//! `answer.rs` asks one engine after the other, each with what the one before found, and makes tables of the plan; these pass `check/`
//! before they are given, which follows every entry as the switches would and knows nothing of engines.
//!
//! - `router/` finds routes for processes that are where they are. Quickly: every flow takes the cheapest way that agrees with the tables so
//!   far, and those over links that are too full give way. Then with a proof: contested links get prices (Lagrangian relaxation) under
//!   which every destination has its exactly cheapest tree (Dreyfus and Wagner, over its flows), and branch and bound decides entries of
//!   tables, or which link may follow which.
//! - `search/` finds mappings: annealing on an estimate, `router/` for what looks good, then branch and bound over classes of alike hosts, one
//!   length of the longest route after the other. Sets of classes are narrowed by distance, the bound is one of assignment (Gilmore and
//!   Lawler), alike processes and the symmetry of the machine are used, and what is left is routed exactly.
//! - `compact/` is a program for a solver in which hosts are parts of their switches and entries form a tree for every destination; `paper.rs` is
//!   that of the paper, the reference that everything else is compared with. `solver/highs.rs` runs HiGHS on a thread of its own, so that
//!   nobody who asks to stop waits for it, and puts every solution back into its program before it is believed.
//! - `goals.rs` and `diagnosis/` ask engines again and again: a demand is made stronger, or the machine wider, until nothing keeps it, or
//!   something does. A remedy is told only after a plan for the changed machine passed the check.
//! - `failures/` asks for every part that is taken away, in parallel; `kit/` for every machine that a kit can make, small kits up to symmetry.

pub mod answer;
pub mod check;
pub mod compact;
pub mod deadlock;
mod demands;
pub mod diagnosis;
pub mod engine;
mod error;
pub mod export;
pub mod failures;
pub mod goals;
pub mod instance;
mod kit;
pub mod linear;
mod network;
pub mod paper;
mod params;
pub mod problem;
pub mod router;
mod rules;
pub mod samples;
pub mod search;
mod seek;
pub mod solver;
mod stage;

pub use demands::{DemandsParams, DemandsStage};
pub use error::{CheckError, ExportError, SolverError};
pub use failures::{FailuresParams, FailuresStage, Fallible};
pub use instance::Instance;
pub use kit::{BuildParams, BuildStage, check_kit};
pub use network::Network;
pub use params::{
    CheckParams, ExportFormat, ExportParams, Family, Goal, ImportParams, LinkParams, Method, ModelFormat,
    ModelParams, SolveParams, Weights,
};
pub use rules::Rules;
pub use stage::{CheckStage, ExportStage, ImportStage, MapStage, ModelStage, TablesStage};
