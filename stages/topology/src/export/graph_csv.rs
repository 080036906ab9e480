//! To be written.

use hopmap_model::SystemGraph;

use super::{ExportError, ExportParams};

pub(super) fn write(_: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    Err(ExportError::Impossible { format: "it", problem: "to be written".into(), help: "wait".into() })
}
