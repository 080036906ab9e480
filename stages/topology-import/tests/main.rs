//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "results are printed with `--nocapture`")]

mod export_mappers;
mod graph;
mod import_anything;
mod import_clusters;
mod import_damage_clusters;
mod import_damage_fabrics;
mod import_damage_hosts;
mod import_damage_mappers;
mod import_fabrics;
mod import_foreign;
mod import_hwloc;
mod import_mappers;
mod import_measured;
mod import_networks;
mod import_rows;
mod mappers_system;
mod simgrid;
mod slurm;
mod support {
    pub(crate) mod description;
    pub(crate) mod fabric;
    pub(crate) mod fat_tree;
}
