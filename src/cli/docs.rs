//! `hopmap docs`: the reference pages that follow from the code, so that they cannot differ from it. `docs/reference/` has them, and
//! `tests/cli/docs.rs` compares.

mod commands;
mod data;
mod markdown;
mod stages;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use hopmap_command::{Exit, Failure};
use hopmap_durable::DurableError;

use self::markdown::Pages;

/// Arguments of `docs`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap docs docs/reference")]
pub(crate) struct Arguments {
    /// Folder for the pages; created if it is missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn main(arguments: &Arguments, definition: clap::Command) -> Result<Exit, Failure> {
    for (name, text) in pages(definition) {
        let path = arguments.folder.join(name);
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Failure::failed(DurableError::io("write", &path)(error)))?;
    }
    Ok(Exit::Done)
}

/// All generated pages.
fn pages(definition: clap::Command) -> Pages {
    let mut pages = Pages::new();
    commands::add(&mut pages, definition);
    stages::add(&mut pages);
    data::add(&mut pages);
    pages
}
