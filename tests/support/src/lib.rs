//! Shared test helpers: skips, timed loops over seeds, random damage and programs, extreme numbers, processes, a cluster.

mod cluster;
mod damage;
mod foreign;
mod impatient;
mod log;
mod numbers;
mod processes;
mod programs;
mod seeds;
mod signal;
mod skip;
pub mod traced;
mod user;

pub use cluster::{Cluster, NODES};
pub use damage::{Random, damage};
pub use foreign::{PREFIXES, with_foreign_lines, with_prefix};
pub use impatient::Impatient;
pub use log::Log;
pub use numbers::{has_little_memory, with_extreme_numbers};
pub use processes::on_processes;
pub use programs::{programs, small_programs};
pub use seeds::{Seeds, only_seed, seeds, soak};
pub use signal::signal;
pub use skip::{given_data, only_in_a_soak, program, skipped, system_tests};
pub use user::unprivileged;
