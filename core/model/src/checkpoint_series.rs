//! Series of checkpoints as files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Artifact, Keeper};

/// The files of a series of checkpoints of one program. They may be large, so they stay on disk.
///
/// A file is named `CHECKPOINT/PATH`. The checkpoints are in the order of their names, which have the same number of digits.
#[derive(Debug, Clone, Default)]
pub struct CheckpointSeries {
    files: BTreeMap<String, PathBuf>,
    /// Held for what it does when it goes.
    keeper: Option<Arc<dyn Keeper>>,
}

impl CheckpointSeries {
    /// A series of files, by their names within it, that others keep.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files, keeper: None }
    }

    /// Lets something live as long as the series does.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { keeper: Some(Arc::new(keeper)), ..self }
    }

    /// Whether the files were made for this series, so that nobody else changes them.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Where the files of all checkpoints are, by their names within the series.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }

    /// The names of the checkpoints, in their order.
    #[must_use]
    pub fn checkpoints(&self) -> BTreeSet<&str> {
        self.files.keys().filter_map(|name| name.split_once('/')).map(|(checkpoint, _)| checkpoint).collect()
    }

    /// The files of a checkpoint, by their names within it, and where they are.
    pub fn files_of(&self, checkpoint: &str) -> impl Iterator<Item = (&str, &Path)> {
        self.files.iter().filter_map(move |(name, path)| {
            let (of, name) = name.split_once('/')?;
            (of == checkpoint).then_some((name, path.as_path()))
        })
    }
}

impl Artifact for CheckpointSeries {
    const KIND: &'static str = "checkpoints";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_checkpoint_that_their_name_begins_with() {
        let names = ["02/a", "01/b/c", "01/a", "10/a"];
        let files = names.map(|name| (name.to_owned(), Path::new("/somewhere").join(name)));
        let series = CheckpointSeries::new(files.into());
        assert_eq!(series.checkpoints().into_iter().collect::<Vec<_>>(), ["01", "02", "10"]);
        let first: Vec<_> = series.files_of("01").collect();
        assert_eq!(first, [("a", Path::new("/somewhere/01/a")), ("b/c", Path::new("/somewhere/01/b/c"))]);
        assert_eq!(series.files_of("03").count(), 0);
    }
}
