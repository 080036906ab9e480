//! Commands as library functions: arguments, work and answer of a subcommand of `hopmap`, without its printing.
//!
//! [`Command`] is to the command line what `Stage` is to pipelines: whoever knows a subject implements it, and the registry
//! lists it as a [`CommandEntry`].

mod answer;
mod command;

use std::path::{Path, PathBuf};

pub use answer::{Answer, Exit, Failure, Mistake};
pub use command::{Command, CommandEntry, ParsedCommand};

/// A path as people would type it: relative to the working directory where it is below it, which itself is `.`.
#[must_use]
pub fn shown(path: &Path) -> String {
    let clean: PathBuf = path.components().collect();
    let clean = std::fs::canonicalize(&clean).unwrap_or(clean);
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let seen = clean.strip_prefix(here).unwrap_or(&clean);
    if seen.as_os_str().is_empty() { ".".to_owned() } else { seen.display().to_string() }
}

/// The owner of a lock, as processes read it that find something locked.
#[must_use]
pub fn holder(command: &str) -> String {
    format!("process {} on {}: hopmap {command}", std::process::id(), hopmap_mpi_environment::host_name())
}

/// Threads that a command takes unless it is told a number.
#[must_use]
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
