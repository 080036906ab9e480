//! `hopmap accept`: the accepted state of an artifact as a small file.

use std::path::PathBuf;

use clap::Args;
use hopmap_artifact::Folder;
use miette::Report;
use serde_json::json;

use super::exit::Exit;
use super::failure::Failure;
use super::open::{StoreArguments, working_directory};
use super::output::Output;
use super::show::locate;
use super::summary::shown;
use crate::accepted::{Accepted, AcceptedError};
use crate::engine::short;

/// Arguments of `accept`.
#[derive(Debug, Args)]
#[command(after_help = "\
FILE is small text for version control: kind, digest, rows, metrics and where the artifact is. One that says the same
already stays untouched.

Examples:
  hopmap accept machine --to accepted.json --note 'after the move of rack 7'
  hopmap accept quality --to quality.json           # the newest output of a stage
  hopmap accept --check machine --to accepted.json  # 0 if it is the accepted one, 3 if not")]
pub(crate) struct Arguments {
    /// Folder of an artifact, the first digits of its digest, or a stage whose newest output is meant.
    artifact: String,
    /// The file.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// What to remember about it.
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    note: Option<String>,
    /// Accept nothing: say whether the artifact is the accepted one, with exit code 3 if it is not.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let place = working_directory()?.join(&arguments.to);
    let artifact = Folder::open(&locate(&arguments.artifact, &arguments.store)?).map_err(Failure::usage)?;
    match arguments.check {
        true => check(&artifact, &place, output),
        false => accept(&artifact, &place, arguments.note.as_deref(), output),
    }
}

fn accept(
    artifact: &Folder,
    place: &std::path::Path,
    note: Option<&str>,
    output: Output,
) -> Result<Exit, Failure> {
    let accepted = Accepted::of(artifact, place, note)?;
    let written = accepted.write(place)?;
    if output.is_json() {
        output.json(&json!({ "file": place, "written": written, "accepted": accepted }));
    }
    let verb = if written { "accepted" } else { "accepted already" };
    output.line(format!("{verb}: {} {} in {}", accepted.kind, short(&accepted.digest), shown(place)));
    Ok(Exit::Done)
}

fn check(artifact: &Folder, place: &std::path::Path, output: Output) -> Result<Exit, Failure> {
    let accepted = Accepted::read(place)?;
    artifact.verify().map_err(Report::new)?;
    let differences = accepted.differences(artifact);
    if output.is_json() {
        output.json(&json!({ "file": place, "same": differences.is_empty(), "differences": differences }));
    }
    if differences.is_empty() {
        output.line(format!("{} {} is the accepted one", accepted.kind, short(&accepted.digest)));
        return Ok(Exit::Done);
    }
    output.line(format!("{} is not what {} accepts", shown(artifact.path()), shown(place)));
    differences.iter().for_each(|line| output.line(format!("  {line}")));
    Ok(Exit::Different)
}

impl From<AcceptedError> for Failure {
    fn from(error: AcceptedError) -> Self {
        match error {
            AcceptedError::Missing { .. }
            | AcceptedError::Malformed { .. }
            | AcceptedError::Format { .. } => Self::usage(error),
            error => Self::Failed(Report::new(error)),
        }
    }
}
