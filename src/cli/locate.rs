//! Artifacts by the names that people give them: a folder, a digest, a stage, a cell.

use std::path::PathBuf;

use hopmap_command::{Failure, Mistake, shown};

use super::cells;
use super::open::{StoreArguments, working_directory};
use super::output::Output;
use crate::engine::{Current, Store, short};

/// The folder of an artifact that is named by its folder, its digest or its stage. Of a stage that was stopped early it is what the
/// stage had then, which is said.
pub(crate) fn locate_newest(
    name: &str,
    arguments: &StoreArguments,
    output: Output,
) -> Result<PathBuf, Failure> {
    let path = working_directory()?.join(name);
    if path.exists() {
        return Ok(path);
    }
    let store = Store::load(&arguments.root_here()?)?;
    let (cells, port) = cells::in_store(name, &store, store.all_newest())?;
    let newest: Vec<_> = cells.into_iter().filter_map(|current| store.newest(&current.key)).collect();
    let was_stopped = newest.iter().any(|(_, is_partial)| *is_partial);
    let outputs = newest.iter().flat_map(|(outputs, _)| outputs.iter());
    let wanted = outputs.filter(|(output, _)| port.is_none_or(|port| port == *output));
    let digests: Vec<String> = wanted.map(|(_, record)| record.digest.clone()).collect();
    if digests.is_empty() {
        return locate(name, arguments);
    }
    let folder = only(name, digests, &store)?;
    if was_stopped {
        output.note(format!("`{name}` was stopped early: this is the best it had; `hopmap run` ends it"));
    }
    Ok(folder)
}

/// The folder of an artifact that is named by its folder, its digest or its stage.
pub(crate) fn locate(name: &str, store: &StoreArguments) -> Result<PathBuf, Failure> {
    let path = working_directory()?.join(name);
    if path.exists() {
        return Ok(path);
    }
    let store = Store::load(&store.root_here()?)?;
    only(name, stored(&store, name)?, &store)
}

/// The artifact, if there is one and no other.
fn only(name: &str, mut found: Vec<String>, store: &Store) -> Result<PathBuf, Failure> {
    found.sort();
    found.dedup();
    match found.as_slice() {
        [digest] => Ok(store.artifact(digest)),
        [] => Err(Mistake::new(
            format!("there is no artifact, digest or stage `{name}`"),
            format!("stages of {}: {}", shown(store.root()), stage_names(store)),
        )
        .into()),
        several => {
            let names: Vec<String> = several.iter().map(|digest| named(digest, store)).collect();
            let message = format!("`{name}` stands for {} artifacts", several.len());
            Err(Mistake::new(message, format!("name one by its digest: {}", names.join(", "))).into())
        }
    }
}

/// Outputs of the cell of that name, else digests that begin with it.
fn stored(store: &Store, name: &str) -> Result<Vec<String>, Mistake> {
    let (cells, port) = cells::in_store(name, store, store.all_current())?;
    let results = cells.into_iter().filter_map(|current| store.result(&current.key));
    let outputs = results.flat_map(|result| result.outputs.iter());
    let wanted = outputs.filter(|(output, _)| port.is_none_or(|port| port == *output));
    let found: Vec<String> = wanted.map(|(_, record)| record.digest.clone()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_digest = name.len() >= 4 && name.chars().all(|letter| letter.is_ascii_hexdigit());
    let digests = store.digests().filter(|digest| is_digest && digest.starts_with(name));
    Ok(digests.map(str::to_owned).collect())
}

/// The first digits of a digest, and whose artifact it is where the store knows several pipelines.
fn named(digest: &str, store: &Store) -> String {
    let has = |current: &Current| {
        let newest = store.newest(&current.key);
        newest.is_some_and(|(outputs, _)| outputs.values().any(|output| output.digest == digest))
    };
    let digits = short(digest);
    match store.all_newest().find(|(_, _, current)| has(current)) {
        Some((id, _, _)) if store.pipelines().count() > 1 => format!("{digits} ({id})"),
        _ => digits.to_owned(),
    }
}

fn stage_names(store: &Store) -> String {
    let mut names: Vec<&str> = store.all_newest().map(|(_, _, current)| current.stage.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(20);
    if names.is_empty() { "none yet".to_owned() } else { names.join(", ") }
}
