//! What is different between two artifacts, and why.

use hopmap_artifact::ArtifactError;
use hopmap_compare::{ArtifactChanges, Compared, compare};
use serde::Serialize;

use super::origin::{Cause, origin};
use super::side::Side;

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
