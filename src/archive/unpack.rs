//! Unpacking an archive: into a temporary folder, to make everything again, or as a project that runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use hopmap_durable::{DurableError, Staging, crash_point, replace_file};
use miette::Report;
use serde::Serialize;

use super::export::{PackedRequest, PackedResult};
use super::read::Archive;
use super::{ARTIFACTS, ArchiveError, REQUEST, RESULTS, imported, inputs};
use crate::engine::{PipelineId, STORE_FOLDER, Store, Writer};
use crate::lock::Request;
use crate::pipeline::{as_toml, plain, without_references};
use crate::source::{Node, NodeValue, Problems, Sink, Table};

/// What an archive was unpacked to; removed when dropped.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// What was asked for, with folders that lie here.
    pub(crate) request: Request,
    staging: Staging,
    results: Vec<PackedResult>,
}

/// A project that was made of an archive.
#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    /// The pipeline file.
    pub(crate) pipeline: PathBuf,
    /// Pipeline and input files.
    pub(crate) files: usize,
    /// Results in its store.
    pub(crate) results: usize,
}

impl Archive {
    /// Unpacks the inputs, the pipeline and the artifacts. The archive has been checked: nothing in it is believed else.
    pub(crate) fn unpack(&mut self) -> Result<Unpacked, Report> {
        let packed = self.complete_request()?;
        let staging = Staging::new(&std::env::temp_dir())?;
        self.write_all(staging.path(), &|name| name.to_owned())?;
        let results = self.all_results()?;
        let text = self.pipeline_text(&packed)?;
        let request = here(&self.path, staging.path(), packed, text)?;
        Ok(Unpacked { request, staging, results })
    }

