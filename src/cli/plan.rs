//! `hopmap plan`, `why`, `check` and `graph`: what a pipeline file says, without running anything.

use std::fmt::Write;

use clap::Args;
use hopmap_command::{Exit, Failure, shown};
use serde_json::json;

use super::gates::GateArguments;
use super::open::{PipelineArguments, StoreArguments};
use super::output::Output;
use super::{gates, locate, summary};
use crate::engine;
use crate::engine::{Settled, State, Store, check_saves};
use crate::pipeline::{Cell, Origin, Pipeline, bytes};

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

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap why placement pipelines/place.toml
  hopmap why 'placement[seed=3]' sweep.toml")]
pub(crate) struct WhyArguments {
    /// Stage, or one of its cells such as `placement[seed=3]`: keys in any order, as many as leave one cell.
    stage: String,
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn why(arguments: &WhyArguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    let cells = locate::in_pipeline(&arguments.stage, &pipeline)?;
    if cells.is_empty() {
        let file = shown(pipeline.source.name().as_ref());
        return Err(locate::unknown_stage(&file, &pipeline, &arguments.stage).into());
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
        "error": settled.error.as_ref().map(super::output::message),
    })
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap check pipelines/place.toml")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn check(arguments: &CheckArguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    summary::deprecated(&pipeline, output);
    check_saves(&pipeline, &mut Store::load(&arguments.store.root(&arguments.pipeline)?)?)?;
    let (stages, cells, gates) = (pipeline.stages().len(), pipeline.cells.len(), pipeline.gates.len());
    if output.is_json() {
        output.json(&json!({ "pipeline": pipeline.name, "stages": stages, "cells": cells, "gates": gates }));
    }
    let cells = if cells == stages { String::new() } else { format!(", {cells} cells") };
    let gates = match gates {
        0 => String::new(),
        1 => ", 1 gate".to_owned(),
        more => format!(", {more} gates"),
    };
    output.line(format!("{} is sound: {stages} stages{cells}{gates}", pipeline.source.name()));
    Ok(Exit::Done)
}

/// Arguments of `graph`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap graph pipelines/place.toml | dot -Tsvg > place.svg")]
pub(crate) struct GraphArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
}

pub(crate) fn graph(arguments: &GraphArguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    if output.is_json() {
        let edges: Vec<_> = edges(&pipeline)
            .into_iter()
            .map(|(from, to, port)| serde_json::json!({ "from": from, "to": to, "port": port }))
            .collect();
        let cells: Vec<_> = pipeline
            .cells
            .iter()
            .map(|cell| serde_json::json!({ "cell": cell.id, "kind": cell.entry.kind }))
            .collect();
        output.json(&serde_json::json!({ "pipeline": pipeline.name, "cells": cells, "edges": edges }));
    } else {
        output.raw(dot(&pipeline).as_bytes());
    }
    Ok(Exit::Done)
}

/// Cells that give, cells that take, and the port.
fn edges(pipeline: &Pipeline) -> Vec<(&str, &str, &str)> {
    let mut edges = Vec::new();
    for cell in &pipeline.cells {
        for need in &cell.needs {
            for origin in &need.origins {
                let from = match origin {
                    Origin::Cell { cell, .. } => std::slice::from_ref(cell),
                    Origin::Best { cells, .. } => cells,
                };
                let from = from.iter().map(|&index| pipeline.cells[index].id.as_str());
                edges.extend(from.map(|from| (from, cell.id.as_str(), need.port.name)));
            }
        }
        let named = cell.named_artifacts().map(|(index, _)| pipeline.cells[index].id.as_str());
        edges.extend(named.map(|from| (from, cell.id.as_str(), "path")));
    }
    edges
}

fn dot(pipeline: &Pipeline) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = format!(
        "digraph {} {{\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n",
        quote(&pipeline.name)
    );
    for cell in &pipeline.cells {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {} [label={}]",
            quote(&cell.id),
            quote(&format!("{}\n{}", cell.id, cell.entry.kind)).replace('\n', "\\n")
        );
    }
    for (from, to, port) in edges(pipeline) {
        let _ = writeln!(text, "  {} -> {} [label={}]", quote(from), quote(to), quote(port));
    }
    text.push_str("}\n");
    text
}
