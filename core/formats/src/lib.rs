//! File formats that several crates read.
//!
//! [`host_list`]: names of hosts as Slurm writes them, `node[001-128,200-210]`. [`sinfo`]: which nodes of a cluster are free.
//! [`parus`]: what PARUS measured between the processes of a job. [`netcdf`]: classic netCDF files.
//! [`natural_key`]: the order of names in which people count.

mod excerpt;
pub mod host_list;
mod natural;
pub mod netcdf;
pub mod parus;
pub mod sinfo;

pub use natural::natural_key;
