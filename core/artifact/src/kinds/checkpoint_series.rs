//! `checkpoints`: the files of a series of checkpoints, as they were written.

use std::path::PathBuf;

use hopmap_model::CheckpointSeries;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for CheckpointSeries {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let add = |contents: Contents, (name, path): (&String, &PathBuf)| match self.is_kept() {
            true => contents.adopt(name, path),
            false => contents.copy(name, path),
        };
        self.files().iter().fold(Contents::new(), add)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let names = folder.description().files.keys();
        Ok(Self::new(names.map(|name| (name.clone(), folder.file_path(name))).collect()))
    }
}
