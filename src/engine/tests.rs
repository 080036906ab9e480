//! The engine with a stage that does what tests want.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, TextFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limits, NoEvents, Policy, State, Store, Writer, collect, find_garbage, run};
use crate::pipeline::{Pipeline, Source};

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

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] = &[Port::output::<TextFile>("text")];
        PORTS
    }

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
    let limits = Limits { jobs: 1, deadline: None, fail_fast: false };
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
    let policy = Policy { keep: std::time::Duration::ZERO, runs: 20 };
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
