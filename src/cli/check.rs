//! `hopmap check`: is the pipeline file right?

use clap::Args;
use hopmap_command::{Exit, Failure};
use serde_json::json;

use super::open::{PipelineArguments, StoreArguments};
use super::output::Output;
use super::summary;
use crate::engine::{Store, check_saves};

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap check pipelines/place.toml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
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
