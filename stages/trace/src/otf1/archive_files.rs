//! The files of an archive and their names.
//!
//! The master file `NAME.otf` says which processes are in which stream, a line `STREAM:PROCESS,PROCESS,…` for each
//! (`OTF_MasterControl.c`). Definitions for all streams are in `NAME.0.def`, the events of a stream in
//! `NAME.STREAM.events`, and what it defines for itself in `NAME.STREAM.def`. Any of them may be compressed and then
//! ends in `.z`; if both are there, libotf takes the plain one, and so do we (`OTF_Filenames.c`, `OTF_File.c`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, open_input};
use hopmap_text::FileError;

use super::fields::{Fault, Fields, told};
use super::inflate::open_lines;
use crate::OtfError;

/// Where the files of an archive lie.
#[derive(Debug)]
pub(super) struct ArchiveFiles {
    pub(super) master: PathBuf,
    pub(super) definitions: PathBuf,
    /// The processes of every stream, as the master file lists them.
    pub(super) streams: BTreeMap<u32, Vec<u32>>,
}

impl ArchiveFiles {
    /// The archive of a master file, or the only one in a folder.
    pub(super) fn find(path: &Path) -> Result<Self, OtfError> {
        let unreadable = |error| FileError::unreadable(path, &error);
        if !fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Self::of_master(path.to_owned());
        }
        let entries = fs::read_dir(path).map_err(unreadable)?;
        let mut masters = Vec::new();
        for entry in entries {
            let entry = entry.map_err(unreadable)?.path();
            if has_extension(&entry, "otf") && entry.is_file() {
                masters.push(entry);
            }
        }
        masters.sort_unstable();
        match masters.as_mut_slice() {
            [master] => Self::of_master(std::mem::take(master)),
            _ => Err(OtfError::Folder {
                path: path.to_owned(),
                names: masters.iter().map(|master| file_name(master)).collect(),
            }),
        }
    }

    fn of_master(master: PathBuf) -> Result<Self, OtfError> {
        if has_extension(&master, "otf2") {
            return Err(OtfError::Otf2 { path: master });
        }
        let refuse = |reason| Err(OtfError::NotAMaster { path: master.clone(), reason });
        if !has_extension(&master, "otf") {
            return refuse("its name does not end in `.otf`");
        }
        match first_bytes(&master)?.as_slice() {
            b"OTTO" => return refuse("it is an OpenType font"),
            [] => return refuse("it is empty"),
            [b'0'..=b'9' | b'a'..=b'f' | b' ' | b'\t' | b'\n' | b'i', ..] => {}
            _ => return refuse("it does not begin like one"),
        }
        let streams = read_master(&master)?;
        if streams.is_empty() {
            return refuse("it lists no stream");
        }
        let definitions = master.with_extension("0.def");
        let definitions = present(&definitions).ok_or(OtfError::NoDefinitions { path: definitions })?;
        Ok(Self { master, definitions, streams })
    }

    /// The events of a stream.
    pub(super) fn events_of(&self, stream: u32) -> Result<PathBuf, OtfError> {
        let path = self.master.with_extension(format!("{stream:x}.events"));
        present(&path).ok_or(OtfError::NoEvents { path, stream })
    }

    /// What a stream defines for itself, if it does.
    pub(super) fn definitions_of(&self, stream: u32) -> Option<PathBuf> {
        present(&self.master.with_extension(format!("{stream:x}.def")))
    }

    /// All of them, sorted by names in which the archive is always called `archive`.
    pub(super) fn list(&self) -> Result<Vec<InputPath>, OtfError> {
        let mut files = vec![
            InputPath::named(&self.master, "archive.otf"),
            InputPath::named(&self.definitions, format!("archive.0.{}", kind(&self.definitions, "def"))),
        ];
        for stream in self.streams.keys() {
            let events = self.events_of(*stream)?;
            let name = format!("archive.{stream:x}.{}", kind(&events, "events"));
            files.push(InputPath::named(events, name));
            if let Some(definitions) = self.definitions_of(*stream) {
                let name = format!("archive.{stream:x}.{}", kind(&definitions, "def"));
                files.push(InputPath::named(definitions, name));
            }
        }
        files.sort_by(|one, other| one.name().cmp(&other.name()));
        Ok(files)
    }
}

/// The processes of every stream.
fn read_master(path: &Path) -> Result<BTreeMap<u32, Vec<u32>>, OtfError> {
    let mut streams = BTreeMap::<u32, Vec<u32>>::new();
    let mut listed = BTreeSet::new();
    let mut lines = open_lines(path)?;
    while let Some(line) = lines.next_bytes()? {
        let mut fields = Fields::new(line.text);
        if fields.is_empty() {
            continue;
        }
        if fields.first() == Some(b'i') {
            let what =
                "was written through the I/O forwarding layer IOFSL, which joins the streams in one file";
            return Err(OtfError::Unsupported { path: path.to_owned(), what });
        }
        let (stream, processes) =
            stream_and_processes(fields).map_err(|what| line.error(told(line.text, what)))?;
        for process in &processes {
            if !listed.insert(*process) {
                return Err(line.error(told(line.text, "a process is listed twice")).into());
            }
        }
        streams.entry(stream).or_default().extend(processes);
    }
    Ok(streams)
}

/// A line of the master file.
fn stream_and_processes(mut fields: Fields<'_>) -> Result<(u32, Vec<u32>), Fault> {
    let stream = fields.short()?;
    if !fields.take(b':') {
        return Err("a colon is missing");
    }
    let processes = fields.list()?;
    fields.end()?;
    if stream == 0 { Err("stream 0 is for definitions") } else { Ok((stream, processes)) }
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = open_input(path).and_then(|file| file.take(4).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| FileError::unreadable(path, &error))
}

/// The file, or its compressed form.
fn present(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let mut compressed = path.as_os_str().to_owned();
    compressed.push(".z");
    Some(PathBuf::from(compressed)).filter(|path| path.is_file())
}

/// The end of a name: what is in the file, and whether it is compressed.
fn kind(path: &Path, what: &str) -> String {
    if has_extension(path, "z") { format!("{what}.z") } else { what.to_owned() }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
