//! Reproducibility: what a result was made of as a file for people and git, and everything recomputed to compare.
//!
//! A [`Lock`] says of every cell what went into it and what came out. It holds no path of this machine, no time and no
//! number of threads: it stays the same until a result changes, or what the result was made of.
//!
//! # Parts
//!
//! `src/lock` describes a pipeline (`describe`: what goes in, without running anything), writes that with the results as a lock file
//! (`file`), holds one against the other (here), and makes everything again in a second store (`again`). For all of it the world is
//! taken to be as it was seen last (`Store::trust_observations`), so that what depends on an observation can be planned and compared.
//! Every run leaves `request.json` in its folder: text, parameters and folders, with which it can be planned again.
//!
//! `src/archive` packs a run. Input files get places at which the pipeline finds them (`inputs`): values of parameters are looked at
//! from folders of other names, which distinguishes paths from text and shows what they are relative to. `read` believes nothing: names, kinds and
//! sizes of the whole directory are looked at before anything is read, and no file is read further than its directory says.

mod again;
mod describe;
mod file;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use hopmap_compare::differing;
use serde::Serialize;

use crate::engine::short;
use crate::pipeline::Pipeline;
pub(crate) use again::{Again, Remade, RemadeArtifact, SecondStore, Verdict};
pub(crate) use describe::{Expected, Request, Unfinished, Unknown, describe, expect, lock};
use describe::{some, text_hash};
pub(crate) use file::{Ending, HEADING, Lock, LockError, LockedCell, LockedFile};

/// What is different before anything has run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Differences {
    /// What changes results.
    pub(crate) found: Vec<Difference>,
    /// What changes no result, but may explain a difference.
    pub(crate) notes: Vec<String>,
}

/// The same difference in one or more cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The cells.
    pub(crate) cells: Vec<String>,
    /// What is different.
    pub(crate) what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", some(&self.cells), self.what)
    }
}

/// Holds what is known before a run against the lock.
pub(crate) fn before_a_run(lock: &Lock, request: &Request, expected: &[Expected]) -> Differences {
    let locked = lock.by_name();
    let mut by_what: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    let mut add = |stage: &str, cell: String, what: String| {
        let place = *places.entry((stage.to_owned(), what.clone())).or_insert_with(|| {
            by_what.push((what, Vec::new()));
            by_what.len() - 1
        });
        by_what[place].1.push(cell);
    };
    let mut known = BTreeSet::new();
    for Expected { cell, unknown } in expected {
        let id = cell.id();
        match locked.get(&id) {
            None => add(&cell.stage, id.clone(), "is not in the lock".to_owned()),
            Some(locked) => {
                for what in changes(locked, cell, unknown.as_ref()) {
                    add(&cell.stage, id.clone(), what);
                }
            }
        }
        known.insert(id);
    }
    for cell in lock.cells.iter().filter(|cell| !known.contains(&cell.id())) {
        add(&cell.stage, cell.id(), "is in the lock, but not in the pipeline".to_owned());
    }
    let found = by_what.into_iter().map(|(what, cells)| Difference { cells, what }).collect();
    Differences { found, notes: notes(lock, request) }
}

fn notes(lock: &Lock, request: &Request) -> Vec<String> {
    let mut notes = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    if lock.hopmap != version {
        notes.push(format!("the lock was written by hopmap {}, this is {version}", lock.hopmap));
    }
    if lock.text != text_hash(&request.text) {
        notes.push("the text of the pipeline has changed since it was locked".to_owned());
    }
    let given: BTreeMap<String, String> = request.parameters.iter().cloned().collect();
    let said = |value: Option<&String>| value.map_or("not given", String::as_str).to_owned();
    let parameters = differing(&lock.parameters, &given);
    notes.extend(parameters.map(|(name, old, new)| format!("-p {name}: {} → {}", said(old), said(new))));
    notes
}

/// What has changed in a cell since it was locked.
fn changes(old: &LockedCell, new: &LockedCell, unknown: Option<&Unknown>) -> Vec<String> {
    if old.uses != new.uses {
        return vec![format!("uses: {} → {}", old.uses, new.uses)];
    }
    let mut changes = Vec::new();
    if old.revision != new.revision {
        changes.push(format!("revision of {}: {} → {}", new.uses, old.revision, new.revision));
    }
    changes.extend(entries("", &old.parameters, &new.parameters));
    changes.extend(entries("input ", &old.needs, &new.needs));
    match unknown {
        Some(Unknown::Made) => {}
        Some(Unknown::Unreadable(error)) => {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            changes.push(causes.join(": "));
        }
        None => changes.extend(files(&old.files, &new.files)),
    }
    changes
}

