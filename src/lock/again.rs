//! Recomputes everything in a separate store, and compares it with the results.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_compare::first_differences;
use hopmap_durable::{DurableError, Lock as FileLock};
use miette::Report;
use serde::Serialize;

use super::describe::{describe, expect};
use super::file::Lock;
use crate::engine::{
    self, Events, Limits, OutputRecord, Reason, ResultRecord, RunReport, Settled, State, Store, StoreError,
    Writer,
};
use crate::pipeline::{Cell, Pipeline};

/// How an artifact came out the second time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub(crate) enum Verdict {
    /// With the same bytes.
    Same,
    /// With others.
    Different {
        /// What is different, the first place first.
        what: Vec<String>,
    },
    /// It cannot be said.
    NotComparable {
        /// Why not.
        why: String,
    },
    /// Not at all: its stage failed, or something it needs did.
    Failed {
        /// Why.
        why: String,
    },
}

impl Verdict {
    /// Whether it did not come out as it should.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Different { .. } | Self::Failed { .. })
    }
}

/// An artifact that was recomputed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RemadeArtifact {
    /// The cell.
    pub(crate) cell: String,
    /// The short name of the cell.
    #[serde(skip)]
    pub(crate) name: String,
    /// Its stage.
    pub(crate) stage: String,
    /// Its output port; none if there is no result to compare with.
    pub(crate) output: Option<String>,
    /// The digest it should have.
    pub(crate) digest: Option<String>,
    /// How it came out.
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

/// What came of making everything again.
pub(crate) struct Remade {
    /// Every artifact that was asked for.
    pub(crate) artifacts: Vec<RemadeArtifact>,
    /// The run that made them.
    pub(crate) report: RunReport,
    /// The cells of the run, so that its errors can be reported.
    pub(crate) pipeline: Pipeline,
}

/// A pipeline to recompute, and the expected results.
pub(crate) struct Again {
    /// The cells that run or whose results are taken.
    pub(crate) pipeline: Pipeline,
    known: Vec<Known>,
    /// What was asked for and has nothing to be compared with.
    unknown: Vec<RemadeArtifact>,
}

/// What is known of a cell before it is recomputed.
struct Known {
    /// Whether it was asked for.
    selected: bool,
    /// Digests that its outputs should have; none if there is nothing to compare with.
    digests: Option<BTreeMap<String, String>>,
    /// Why its result is taken from the store and not recomputed.
    taken: Option<&'static str>,
    /// Why its result cannot be compared although it is recomputed.
    excuse: Option<&'static str>,
    /// Its result in the store.
    result: Option<ResultRecord>,
    /// Why there is nothing to compare with.
    missing: String,
    /// Whether the store had it, and has lost a part.
    is_lost: bool,
}

impl Again {
    /// Looks up what a pipeline should come to: what the store has, or what a lock file says. `only` are names of the stages
    /// or cells that are asked for; without any it is all.
    ///
    /// Results that observe the machine or depend on a time limit are taken from the store, so that everything that was made of
    /// it can be compared.
    pub(crate) fn new(
        mut pipeline: Pipeline,
        store: &mut Store,
        lock: Option<&Lock>,
        only: &[String],
    ) -> Self {
        // Copies for people are theirs: nothing outside the new store is touched.
        pipeline.cells.iter_mut().for_each(|cell| cell.saves.clear());
        let known = known(&pipeline, store, lock, only);
        let is_wanted = |known: &Known| known.selected && known.digests.is_some();
        let wanted: Vec<usize> = (0..known.len()).filter(|&index| is_wanted(&known[index])).collect();
        let open = |known: &&Known| known.selected && known.digests.is_none();
        let unknown =
            pipeline.cells.iter().zip(&known).filter(|(_, known)| open(known)).map(|(cell, known)| {
                let why = known.missing.clone();
                let verdict = match known.is_lost {
                    true => Verdict::Different { what: vec![why] },
                    false => Verdict::NotComparable { why },
                };
                remade(cell, None, None, verdict)
            });
        let unknown = unknown.collect();
        let mut by_name: BTreeMap<String, Known> =
            pipeline.cells.iter().map(|cell| cell.id.clone()).zip(known).collect();
        pipeline.retain(wanted);
        let known = pipeline.cells.iter().filter_map(|cell| by_name.remove(&cell.id)).collect();
        Self { pipeline, known, unknown }
    }

    /// Makes it again in an empty folder and compares bytes.
    pub(crate) fn run(
        self,
        store: &Store,
        place: &Path,
        limits: Limits,
        cancelled: &AtomicBool,
        events: &dyn Events,
    ) -> Result<Remade, Report> {
        let Self { pipeline, known, unknown } = self;
        let mut writer = Writer::open(place, "hopmap verify")?;
        let mut second = Store::load(place)?;
        second.trust_observations();
        second.refuse_commands();
        for known in known.iter().filter(|known| known.taken.is_some()) {
            if let Some(result) = &known.result {
                adopt(result, store, &mut second, &mut writer)?;
            }
        }
        let report = engine::run(&pipeline, &mut second, &mut writer, limits, cancelled, events)?;
        let mut artifacts = compare(&pipeline, &known, &report, store, &second);
        artifacts.extend(unknown);
        Ok(Remade { artifacts, report, pipeline })
    }
}