    /// Unpacks a checked archive into a new or empty folder: the pipeline file with the parameters of the run as defaults, the input
    /// files where it finds them, and a store with the results.
    pub(crate) fn import(&mut self, place: &Path) -> Result<Imported, Report> {
        // Through a link: it stays.
        let target = std::fs::canonicalize(place).ok().filter(|_| place.is_symlink());
        let place = target.as_deref().unwrap_or(place);
        let packed = self.complete_request()?;
        let is_empty =
            |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut inside| inside.next().is_none());
        if place.symlink_metadata().is_ok() && !is_empty(place) {
            return Err(ArchiveError::NotEmpty(place.to_owned()).into());
        }
        let layout = self.layout(&packed)?;
        let results = self.all_results()?;
        let text = layout.rewritten(&self.pipeline_text(&packed)?, &packed.parameters);
        let lock = self.text(&packed.lock).map_err(|reason| self.damaged(&packed.lock, reason))?;
        let staging = Staging::beside(place)?;
        let files = self.write_all(staging.path(), &|name| layout.place(name))?;
        let pipeline = layout.place(&packed.pipeline);
        replace_file(&staging.path().join(&pipeline), text.as_bytes())?;
        let folder = Path::new(&pipeline).parent().unwrap_or(Path::new(""));
        replace_file(&staging.path().join(folder).join(&packed.lock), lock.as_bytes())?;
        imported::mark(staging.path())?;
        // A store knows its pipeline by the way from one to the other, which is the same in the place to be.
        let store = staging.path().join(STORE_FOLDER);
        let folder = staging.path().join(folder);
        let request = Request {
            pipeline: packed.pipeline.rsplit('/').next().unwrap_or_default().to_owned(),
            text,
            working: folder.clone(),
            folder,
            root: None,
            parameters: Vec::new(),
            jobs: None,
        };
        record(&request, &store, &results, "hopmap import")?;
        staging.commit_new(place)?;
        Ok(Imported { pipeline: pipeline.into(), files, results: results.len() })
    }

    /// What the archive says of how to run its pipeline, if it has all that this needs.
    fn complete_request(&mut self) -> Result<PackedRequest, ArchiveError> {
        let packed = self.request()?;
        if packed.inputs { Ok(packed) } else { Err(ArchiveError::NoInputs(self.path.clone())) }
    }

    fn all_results(&mut self) -> Result<Vec<PackedResult>, ArchiveError> {
        let results = self.results();
        results.map_err(|reason| self.damaged(RESULTS, reason))
    }

    fn pipeline_text(&mut self, packed: &PackedRequest) -> Result<String, ArchiveError> {
        let text = self.text(&packed.pipeline);
        text.map_err(|reason| self.damaged(&packed.pipeline, reason))
    }

    fn damaged(&self, place: &str, reason: String) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.clone(), place: place.to_owned(), reason }
    }

    /// Where the files of a project go. Names that only hopmap gives, and two files in one place, are refused.
    fn layout(&self, packed: &PackedRequest) -> Result<Layout, ArchiveError> {
        let refused = |name: &str, reason: &str| {
            let (path, place, reason) = (self.path.clone(), name.to_owned(), reason.to_owned());
            Err(ArchiveError::Refused { path, place, reason })
        };
        let names: BTreeSet<String> =
            self.entries.keys().filter(|name| inputs::is_input(name)).cloned().collect();
        let others = [&packed.folder, &packed.working, &packed.pipeline, &packed.lock];
        for name in names.iter().chain(others) {
            if let Some(reason) = super::flaw(name) {
                return refused(name, reason);
            }
            if name.split('/').any(imported::is_reserved) {
                return refused(
                    name,
                    "only hopmap gives this name, or other programs run what is in files of this name",
                );
            }
        }
        if packed.lock.contains('/') {
            return refused(&packed.lock, "a lock file is beside the pipeline file");
        }
        let layout = Layout::new(packed, names);
        let mut places = BTreeSet::new();
        match layout.names.iter().find(|name| !places.insert(layout.place(name))) {
            None => Ok(layout),
            Some(name) => refused(name, "another file has the same place in the project"),
        }
    }

    /// Writes the artifacts into the store of a folder, and the inputs where `place` says; gives the number of these.
    fn write_all(&mut self, folder: &Path, place: &dyn Fn(&str) -> String) -> Result<usize, Report> {
        let store = folder.join(STORE_FOLDER);
        drop(Writer::open(&store, "hopmap import")?);
        let mut inputs = 0;
        for (name, entry) in self.entries.clone() {
            let place = match name.strip_prefix(ARTIFACTS).and_then(|rest| rest.strip_prefix('/')) {
                Some(rest) => store.join(ARTIFACTS).join(rest),
                None => match Some(&name).filter(|name| inputs::is_input(name)).map(|name| place(name)) {
                    Some(place) => {
                        inputs += 1;
                        folder.join(place)
                    }
                    None => continue,
                },
            };
            self.write(&name, entry.index, &place)?;
        }
        Ok(inputs)
    }

    fn write(&mut self, name: &str, index: usize, place: &Path) -> Result<(), Report> {
        let parent = place.parent().unwrap_or(place);
        std::fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
        let mut file = BufWriter::new(File::create_new(place).map_err(DurableError::io("create", place))?);
        let written = self.copy(index, &mut |bytes| file.write_all(bytes));
        written.map_err(|reason| self.damaged(name, reason))?;
        file.flush().map_err(DurableError::io("write", place))?;
        Ok(())
    }
}

/// Where the files of an archive go in a project: what is below `pipeline/` keeps its place relative to the pipeline file.
struct Layout {
    /// Names of the input files in the archive.
    names: BTreeSet<String>,
    /// The folder of the pipeline file, and the working directory, in the archive.
    folder: String,
    working: String,
    /// Whether the working directory was the folder of the pipeline file: then they become one again.
    is_merged: bool,
}

impl Layout {
    fn new(packed: &PackedRequest, names: BTreeSet<String>) -> Self {
        let below = |name: &str| name.split_once('/').map_or("", |(_, rest)| rest).to_owned();
        let is_free = |name: &String| {
            name.strip_prefix("working/").is_none_or(|rest| !names.contains(&format!("pipeline/{rest}")))
        };
        let is_merged = below(&packed.folder) == below(&packed.working) && names.iter().all(is_free);
        let (folder, working) = (packed.folder.clone(), packed.working.clone());
        Self { names, folder, working, is_merged }
    }

