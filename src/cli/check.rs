//! `hopmap check`: is the pipeline file right?

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::Failure;
use super::open::PipelineArguments;
use super::output::Output;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap check pipelines/place.toml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    let (stages, cells) = (pipeline.stages().len(), pipeline.cells.len());
    if output.is_json() {
        output.json(&json!({ "pipeline": pipeline.name, "stages": stages, "cells": cells }));
    }
    let cells = if cells == stages { String::new() } else { format!(", {cells} cells") };
    output.line(format!("{} is sound: {stages} stages{cells}", pipeline.source.name()));
    Ok(Exit::Done)
}
