//! What is different between two artifacts, and why: what their keys were made of.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hopmap_artifact::{ArtifactError, Folder, PROVENANCE};
use hopmap_compare::{ArtifactChanges, Compared, compare};
use serde::Serialize;
use serde_json::Value as Json;

use crate::engine::{Manifest, Reason, differences};

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Relative changes of metrics that are smaller are left out.
    pub threshold: f64,
    /// Whether causes are followed to the first ones.
    pub is_deep: bool,
}

/// What is different between two artifacts of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Kind of both.
    pub kind: String,
    /// Digest of the first.
    pub before: String,
    /// Digest of the second.
    pub after: String,
    /// Why they are different: parameters, inputs, files, revisions.
    pub causes: Vec<Cause>,
    /// Whether it is known how both were made.
    pub origin_known: bool,
    /// What is different inside.
    #[serde(flatten)]
    pub changes: ArtifactChanges,
}

impl Comparison {
    /// Whether the artifacts are different.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.before != self.after
    }
}

/// Compares two artifacts of one kind.
pub fn artifacts(before: &Side, after: &Side, settings: Settings) -> Result<Comparison, ArtifactError> {
    let inputs = [before, after].map(|side| |kind: &str| side.input_of(kind));
    let changes = compare(
        &Compared { folder: &before.folder, input: &inputs[0] },
        &Compared { folder: &after.folder, input: &inputs[1] },
        settings.threshold,
    )?;
    Ok(Comparison {
        kind: before.folder.description().kind.clone(),
        before: before.folder.digest().to_owned(),
        after: after.folder.digest().to_owned(),
        causes: origin(before, after, settings.is_deep),
        origin_known: before.manifest.is_some() && after.manifest.is_some(),
        changes,
    })
}

/// A difference between what two artifacts were made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The difference.
    pub difference: Reason,
    /// Of an input, why it is another one; empty if that is not known.
    pub because: Vec<Self>,
}

/// What is different between what two artifacts were made from, and one level down why inputs are; to the first causes if
/// `is_deep`.
#[must_use]
pub fn origin(before: &Side, after: &Side, is_deep: bool) -> Vec<Cause> {
    let levels = if is_deep { usize::MAX } else { 1 };
    causes(before, after, levels, &mut HashSet::new())
}

/// Inputs that several paths lead to are explained once.
fn causes(before: &Side, after: &Side, levels: usize, seen: &mut HashSet<(String, String)>) -> Vec<Cause> {
    let (Some(old), Some(new)) = (&before.manifest, &after.manifest) else { return Vec::new() };
    let cause = |difference: Reason| {
        let pairs: Vec<(String, String)> = match &difference {
            Reason::Input { old, new, .. } if levels > 0 && old.len() == new.len() => {
                old.iter().cloned().zip(new.iter().cloned()).filter(|(old, new)| old != new).collect()
            }
            _ => Vec::new(),
        };
        let mut because = Vec::new();
        for pair in pairs {
            if !seen.insert(pair.clone()) {
                continue;
            }
            if let (Some(old), Some(new)) = (before.input(&pair.0), after.input(&pair.1)) {
                because.extend(causes(&old, &new, levels - 1, seen));
            }
        }
        Cause { difference, because }
    };
    differences(old, new).into_iter().map(cause).collect()
}

impl Cause {
    /// The difference and why, each level further to the right.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = vec![self.difference.to_string()];
        for cause in &self.because {
            let inner = cause.words();
            lines.extend(inner.iter().enumerate().map(|(index, line)| {
                if index == 0 { format!("  because {line}") } else { format!("  {line}") }
            }));
        }
        lines
    }
}

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
