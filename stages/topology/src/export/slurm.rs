//! To be written.

use hopmap_model::SystemGraph;

use super::{ExportError, ExportParams};

pub(super) fn conf(_: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    Err(ExportError::Impossible { format: "it", problem: "to be written".into(), help: "wait".into() })
}

pub(super) fn yaml(_: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    Err(ExportError::Impossible { format: "it", problem: "to be written".into(), help: "wait".into() })
}
