//! Import of arbitrary files.

use std::path::Path;

use hopmap_topology_import::import::{Format, ImportParams, Imported, read, recognise};

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

/// A text as a file of the format that is detected.
pub(crate) fn import(text: &str) -> Imported {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    read(file.path(), &ImportParams::default()).unwrap()
}
