//! Which of the free hosts a job should get: the first stage of the two-stage method RGO of GraphHunter, and better ones.
//!
//! Stages: [`Nodes`], `select/nodes`, of which [`select()`] is the algorithm; [`Hosts`], `select/hosts`: the machine of hosts that are
//! named, and what messages between them cost.
//!
//! # Algorithm
//!
//! `select/nodes` puts free hosts that are alike, such as those of one switch, into classes. On a tree total distance and cut are sums over its
//! groups, so dynamic programming over subtrees (`network.rs`) finds the best choice in hosts · count additions; so are the fewest switches. Over
//! a matrix, choices grow from several hosts and are improved by exchanges.

#![expect(clippy::cast_possible_wrap, reason = "numbers of hosts are far below 2^63")]

mod error;
mod free;
mod greedy;
mod hosts;
mod network;
mod params;
mod select;
mod space;
mod stage;

pub use error::SelectError;
pub use hosts::{CostForm, HostCost, Hosts, HostsParams, restrict};
pub use params::{Criterion, Method, NodesParams, Source};
pub use select::{Request, Selection, select};
pub use stage::Nodes;
