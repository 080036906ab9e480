//! Copies of outputs for people, and whether a copy may replace what is in its place: only what an earlier `save` of the same
//! pipeline wrote. Everything else belongs to the user.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::{DurableError, Staging, copy_file, is_leftover, replace_file};
use hopmap_launchers::start_command;
use hopmap_model::{Artifact, LaunchFile, TextFile, read_input};
use miette::{Diagnostic, Report};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;

use super::outcome::{RunReport, Saved, Settled, State};
use super::record::{OutputRecord, PipelineId};
use super::store::{Store, StoreError};
use super::writer::Writer;
use crate::pipeline::{Cell, Pipeline, Save};

/// The copies of a pipeline for people, and the store that knows which are its own. Without a `writer` it is only said which would be
/// made, as far as nothing is in the way.
pub(super) struct Copies<'a> {
    pub(super) id: &'a PipelineId,
    pub(super) store: &'a mut Store,
    pub(super) writer: Option<&'a mut Writer>,
}

/// Makes all copies of a run that waited for its gates.
pub(crate) fn save_all(
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
    report: &mut RunReport,
) -> Result<(), StoreError> {
    let id = PipelineId::of(pipeline, store.root());
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        if (Copies { id: &id, store, writer: Some(writer) }).save_outputs(cell, settled) {
            let failed = std::mem::replace(settled, Settled::new(State::Failed));
            *settled = failed.located(pipeline, cell);
        }
    }
    writer.sync(store)
}

/// Holds all copies of a run or a plan back, as a gate does not hold: notes those that would have been written.
pub(crate) fn hold_back(pipeline: &Pipeline, store: &mut Store, report: &mut RunReport) {
    let id = PipelineId::of(pipeline, store.root());
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        settled.saved.clear();
        Copies { id: &id, store, writer: None }.save_outputs(cell, settled);
        let saved = std::mem::take(&mut settled.saved);
        report.held.extend(saved.into_iter().filter(|saved| saved.written).map(|saved| saved.path));
    }
    report.held.extend(pipeline.tables.iter().filter_map(|table| table.save.clone()));
}