fn known(pipeline: &Pipeline, store: &mut Store, lock: Option<&Lock>, only: &[String]) -> Vec<Known> {
    let planned = expect(pipeline, store);
    let described = describe(pipeline, store, &planned);
    let locked = lock.map(Lock::by_name);
    let cells = pipeline.cells.iter().zip(&planned.cells).zip(described);
    let one = |((cell, settled), expected): ((&Cell, &Settled), super::describe::Expected)| {
        let selected = only.is_empty() || only.iter().any(|name| *name == cell.stage || *name == cell.id);
        let key = settled.key.as_deref().filter(|_| is_answer(settled));
        let result = key.and_then(|key| store.result(key)).cloned();
        let stored = result.as_ref().map(|result| digests(&result.outputs));
        let locked_cell = locked.as_ref().map(|cells| cells.get(&cell.id));
        let digests = match &locked_cell {
            Some(locked) => locked.map(|locked| locked.outputs.clone()),
            None => stored.clone(),
        };
        let timed = result.as_ref().is_some_and(|result| result.timed)
            || locked_cell.flatten().is_some_and(|locked| locked.timed);
        let excuse = match (expected.cell.observes, timed) {
            (true, _) if cell.entry.experiments => Some("measures a program"),
            (true, _) => Some("observes the machine"),
            (false, true) => Some("it depends on a time limit"),
            (false, false) => None,
        };
        let is_lost = settled.reasons.iter().any(|reason| matches!(reason, Reason::OutputDamaged { .. }));
        let is_there = stored.is_some() && stored == digests;
        let taken = match excuse {
            _ if !is_there => None,
            None if !selected => Some("was not asked for"),
            excuse => excuse,
        };
        let missing = match (&locked_cell, settled.reasons.first()) {
            (Some(_), _) => "it is not in the lock".to_owned(),
            (None, Some(reason)) => format!("it has no result that is up to date: {reason}"),
            (None, None) => match settled.because_of {
                Some(other) => format!("it has no result, and neither has {}", pipeline.cells[other].name),
                None => "it has no result".to_owned(),
            },
        };
        Known { selected, digests, taken, excuse, result, missing, is_lost }
    };
    cells.map(one).collect()
}

fn is_answer(settled: &Settled) -> bool {
    matches!(settled.state, State::Cached | State::Infeasible)
}

fn digests(outputs: &BTreeMap<String, OutputRecord>) -> BTreeMap<String, String> {
    outputs.iter().map(|(port, record)| (port.clone(), record.digest.clone())).collect()
}

/// Copies a result into the second store.
fn adopt(result: &ResultRecord, from: &Store, to: &mut Store, writer: &mut Writer) -> Result<(), StoreError> {
    for record in result.outputs.values() {
        let (source, place) = (from.artifact(&record.digest), to.artifact(&record.digest));
        for (name, _) in &record.files {
            let (source, place) = (source.join(name), place.join(name));
            let parent = place.parent().unwrap_or(&place);
            std::fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
            // Nobody changes the file of an artifact: a second name for it is as good as a copy.
            if !place.exists() && std::fs::hard_link(&source, &place).is_err() {
                std::fs::copy(&source, &place).map_err(DurableError::io("copy", &source))?;
            }
        }
    }
    writer.record(to, result.clone(), false)
}

fn remade(cell: &Cell, output: Option<&str>, digest: Option<&str>, verdict: Verdict) -> RemadeArtifact {
    RemadeArtifact {
        cell: cell.id.clone(),
        name: cell.name.clone(),
        stage: cell.stage.clone(),
        output: output.map(str::to_owned),
        digest: digest.map(str::to_owned),
        verdict,
    }
}

