//! Import of arbitrary files.

use std::path::Path;

use hopmap_topology::import::{Format, ImportParams, read, recognise};

/// Reads a file as one format and as the detected one: it ends in errors or in consistent machines.
pub(crate) fn description(path: &Path, format: Format) {
    let recognised = recognise(path).ok();
    for format in [Some(format), recognised].into_iter().flatten() {
        let params = ImportParams { format: Some(format), ..ImportParams::of(path) };
        if let Ok(imported) = read(path, &params) {
            imported.system.check().unwrap();
        }
    }
}
