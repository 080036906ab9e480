//! `hopmap report`: the HTML report of what is in the store, and the timeline of its last run.

use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, shown};
use hopmap_durable::replace_file;
use miette::Report;

use super::asked;
use super::gates::{self, GateArguments};
use super::open::{PipelineArguments, StoreArguments, working_directory};
use super::output::Output;
use crate::engine::{self, Store};
use crate::pipeline::Pipeline;
use crate::report;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap report pipelines/place.toml --out place.html
  hopmap report sweep.toml --timeline sweep.json        # open it in https://ui.perfetto.dev")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    gates: GateArguments,
    /// File to write [default: reports/NAME.html in the store].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write when the cells of the last run ran, for ui.perfetto.dev, instead of the report; with --out both.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let mut pipeline = arguments.pipeline.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    let timeline = write_timeline(arguments, &pipeline, &store)?;
    if let (Some(timeline), None) = (&timeline, &arguments.out) {
        if output.is_json() {
            output.json(&serde_json::json!({ "timeline": timeline }));
        }
        output.line(shown(timeline));
        return Ok(Exit::Done);
    }
    let mut planned = engine::plan(&pipeline, &mut store);
    if let Some(problems) = gates::judge(&pipeline, &mut planned, &accepted) {
        return Err(problems.into());
    }
    let problems = asked::ask(&pipeline, &mut store, None, &mut planned);
    let place = match &arguments.out {
        Some(path) => working_directory()?.join(path),
        None => report::place(&store, &pipeline),
    };
    report::write(&place, &pipeline, &store, &planned, &shown)?;
    if output.is_json() {
        output.json(&serde_json::json!({ "report": place, "timeline": timeline }));
    }
    if let Some(timeline) = &timeline {
        output.line(shown(timeline));
    }
    output.line(shown(&place));
    match problems {
        Some(problems) if planned.is_success() => Err(problems.into()),
        _ => Ok(Exit::Done),
    }
}

/// Writes the last run of the pipeline as trace events, if that was asked for.
fn write_timeline(
    arguments: &Arguments,
    pipeline: &Pipeline,
    store: &Store,
) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = &arguments.timeline else { return Ok(None) };
    let place = working_directory()?.join(path);
    let Some(run) = report::latest_run(store, pipeline) else {
        let message = format!("no run of `{}` is in {}", pipeline.name, shown(store.root()));
        return Err(Mistake::new(message, "run it first: hopmap run PIPELINE").into());
    };
    let text = report::chrome_trace(&run).to_string() + "\n";
    replace_file(&place, text.as_bytes()).map_err(Report::from)?;
    Ok(Some(place))
}