/// Puts a file that was made aside into the place of a copy.
pub(crate) fn save_file(
    made: &Path,
    path: &Path,
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<(), Report> {
    let id = PipelineId::of(pipeline, store.root());
    let blake3 = store.hashes.blake3_of(made)?;
    let mut copies = Copies { id: &id, store, writer: Some(writer) };
    let state = copies.look_at_file(path, Some(&blake3))?;
    copies.put(made, path, &blake3, state)?;
    Ok(())
}

/// Writes texts to files beside a pipeline as a `save` of it would, or removes the files without a text. If one of them is in the way,
/// none is touched.
pub(crate) fn save_texts(
    files: &[(PathBuf, Option<&str>)],
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<(), Report> {
    let id = PipelineId::of(pipeline, store.root());
    let mut copies = Copies { id: &id, store: &mut *store, writer: Some(&mut *writer) };
    let mut looked = Vec::new();
    for (path, text) in files {
        let blake3 = text.map(|text| blake3::hash(text.as_bytes()).to_hex().to_string()).unwrap_or_default();
        looked.push((copies.look_at_file(path, Some(&blake3))?, blake3));
    }
    for ((path, text), (state, blake3)) in files.iter().zip(looked) {
        match text {
            Some(text) => {
                copies.note_saved(path, &blake3)?;
                if state != CopyState::Same {
                    replace_file(path, text.as_bytes())?;
                    copies.mark(path, path, &blake3);
                }
            }
            None if state == CopyState::Free => {}
            None => fs::remove_file(path).map_err(DurableError::io("remove", path))?,
        }
    }
    Ok(writer.sync(store)?)
}

impl Copies<'_> {
    /// Makes the copies that a cell promises; whether that failed.
    pub(super) fn save_outputs(&mut self, cell: &Cell, settled: &mut Settled) -> bool {
        if !settled.is_usable() {
            return false;
        }
        for save in &cell.saves {
            let Some(record) = settled.outputs.get(save.output) else { continue };
            let written = match self.look(save, Some(record)) {
                Ok(state) => self.save(save, record, state),
                Err(_) if self.writer.is_none() => continue,
                Err(obstacle) => Err(obstacle.into()),
            };
            match written {
                Ok(written) => {
                    let (output, path) = (save.output.to_owned(), save.path.clone());
                    settled.saved.push(Saved { output, path, written });
                }
                Err(error) => {
                    settled.state = State::Failed;
                    settled.error = Some(error);
                    return true;
                }
            }
        }
        false
    }

    /// What is in the place of a copy.
    pub(super) fn look(&mut self, save: &Save, record: Option<&OutputRecord>) -> Result<CopyState, Obstacle> {
        let path = &save.path;
        match (record, record.and_then(only_file)) {
            (Some(record), Some(name)) => {
                let wanted = hash_of(record, name, self.store);
                // Its bytes are not known only where the artifact is damaged, which is found when it is copied.
                self.look_at_file(path, Some(wanted.as_deref().unwrap_or_default()))
            }
            (None, _) if [LaunchFile::KIND, TextFile::KIND].contains(&save.kind) || path.is_file() => {
                self.look_at_file(path, None)
            }
            (record, _) => self.look_at_folder(path, record),
        }
    }

    /// Makes a copy unless it is there; whether it had to be written.
    fn save(&mut self, save: &Save, record: &OutputRecord, state: CopyState) -> Result<bool, Report> {
        let source = self.store.artifact(&record.digest);
        let path = &save.path;
        if self.writer.is_none() {
            return Ok(state != CopyState::Same);
        }
        if let Some(name) = only_file(record) {
            let made = source.join("files").join(name);
            let blake3 = match hash_of(record, name, self.store) {
                Some(blake3) => blake3,
                None => self.store.hashes.blake3_of(&made)?,
            };
            return self.put(&made, path, &blake3, state);
        }
        // Before it is written: what a killed process leaves is ours as well.
        self.note_saved(path, &record.digest)?;
        if state == CopyState::Same {
            return Ok(false);
        }
        let staging = Staging::beside(path)?;
        for (name, _) in &record.files {
            copy_file(&source.join(name), &staging.path().join(name))?;
        }
        let provenance = source.join(PROVENANCE);
        if provenance.is_file() {
            copy_file(&provenance, &staging.path().join(PROVENANCE))?;
        }
        self.mark(&staging.path().join(DESCRIPTION), path, &record.digest);
        staging.commit(path)?;
        Ok(true)
    }

    fn put(&mut self, made: &Path, path: &Path, blake3: &str, state: CopyState) -> Result<bool, Report> {
        self.note_saved(path, blake3)?;
        if state == CopyState::Same {
            return Ok(false);
        }
        copy_file(made, path)?;
        self.mark(path, path, blake3);
        Ok(true)
    }

    fn note_saved(&mut self, path: &Path, blake3: &str) -> Result<(), StoreError> {
        match self.writer.as_deref_mut() {
            Some(writer) => writer.saved(self.store, self.id, path, blake3),
            None => Ok(()),
        }
    }

    /// Looks at the place of a file whose bytes should have this BLAKE3, if that is known already.
    pub(super) fn look_at_file(&mut self, path: &Path, wanted: Option<&str>) -> Result<CopyState, Obstacle> {
        let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(CopyState::Free) };
        let foreign = || Obstacle::Foreign(path.into());
        match metadata.file_type() {
            kind if kind.is_symlink() => return Err(Obstacle::Link(path.into())),
            kind if kind.is_dir() => return Err(Obstacle::Folder(path.into())),
            kind if !kind.is_file() => return Err(foreign()),
            _ => {}
        }
        let found = self.store.hashes.blake3_of(path).map_err(|_| foreign())?;
        if wanted == Some(&found) {
            return Ok(CopyState::Same);
        }
        match self.is_marked(path, path, &found) {
            _ if self.store.has_saved(self.id, path, &found) => Ok(CopyState::Ours),
            Some(true) => Ok(CopyState::Ours),
            // What an earlier copy has become is known; of a place that the store does not know it is not.
            None if wanted.is_none() && !self.store.knows_place(self.id, path) => Ok(CopyState::Unclear),
            _ => Err(foreign()),
        }
    }

    /// Looks at the place of an artifact, if it is known already which one.
    fn look_at_folder(&mut self, path: &Path, wanted: Option<&OutputRecord>) -> Result<CopyState, Obstacle> {
        let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(CopyState::Free) };
        match metadata.file_type() {
            kind if kind.is_symlink() => return Err(Obstacle::Link(path.into())),
            kind if !kind.is_dir() => return Err(Obstacle::Something(path.into())),
            _ => {}
        }
        if path.read_dir().is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(CopyState::Free);
        }
        let Ok(folder) = Folder::open(path) else { return Err(Obstacle::Something(path.into())) };
        if let Some(names) = beside_the_artifact(&folder) {
            return Err(Obstacle::More { path: path.into(), names });
        }
        let hashes = &mut self.store.hashes;
        let mut is_whole =
            |(path, blake3): &(PathBuf, &str)| hashes.blake3_of(path).is_ok_and(|found| found == *blake3);
        // What is missing, as after a purge, is written again.
        let (there, missing): (Vec<_>, Vec<_>) = folder.hashes().partition(|(path, _)| path.exists());
        let changed = there.iter().find(|file| !is_whole(file)).map(|(path, _)| path.clone());
        if changed.is_none()
            && missing.is_empty()
            && wanted.is_some_and(|wanted| wanted.digest == folder.digest())
        {
            return Ok(CopyState::Same);
        }
        if let Some(path) = changed {
            return Err(Obstacle::Changed(path));
        }
        match self.is_marked(&path.join(DESCRIPTION), path, folder.digest()) {
            _ if self.store.has_saved(self.id, path, folder.digest()) => Ok(CopyState::Ours),
            Some(true) => Ok(CopyState::Ours),
            None if wanted.is_none() && !self.store.knows_place(self.id, path) => Ok(CopyState::Unclear),
            _ => Err(Obstacle::Foreign(path.into())),
        }
    }

    /// Marks a file as the copy in a place, or as the description of the artifact there. Where the file system takes no marks, the
    /// store alone knows it.
    fn mark(&self, file: &Path, place: &Path, blake3: &str) {
        let value = value(place, self.id, self.store.root(), blake3);
        let _ = setxattr(file, MARK, value.as_bytes(), XattrFlags::empty());
    }

    /// Whether a file has the mark of a copy and still its bytes; none if the file system takes no marks.
    fn is_marked(&self, file: &Path, place: &Path, blake3: &str) -> Option<bool> {
        let mut found = [0; 64];
        match getxattr(file, MARK, &mut found[..]) {
            Ok(length) => {
                let value = |id: &PipelineId| value(place, id, self.store.root(), blake3);
                let ids = self.id.and_embedded();
                Some(ids.iter().any(|id| found[..length] == *value(id).as_bytes()))
            }
            Err(Errno::NODATA | Errno::RANGE) => Some(false),
            Err(_) => None,
        }
    }
}