fn entries<T: PartialEq + fmt::Display>(
    what: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
) -> Vec<String> {
    let said = |value: Option<&T>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let line = |(name, old, new)| format!("{what}{name}: {} → {}", said(old), said(new));
    differing(old, new).map(line).collect()
}

fn files(old: &[LockedFile], new: &[LockedFile]) -> Vec<String> {
    let hashes = |files: &[LockedFile]| {
        let mut by_name: BTreeMap<String, BTreeSet<(String, u64)>> = BTreeMap::new();
        for file in files {
            by_name.entry(file.name.clone()).or_default().insert((file.blake3.clone(), file.bytes));
        }
        by_name
    };
    let (old, new) = (hashes(old), hashes(new));
    let said = |files: &BTreeSet<(String, u64)>| {
        let texts = files.iter().map(|(hash, bytes)| format!("{} of {bytes} bytes", short(hash)));
        texts.collect::<Vec<_>>().join(" and ")
    };
    let change = |(name, old, new): (&str, Option<_>, Option<_>)| match (old, new) {
        (Some(old), Some(new)) => format!("file {name}: {} → {}", said(old), said(new)),
        (_, None) => format!("file {name} is gone"),
        (None, _) => format!("file {name} is new"),
    };
    differing(&old, &new).map(change).collect()
}

/// A cell whose results are not those of the lock.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct OutputDifference {
    /// The cell.
    pub(crate) cell: String,
    /// What is different.
    pub(crate) what: Vec<String>,
    /// What went into it.
    pub(crate) inputs: Vec<String>,
    /// Why that is not an error, if it is none.
    pub(crate) excuse: Option<String>,
}

/// Holds results against the lock, in the order of the cells. With `strict` nothing is excused.
pub(crate) fn outputs(lock: &Lock, found: &Lock, pipeline: &Pipeline, strict: bool) -> Vec<OutputDifference> {
    let (old, new) = (lock.by_name(), found.by_name());
    let mut differences = Vec::new();
    let mut excuses: HashMap<usize, String> = HashMap::new();
    let mut different: BTreeSet<usize> = BTreeSet::new();
    for (index, cell) in pipeline.cells.iter().enumerate() {
        let (Some(locked), Some(now)) = (old.get(&cell.id), new.get(&cell.id)) else { continue };
        let what = results(locked, now);
        if what.is_empty() {
            continue;
        }
        different.insert(index);
        let from_above = cell.dependencies().find(|needed| excuses.contains_key(needed));
        let excuse = match from_above {
            _ if strict => None,
            _ if cell.entry.experiments => Some("it measures a program".to_owned()),
            _ if now.observes => Some("it observes the machine".to_owned()),
            _ if locked.timed || now.timed => Some("it depends on a time limit".to_owned()),
            Some(needed) => Some(format!("it depends on {}, which differs", pipeline.cells[needed].name)),
            None => None,
        };
        if let Some(excuse) = &excuse {
            excuses.insert(index, excuse.clone());
        }
        let inputs = cell.dependencies().collect::<BTreeSet<_>>().into_iter().map(|needed| {
            let verdict = if different.contains(&needed) { "another one" } else { "as locked" };
            format!("{}: {verdict}", pipeline.cells[needed].name)
        });
        let files = now.files.iter().map(|file| format!("file {}: as locked", file.name));
        let inputs = inputs.chain(files).collect();
        differences.push(OutputDifference { cell: cell.id.clone(), what, inputs, excuse });
    }
    differences
}

fn results(locked: &LockedCell, now: &LockedCell) -> Vec<String> {
    if locked.ending != now.ending {
        let said = |ending: Ending| match ending {
            Ending::Done => "a result",
            Ending::Infeasible => "no solution",
            Ending::Blocked => "nothing to run on",
        };
        return vec![format!("has {}, locked was {}", said(now.ending), said(locked.ending))];
    }
    let said = |digest: Option<&String>| digest.map_or("nothing", |digest| short(digest)).to_owned();
    let line = |(port, old, new)| format!("{port} is {} and not {}", said(new), said(old));
    differing(&locked.outputs, &now.outputs).map(line).collect()
}
