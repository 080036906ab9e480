//! `hopmap man`: the manual pages, one for each command.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use hopmap_command::{Exit, Failure};
use miette::{IntoDiagnostic, WrapErr};

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap man ~/.local/share/man/man1 && man hopmap-run")]
pub(crate) struct Arguments {
    /// Folder for the pages; made if it is missing.
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn main(arguments: &Arguments, definition: clap::Command) -> Result<Exit, Failure> {
    let folder = &arguments.folder;
    let context = || format!("cannot write pages into {}", folder.display());
    std::fs::create_dir_all(folder).into_diagnostic().wrap_err_with(context)?;
    clap_mangen::generate_to(definition, folder).into_diagnostic().wrap_err_with(context)?;
    Ok(Exit::Done)
}
