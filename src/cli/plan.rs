//! `hopmap plan`: what would run, and why.

use clap::Args;
use hopmap_command::{Exit, Failure, shown};

use super::gates::{self, GateArguments};
use super::open::{PipelineArguments, StoreArguments};
use super::output::Output;
use super::summary;
use crate::engine::{self, Settled, State, Store};
use crate::pipeline::{Cell, Pipeline, bytes};

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap plan pipelines/place.toml -p shape=tree:2x16x40")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// List every cell, also of stages that have many.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    gates: GateArguments,
    /// Memory that the run may use, such as 8GB [default: all of this machine].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let mut pipeline = arguments.pipeline.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    summary::damaged_lines(&store, output);
    summary::deprecated(&pipeline, output);
    summary::namesakes(&pipeline, &store, output);
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    engine::check_saves(&pipeline, &mut store)?;
    let memory = arguments.memory.or_else(engine::memory);
    engine::check_memory(&pipeline, &mut store, memory).map_err(Failure::usage)?;
    let mut report = engine::plan(&pipeline, &mut store);
    let problems = gates::judge(&pipeline, &mut report, &accepted);
    if pipeline.holds_saves() && !report.may_save() {
        engine::hold_back(&pipeline, &mut store, &mut report);
    }
    if output.is_json() {
        output.json(&summary::as_json(&pipeline, &store, &report));
    }
    for stage in summary::stages(&pipeline, &report) {
        match stage.cells.len() > summary::MOST_LISTED && !arguments.all {
            true => stage.print_counts(output),
            false => stage.cells.iter().for_each(|(cell, settled)| list(&pipeline, cell, settled, output)),
        }
    }
    summary::print_errors(&report, output);
    let would_run = report.count(State::WouldRun);
    let waits = report.count(State::Waits);
    output.line(match (would_run, waits) {
        (0, 0) if report.is_success() => format!("{}: nothing to do", pipeline.name),
        (run, 0) => format!("{}: {run} of {} would run", pipeline.name, pipeline.cells.len()),
        (run, waits) => {
            format!(
                "{}: {run} of {} would run, {waits} depend on what they give",
                pipeline.name,
                pipeline.cells.len()
            )
        }
    });
    gates::print(&pipeline, &report, output);
    summary::print_held(&report, output);
    let failed =
        report.cells.iter().any(|settled| matches!(settled.state, State::Failed | State::Infeasible));
    match () {
        () if failed => Ok(Exit::Failed),
        () => gates::exit(problems, &report),
    }
}

fn list(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    output.line(summary::cell_line(pipeline, cell, settled));
    for saved in settled.saved.iter().filter(|saved| saved.written) {
        output.line(format!("  restores   {}", shown(&saved.path)));
    }
}
