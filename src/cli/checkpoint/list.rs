//! `hopmap checkpoint list`: which checkpoints there are.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::amounts::{bytes, time, times};
use super::{Exit, Failure, Output, open};
use crate::registry::checkpoint::store::{Manifest, Store};

/// Arguments of `checkpoint list`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint list store")]
pub(super) struct Arguments {
    /// Folder of the store.
    store: PathBuf,
}

/// A checkpoint, and the bytes of its own files on disk.
struct Line {
    manifest: Manifest,
    stored: u64,
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let mut lines = Vec::new();
    let mut damaged = Vec::new();
    for number in store.numbers()? {
        match store.manifest(number) {
            Ok(manifest) => lines.push(Line { stored: stored(&store, number), manifest }),
            Err(error) => damaged.push(error),
        }
    }
    if output.is_json() {
        output.json(&lines.iter().map(as_json).collect::<Vec<_>>());
    }
    match lines.is_empty() && damaged.is_empty() {
        true => output.line("no checkpoints yet"),
        false => output.line(format!(
            "{:>6}  {:<20}  {:>9}  {:>9}  {:>8}  files  name",
            "number", "added", "bytes", "stored", ""
        )),
    }
    lines.iter().for_each(|line| output.line(in_words(line)));
    damaged.iter().for_each(|error| output.note(error));
    Ok(if damaged.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Bytes of manifest and pack.
fn stored(store: &Store, number: u32) -> u64 {
    let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    length(store.manifest_path(number)) + length(store.pack_path(number))
}

fn in_words(line: &Line) -> String {
    let Line { manifest, stored } = line;
    let whole = manifest.figures.bytes;
    let text = format!(
        "{:>6}  {:<20}  {:>9}  {:>9}  {:>8}  {:>5}  {}",
        manifest.number,
        time(manifest.created),
        bytes(whole),
        bytes(*stored),
        times(whole, *stored),
        manifest.recipes.len(),
        manifest.name
    );
    text.trim_end().to_owned()
}

fn as_json(line: &Line) -> serde_json::Value {
    let Line { manifest, stored } = line;
    json!({
        "number": manifest.number,
        "created": time(manifest.created),
        "name": manifest.name,
        "files": manifest.recipes.len(),
        "bytes": manifest.figures.bytes,
        "stored_bytes": stored,
        "compared_with": manifest.earlier,
    })
}
