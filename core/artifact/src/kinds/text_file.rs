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
        let text = folder.read_text(name)?;
        Ok(Self { name: name.clone(), text })
    }
}
