//! Copies of outputs for people.

use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::{DurableError, Staging, copy_file};
use miette::{Diagnostic, Report};
use serde::Serialize;

use super::record::OutputRecord;
use super::store::Store;
use super::walk::{Settled, State};
use crate::pipeline::Cell;

/// A copy of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// The output port.
    pub output: String,
    /// Where the copy is.
    pub path: PathBuf,
    /// Whether it had to be written, or would have to be.
    pub written: bool,
}

/// A copy that cannot be made.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum SaveError {
    #[error("{} is a folder, and `save` would put a file there", path.display())]
    #[diagnostic(help("give the file a name of its own, or remove the folder"))]
    FolderInTheWay { path: PathBuf },
    #[error("{} holds something else, and `save` would put an artifact there", path.display())]
    #[diagnostic(help("an artifact replaces only another artifact or nothing; give it a folder of its own"))]
    SomethingInTheWay { path: PathBuf },
}

/// Makes the copies that a cell promises; with `dry` only says which would be made.
pub(super) fn save_outputs(cell: &Cell, settled: &mut Settled, store: &Store, dry: bool) {
    if !settled.is_usable() {
        return;
    }
    for wish in &cell.saves {
        let Some(record) = settled.outputs.get(wish.output) else { continue };
        match save(store, record, wish.output, &wish.path, dry) {
            Ok(saved) => settled.saved.push(saved),
            Err(error) => {
                settled.state = State::Failed;
                settled.error = Some(error);
                return;
            }
        }
    }
}

/// Makes the copy unless it is there and whole. With `dry` only looks.
fn save(store: &Store, record: &OutputRecord, output: &str, path: &Path, dry: bool) -> Result<Saved, Report> {
    let source = store.artifact(&record.digest);
    let written = match only_file(record) {
        Some(name) => save_file(&source, name, path, dry)?,
        None => save_folder(&source, record, path, dry)?,
    };
    Ok(Saved { output: output.to_owned(), path: path.into(), written })
}

/// The file of an artifact that is nothing but a file.
fn only_file(record: &OutputRecord) -> Option<&str> {
    let mut files = record.files.iter().map(|(name, _)| name.as_str()).filter(|name| *name != DESCRIPTION);
    let file = files.next()?.strip_prefix("files/")?;
    files.next().is_none().then_some(file)
}

fn save_file(source: &Path, name: &str, path: &Path, dry: bool) -> Result<bool, Report> {
    if path.is_dir() {
        return Err(SaveError::FolderInTheWay { path: path.into() }.into());
    }
    let source = source.join("files").join(name);
    let wanted = std::fs::read(&source).map_err(DurableError::io("read", &source))?;
    if std::fs::read(path).is_ok_and(|found| found == wanted) {
        return Ok(false);
    }
    if !dry {
        copy_file(&source, path)?;
    }
    Ok(true)
}

fn save_folder(source: &Path, record: &OutputRecord, path: &Path, dry: bool) -> Result<bool, Report> {
    if let Ok(folder) = Folder::open(path) {
        let whole = |(name, size): &(String, u64)| {
            std::fs::metadata(path.join(name)).is_ok_and(|metadata| metadata.len() == *size)
        };
        if folder.digest() == record.digest && record.files.iter().all(whole) {
            return Ok(false);
        }
    } else if path.is_file() || path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(SaveError::SomethingInTheWay { path: path.into() }.into());
    }
    if !dry {
        let staging = Staging::new(path.parent().unwrap_or(Path::new(".")))?;
        for (name, _) in &record.files {
            copy_file(&source.join(name), &staging.path().join(name))?;
        }
        let provenance = source.join(PROVENANCE);
        if provenance.is_file() {
            copy_file(&provenance, &staging.path().join(PROVENANCE))?;
        }
        staging.commit(path)?;
    }
    Ok(true)
}
