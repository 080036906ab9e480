//! `trace`: the files of a trace, as whoever recorded it wrote them.

use hopmap_model::TraceArchive;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for TraceArchive {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        self.files().iter().fold(Contents::new(), |contents, (name, path)| contents.copy(name, path))
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let names = folder.description().files.keys();
        Ok(Self::new(names.map(|name| (name.clone(), folder.file_path(name))).collect()))
    }
}
