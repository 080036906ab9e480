//! `checkpoint-store`: table `checkpoints`, and the files of the store, which `hopmap checkpoint` reads where they are.

use std::path::PathBuf;

use hopmap_model::{CheckpointStore, StoredCheckpoint};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for CheckpointStore {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let add = |contents: Contents, (name, path): (&String, &PathBuf)| match self.is_kept() {
            true => contents.adopt(name, path),
            false => contents.copy(name, path),
        };
        let sum =
            |bytes: fn(&StoredCheckpoint) -> u64| self.checkpoints.iter().map(bytes).sum::<u64>() as f64;
        let contents = Contents::new()
            .table(checkpoints(&self.checkpoints))
            .metric("bytes", sum(|row| row.bytes))
            .metric("stored_bytes", sum(|row| row.stored_bytes));
        self.files().iter().fold(contents, add)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let names = folder.description().files.keys();
        let files = names.map(|name| (name.clone(), folder.file_path(name))).collect();
        Ok(Self::new(read(&folder.table("checkpoints")?)?, files))
    }
}

fn checkpoints(checkpoints: &[StoredCheckpoint]) -> Table {
    let rows = || checkpoints.iter();
    Table::new("checkpoints")
        .u32("checkpoint", rows().map(|row| row.checkpoint))
        .text("name", rows().map(|row| &row.name))
        .u32("files", rows().map(|row| row.files))
        .u64("bytes", rows().map(|row| row.bytes))
        .u64("zero_bytes", rows().map(|row| row.zero_bytes))
        .u64("unchanged_bytes", rows().map(|row| row.unchanged_bytes))
        .u64("known_bytes", rows().map(|row| row.known_bytes))
        .u64("new_bytes", rows().map(|row| row.new_bytes))
        .u64("stored_bytes", rows().map(|row| row.stored_bytes))
}

fn read(table: &Columns) -> Result<Vec<StoredCheckpoint>, ArtifactError> {
    let (numbers, names, files) = (table.u32("checkpoint")?, table.text("name")?, table.u32("files")?);
    let (bytes, zero) = (table.u64("bytes")?, table.u64("zero_bytes")?);
    let (unchanged, known) = (table.u64("unchanged_bytes")?, table.u64("known_bytes")?);
    let (new, stored) = (table.u64("new_bytes")?, table.u64("stored_bytes")?);
    let row = |row: usize| StoredCheckpoint {
        checkpoint: numbers[row],
        name: names[row].clone(),
        files: files[row],
        bytes: bytes[row],
        zero_bytes: zero[row],
        unchanged_bytes: unchanged[row],
        known_bytes: known[row],
        new_bytes: new[row],
        stored_bytes: stored[row],
    };
    Ok((0..table.rows()).map(row).collect())
}
