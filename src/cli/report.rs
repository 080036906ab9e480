//! `hopmap report`: the HTML report of what is in the store.

use std::path::PathBuf;

use clap::Args;

use super::asked;
use super::exit::Exit;
use super::failure::Failure;
use super::open::{PipelineArguments, StoreArguments, working_directory};
use super::output::Output;
use super::summary;
use crate::engine::{self, Store};
use crate::report;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap report pipelines/place.toml --out place.html")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// File to write [default: reports/NAME.html in the store].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let pipeline = arguments.pipeline.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let mut planned = engine::plan(&pipeline, &mut store);
    let problems = asked::ask(&pipeline, &store, &mut planned)?;
    let place = match &arguments.out {
        Some(path) => working_directory()?.join(path),
        None => report::place(&store, &pipeline),
    };
    report::write(&place, &pipeline, &store, &planned, &summary::shown)?;
    if output.is_json() {
        output.json(&serde_json::json!({ "report": place }));
    }
    output.line(summary::shown(&place));
    match problems {
        Some(problems) if planned.is_success() => Err(problems.into()),
        _ => Ok(Exit::Done),
    }
}
