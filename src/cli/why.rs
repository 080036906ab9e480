//! `hopmap why`: why would a stage run?

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, shown};
use hopmap_text::closest;
use serde_json::json;

use super::cells;
use super::open::{PipelineArguments, StoreArguments};
use super::output::Output;
use super::summary;
use crate::engine::{self, Settled, State, Store};
use crate::pipeline::{Cell, Pipeline};

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap why placement pipelines/place.toml
  hopmap why 'placement[seed=3]' sweep.toml")]
pub(crate) struct Arguments {
    /// Stage, or one of its cells such as `placement[seed=3]`: keys in any order, as many as leave one cell.
    stage: String,
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    let cells = cells::in_pipeline(&arguments.stage, &pipeline)?;
    if cells.is_empty() {
        return Err(unknown(&pipeline, &arguments.stage).into());
    }
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let report = engine::plan(&pipeline, &mut store);
    if output.is_json() {
        let cells: Vec<_> =
            cells.iter().map(|&index| as_json(&pipeline.cells[index], &report.cells[index])).collect();
        output.json(&cells);
    }
    if cells.len() > summary::MOST_LISTED {
        for stage in summary::stages(&pipeline, &report).iter().filter(|stage| stage.name == arguments.stage)
        {
            stage.print_counts(output);
        }
        let would_run = cells.iter().find(|&&index| report.cells[index].state != State::Cached);
        let example = &pipeline.cells[*would_run.unwrap_or(&cells[0])].id;
        output.line(format!("one cell: hopmap why '{example}' {}", arguments.pipeline.pipeline));
        let errors = cells.iter().filter_map(|&index| report.cells[index].error.as_ref());
        errors.take(summary::MOST_TOLD).for_each(|error| output.error(error));
    } else {
        for &index in &cells {
            explain(&pipeline, &pipeline.cells[index], &report.cells[index], output);
        }
    }
    let has_failed = cells.iter().any(|&index| report.cells[index].state == State::Failed);
    Ok(if has_failed { Exit::Failed } else { Exit::Done })
}

fn explain(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    let other = settled.because_of.map_or("", |index| pipeline.cells[index].id.as_str());
    let verdict = match settled.state {
        State::WouldRun => "would run:".to_owned(),
        State::Waits => format!("is decided when `{other}` has run"),
        State::Blocked => format!("cannot run: `{other}` failed or has no solution"),
        State::Infeasible => "has no solution; that is in the store".to_owned(),
        // Its error is printed below.
        State::Failed => "cannot run".to_owned(),
        _ => "would not run: nothing it depends on has changed".to_owned(),
    };
    output.line(format!("{} ({}) {verdict}", cell.id, cell.entry.kind));
    for reason in &settled.reasons {
        output.line(format!("  {reason}"));
    }
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
        "error": settled.error.as_ref().map(super::failure::message),
    })
}

fn unknown(pipeline: &Pipeline, stage: &str) -> Mistake {
    let stages = pipeline.stages();
    let help = match closest(stage, &stages) {
        Some(meant) => format!("did you mean `{meant}`? stages: {}", stages.join(", ")),
        None => format!("stages: {}", stages.join(", ")),
    };
    Mistake::new(format!("{} has no stage `{stage}`", shown(pipeline.source.name().as_ref())), help)
}
