//! `trace`: the files of a trace, as whoever recorded it wrote them.

use std::path::PathBuf;

use hopmap_model::TraceArchive;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for TraceArchive {
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
