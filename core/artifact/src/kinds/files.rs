//! Files in their original form: `trace`, `checkpoints`, `checkpoint-store` (with a table `checkpoints`;
//! `hopmap checkpoint` reads the files in place), `text-file`, and `launch-file` with the command that uses
//! it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopmap_model::{
    CheckpointSeries, CheckpointStore, FileSet, LaunchFile, StoredCheckpoint, TextFile, TraceArchive,
};

use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;

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
    ($($artifact:ident: $summary:literal;)+) => {$(
        impl Codec for $artifact {
            const SCHEMA: u32 = 1;
            const CONTENTS: &'static str = $summary;

            fn encode(&self) -> Contents {
                with_files(Contents::new(), self.file_set())
            }

            fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
                Ok(Self::new(files_of(folder)))
            }
        }
    )+};
}

only_files! {
    TraceArchive: "The files of a trace.";
    CheckpointSeries: "The files of a series of checkpoints, `CHECKPOINT/PATH`.";
}

impl Codec for CheckpointStore {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "A checkpoint store, and what every checkpoint takes in it.";
    const TABLES: &'static [TableForm] = &[StoredCheckpoint::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] =
        &[("bytes", "size of all checkpoints"), ("stored_bytes", "bytes on disk")];

    fn encode(&self) -> Contents {
        let sum =
            |bytes: fn(&StoredCheckpoint) -> u64| self.checkpoints.iter().map(bytes).sum::<u64>() as f64;
        let contents = Contents::new()
            .table(StoredCheckpoint::table(&self.checkpoints))
            .metric("bytes", sum(|row| row.bytes))
            .metric("stored_bytes", sum(|row| row.stored_bytes));
        with_files(contents, self.file_set())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self::new(folder.rows()?, files_of(folder)))
    }
}

table_rows!("checkpoints": StoredCheckpoint {
    checkpoint: u32 = "checkpoint, from 1",
    name: String = "its name in the series",
    files: u32 = "number of its files",
    bytes: u64 = "bytes of all files",
    zero_bytes: u64 = "of these, zeros",
    unchanged_bytes: u64 = "of these, as in the previous checkpoint at the same place",
    known_bytes: u64 = "of these, stored before elsewhere",
    new_bytes: u64 = "of these, new",
    stored_bytes: u64 = "bytes on disk, metadata included",
});

impl Codec for TextFile {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "A text file in a format of another program.";

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
    const CONTENTS: &'static str =
        "A file for an MPI launcher or a batch system, with the command that uses it.";

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