/// Of these bytes and this pipeline, so that neither an edited copy counts as ours nor that of another pipeline.
fn value(place: &Path, id: &PipelineId, root: &Path, blake3: &str) -> String {
    let pipeline = id.beside_copy(place, root);
    blake3::hash(format!("{blake3}\n{pipeline}").as_bytes()).to_hex().to_string()
}

/// The file of an artifact that is nothing but a file.
pub(super) fn only_file(record: &OutputRecord) -> Option<&str> {
    let mut files = record.files.iter().map(|(name, _)| name.as_str()).filter(|name| *name != DESCRIPTION);
    let file = files.next()?.strip_prefix("files/")?;
    files.next().is_none().then_some(file)
}

/// The BLAKE3 of a file of an artifact.
pub(super) fn hash_of(record: &OutputRecord, name: &str, store: &Store) -> Option<String> {
    let folder = Folder::open(&store.artifact(&record.digest)).ok()?;
    folder.description().files.get(name).cloned()
}

/// Launch files, where people find them: the copies that the pipeline saves; if it saves none, those in the store.
pub(crate) fn launch_files<'a>(
    pipeline: &Pipeline,
    report: &'a RunReport,
    store: &Store,
) -> Vec<(&'a str, &'a OutputRecord, PathBuf)> {
    let mut files = Vec::new();
    // No launch command for what was held back.
    for settled in report.cells.iter().filter(|_| report.held.is_empty()) {
        for (port, record) in settled.outputs.iter().filter(|(_, record)| record.kind == LaunchFile::KIND) {
            let saved =
                settled.saved.iter().find(|saved| saved.output == *port).map(|saved| saved.path.clone());
            let stored = || {
                let name = record.files.iter().find(|(name, _)| name.starts_with("files/"));
                store.artifact(&record.digest).join(name.map_or("", |(name, _)| name))
            };
            let is_saved = saved.is_some();
            files.push((port.as_str(), record, saved.unwrap_or_else(stored), is_saved));
        }
    }
    // Of several, those that the user wants are saved, or would be if their stage had not failed.
    let saves = |cell: &Cell| cell.saves.iter().any(|save| save.kind == LaunchFile::KIND);
    let has_saved = pipeline.cells.iter().any(saves);
    let wanted = files.into_iter().filter(|(.., is_saved)| *is_saved || !has_saved);
    wanted.map(|(port, record, path, _)| (port, record, path)).collect()
}

