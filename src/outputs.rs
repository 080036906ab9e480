//! The outputs of a stage, written where they wait to be moved to their place.

use std::path::Path;
use std::sync::Arc;

use hopmap_artifact::Folder;
use hopmap_durable::Staging;
use hopmap_model::{Arity, Direction, InternalError, Outputs, Port, Value};
use miette::Report;

use crate::registry::{self, StageEntry};

/// Writes every output of a stage into a folder of its own inside `parent`.
pub(crate) fn write_outputs(
    entry: &StageEntry,
    outputs: &Outputs,
    parent: &Path,
) -> Result<Vec<(&'static str, Value, Staging, Folder)>, Report> {
    let mut written = Vec::new();
    for port in entry.ports(Direction::Out) {
        let value = match outputs.get(port.name) {
            Some(value) => value,
            None if port.arity == Arity::Optional => continue,
            None => return Err(without_output(entry, port).into()),
        };
        let staging = Staging::new(parent)?;
        let folder = registry::kind(port.kind).and_then(|kind| kind.write(staging.path(), value));
        let folder = folder.ok_or_else(|| without_output(entry, port))??;
        written.push((port.name, Arc::clone(value), staging, folder));
    }
    Ok(written)
}

fn without_output(entry: &StageEntry, port: &Port) -> InternalError {
    InternalError::new(format!("{} gave no {} at its output `{}`", entry.kind, port.kind, port.name))
}
