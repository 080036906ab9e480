//! Whose threads a cell works on.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, TextFile};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tests::NoEvents;
use super::{Limits, State, Store, Writer, run};
use crate::pipeline::Pipeline;
use crate::source::Source;

/// `test/crowd`: waits on all threads that it has, and notes which these were.
pub(crate) struct CrowdStage;

/// Parameters of `test/crowd`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CrowdParams {
    /// The test that it belongs to.
    test: String,
    /// Makes another key.
    seed: u64,
    /// Makes some take longer than others.
    items: u64,
}

/// What a cell noted.
#[derive(Debug)]
struct Note {
    test: String,
    /// Cores that it was given.
    cores: usize,
    threads: HashSet<ThreadId>,
    begin: Instant,
    end: Instant,
}

static NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());
/// Closures of one cell that ran while the same thread was in the middle of another cell.
static NESTED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The cell that the thread works for.
    static OWNER: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Does a part of the work of a cell.
fn work_for<R>(cell: u64, work: impl FnOnce() -> R) -> R {
    let before = OWNER.replace(Some(cell));
    NESTED.fetch_add(usize::from(before.is_some_and(|before| before != cell)), Ordering::Relaxed);
    let result = work();
    OWNER.set(before);
    result
}

impl Stage for CrowdStage {
    type Params = CrowdParams;
    const KIND: &'static str = "test/crowd";
    const SUMMARY: &'static str = "Work on many threads";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[Port::output::<TextFile>("text")];

    fn run(params: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let begin = Instant::now();
        let wait = |_| {
            work_for(params.seed, || {
                // A join inside, and a little work with an end that differs.
                rayon::join(|| std::thread::sleep(Duration::from_millis(1)), || ());
                std::thread::current().id()
            })
        };
        let threads = work_for(params.seed, || (0..params.items).into_par_iter().map(wait).collect());
        assert_eq!(rayon::current_num_threads(), cx.threads());
        let note = Note { test: params.test, cores: cx.threads(), threads, begin, end: Instant::now() };
        NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        let text = TextFile { name: "seed".into(), text: params.seed.to_string() };
        Ok(Outcome::Done(Outputs::new().with("text", text)))
    }
}

/// Runs a pipeline on `jobs` cores; what its cells noted.
fn noted(name: &str, text: &str, jobs: usize) -> Vec<Note> {
    let folder = tempfile::tempdir().unwrap();
    let folder: &Path = folder.path();
    let text = text.replace("TEST", name);
    let pipeline = Pipeline::parse(Source::new("p.toml", text), folder, folder, &[]).ok().unwrap();
    let root = folder.join("store");
    let mut writer = Writer::open(&root, "test").unwrap();
    let mut store = Store::load(&root).unwrap();
    let limits = Limits { jobs, memory: None, deadline: None, fail_fast: false, worth: None };
    let report = run(&pipeline, &mut store, &mut writer, limits, &AtomicBool::new(false), &NoEvents).unwrap();
    assert!(report.cells.iter().all(|settled| settled.state == State::Ran));
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    notes.extract_if(.., |note| note.test == name).collect()
}

#[test]
fn no_thread_of_a_cell_ever_works_for_another_cell() {
    let text = "[stages.one]\nuses = \"test/crowd\"\n\
        with = { test = \"TEST\", seed = \"${matrix.seed}\", items = \"${matrix.items}\" }\n\
        matrix = { seed = \"1..12\", items = [3, 17] }\n\
        [stages.two]\nuses = \"test/crowd\"\nthreads = 2\n\
        with = { test = \"TEST\", seed = \"${matrix.seed}\", items = 20 }\nmatrix = { seed = \"101..104\" }\n";
    for jobs in [2, 4] {
        let notes = noted(&format!("crowd {jobs}"), text, jobs);
        assert_eq!(notes.len(), 28);
        for (index, one) in notes.iter().enumerate() {
            let beside =
                notes[index + 1..].iter().filter(|other| one.begin < other.end && other.begin < one.end);
            beside.for_each(|other| assert!(one.threads.is_disjoint(&other.threads), "{one:?} {other:?}"));
            let at_begin = notes.iter().filter(|other| other.begin <= one.begin && one.begin < other.end);
            assert!(at_begin.map(|note| note.cores).sum::<usize>() <= jobs);
            assert!(one.threads.len() <= one.cores);
        }
    }
    assert_eq!(NESTED.load(Ordering::Relaxed), 0);
}

#[test]
fn cells_that_are_ready_share_the_cores_and_one_alone_has_all() {
    let text = "[stages.one]\nuses = \"test/crowd\"\n\
        with = { test = \"TEST\", seed = \"${matrix.seed}\", items = 300 }\nmatrix = { seed = [1, 2, 3] }\n\
        [stages.last]\nuses = \"test/crowd\"\nwith = { test = \"TEST\", seed = 4, items = 1 }\nthreads = 3\n";
    let mut cores: Vec<usize> = noted("shares", text, 7).iter().map(|note| note.cores).collect();
    cores.sort_unstable();
    assert_eq!(cores, [1, 1, 2, 3]);
    let alone = text.split("[stages.last]").next().unwrap().replace("[1, 2, 3]", "[1]");
    assert_eq!(noted("alone", &alone, 7)[0].cores, 7);
}
