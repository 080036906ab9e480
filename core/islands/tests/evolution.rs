//! Island searches: results do not depend on processes, threads and interruptions.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::Climb;
use hopmap_islands::{Budget, Candidate, Counts, Evolution, Exchange, Island, Meter, SearchResult};
use hopmap_model::{Context, Error};
use hopmap_test_support::{Impatient, on_processes};
use proptest::prelude::*;

fn run(climb: &Climb, budget: &Budget, cx: &Context<'_>) -> SearchResult<u64> {
    budget.evolve(climb, 1000, cx).expect("a search")
}

fn summary(found: &SearchResult<u64>) -> (i64, u64, u64, Vec<(u32, u64, i64)>) {
    let points = found.convergence.iter().map(|point| (point.island, point.evaluations, point.cost));
    (found.best.cost, found.best.solution, found.evaluations, points.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_number_of_processes_gives_the_same(
        islands in 1_u32..9,
        processes in 1_u32..7,
        exchange in prop::sample::select(vec![Exchange::Nobody, Exchange::Ring, Exchange::Best, Exchange::Everybody]),
        evaluations in 1_u64..2000,
    ) {
        let climb = Climb { exchange };
        let budget = Budget::new(Some(evaluations), None, islands).unwrap();
        let alone = summary(&run(&climb, &budget, &Context::detached()));
        for found in on_processes(processes, |cx| run(&climb, &budget, &cx)) {
            prop_assert_eq!(&summary(&found), &alone);
        }
    }
}

/// Times that a solution was sent.
static SENT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, serde::Deserialize)]
struct Large(u32);

impl serde::Serialize for Large {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SENT.fetch_add(1, Ordering::Relaxed);
        serializer.serialize_newtype_struct("Large", &self.0)
    }
}

/// Once every island sent its solution to all processes at the end, too much for one message with a million
/// ranks.
#[test]
fn only_the_winner_sends_its_solution() {
    let budget = Budget::new(Some(1), None, 8).unwrap();
    let search = |island: u32, meter: Meter<'_>| {
        let best = Candidate { cost: i64::from(island).abs_diff(5).cast_signed(), solution: Large(island) };
        let (convergence, counts) = (Vec::new(), Counts::new());
        Ok::<_, Error>(Island { best, evaluations: meter.spent(), convergence, interrupted: false, counts })
    };
    for found in on_processes(4, |cx| budget.search(1, &cx, search).unwrap()) {
        assert_eq!((found.best.cost, found.best.solution.0), (0, 5));
    }
    assert_eq!(SENT.load(Ordering::Relaxed), 1);
}

/// Once a curve had at most one point per epoch, and seemed to fall only when one ended.
#[test]
fn improvements_within_an_epoch_are_recorded() {
    let climb = Climb { exchange: Exchange::Nobody };
    let found = run(&climb, &Budget::new(Some(100), None, 2).unwrap(), &Context::detached());
    for island in 0..2 {
        let points: Vec<_> = found.convergence.iter().filter(|point| point.island == island).collect();
        assert_eq!(points[0].evaluations, 0);
        assert!(points.len() > 2 && points[1].evaluations < 100, "{points:?}");
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].evaluations < pair[1].evaluations && pair[0].cost > pair[1].cost)
        );
    }
}

fn stopped(climb: &Climb, budget: &Budget, patience: u64, file: &Path) -> SearchResult<u64> {
    let observer = Impatient::new(patience);
    run(climb, budget, &Context::new(1, None, &observer).with_state(file))
}

#[test]
fn a_stopped_search_resumes_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let climb = Climb { exchange: Exchange::Ring };
    let budget = Budget::new(Some(40_000), None, 3).unwrap();
    let uninterrupted = summary(&run(&climb, &budget, &Context::detached()));
    let first = stopped(&climb, &budget, 9, &file);
    assert!(!first.complete && file.exists());
    assert!(first.evaluations < uninterrupted.2);
    let second = run(&climb, &budget, &Context::detached().with_state(&file));
    assert!(second.complete);
    assert_eq!(summary(&second), uninterrupted);
}

/// Once a state that could not be saved ended the search.
#[test]
fn a_search_goes_on_without_a_state_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let climb = Climb { exchange: Exchange::Ring };
    let budget = Budget::new(Some(40_000), None, 3).unwrap();
    let found = stopped(&climb, &budget, 9, &folder.path().join("missing").join("state"));
    assert!(!found.complete && found.evaluations > 0);
}

#[test]
fn a_damaged_state_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let climb = Climb { exchange: Exchange::Best };
    let budget = Budget::new(Some(500), None, 2).unwrap();
    let uninterrupted = summary(&run(&climb, &budget, &Context::detached()));
    for text in ["", "{", "{\"epoch\":1,\"seconds\":0.0,\"islands\":[]}"] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(summary(&run(&climb, &budget, &Context::detached().with_state(&file))), uninterrupted);
    }
}

#[test]
fn a_time_limit_ends_the_search() {
    let budget = Budget::new(None, Some(0.05), 3).unwrap();
    let found = run(&Climb { exchange: Exchange::Ring }, &budget, &Context::detached());
    assert!(found.complete && found.evaluations > 0);
}

/// Counts the epochs of each island; an epoch takes a millisecond.
struct Ticks([AtomicU64; 4]);

impl Evolution for Ticks {
    type Island = u32;
    type Solution = u64;
    const FINISH_SHARE: f64 = 0.2;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<u32, Error> {
        Ok(island)
    }

    fn advance(&self, island: &mut u32, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        std::thread::sleep(Duration::from_millis(1));
        self.0[*island as usize].fetch_add(1, Ordering::Relaxed);
        meter.look();
        Ok(true)
    }

    fn best(&self, _: &u32) -> Candidate<u64> {
        Candidate { cost: 0, solution: 0 }
    }

    fn finish(&self, _: &mut u32, meter: &mut Meter<'_>) -> Result<(), Error> {
        meter.begin_descent();
        while meter.look() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[test]
fn islands_on_one_thread_share_the_time_limit() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (threads, file) in [(1, false), (2, false), (2, true)] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let cx = Context::detached().with_threads(threads);
        let cx = if file { cx.with_state(&state) } else { cx };
        let ticks = Ticks(Default::default());
        let budget = Budget::new(None, Some(0.4), 4).unwrap();
        pool.install(|| budget.evolve(&ticks, 1, &cx)).unwrap();
        let ticks = ticks.0.map(AtomicU64::into_inner);
        let (fewest, most) = (ticks.iter().min().unwrap(), ticks.iter().max().unwrap());
        assert!(3 * fewest >= *most, "{ticks:?} on {threads} threads");
    }
}

#[test]
fn processes_with_unexpected_messages_are_named() {
    struct Babel;
    impl hopmap_model::Communicator for Babel {
        fn process(&self) -> u32 {
            0
        }
        fn processes(&self) -> u32 {
            2
        }
        fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, hopmap_model::Error> {
            Ok(bytes)
        }
        fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, hopmap_model::Error> {
            Ok(vec![bytes, b"what?".to_vec()])
        }
    }
    let budget = Budget::new(Some(10), None, 2).unwrap();
    let cx = Context::detached().with_communicator(&Babel);
    let error = budget.evolve(&Climb { exchange: Exchange::Best }, 10, &cx).unwrap_err();
    assert!(error.to_string().starts_with("unexpected message from process 1"), "{error}");
    assert!(Budget::new(Some(1), None, 0).is_err());
}
