//! `hopmap plan`: which stages would run. `hopmap why`: why one of them would.

use clap::Args;
use hopmap_command::{Exit, Failure, shown};
use hopmap_launchers::shell_word;
use serde_json::json;

use super::gates::{self, GateArguments};
use super::open::{PipelineArguments, StoreArguments, opened};
use super::output::{Output, Result};
use super::{locate, summary};
use crate::engine::{self, Settled, State};
use crate::pipeline::{Cell, Pipeline, bytes};

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap plan pipelines/place.toml --shape tree:2x16x40")]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// List every cell of stages with many cells.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    gates: GateArguments,
    /// Memory limit of the run, such as 8GB [default: all of this machine].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
}

pub(crate) fn plan(arguments: &PlanArguments, output: Output) -> Result {
    let (mut pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    summary::warn(&pipeline, &store, output);
    summary::warn_of_file(&pipeline, output);
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
    summary::print_errors(&pipeline, &report, None, output);
    let (name, all) = (&pipeline.name, pipeline.cells.len());
    output.line(match (report.count(State::WouldRun), report.count(State::Waits)) {
        (0, 0) if report.is_success() => format!("{name}: nothing to do"),
        (run, 0) => format!("{name}: {run} of {all} would run"),
        (run, waits) => format!("{name}: {run} of {all} would run, {waits} depend on their results"),
    });
    gates::print(&pipeline, &report, output);
    summary::print_held(&pipeline, &report, output);
    let failed =
        report.cells.iter().any(|settled| matches!(settled.state, State::Failed | State::Infeasible));
    if failed { Ok(Exit::Failed) } else { gates::exit(problems, &report) }
}

fn list(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    output.line(summary::cell_line(pipeline, cell, settled));
    for saved in settled.saved.iter().filter(|saved| saved.written) {
        output.line(format!("  restores   {}", shown(&saved.path)));
    }
}

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap why placement pipelines/place.toml
  hopmap why 'placement[seed=3]' sweep.toml")]
pub(crate) struct WhyArguments {
    /// Stage, or a cell such as `placement[seed=3]`, with enough keys to identify it.
    stage: String,
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn why(arguments: &WhyArguments, output: Output) -> Result {
    let (pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    let cells = locate::in_pipeline(&arguments.stage, &pipeline)?;
    if cells.is_empty() {
        let file = shown(pipeline.source.name().as_ref());
        return Err(locate::unknown_stage(&file, &pipeline, &arguments.stage).into());
    }
    let report = engine::plan(&pipeline, &mut store);
    let as_json = |&index: &usize| as_json(&pipeline.cells[index], &report.cells[index]);
    output.json(&cells.iter().map(as_json).collect::<Vec<_>>());
    if cells.len() > summary::MOST_LISTED {
        for stage in summary::stages(&pipeline, &report).iter().filter(|stage| stage.name == arguments.stage)
        {
            stage.print_counts(output);
        }
        let would_run = cells.iter().find(|&&index| report.cells[index].state != State::Cached);
        let example = &pipeline.cells[*would_run.unwrap_or(&cells[0])].name;
        let [cell, file] = [example, &arguments.pipeline.pipeline].map(|word| shell_word(word));
        output.line(format!("one cell: hopmap why {cell} {file}"));
        let errors = cells.iter().filter_map(|&index| report.cells[index].error.as_ref());
        errors.take(summary::MOST_SHOWN).for_each(|error| output.error(error));
    } else {
        for &index in &cells {
            explain(&pipeline, &pipeline.cells[index], &report.cells[index], output);
        }
    }
    let has_failed = cells.iter().any(|&index| report.cells[index].state == State::Failed);
    Ok(if has_failed { Exit::Failed } else { Exit::Done })
}

fn explain(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    let other = settled.because_of.map_or("", |index| pipeline.cells[index].name.as_str());
    let verdict = match settled.state {
        State::WouldRun => "would run:".to_owned(),
        State::Waits => format!("depends on the result of `{other}`"),
        State::Blocked => format!("cannot run: `{other}` failed or is infeasible"),
        State::Infeasible => "is infeasible; the proof is in the store".to_owned(),
        // Its error is printed below.
        State::Failed => "cannot run".to_owned(),
        _ => "up to date: nothing it depends on has changed".to_owned(),
    };
    output.line(format!("{} ({}) {verdict}", cell.name, cell.entry.kind));
    settled.reasons.iter().for_each(|reason| output.line(format!("  {reason}")));
    if let Some(key) = &settled.key {
        output.line(format!("  key {}", engine::short(key)));
    }
    for (port, record) in settled.outputs.iter() {
        output.line(format!("  output {port} {}", engine::short(&record.digest)));
    }
    if let Some(error) = &settled.error {
        output.error(error);
    }
}

fn as_json(cell: &Cell, settled: &Settled) -> serde_json::Value {
    json!({
        "cell": cell.id,
        "kind": cell.entry.kind,
        "state": settled.state,
        "reasons": settled.reasons,
        "key": settled.key,
        "error": settled.error.as_ref().map(super::output::message),
        "code": settled.error.as_ref().and_then(super::output::code),
    })
}
