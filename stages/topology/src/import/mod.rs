//! Machines as other tools describe them, recognised by what is in their files.

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
mod lines;
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
