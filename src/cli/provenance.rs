//! `hopmap show --provenance`: where an artifact or a saved file comes from.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_command::{Failure, Mistake, shown};
use serde_json::json;

use super::locate::locate_newest;
use super::open::{StoreArguments, working_directory};
use super::output::Output;
use crate::engine::{self, RunSummary, Store, short};
use crate::provenance::{FileOrigin, Made, Memory, Origin, Provenance, origin_of, trace};

/// Input files of one artifact that the tree shows; archives have thousands.
const MOST_FILES: usize = 6;

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An indented tree for people.
    Tree,
    /// A graph as JSON.
    Json,
    /// A graph in DOT.
    Dot,
}

/// Prints where an artifact or a file comes from.
pub(crate) fn print(
    name: &str,
    arguments: &StoreArguments,
    form: Form,
    output: Output,
) -> Result<(), Failure> {
    let root = arguments.root_here()?;
    let store = root.is_dir().then(|| Store::load(&root)).transpose()?;
    let runs: Vec<RunSummary> = store.as_ref().map(engine::read_runs).transpose()?.unwrap_or_default();
    let memory = store.as_ref().map_or_else(Memory::none, |store| Memory::of(store, &runs));
    let path = working_directory()?.join(name);
    let provenance = match path.is_file() {
        true => of_file(&path, store.as_ref(), &memory, output)?,
        false => {
            let folder = Folder::open(&locate_newest(name, arguments, output)?).map_err(Failure::usage)?;
            trace(folder.digest(), Some(folder.path()), &memory)
        }
    };
    match form {
        Form::Tree => output.line(tree(&provenance).trim_end()),
        Form::Json => output.json(&graph(&provenance)),
        Form::Dot => output.raw(dot(&provenance).as_bytes()),
    }
    Ok(())
}

/// Follows a file that people saved.
fn of_file(
    path: &Path,
    store: Option<&Store>,
    memory: &Memory<'_>,
    output: Output,
) -> Result<Provenance, Failure> {
    let origin = origin_of(path, store).map_err(Failure::usage)?;
    let (kind, digest) = match origin {
        Some(FileOrigin::Bytes { digest }) => return Ok(trace(&digest, None, memory)),
        Some(FileOrigin::Comment { kind, digest }) => (kind, digest),
        None => {
            let message = format!("nothing tells where {} comes from", shown(path));
            let hint = "it is no file of an artifact in this store, and has no comment `hopmap KIND DIGEST`";
            return Err(Mistake::new(message, hint).into());
        }
    };
    if !memory.knows(&digest) {
        let message = format!("{} was made from {kind} {digest}, which is not known here", shown(path));
        return Err(Mistake::new(message, "--store names the store of the run that made it").into());
    }
    output.note(format!("{} is not as it was written, but names what it was made from", shown(path)));
    Ok(trace(&digest, None, memory))
}

/// Every artifact under what was made from it; one that goes into several is told once.
fn tree(provenance: &Provenance) -> String {
    let by_digest: HashMap<&str, &Origin> =
        provenance.artifacts.iter().map(|origin| (origin.digest.as_str(), origin)).collect();
    let mut told = HashSet::new();
    let mut text = String::new();
    let mut waiting = vec![(0, "", provenance.root.as_str())];
    while let Some((depth, port, digest)) = waiting.pop() {
        let Some(origin) = by_digest.get(digest) else { continue };
        let indent = "  ".repeat(depth);
        let port = if port.is_empty() { String::new() } else { format!("{port}: ") };
        let kind = origin.kind.as_deref().unwrap_or("artifact");
        let cell = origin.made.as_ref().map_or("", |made| made.cell.as_str());
        let is_told = !told.insert(digest);
        let above = if is_told { " (above)" } else { "" };
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{}", format!("{indent}{port}{kind} {} {cell}{above}", short(digest)).trim_end());
        if is_told {
            continue;
        }
        for line in origin
            .made
            .iter()
            .flat_map(made)
            .chain(origin.ends.iter().map(|why| format!("the chain ends here: {why}")))
        {
            let _ = writeln!(text, "{indent}  {line}");
        }
        let inputs = origin.made.iter().flat_map(|made| made.inputs.iter().rev());
        waiting.extend(inputs.map(|input| (depth + 1, input.port.as_str(), input.digest.as_str())));
    }
    text
}

/// How an artifact was made, in lines.
fn made(made: &Made) -> Vec<String> {
    let mut how = format!("{} revision {}", made.stage, made.revision);
    if let Some(version) = &made.hopmap {
        how.push_str(&format!(", hopmap {version}"));
    }
    match &made.run {
        Some(run) => how.push_str(&format!(", run {} of {}", run.run, run.pipeline)),
        None => how.push_str(", in a run that is not remembered"),
    }
    let parameters = made.parameters.iter().map(|(name, value)| format!("{name} = {value}"));
    let files = made.files.iter().take(MOST_FILES).map(|file| format!("file {} {}", file.name, file.blake3));
    let more = made.files.len().saturating_sub(MOST_FILES);
    let more = (more > 0).then(|| format!("… and {more} more files; --json has them all"));
    std::iter::once(how).chain(parameters).chain(files).chain(more).collect()
}

/// Artifacts as nodes, what went into what as edges.
fn graph(provenance: &Provenance) -> serde_json::Value {
    let edges = provenance.artifacts.iter().flat_map(|origin| {
        let inputs = origin.made.iter().flat_map(|made| &made.inputs);
        inputs.map(|input| json!({ "from": input.digest, "to": origin.digest, "port": input.port }))
    });
    json!({ "root": provenance.root, "nodes": provenance.artifacts, "edges": edges.collect::<Vec<_>>() })
}

fn dot(provenance: &Provenance) -> String {
    let quote = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{escaped}\"")
    };
    let mut text =
        "digraph provenance {\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n".to_owned();
    for origin in &provenance.artifacts {
        let kind = origin.kind.as_deref().unwrap_or("artifact");
        let (cell, stage) = origin.made.as_ref().map_or(("", ""), |made| (&made.cell, &made.stage));
        let label = format!("{cell}\n{stage}\n{kind} {}", short(&origin.digest));
        let style = if origin.ends.is_some() { ", style=dashed" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} [label={}{style}]", quote(short(&origin.digest)), quote(label.trim()));
        for file in origin.made.iter().flat_map(|made| &made.files) {
            let name = quote(&format!("file {}", file.blake3));
            let label = quote(&format!("{}\n{}", file.name, short(&file.blake3)));
            let _ = writeln!(text, "  {name} [label={label}, shape=note]");
            let _ = writeln!(text, "  {name} -> {}", quote(short(&origin.digest)));
        }
        for input in origin.made.iter().flat_map(|made| &made.inputs) {
            let (from, to) = (quote(short(&input.digest)), quote(short(&origin.digest)));
            let _ = writeln!(text, "  {from} -> {to} [label={}]", quote(&input.port));
        }
    }
    text.push_str("}\n");
    text
}
