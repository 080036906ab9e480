//! Files of other tools, written by hand, with matrices computed by hand.

mod clog2;
mod cut;
mod damage;
mod dense_matrix;
mod export;
mod flight_recorder;
mod ipm;
mod jobs;
mod kineto;
mod matrix_market;
mod paraver;
mod people;
mod prefixes;
mod recognise;
mod record;
mod simgrid;
mod tau;
mod training;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Listener, graph};
use flate2::Compression;
use flate2::write::GzEncoder;
use hopmap_model::{Context, InputPath, Stage, TaskGraph};
use hopmap_trace::{Format, Import, ImportParams};

/// Files in a separate folder.
struct Files {
    folder: tempfile::TempDir,
    names: Vec<String>,
}

impl Files {
    /// `files` are names and contents.
    fn new<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Self {
        let names = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        let written = Self { folder: tempfile::tempdir().unwrap(), names };
        for (name, bytes) in files {
            let path = written.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        written
    }

    /// One file, called `trace`.
    fn one(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(&[("trace", bytes)])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file called `trace`, or the folder without it.
    fn trace(&self) -> PathBuf {
        let trace = self.path("trace");
        if trace.exists() { trace } else { self.folder.path().to_owned() }
    }

    /// Reads it.
    fn read(&self, ask: impl FnOnce(&mut ImportParams)) -> Read {
        let mut params = ImportParams::new(InputPath::new(self.trace()));
        ask(&mut params);
        let listener = Listener::default();
        let result = import(params, &Context::new(1, None, &listener));
        let clean = |text: String| text.replace(&format!("{}/", self.folder.path().display()), "");
        let result = result.map_err(|error| {
            let help = error.help().map_or(String::new(), |help| format!(" | {help}"));
            (clean(error.to_string()), help)
        });
        Read { result, log: listener.lines.into_inner().unwrap() }
    }

    /// Reads it with a recognised format.
    fn auto(&self) -> Read {
        self.read(|_| {})
    }

    /// The error message, without the column.
    fn refused(&self) -> String {
        let message = self.auto().result.unwrap_err().0;
        let mut parts: Vec<&str> = message.splitn(4, ':').collect();
        if parts.get(2).is_some_and(|column| column.parse::<u32>().is_ok()) {
            parts.remove(2);
        }
        parts.join(":")
    }
}

/// Result and log of an import.
struct Read {
    /// Error message and hint on failure.
    result: Result<TaskGraph, (String, String)>,
    log: Vec<String>,
}

impl Read {
    fn graph(&self) -> &TaskGraph {
        self.result.as_ref().unwrap()
    }

    /// Source, destination, messages and bytes of every pair.
    fn pairs(&self) -> Vec<(u32, u32, u64, u64)> {
        pairs(self.graph())
    }
}

fn pairs(graph: &TaskGraph) -> Vec<(u32, u32, u64, u64)> {
    graph.edges.iter().map(|e| (e.source, e.destination, e.messages, e.bytes)).collect()
}

fn packed(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(content.as_ref()).unwrap();
    packed.finish().unwrap()
}

fn import(params: ImportParams, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    Import::check(&params)?;
    let files = Import::reads(&params)?;
    assert!(!files.is_empty() && files.iter().all(|file| file.path().is_file()));
    graph::<Import>(params, cx)
}

/// Reads a file or folder.
fn import_path(path: &Path, format: Format) -> miette::Result<TaskGraph> {
    let params = ImportParams { format, ..ImportParams::new(InputPath::new(path)) };
    import(params, &Context::detached())
}
