//! `launch-file`: one text file and the command that uses it.

use hopmap_model::LaunchFile;

use crate::{ArtifactError, Codec, Contents, Folder};

impl Codec for LaunchFile {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .file(&self.name, self.text.clone().into_bytes())
            .attribute("command", self.command.clone().into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let damaged =
            |reason: &str| ArtifactError::Damaged { path: folder.path().into(), reason: reason.into() };
        let name = folder.description().files.keys().next().ok_or_else(|| damaged("it holds no file"))?;
        let text = folder.read_text(name)?;
        Ok(Self { name: name.clone(), text, command: folder.attribute("command")? })
    }
}
