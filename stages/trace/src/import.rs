//! Traces and matrices of other tools, recognised by what is in them.

mod clog2;
mod ipm;
pub(crate) mod matrix_market;
mod paraver;
mod recognise;
mod simgrid;
mod tally;
mod tau;

use std::path::Path;

use hopmap_model::{Context, Error, InputPath, Process, TaskGraph};

use crate::csv_matrix::{self, MAX_RANKS};
use crate::{Format, ImportError};

/// Every file behind a path, as the stage names them in keys.
pub(crate) fn files(path: &Path, format: Format) -> Result<Vec<InputPath>, ImportError> {
    match resolve(path, format)? {
        Format::Simgrid | Format::SimgridTagged | Format::SimgridUntagged => Ok(simgrid::files(path)?),
        Format::Tau => Ok(tau::files(path)?),
        // Always under one name, so that renaming the file changes no key.
        _ => Ok(vec![InputPath::named(path, "trace")]),
    }
}

/// Reads a file, or a folder of files: messages and bytes per ordered pair of processes.
pub(crate) fn read(
    path: &Path,
    format: Format,
    ranks: Option<u32>,
    cx: &Context<'_>,
) -> Result<TaskGraph, Error> {
    let resolved = resolve(path, format)?;
    if format == Format::Auto {
        cx.log(format_args!("format: {}", resolved.name()));
    }
    let graph = match resolved {
        Format::Csv => return Ok(csv_matrix::read(path, ranks)?),
        Format::MatrixMarket => matrix_market::read(path, cx)?,
        Format::Clog2 => clog2::read(path, cx)?,
        Format::Ipm => ipm::read(path, cx)?,
        Format::Paraver => paraver::read(path, cx)?,
        Format::Simgrid => simgrid::read(path, None, cx)?,
        Format::SimgridTagged => simgrid::read(path, Some(true), cx)?,
        Format::SimgridUntagged => simgrid::read(path, Some(false), cx)?,
        Format::Tau => tau::read(path, cx)?,
        Format::Auto => return Err(ImportError::Unknown { path: path.to_owned() }.into()),
    };
    Ok(with_ranks(graph, ranks, path)?)
}

/// Checks what does not depend on the file.
pub(crate) fn check(ranks: Option<u32>) -> Result<(), ImportError> {
    match ranks.filter(|ranks| !(1..=MAX_RANKS).contains(ranks)) {
        Some(ranks) => Err(ImportError::Ranks { ranks, most: MAX_RANKS }),
        None => Ok(()),
    }
}

fn resolve(path: &Path, format: Format) -> Result<Format, ImportError> {
    if format == Format::Auto { recognise::recognise(path) } else { Ok(format) }
}

/// Says how much of a trace does not count.
fn warn_of_collectives(count: u64, cx: &Context<'_>) {
    if count > 0 {
        cx.log(format_args!(
            "warning: collective operations, once for every process, which do not count: {count}"
        ));
    }
}

/// The graph with so many ranks; those that are added are silent.
fn with_ranks(mut graph: TaskGraph, ranks: Option<u32>, path: &Path) -> Result<TaskGraph, ImportError> {
    if let Some(ranks) = ranks {
        if graph.ranks() > ranks as usize {
            let found = graph.ranks();
            return Err(ImportError::MoreRanks { path: path.to_owned(), found, ranks });
        }
        graph.processes.resize(ranks as usize, Process::default());
    }
    Ok(graph)
}
