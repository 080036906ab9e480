//! `hopmap graph`: a pipeline in DOT.

use std::fmt::Write;

use clap::Args;
use hopmap_command::{Exit, Failure};

use super::open::PipelineArguments;
use super::output::Output;
use crate::pipeline::{Origin, Pipeline};

/// Arguments of `graph`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap graph pipelines/place.toml | dot -Tsvg > place.svg")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
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
