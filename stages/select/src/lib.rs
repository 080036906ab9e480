//! Selection of hosts for a job: the first stage of the two-stage method RGO of GraphHunter, and improved
//! methods.
//!
//! Stages: [`Nodes`], `select/nodes`, implemented by [`select()`]; [`Hosts`], `select/hosts`, which restricts
//! a machine topology to given hosts.
//!
//! # Algorithm
//!
//! `select/nodes` groups equivalent free hosts, such as those of one switch, into classes. On a tree, total
//! distance and cut are sums over its groups, so dynamic programming over subtrees (`network.rs`) finds the
//! optimum in hosts · count additions; the same holds for the fewest switches. On a matrix, choices grow from
//! several hosts and are improved by pairwise exchanges.

#![expect(clippy::cast_possible_wrap, reason = "numbers of hosts are far below 2^63")]

mod error;
mod free;
mod greedy;
mod hosts;
mod network;
mod params;
mod restrict;
mod select;
mod space;
mod stage;

pub use error::SelectError;
pub use hosts::{CostForm, HostCost, Hosts, HostsParams};
pub use params::{Criterion, Method, NodesParams, Source};
pub use restrict::restrict;
pub use select::{Request, Selection, select};
pub use stage::Nodes;
