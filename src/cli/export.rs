//! `hopmap export`: a run as one archive that another machine can verify.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, shown};
use serde_json::json;

use super::lock::of_results;
use super::open::{PipelineArguments, StoreArguments, existing, working_directory};
use super::output::Output;
use crate::archive::{self, ArchiveError, Export};
use crate::engine::{self, PipelineId, RunSummary, Store};
use crate::lock::{self, Request};
use crate::pipeline::{EMBEDDED, Pipeline};

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The archive is an RO-Crate in a zip file: the pipeline, its lock file, the input files, every artifact, the journal and the
report, each with size and BLAKE3. The same run gives the same bytes. `hopmap verify FILE` checks every byte of it.

Examples:
  hopmap export place.toml -o place.crate.zip
  hopmap export -o newest.crate.zip                            # the newest run of the store
  hopmap export 2026-11-22T18-46-50 -o run.crate.zip --no-inputs")]
pub(crate) struct Arguments {
    /// Pipeline, or a run as `hopmap runs` names it [default: the newest run].
    run: Option<String>,
    /// Value of a parameter of the pipeline; paths are relative to the working directory.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// The archive to write.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Put hashes of the input files into the archive, but not the files.
    #[arg(long)]
    no_inputs: bool,
    /// Licence of the data, such as `https://spdx.org/licenses/CC-BY-4.0`; none is stated without.
    #[arg(long, value_name = "URL")]
    license: Option<String>,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let (request, root, wanted) = request(arguments)?;
    let pipeline = request.open()?;
    let mut store = Store::load(&existing(root)?)?;
    let runs = engine::read_runs(&store)?;
    let id = PipelineId::of(&pipeline, store.root());
    let newest = runs.iter().rev().find(|run| run.is_of(&id));
    let run = match &wanted {
        Some(name) => runs.iter().find(|run| run.run == *name),
        None => newest,
    };
    let report = lock::expect(&pipeline, &mut store);
    let lock = of_results(&request, &pipeline, &mut store)?;
    if let (Some(run), Some(_)) = (run, &wanted) {
        still_there(&pipeline, run, &report)?;
    }
    let has_report = run.map(|run| &run.run) == newest.map(|run| &run.run);
    let export = Export {
        request: &request,
        pipeline: &pipeline,
        report: &report,
        lock: &lock,
        run,
        has_report,
        inputs: !arguments.no_inputs,
        license: arguments.license.as_deref(),
    };
    let place = working_directory()?.join(&arguments.out);
    let exported = archive::export(&place, &export, &mut store)?;
    if output.is_json() {
        output.json(&json!({ "archive": place, "exported": exported }));
    }
    exported.notes.iter().for_each(|note| output.note(format!("note: {note}")));
    if arguments.license.is_none() {
        output.note("note: no licence is stated; --license states one, and makes it a Workflow Run RO-Crate");
    }
    output.line(format!("{}: {} files, {} bytes", shown(&place), exported.files, exported.bytes));
    output.line(format!("  {:<12} hopmap verify {}", "check it", shown(&place)));
    Ok(Exit::Done)
}

/// What is to be packed: what was asked for, the store, and the name of the run, if it was named.
fn request(arguments: &Arguments) -> Result<(Request, PathBuf, Option<String>), Failure> {
    if let Some(name) = &arguments.run
        && (Path::new(name).is_file() || EMBEDDED.iter().any(|embedded| embedded.name == *name))
    {
        let pipeline = PipelineArguments::new(name.clone(), arguments.parameters.clone());
        let root = arguments.store.root(&pipeline)?;
        return Ok((pipeline.request()?, root, None));
    }
    let root = existing(arguments.store.root_here()?)?;
    if !arguments.parameters.is_empty() {
        let help = "name the pipeline to give other parameters: `hopmap export PIPELINE -p …`";
        return Err(Mistake::new("a run has its parameters already", help).into());
    }
    let store = Store::load(&root)?;
    let runs = engine::read_runs(&store)?;
    let name = match &arguments.run {
        Some(name) => match runs.iter().find(|run| run.run == *name) {
            Some(run) => run.run.clone(),
            None => return Err(unknown(name, &runs).into()),
        },
        None => match runs.last() {
            Some(run) => run.run.clone(),
            None => {
                let help = "`hopmap run` makes one; --store names another store";
                return Err(Mistake::new("the store has no run", help).into());
            }
        },
    };
    match Request::read(&store.runs().join(&name)) {
        Some(request) => Ok((request, root, Some(name))),
        None => Err(Mistake::new(
            format!(
                "the run {name} does not know what was asked for: it was killed, or is of an older hopmap"
            ),
            "name the pipeline: `hopmap export PIPELINE -o FILE`",
        )
        .into()),
    }
}

fn unknown(name: &str, runs: &[RunSummary]) -> Mistake {
    let newest: Vec<&str> = runs.iter().rev().take(5).map(|run| run.run.as_str()).collect();
    let help = match newest.is_empty() {
        true => "the store has no runs; name a pipeline file".to_owned(),
        false => format!("the newest runs: {}", newest.join(", ")),
    };
    Mistake::new(format!("`{name}` is neither a pipeline nor a run"), help)
}

/// A run can be packed as long as what it gave is what its pipeline gives now.
fn still_there(pipeline: &Pipeline, run: &RunSummary, report: &engine::RunReport) -> Result<(), Failure> {
    let cells = pipeline.cells.iter().zip(&report.cells);
    let other = cells.filter(|(cell, settled)| {
        let then = run.stages.iter().find(|stage| stage.cell == cell.id);
        then.is_none_or(|then| then.key.is_some() && then.key != settled.key)
    });
    let names: Vec<&str> = other.map(|(cell, _)| cell.id.as_str()).take(3).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(Mistake::new(
            format!(
                "the run {} cannot be packed: its inputs have changed since, for {}",
                run.run,
                names.join(", ")
            ),
            "put them back, or pack what is there now: `hopmap export PIPELINE`",
        )
        .into()),
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Durable(_) | ArchiveError::DamagedArtifact { .. } | ArchiveError::Changed(_) => {
                Self::failed(error)
            }
            error => Self::usage(error),
        }
    }
}
