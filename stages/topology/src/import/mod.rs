//! Machines as other tools describe them, recognised by what is in their files.
//!
//! # From a description to a machine
//!
//! `stages/topology/src/import` has a module for every format behind one small `Reader`: whether a file looks like it, which files are behind
//! a path, and how they are read. What a module finds becomes `Parts` (nodes, links, routing, the inside of hosts), and `finish.rs` alone
//! adds slots and costs. Dumps of fabrics go through `fabric.rs`, which joins adapters to hosts and puts everything into canonical order.
//!
//! Routes belong to the machine (`model/src/routing.rs`), not to its costs: `Paths` follows forwarding tables where there are any, else the
//! fewest links with ties as `Ties` says, and metrics, loads and `CostModel::Routes` all ask it. A table's entry names the *last link* of
//! a way, which tells the host and its port. `SystemGraph::explicit` writes such costs down: as levels where they are those of a tree,
//! found among classes of hosts that hang on the same switch, else as a matrix of a bounded size. Searches keep a cost for every pair of
//! hosts and a tree inside each (`objective/src/forms.rs`), so that cores cost no memory.

mod cables;
mod core_to_core;
mod error;
mod fabric;
mod finish;
mod graph;
mod graph_csv;
mod graph_json;
mod guid;
mod hwloc;
mod ibnetdiscover;
mod kahip;
mod matrix_csv;
mod measured;
mod mpigraph;
mod netloc;
mod netloc_dat;
mod netloc_raw;
mod omnipath;
mod params;
mod parus;
mod parus_netcdf;
mod reader;
mod scotch;
mod simgrid;
mod slurm_block;
mod slurm_conf;
mod slurm_tree;
mod slurm_yaml;
mod speed;
mod stage;
mod topomatch;
mod units;
mod xml;
mod yaml;

pub use error::ImportError;
pub use params::{Format, ImportParams};
pub use reader::{files, read, recognise};
pub use stage::{
    Fabric, Hwloc, Ibnetdiscover, Import, Matrices, Netloc, Omnipath, Parus, Scotch, Simgrid, Slurm,
};

use hopmap_model::SystemGraph;

/// A machine, and what people should know of how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The machine.
    pub system: SystemGraph,
    /// One line each: what was recomputed, left out or assumed.
    pub notes: Vec<String>,
}
