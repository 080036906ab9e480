//! Traces as files.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Artifact;

/// The files of a trace. They may be large, so they stay on disk.
#[derive(Debug, Clone, Default)]
pub struct TraceArchive {
    files: BTreeMap<String, PathBuf>,
    /// Held for what it does when it goes.
    keeper: Option<Arc<dyn Keeper>>,
}

/// Something that keeps files on disk while it lives, such as a temporary folder.
pub trait Keeper: Any + Send + Sync + std::fmt::Debug {}

impl<T: Any + Send + Sync + std::fmt::Debug> Keeper for T {}

impl TraceArchive {
    /// An archive of files, by their names within it (with `/` between folders), that others keep.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files, keeper: None }
    }

    /// Lets something live as long as the archive does.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { keeper: Some(Arc::new(keeper)), ..self }
    }

    /// Whether the files were made for this archive, so that nobody else changes them.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Where the files are, by their names within the archive.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }

    /// Where a file is.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }
}

impl Artifact for TraceArchive {
    const KIND: &'static str = "trace";
}