fn compare(
    pipeline: &Pipeline,
    known: &[Known],
    report: &RunReport,
    store: &Store,
    second: &Store,
) -> Vec<RemadeArtifact> {
    let mut artifacts = Vec::new();
    // Cells that saw another world, and those that were made of what they saw.
    let mut elsewhere: HashSet<usize> = HashSet::new();
    for (index, (cell, (known, settled))) in
        pipeline.cells.iter().zip(known.iter().zip(&report.cells)).enumerate()
    {
        let Some(wanted) = &known.digests else { continue };
        let found = digests(&settled.outputs);
        let above = cell.dependencies().find(|needed| elsewhere.contains(needed));
        let differs = is_answer_again(settled) && found != *wanted;
        if differs && (known.excuse.is_some() || above.is_some()) {
            elsewhere.insert(index);
        }
        if !known.selected {
            continue;
        }
        if !is_answer_again(settled) {
            artifacts.push(remade(cell, None, None, no_answer(pipeline, settled)));
            continue;
        }
        let ports: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
        for port in ports {
            let verdict = match (wanted.get(port), found.get(port)) {
                _ if known.taken.is_some() => not_comparable(known.taken, "not compared"),
                (Some(wanted), Some(found)) if wanted == found => bytes(store, wanted),
                _ if known.excuse.is_some() => not_comparable(known.excuse, "different this time"),
                (Some(wanted), Some(found)) => match above.map(|needed| &pipeline.cells[needed].name) {
                    Some(name) => {
                        let why = format!("depends on {name}, which is different this time");
                        Verdict::NotComparable { why }
                    }
                    None => Verdict::Different { what: differences(store, second, wanted, found) },
                },
                (None, _) => Verdict::Different { what: vec!["missing before".to_owned()] },
                (_, None) => Verdict::Different { what: vec!["missing now".to_owned()] },
            };
            artifacts.push(remade(cell, Some(port.as_str()), wanted.get(port).map(String::as_str), verdict));
        }
        if wanted.is_empty() && found.is_empty() {
            let why = "it has no solution, and no diagnosis either".to_owned();
            artifacts.push(remade(cell, None, None, Verdict::NotComparable { why }));
        }
    }
    artifacts
}

/// Where an artifact differs from the one that was expected. Of one that only a lock file knows there are no bytes.
fn differences(store: &Store, second: &Store, wanted: &str, found: &str) -> Vec<String> {
    let expected = store.artifact(wanted);
    match expected.exists() {
        true => first_differences(&expected, &second.artifact(found)),
        false => {
            let found = engine::short(found);
            vec![format!("is {found} now; of what was expected only the digest is known")]
        }
    }
}

fn not_comparable(why: Option<&str>, rest: &str) -> Verdict {
    Verdict::NotComparable { why: format!("{}; {rest}", why.unwrap_or_default()) }
}

fn is_answer_again(settled: &Settled) -> bool {
    matches!(settled.state, State::Cached | State::Ran | State::Infeasible)
}

fn no_answer(pipeline: &Pipeline, settled: &Settled) -> Verdict {
    let why = match (settled.state, settled.because_of) {
        (State::NotStarted | State::Partial, _) => "the run was stopped first".to_owned(),
        (State::NotWorthIt, _) => "a placement gains too little to be searched".to_owned(),
        (_, Some(other)) => format!("{} failed or has no solution", pipeline.cells[other].name),
        _ => {
            let cause = settled.error.as_ref().map(|error| error.root_cause().to_string());
            cause.unwrap_or_else(|| "it failed".to_owned())
        }
    };
    Verdict::Failed { why }
}

/// The digest is the same; the bytes in the store must match it.
fn bytes(store: &Store, digest: &str) -> Verdict {
    let place = store.artifact(digest);
    if !place.exists() {
        // Only a lock file knows it: there are no bytes that could be damaged.
        return Verdict::Same;
    }
    let whole = Folder::open(&place).and_then(|folder| folder.verify().map(|()| folder));
    match whole {
        Ok(folder) if folder.digest() == digest => Verdict::Same,
        Ok(_) => Verdict::Different { what: vec!["artifact.json in the store is damaged".to_owned()] },
        Err(error) => {
            let name = |path: &Path| path.strip_prefix(&place).unwrap_or(path).display().to_string();
            let what = match &error {
                ArtifactError::Damaged { path, .. } => format!("{} in the store is damaged", name(path)),
                error => error.to_string(),
            };
            Verdict::Different { what: vec![what] }
        }
    }
}

/// A folder for a second store, inside the first so that both are on the same file system. It is removed when dropped,
/// and one that a killed process left is removed by the next.
#[derive(Debug)]
pub(crate) struct SecondStore {
    path: PathBuf,
    keep: bool,
}

const PREFIX: &str = "verify-";
const KEPT: &str = "kept";

impl SecondStore {
    /// Makes the folder.
    pub(crate) fn new(store: &Path, keep: bool) -> Result<Self, DurableError> {
        clear(store);
        let path = (0..).map(|count| store.join(format!("{PREFIX}{}-{count}", std::process::id())));
        let path = path.into_iter().find(|path| !path.exists()).unwrap_or_else(|| store.join(PREFIX));
        std::fs::create_dir_all(&path).map_err(DurableError::io("create", &path))?;
        if keep {
            std::fs::write(path.join(KEPT), "").map_err(DurableError::io("write", &path))?;
        }
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SecondStore {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed now is removed by the next one.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes second stores whose process is gone.
fn clear(store: &Path) {
    let entries = std::fs::read_dir(store).into_iter().flatten().filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(PREFIX) || path.join(KEPT).exists() {
            continue;
        }
        if FileLock::try_exclusive(&path.join("lock"), "hopmap verify").is_ok() {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}
