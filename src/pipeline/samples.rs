//! The samples of pipelines that come with hopmap, for folders that are no clone.

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_durable::replace_file;
use hopmap_mpi_environment::cache_folder;
use include_dir::{Dir, include_dir};

/// The embedded samples by their folder in a clone. The larger ones are only in a clone.
static SAMPLES: &[(&str, Dir<'_>)] = &[
    ("sample-instances/taillard-e", include_dir!("$CARGO_MANIFEST_DIR/sample-instances/taillard-e")),
    ("sample-networks/rapidio", include_dir!("$CARGO_MANIFEST_DIR/sample-networks/rapidio")),
    ("sample-schedules/cholesky-5", include_dir!("$CARGO_MANIFEST_DIR/sample-schedules/cholesky-5")),
    ("sample-topologies/fabric-40", include_dir!("$CARGO_MANIFEST_DIR/sample-topologies/fabric-40")),
    ("sample-topologies/training-64", include_dir!("$CARGO_MANIFEST_DIR/sample-topologies/training-64")),
    ("sample-traces/otf-ring-4", include_dir!("$CARGO_MANIFEST_DIR/sample-traces/otf-ring-4")),
    ("sample-traces/rows-columns-16", include_dir!("$CARGO_MANIFEST_DIR/sample-traces/rows-columns-16")),
    (
        "sample-traces/rows-columns-16-recorded",
        include_dir!("$CARGO_MANIFEST_DIR/sample-traces/rows-columns-16-recorded"),
    ),
    ("sample-traces/training-16", include_dir!("$CARGO_MANIFEST_DIR/sample-traces/training-16")),
];

/// Unpacks the sample of a path like `sample-traces/NAME/file` into the user's cache; none if it is not embedded, or if
/// there is no cache to write to. Files that are there already are compared, so that nothing else is ever read.
pub(crate) fn unpacked(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let (name, sample) = SAMPLES.iter().find(|(name, _)| path.starts_with(name))?;
    let root = cache_folder()?.join("samples").join(env!("CARGO_PKG_VERSION"));
    unpack(sample, &root.join(name)).then(|| root.join(path))
}

fn unpack(sample: &Dir<'_>, folder: &Path) -> bool {
    let is_there = fs::create_dir_all(folder).is_ok();
    let mut entries = sample.entries().iter();
    is_there
        && entries.all(|entry| {
            let place = folder.join(entry.path().file_name().unwrap_or_default());
            match (entry.as_dir(), entry.as_file()) {
                (Some(inner), _) => unpack(inner, &place),
                (_, Some(file)) => {
                    fs::read(&place).is_ok_and(|found| found == file.contents())
                        || replace_file(&place, file.contents()).is_ok()
                }
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::EMBEDDED;

    /// What a pipeline names runs by name everywhere, unless it is a pattern or too large for the binary.
    #[test]
    fn samples_of_embedded_pipelines_are_embedded() {
        let mut missing: Vec<&str> = Vec::new();
        for text in EMBEDDED.iter().map(|embedded| embedded.text) {
            let named = text.lines().filter_map(|line| line.split_once("\"../")?.1.split('"').next());
            for sample in named.filter(|sample| !sample.contains('*')) {
                if !SAMPLES.iter().any(|(name, _)| Path::new(sample).starts_with(name)) {
                    missing.push(sample);
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
