//! Which of the free hosts a job should get: the first stage of the two-stage method RGO of GraphHunter, and better ones.
//!
//! Stage: [`Nodes`], `select/nodes`. [`select()`] is the algorithm behind it.

#![expect(clippy::cast_possible_wrap, reason = "numbers of hosts are far below 2^63")]

mod branch;
mod draws;
mod error;
mod free;
mod goal;
mod greedy;
mod min_cut;
mod network;
mod params;
mod restrict;
mod scale;
mod select;
mod space;
mod stage;
mod state;
mod tree;

pub use error::SelectError;
pub use params::{Criterion, Method, NodesParams, Source};
pub use restrict::restrict;
pub use select::{Request, Selection, select};
pub use stage::Nodes;
