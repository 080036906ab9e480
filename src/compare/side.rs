//! One of two artifacts that are compared, and what it was made from.

use std::path::{Path, PathBuf};

use hopmap_artifact::{ArtifactError, Folder, PROVENANCE};
use serde_json::Value as Json;

use crate::engine::Manifest;

/// One of two artifacts.
#[derive(Debug, Clone)]
pub struct Side {
    /// The artifact.
    pub folder: Folder,
    /// What its key was made of, if that is known.
    pub manifest: Option<Manifest>,
}

impl Side {
    /// Opens an artifact; what it was made from stands beside it.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let folder = Folder::open(path)?;
        let manifest = std::fs::read(path.join(PROVENANCE))
            .ok()
            .and_then(|text| serde_json::from_slice::<Json>(&text).ok())
            .and_then(|provenance| serde_json::from_value(provenance.get("manifest")?.clone()).ok());
        Ok(Self { folder, manifest })
    }

    /// An artifact that it was made from, if it is still in the same store.
    pub(super) fn input(&self, digest: &str) -> Option<Self> {
        Self::open(&self.folder.path().parent()?.join(digest)).ok()
    }

    /// The first input of a kind.
    pub(super) fn input_of(&self, kind: &str) -> Option<PathBuf> {
        let inputs =
            self.manifest.iter().flat_map(|manifest| &manifest.inputs).flat_map(|(_, inputs)| inputs);
        let mut sides = inputs.filter_map(|input| self.input(&input.digest));
        let found = sides.find(|side| side.folder.description().kind == kind)?;
        Some(found.folder.path().to_owned())
    }
}