    /// The path in the project of a file or folder of the archive.
    fn place(&self, name: &str) -> String {
        let (base, rest) = name.split_once('/').unwrap_or((name, ""));
        match base {
            "pipeline" => rest.to_owned(),
            "working" if self.is_merged => rest.to_owned(),
            _ => name.to_owned(),
        }
    }

    /// A path of the machine that wrote the archive as the pipeline file has to name it now; none if it leads to no file here.
    fn path(&self, written: &str, base: &str) -> Option<String> {
        let start = match written.chars().next()? {
            '/' => "absolute",
            _ => base,
        };
        let name = plain(&Path::new(start).join(written.trim_start_matches('/')));
        let name = name.to_str()?;
        // Of a pattern the folders that it names.
        let folders =
            name.find(['*', '?', '[', '{']).map_or(name, |at| &name[..name[..at].rfind('/').unwrap_or(at)]);
        let leads_here = |file: &String| Path::new(file).starts_with(folders);
        let place = self.names.iter().any(leads_here).then(|| self.place(name))?;
        let depth = Path::new(&self.folder).components().filter(|part| matches!(part, Component::Normal(_)));
        Some("../".repeat(depth.count() - 1) + &place)
    }

    /// The text of a pipeline with given parameters as defaults, and with paths that lead to the files of the project.
    fn rewritten(&self, text: &str, parameters: &[(String, String)]) -> String {
        let table = Table::parse(text, &Sink::default());
        let defaults = table.get("params").and_then(|entry| entry.node.table());
        let mut edits = Vec::new();
        for (name, value) in parameters {
            let Some(default) = defaults.and_then(|defaults| defaults.get(name)) else { continue };
            let value = as_toml(value, default.node.text().is_some());
            let line = format!("value = {value}");
            let own = edited(&line, &|path| self.path(path, &self.working));
            edits.push((default.node.span.clone(), without_references(&own["value = ".len()..])));
        }
        let absolute = |path: &str| self.path(path, "").filter(|_| path.starts_with('/'));
        for (span, new) in texts_of(&table, &absolute) {
            if edits.iter().all(|(other, _)| !other.contains(&span.start)) {
                edits.push((span, new));
            }
        }
        apply(text, edits)
    }
}

/// A text of TOML with some of its texts replaced.
fn edited(text: &str, new: &dyn Fn(&str) -> Option<String>) -> String {
    apply(text, texts_of(&Table::parse(text, &Sink::default()), new))
}

fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    edits.into_iter().for_each(|(span, new)| text.replace_range(span, &new));
    text
}

/// The texts of a table that are replaced: where they are, and what is there then.
fn texts_of(table: &Table, new: &dyn Fn(&str) -> Option<String>) -> Vec<(Range<usize>, String)> {
    fn visit(node: &Node, new: &dyn Fn(&str) -> Option<String>, edits: &mut Vec<(Range<usize>, String)>) {
        match &node.value {
            NodeValue::Array(nodes) => nodes.iter().for_each(|node| visit(node, new, edits)),
            NodeValue::Table(table) => table.entries.iter().for_each(|entry| visit(&entry.node, new, edits)),
            NodeValue::Scalar(_) => {
                let new = node.text().and_then(new);
                edits.extend(new.map(|new| (node.span.clone(), toml::Value::String(new).to_string())));
            }
        }
    }
    let mut edits = Vec::new();
    table.entries.iter().for_each(|entry| visit(&entry.node, new, &mut edits));
    edits
}

