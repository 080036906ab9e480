//! `hopmap report`: the HTML report of what is in the store, and the timeline of its last run.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Exit, refuse, shown};
use hopmap_durable::replace_file;
use miette::Report;
use serde_json::json;

use super::gates::{self, GateArguments};
use super::named::Written;
use super::open::{PipelineArguments, StoreArguments, opened, working_directory};
use super::output::{Output, Result};
use super::summary;
use crate::engine::{self, Store};
use crate::pipeline::Pipeline;
use crate::report;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap report pipelines/place.toml --out place.html
  hopmap report sweep.toml --timeline sweep.json        # open it in https://ui.perfetto.dev")]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    gates: GateArguments,
    /// Write the report to this file [default: reports/NAME.html in the store].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the timeline of the last run for ui.perfetto.dev instead of the report, or with --out in addition to it.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

pub(crate) fn report(arguments: &ReportArguments, output: Output) -> Result {
    let (mut pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    let timeline = arguments.timeline.as_ref();
    let timeline = timeline.map(|path| write_timeline(path, &pipeline, &store)).transpose()?;
    if let (Some(timeline), None) = (&timeline, &arguments.out) {
        output.json(&json!({ "timeline": timeline }));
        output.line(shown(timeline));
        return Ok(Exit::Done);
    }
    let mut planned = engine::plan(&pipeline, &mut store);
    if let Some(problems) = gates::judge(&pipeline, &mut planned, &accepted) {
        return Err(problems.into());
    }
    let problems = summary::ask(&pipeline, &mut store, None, &mut planned);
    if problems.is_none() {
        summary::warn_of_file(&pipeline, output);
    }
    let place = match &arguments.out {
        Some(out) => working_directory()?.join(out),
        None => report::place_of_parameters(&store, &pipeline),
    };
    if arguments.out.is_some() {
        Written::Report.check_place(&place)?;
    }
    only_of_these_parameters(&place, &pipeline, &store, "--out")?;
    report::write(&place, &pipeline, &store, &planned, &shown)?;
    Written::mark(&place);
    output.json(&json!({ "report": place, "timeline": timeline }));
    if let Some(timeline) = &timeline {
        output.line(shown(timeline));
    }
    output.line(shown(&place));
    match problems {
        Some(problems) if planned.is_success() => Err(problems.into()),
        _ => Ok(Exit::Done),
    }
}

/// Writes the last run of the pipeline as trace events.
fn write_timeline(path: &Path, pipeline: &Pipeline, store: &Store) -> Result<PathBuf> {
    let place = working_directory()?.join(path);
    Written::Timeline.check_place(&place)?;
    let Some(run) = report::latest_run(store, pipeline) else {
        let message = format!("no run of `{}` is in {}", pipeline.name, shown(store.root()));
        return refuse(message, "run it first: hopmap run PIPELINE");
    };
    let text = report::chrome_trace(&run).to_string() + "\n";
    replace_file(&place, text.as_bytes()).map_err(Report::from)?;
    Written::mark(&place);
    Ok(place)
}

/// Refuses to replace a report of other parameters.
pub(super) fn only_of_these_parameters(
    place: &Path,
    pipeline: &Pipeline,
    store: &Store,
    option: &str,
) -> Result<()> {
    if !report::is_of_others(place, pipeline, store) {
        return Ok(());
    }
    let message = format!("{} is a report of other parameters or another pipeline", shown(place));
    refuse(message, format!("name another file with {option}, or remove this one"))
}
