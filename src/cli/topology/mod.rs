//! `hopmap topology`: what keeps the topology of a machine true.

mod diff;
mod failure;
mod measure;
mod refresh;
mod status;
mod values;

use clap::{Args, Subcommand};
use hopmap_command::{Exit, Failure};

use super::output::Output;

/// Arguments of `topology`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at the machine, publish what has changed, and tell whoever uses it.
    Refresh(Box<refresh::Arguments>),
    /// Say in words what is different between two topologies.
    Diff(diff::Arguments),
    /// Say what is published, since when, and whether it is kept up to date.
    Status(status::Arguments),
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Refresh(arguments) => refresh::main(arguments, output),
        Command::Diff(arguments) => diff::main(arguments, output),
        Command::Status(arguments) => status::main(arguments, output),
    }
}