/// The request with folders in a place.
fn here(archive: &Path, place: &Path, packed: PackedRequest, text: String) -> Result<Request, ArchiveError> {
    let folder = |name: &str| match super::flaw(name) {
        None => Ok(place.join(name)),
        Some(reason) => Err(ArchiveError::Refused {
            path: archive.to_owned(),
            place: REQUEST.to_owned(),
            reason: format!("folder `{name}`: {reason}"),
        }),
    };
    Ok(Request {
        pipeline: packed.pipeline.rsplit('/').next().unwrap_or_default().to_owned(),
        text,
        folder: folder(&packed.folder)?,
        working: folder(&packed.working)?,
        root: Some(place.join("absolute")),
        parameters: packed.parameters,
        jobs: None,
    })
}

/// Puts results into the store whose artifacts are there already.
fn record(request: &Request, root: &Path, results: &[PackedResult], holder: &str) -> Result<Store, Report> {
    let pipeline = request.open().map_err(Problems::first)?;
    let mut writer = Writer::open(root, holder)?;
    let mut store = Store::load(root)?;
    let id = PipelineId::of(&pipeline, root);
    for PackedResult { cell, result } in results {
        let key = result.key.clone();
        writer.record(&mut store, result.clone(), false)?;
        if let Some(cell) = pipeline.cells.iter().find(|known| known.id == *cell) {
            writer.set_current(&mut store, &id, cell, &key)?;
        }
    }
    writer.sync(&mut store)?;
    Ok(store)
}

impl Unpacked {
    /// The store with the results of the archive.
    pub(crate) fn store(&self) -> Result<Store, Report> {
        record(&self.request, &self.staging.path().join(STORE_FOLDER), &self.results, "hopmap verify")
    }

    /// Keeps everything, under a name that is no longer a temporary one.
    pub(crate) fn keep(&self) -> PathBuf {
        let parent = self.staging.path().parent().unwrap_or(Path::new("."));
        let place = parent.join(format!("hopmap-verify-{}", std::process::id()));
        match std::fs::rename(self.staging.path(), &place) {
            Ok(()) => {
                crash_point("archive.kept", &place);
                place
            }
            Err(_) => self.staging.path().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(folder: &str, working: &str, names: &[&str]) -> Layout {
        let packed = PackedRequest {
            format: 1,
            hopmap: String::new(),
            name: String::new(),
            pipeline: format!("{folder}/p.toml"),
            folder: folder.to_owned(),
            working: working.to_owned(),
            lock: "p.lock".to_owned(),
            parameters: Vec::new(),
            inputs: true,
        };
        Layout::new(&packed, names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn given_parameters_become_defaults_that_lead_to_the_files_of_the_project() {
        let names =
            ["pipeline/a/p.toml", "working/data/x.csv", "absolute/scratch/t/y.otf2", "pipeline/z.csv"];
        let layout = layout("pipeline/a", "working", &names);
        let text = "[params]\nx = \"old\" # comment\nn = 1\n[stages.s]\nwith = { y = \"/scratch/t\", z = \"../z.csv\", w = \"/none\" }\n";
        let parameters = [("x", "data/*.csv"), ("n", "[1, 2]"), ("other", "1")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = "[params]\nx = \"../working/data/*.csv\" # comment\nn = [1, 2]\n[stages.s]\nwith = { y = \"../absolute/scratch/t\", z = \"../z.csv\", w = \"/none\" }\n";
        assert_eq!(layout.rewritten(text, &parameters), expected);
        assert_eq!(layout.place("pipeline/z.csv"), "z.csv");
    }

    #[test]
    fn files_of_the_working_directory_are_beside_the_pipeline_file_where_they_were() {
        let together = layout("pipeline", "working", &["pipeline/p.toml", "working/x.csv"]);
        assert_eq!(together.path("x.csv", "working").unwrap(), "x.csv");
        let apart = layout("pipeline", "working", &["pipeline/x.csv", "working/x.csv"]);
        assert_eq!(apart.path("x.csv", "working").unwrap(), "working/x.csv");
        assert_eq!((apart.path("text", "working"), apart.path("", "working")), (None, None));
    }
}
