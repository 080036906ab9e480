//! Files in their original form: `trace`, `checkpoints`, `checkpoint-store` (with a table `checkpoints`;
//! `hopmap checkpoint` reads the files in place), `text-file`, and `launch-file` with the command that uses
//! it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopmap_model::{
    CheckpointSeries, CheckpointStore, FileSet, LaunchFile, StoredCheckpoint, TextFile, TraceArchive,
};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

pub(super) fn with_files(contents: Contents, files: &FileSet) -> Contents {
    files.files().iter().fold(contents, |contents, (name, path)| match files.is_kept() {
        true => contents.adopt(name, path),
        false => contents.copy(name, path),
    })
}

pub(super) fn files_of(folder: &Folder) -> BTreeMap<String, PathBuf> {
    folder.description().files.keys().map(|name| (name.clone(), folder.file_path(name))).collect()
}

/// Declares the codec of artifacts that consist of files only.
macro_rules! only_files {
    ($($artifact:ident)+) => {$(
        impl Codec for $artifact {
            const SCHEMA: u32 = 1;

            fn encode(&self) -> Contents {
                with_files(Contents::new(), self.file_set())
            }

            fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
                Ok(Self::new(files_of(folder)))
            }
        }
    )+};
}

only_files!(TraceArchive CheckpointSeries);

impl Codec for CheckpointStore {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let sum =
            |bytes: fn(&StoredCheckpoint) -> u64| self.checkpoints.iter().map(bytes).sum::<u64>() as f64;
        let contents = Contents::new()
            .table(encode_checkpoints(Table::new("checkpoints"), &self.checkpoints))
            .metric("bytes", sum(|row| row.bytes))
            .metric("stored_bytes", sum(|row| row.stored_bytes));
        with_files(contents, self.file_set())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self::new(decode_checkpoints(&folder.table("checkpoints")?)?, files_of(folder)))
    }
}

rows!(encode_checkpoints, decode_checkpoints: StoredCheckpoint {
    u32 checkpoint,
    text name,
    u32 files,
    u64 bytes,
    u64 zero_bytes,
    u64 unchanged_bytes,
    u64 known_bytes,
    u64 new_bytes,
    u64 stored_bytes,
});

impl Codec for TextFile {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().file(&self.name, self.text.clone().into_bytes())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let (name, text) = only_text(folder)?;
        Ok(Self { name, text })
    }
}

impl Codec for LaunchFile {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .file(&self.name, self.text.clone().into_bytes())
            .attribute("command", self.command.clone().into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let (name, text) = only_text(folder)?;
        Ok(Self { name, text, command: folder.attribute("command")? })
    }
}

/// Name and text of the only file of an artifact.
fn only_text(folder: &Folder) -> Result<(String, String), ArtifactError> {
    let name = folder.description().files.keys().next();
    let name = name.ok_or_else(|| ArtifactError::damaged(folder.path(), &"it does not contain a file"))?;
    Ok((name.clone(), folder.read_text(name)?))
}
