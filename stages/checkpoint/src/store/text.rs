//! Paths in JSON, which knows only Unicode: what is none of it is replaced.

use std::path::{Path, PathBuf};

use serde::Serializer;

pub(super) fn in_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

pub(super) fn all_in_text<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
