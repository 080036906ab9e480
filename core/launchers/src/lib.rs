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
    CRAY_FILE, cray_rank_order, heading, hostfile, hosts_of_ranks, launch_file, machinefile, rankfile, runs,
    same_short_name, short_name, slurm_hostfile,
};
pub use launch::{Launch, MachinefileStyle, OpenMpi};
pub use torch::{TorchStart, torch_file};
