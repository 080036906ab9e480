//! Routing of data streams through a network: the `RapidIO` system of Solovyov and others.
//!
//! Hosts have performance, links have bandwidth in each direction, and switches have one table (type 1) or one per input port
//! (type 2). Processes need performance, streams need bandwidth. A [`Problem`](problem::Problem) adds the rules, and an
//! [`Engine`](engine::Engine) finds a [`Plan`](problem::Plan): [`search`] and [`router`] are combinatorial searches, [`compact`]
//! and [`paper`] are integer programs for a solver. [`answer`](mod@answer) converts a plan to tables. [`check`] follows them entry
//! by entry, as the switches do; it shares no code with the engines. [`network::cycle`] finds cycles of links that wait for each
//! other. [`diagnosis`] says why a problem has no solution.

pub mod answer;
pub mod check;
pub mod compact;
pub mod diagnosis;
pub mod engine;
pub mod error;
pub mod goals;
pub mod linear;
pub mod network;
pub mod paper;
pub mod params;
pub mod problem;
pub mod quantity;
pub mod router;
pub mod search;
pub mod solver;
