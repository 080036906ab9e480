//! The engine with a stage that does what tests want.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, TextFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Catalogue, Events, Limits, Policy, Reason, Settled, State, Store, Writer, collect, find_garbage, run,
};
use crate::pipeline::{Cell, Pipeline};
use crate::source::Source;

/// Hears nothing.
pub(crate) struct NoEvents;

impl Events for NoEvents {
    fn started(&self, _: &Cell, _: &[Reason]) {}
    fn progress(&self, _: &Cell, _: u64, _: u64) {}
    fn log(&self, _: &Cell, _: &str) {}
    fn settled(&self, _: &Cell, _: &Settled) {}
}

/// `test/search`: counts its runs in its state; the first fails, the second is cut short, the third comes to its end.
pub(crate) struct SearchStage;

/// Parameters of `test/search`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchParams {
    /// Makes another key.
    seed: u64,
}

impl Stage for SearchStage {
    type Params = SearchParams;
    const KIND: &'static str = "test/search";
    const SUMMARY: &'static str = "A search that is stopped twice";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[Port::output::<TextFile>("text")];

    fn run(_: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let state = cx.state().unwrap();
        let runs = std::fs::read_to_string(state).unwrap_or_default();
        std::fs::write(state, format!("{runs}I")).unwrap();
        let text = TextFile { name: "runs".into(), text: runs.clone() };
        let outputs = Outputs::new().with("text", text);
        match runs.len() {
            0 => Err(miette::miette!("the first run fails")),
            1 => Ok(Outcome::Partial(outputs)),
            _ => Ok(Outcome::Done(outputs)),
        }
    }
}

fn run_with_seed(folder: &Path, seed: u64) -> State {
    let text = format!("[stages.search]\nuses = \"test/search\"\nwith = {{ seed = {seed} }}\n");
    let pipeline = Pipeline::parse(Source::new("p.toml", text), folder, folder, &[]).ok().unwrap();
    let root = folder.join("store");
    let mut writer = Writer::open(&root, "test").unwrap();
    let mut store = Store::load(&root).unwrap();
    let limits = Limits { jobs: 1, memory: None, deadline: None, fail_fast: false, worth: None };
    let report = run(&pipeline, &mut store, &mut writer, limits, &AtomicBool::new(false), &NoEvents).unwrap();
    report.cells[0].state
}

/// States in the store: what is in them.
fn states(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("store/states")).unwrap();
    let mut states: Vec<String> =
        entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    states.sort();
    states
}

fn clear(folder: &Path) {
    let root = folder.join("store");
    let mut writer = Writer::open(&root, "test").unwrap();
    let mut store = Store::load(&root).unwrap();
    let policy = Policy { keep: std::time::Duration::ZERO, runs: 20, gone: false };
    let garbage = find_garbage(&store, policy).unwrap();
    collect(&mut store, &mut writer, &garbage).unwrap();
}

#[test]
fn a_state_outlives_failures_and_partial_results_and_ends_with_the_result() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run_with_seed(folder.path(), 1), State::Failed);
    assert_eq!(states(folder.path()), ["I"]);
    assert_eq!(run_with_seed(folder.path(), 1), State::Partial);
    assert_eq!(states(folder.path()), ["II"]);
    assert_eq!(run_with_seed(folder.path(), 1), State::Ran);
    assert!(states(folder.path()).is_empty());
    assert_eq!(run_with_seed(folder.path(), 1), State::Cached);
}

#[test]
fn clearing_keeps_the_state_that_a_pipeline_goes_on_with_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    run_with_seed(folder.path(), 1);
    clear(folder.path());
    assert_eq!(states(folder.path()), ["I"]);
    // The log is written anew when a store is cleared.
    clear(folder.path());
    assert_eq!(run_with_seed(folder.path(), 1), State::Partial);
    run_with_seed(folder.path(), 2);
    assert_eq!(states(folder.path()), ["I", "II"]);
    clear(folder.path());
    assert_eq!(states(folder.path()), ["I"]);
}

/// State of every cell of every pipeline, and whether it has a result.
fn catalogue(folder: &Path) -> Vec<(String, bool)> {
    let store = Store::load(&folder.join("store")).unwrap();
    let cells = store.pipelines().flat_map(|id| Catalogue::now(&store, id).cells);
    cells.map(|cell| (cell.state.clone(), cell.result.is_some())).collect()
}

