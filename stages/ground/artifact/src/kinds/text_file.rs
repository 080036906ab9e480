//! `text-file`: one text file.

use hopmap_model::TextFile;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for TextFile {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().file(&self.name, self.text.clone().into_bytes())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let name = folder.description().files.keys().next().ok_or_else(|| ArtifactError::Damaged {
            path: folder.path().into(),
            reason: "it holds no file".into(),
        })?;
        let path = folder.file_path(name);
        let text = std::fs::read_to_string(&path).map_err(|source| ArtifactError::Io {
            action: "read",
            path,
            source,
        })?;
        Ok(Self { name: name.clone(), text })
    }
}
