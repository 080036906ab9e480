//! `hopmap check` and `hopmap graph`: a pipeline file without its results.

use std::fmt::Write;

use clap::Args;
use hopmap_command::{Exit, Failure};
use hopmap_text::counted;
use serde_json::json;

use super::open::{PipelineArguments, StoreArguments};
use super::output::{Output, Result};
use super::words::{Parameter, is_option, of_pipeline};
use super::{run, summary};
use crate::engine::{Store, check_saves, missing_programs};
use crate::pipeline::{Cell, Pipeline};

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap check pipelines/place.toml")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn check(arguments: &CheckArguments, output: Output) -> Result {
    let pipeline = arguments.pipeline.open()?;
    summary::warn_of_file(&pipeline, output);
    let options = run::Arguments::augment_args(clap::Command::new("run"));
    let parameters = of_pipeline(&arguments.pipeline.pipeline).unwrap_or_default();
    for Parameter { name, .. } in parameters.iter().filter(|parameter| is_option(&parameter.name, &options)) {
        output.note(format!(
            "warning: the parameter `{name}` has the name of an option: only `-p {name}=VALUE` sets it"
        ));
    }
    check_saves(&pipeline, &mut Store::load(&arguments.store.root(&arguments.pipeline)?)?)?;
    let missing = missing_programs(&pipeline);
    if !missing.is_empty() {
        return Err(Failure::new(Exit::Failed, missing));
    }
    let (stages, cells, gates) = (pipeline.stages().len(), pipeline.cells.len(), pipeline.gates.len());
    output.json(&json!({ "pipeline": pipeline.name, "stages": stages, "cells": cells, "gates": gates }));
    let cells = if cells == stages { String::new() } else { format!(", {}", counted(cells, "cell")) };
    let gates = if gates == 0 { String::new() } else { format!(", {}", counted(gates, "gate")) };
    let stages = counted(stages, "stage");
    output.line(format!("{} is valid: {stages}{cells}{gates}", pipeline.source.name()));
    Ok(Exit::Done)
}

/// Arguments of `graph`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap graph pipelines/place.toml | dot -Tsvg > place.svg")]
pub(crate) struct GraphArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn graph(arguments: &GraphArguments, output: Output) -> Result {
    let root = arguments.store.root(&arguments.pipeline)?;
    let pipeline = arguments.pipeline.as_last_run(&root, output)?.open()?;
    if output.is_json() {
        let edge = |(from, to, port)| json!({ "from": from, "to": to, "port": port });
        let edges: Vec<_> = edges(&pipeline).into_iter().map(edge).collect();
        let cell = |cell: &Cell| json!({ "cell": cell.id, "kind": cell.entry.kind });
        let cells: Vec<_> = pipeline.cells.iter().map(cell).collect();
        output.json(&json!({ "pipeline": pipeline.name, "cells": cells, "edges": edges }));
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
                let from = origin.cells().iter().map(|&index| pipeline.cells[index].id.as_str());
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
    let name = quote(&pipeline.name);
    let mut text = format!("digraph {name} {{\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n");
    for cell in &pipeline.cells {
        let label = quote(&format!("{}\n{}", cell.name, cell.entry.kind)).replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} [label={label}]", quote(&cell.id));
    }
    for (from, to, port) in edges(pipeline) {
        let _ = writeln!(text, "  {} -> {} [label={}]", quote(from), quote(to), quote(port));
    }
    text.push_str("}\n");
    text
}
