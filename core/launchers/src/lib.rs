//! Launch files: host and core of every rank of a mapping, as MPI launchers read them.
//!
//! The first line of every file is a comment with the digest of its mapping. All readers skip lines that begin with `#`.

mod command;
mod default_placement;
mod error;
mod files;
mod launch;
mod torch;

pub use command::{COMMAND_OF_FILE, CommandWords, PROGRAM_WORD, shell_word, start_command, with_variables};
pub use default_placement::default_options;
pub use error::LaunchError;
pub use files::{
    CRAY_FILE, REORDER_FILE, heading, hosts_of_ranks, launch_file, runs, same_short_name, short_name,
};
pub use launch::Launch;
pub use torch::{TorchStart, torch_file};