#[test]
fn what_was_stopped_early_stays_until_the_cell_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let digest = || {
        let store = Store::load(&folder.path().join("store")).unwrap();
        let (_, _, newest) = store.all_newest().next().unwrap();
        let (outputs, is_partial) = store.newest(&newest.key)?;
        Some((outputs["text"].digest.clone(), is_partial))
    };
    run_with_seed(folder.path(), 1);
    assert_eq!(digest(), None);
    assert_eq!(run_with_seed(folder.path(), 1), State::Partial);
    let partial = digest().unwrap();
    assert!(partial.1);
    // Once a query said that such a cell had failed, or had not started.
    assert_eq!(catalogue(folder.path()), [("partial".to_owned(), false)]);
    // The log is written anew when a store is cleared.
    clear(folder.path());
    clear(folder.path());
    assert_eq!(digest().unwrap(), partial);
    let artifact = folder.path().join("store/artifacts").join(&partial.0);
    assert!(artifact.is_dir());
    assert_eq!(run_with_seed(folder.path(), 1), State::Ran);
    assert!(digest().is_some_and(|(digest, is_partial)| !is_partial && digest != partial.0));
    assert_eq!(catalogue(folder.path()), [("cached".to_owned(), true)]);
    clear(folder.path());
    assert!(!artifact.exists());
}

/// `test/text`: gives its seed as text.
pub(crate) struct TextStage;

impl Stage for TextStage {
    type Params = SearchParams;
    const KIND: &'static str = "test/text";
    const SUMMARY: &'static str = "A text";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[Port::output::<TextFile>("text")];

    fn run(params: Self::Params, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let text = TextFile { name: "seed".into(), text: format!("{:010}", params.seed) };
        Ok(Outcome::Done(Outputs::new().with("text", text)))
    }
}

/// States of ten cells that each give a text.
fn run_texts(folder: &Path) -> Vec<State> {
    let text = "[stages.text]\nuses = \"test/text\"\nmatrix = { seed = \"1..10\" }\n";
    let pipeline = Pipeline::parse(Source::new("p.toml", text), folder, folder, &[]).ok().unwrap();
    let root = folder.join("store");
    let mut writer = Writer::open(&root, "test").unwrap();
    let mut store = Store::load(&root).unwrap();
    let limits = Limits { jobs: 1, memory: None, deadline: None, fail_fast: false, worth: None };
    let report = run(&pipeline, &mut store, &mut writer, limits, &AtomicBool::new(false), &NoEvents).unwrap();
    report.cells.iter().map(|settled| settled.state).collect()
}

/// The bytes that the third of ten texts has in the store, replaced by as many others: what a machine that goes down can leave.
fn lose_third(folder: &Path) {
    let artifacts = std::fs::read_dir(folder.join("store/artifacts")).unwrap();
    let mut files = artifacts.map(|entry| entry.unwrap().path().join("files/seed"));
    let third = files.find(|file| std::fs::read_to_string(file).unwrap().ends_with('3')).unwrap();
    std::fs::write(third, "\0".repeat(10)).unwrap();
}

#[test]
fn artifacts_that_were_not_on_disk_when_the_machine_went_down_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run_texts(folder.path()), [State::Ran; 10]);
    let log = folder.path().join("store/state.log");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("{\"unsynced\"") || text.contains("\n{\"unsynced\""));
    assert_eq!(text.lines().last(), Some("\"synced\""));
    // A process that was killed: the machine still has everything, nothing is read again.
    let unfinished = text.replace("\"synced\"\n", "");
    std::fs::write(&log, &unfinished).unwrap();
    assert_eq!(run_texts(folder.path()), [State::Cached; 10]);
    // A machine that went down.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::write(&log, unfinished.replace(boot.trim(), "an earlier one")).unwrap();
    lose_third(folder.path());
    let states = run_texts(folder.path());
    assert_eq!(states.iter().filter(|&&state| state == State::Ran).count(), 1);
    assert_eq!(states[2], State::Ran);
    // What was lost does not come back with the next line that all is on disk.
    assert_eq!(run_texts(folder.path()), [State::Cached; 10]);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("an earlier one"));
}

#[test]
fn artifacts_that_were_on_disk_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    run_texts(folder.path());
    // Of the right length: only whoever reads it sees that it is damaged.
    lose_third(folder.path());
    assert_eq!(run_texts(folder.path()), [State::Cached; 10]);
}