/// The command that launches the program with a file, whose path is as people read it.
pub(crate) fn launch_command(store: &Store, record: &OutputRecord, path: &str) -> Option<String> {
    let folder = Folder::open(&store.artifact(&record.digest)).ok()?;
    let command: String = folder.attribute("command").ok()?;
    Some(start_command(&command, path))
}

/// Number of names in the way that are listed.
const MOST_NAMED: usize = 3;

/// The extended attribute by which a copy is known, whatever has become of the store that it was made from.
const MARK: &str = "user.hopmap.saved";

/// Whether something may be written in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyState {
    /// There is nothing.
    Free,
    /// The copy is there.
    Same,
    /// What is there is an older copy, or a damaged one.
    Ours,
    /// The file may be the copy: that is known when its stage has run.
    Unclear,
}

/// What blocks a copy.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum Obstacle {
    /// A folder where a file should be.
    #[error("{} is a folder, and `save` would write a file", .0.display())]
    #[diagnostic(code(engine::folder), help("choose another file name, or remove the folder"))]
    Folder(PathBuf),
    /// A symbolic link.
    #[error("{} is a symbolic link, which `save` would replace", .0.display())]
    #[diagnostic(code(engine::link), help("name its target, or remove it"))]
    Link(PathBuf),
    /// A file that hopmap did not write.
    #[error("{} was not written by a `save` of this pipeline", .0.display())]
    #[diagnostic(
        code(engine::foreign),
        help(
            "move it away if it is yours, or give the copy another path; a copy that was edited counts as yours"
        )
    )]
    Foreign(PathBuf),
    /// A folder that is not an artifact.
    #[error("{} is a folder without an artifact, which `save` would replace", .0.display())]
    #[diagnostic(
        code(engine::something),
        help("a copy replaces only an earlier copy; choose another folder")
    )]
    Something(PathBuf),
    /// A folder with an artifact and more.
    #[error("{} also holds {names}, which `save` would remove", path.display())]
    #[diagnostic(code(engine::more), help("move it away, or choose another folder for the artifact"))]
    More {
        /// The place.
        path: PathBuf,
        /// What is in it.
        names: String,
    },
    /// An artifact that was changed since it was written.
    #[error("{} differs from its {DESCRIPTION}: it was edited, or is damaged", .0.display())]
    #[diagnostic(code(engine::changed), help("remove the folder if it is not needed, or choose another one"))]
    Changed(PathBuf),
}

/// The names of what a folder has beside its artifact.
pub(crate) fn beside_the_artifact(folder: &Folder) -> Option<String> {
    let [description, provenance] = [DESCRIPTION, PROVENANCE].map(|name| folder.path().join(name));
    let provenance = is_provenance(&provenance).then_some(provenance);
    let own: HashSet<PathBuf> =
        folder.hashes().map(|(path, _)| path).chain([description]).chain(provenance).collect();
    let mut others = Vec::new();
    collect(folder.path(), &own, &mut others);
    others.sort();
    let name = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap_or(path).display().to_string();
    let mut names: Vec<String> = others.iter().take(MOST_NAMED).map(name).collect();
    if others.len() > MOST_NAMED {
        names.push(format!("{} more", others.len() - MOST_NAMED));
    }
    Some(names.join(", ")).filter(|names| !names.is_empty())
}

/// Whether the engine wrote a file of that name, and not the user.
fn is_provenance(path: &Path) -> bool {
    const MOST_BYTES: u64 = 16 << 20;
    let bytes = read_input(path, MOST_BYTES).ok();
    let value = bytes.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    value.is_some_and(|value| value.get("key").is_some() && value.get("manifest").is_some())
}

/// Everything below a folder but what is known and what a process left that was killed. A folder of nothing known is one thing.
fn collect(folder: &Path, own: &HashSet<PathBuf>, others: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let leads_to_own = || own.iter().any(|own| own.starts_with(&path));
        match is_folder {
            true if leads_to_own() => collect(&path, own, others),
            false if own.contains(&path) && entry.file_type().is_ok_and(|kind| kind.is_file()) => {}
            _ if is_leftover(&entry.file_name().to_string_lossy()) => {}
            _ => others.push(path),
        }
    }
}
