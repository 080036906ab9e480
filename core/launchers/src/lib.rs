//! Launch files: host and core of every rank of a mapping, as MPI launchers read them.
//!
//! The first line of a file is a comment with the digest of its mapping, as readers skip lines that begin with `#`. Flux reads no
//! comments, so the last line of its file has the digest; the file of Fujitsu MPI has none.

mod command;
mod default_placement;
mod error;
mod files;
mod flux;
mod fujitsu;
mod launch;
mod programs;
mod write;

pub use command::{COMMAND_OF_FILE, CommandWords, PROGRAM_WORD, shell_word, start_command, with_variables};
pub use default_placement::default_options;
pub use error::LaunchError;
pub use files::{CRAY_FILE, REORDER_FILE, heading, hosts_of_ranks, runs, same_short_name, short_name};
pub use launch::Launch;
pub use programs::{MULTI_PROG, are_several, programs_of, programs_of_file, with_programs};
pub use write::launch_file;
