//! What a run may use: cores, memory, and time. Each cell has threads of its own, and none of them ever works for another cell. The time
//! until the deadline is shared with what runs behind a cell, and with cells that wait for the same cores.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::record::{PipelineId, ResultRecord};
use super::store::Store;
use crate::pipeline::{Cell, Pipeline};

/// What a run may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Cores in all.
    pub(crate) jobs: usize,
    /// Bytes of memory in all; `None` if that is not known.
    pub(crate) memory: Option<u64>,
    /// When the stages deliver what they have.
    pub(crate) deadline: Option<Instant>,
    /// Whether the first failure stops everything that has not started.
    pub(crate) fail_fast: bool,
    /// Least gain for which placements are searched, as a fraction of the run time.
    pub(crate) worth: Option<f64>,
}

/// What a run may use, and what its cells have of it.
pub(super) struct Resources {
    pub(super) limits: Limits,
    pub(super) used_cores: usize,
    pub(super) used_memory: u64,
    /// Jobs that are in the queue of a batch system, or run there.
    pub(super) jobs: usize,
}

impl Resources {
    /// Whether a cell can begin now; one that is too large for this machine runs alone.
    pub(super) fn have_room(&self, cores: usize, memory: u64) -> bool {
        let has_memory = self.limits.memory.is_none_or(|there| self.used_memory + memory <= there);
        self.used_cores == 0 || (self.used_cores + cores <= self.limits.jobs && has_memory)
    }
}

/// A stage that never ended here and is not a search is assumed to need this part of the time in all.
const UNKNOWN: f64 = 0.05;
/// The same of a stage that runs experiments, which all the others serve.
const SHARE_OF_EXPERIMENTS: f64 = 0.75;
/// The least part of the time left that a stage gets which fails where its time is too short. Experiments behind it end earlier.
const LEAST: f64 = 0.5;
/// Seconds, and at most a part of the time left, by which a search may be late without taking them from what runs behind it.
const LATE_ALLOWANCE: (f64, f64) = (0.2, 0.1);
/// A cell that took less than this part of the time left when it last ran does not count among those that wait for cores.
const QUICK_SHARE: f64 = 0.05;

/// What a deadline leaves to experiments that never ran here.
pub(crate) fn time_of_experiments(left: Duration) -> f64 {
    SHARE_OF_EXPERIMENTS * left.as_secs_f64()
}

/// When a run has to end, and what that leaves to every cell.
pub(super) struct Deadline {
    end: Instant,
    /// Seconds that a cell took when it last ended.
    took: Vec<Option<f64>>,
    downstream: Vec<DownstreamWork>,
    /// Whether a cell has no result before it ends: it is neither a search nor an experiment.
    indivisible: Vec<bool>,
}

/// What has to run after a cell, along the longest path.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct DownstreamWork {
    /// Seconds that it is likely to take, apart from the searches.
    seconds: f64,
    /// Searches that never ended here: they take what they are given.
    searches: u32,
    cells: u32,
}

impl Deadline {
    pub(super) fn new(end: Instant, pipeline: &Pipeline, store: &Store, dependents: &[Vec<usize>]) -> Self {
        let time = end.saturating_duration_since(Instant::now());
        let identity = PipelineId::of(pipeline, store.root());
        let last = |id: &str| store.result(store.current(&identity, id)?).and_then(seconds);
        let took: Vec<Option<f64>> = pipeline.cells.iter().map(|cell| last(&cell.id)).collect();
        let share = |cell: &Cell| match () {
            () if cell.entry.distributed => None,
            () if cell.entry.experiments => Some(SHARE_OF_EXPERIMENTS),
            () => Some(UNKNOWN),
        };
        let shares: Vec<Option<f64>> = pipeline.cells.iter().map(share).collect();
        let downstream = downstream_work(dependents, &took, &shares, time.as_secs_f64());
        let whole = |cell: &Cell| !cell.entry.distributed && !cell.entry.experiments;
        let indivisible = pipeline.cells.iter().map(whole).collect();
        Self { end, took, downstream, indivisible }
    }

    /// When a cell that starts now has to deliver. `busy` is until when other cells have a core each, `waiting` how many cores
    /// are wanted by cells that wait, this one included.
    pub(super) fn of(
        &self,
        cell: usize,
        is_live: bool,
        jobs: usize,
        busy: &[Instant],
        waiting: usize,
    ) -> Instant {
        let now = Instant::now();
        let all = self.end.saturating_duration_since(now).as_secs_f64();
        let left = self.downstream[cell].leaves(all);
        let busy = busy.iter().map(|until| until.saturating_duration_since(now).as_secs_f64());
        let least = match self.indivisible[cell] {
            // It waits for another program, as the check of a launcher does, and fails for lack of time only where none is left.
            true if is_live => all,
            true => LEAST * all,
            false => 0.0,
        };
        let time = share(left, jobs, &busy.collect::<Vec<f64>>(), waiting).max(least);
        now + Duration::from_secs_f64(time)
    }

    /// Whether a cell is known to take next to nothing of the time left.
    pub(super) fn is_quick(&self, cell: usize) -> bool {
        let left = self.end.saturating_duration_since(Instant::now()).as_secs_f64();
        self.took[cell].is_some_and(|seconds| seconds < QUICK_SHARE * left)
    }
}

fn seconds(result: &ResultRecord) -> Option<f64> {
    result.seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}

/// What has to run after each cell; cells come after those that they need. `shares` are the parts of the time that cells need which
/// never ended here, none for a search.
fn downstream_work(
    dependents: &[Vec<usize>],
    took: &[Option<f64>],
    shares: &[Option<f64>],
    time: f64,
) -> Vec<DownstreamWork> {
    let mut downstream = vec![DownstreamWork::default(); dependents.len()];
    for cell in (0..dependents.len()).rev() {
        let paths =
            dependents[cell].iter().map(|&next| downstream[next].after(took[next], shares[next], time));
        let length = |path: &DownstreamWork| path.seconds + f64::from(path.searches) * time;
        downstream[cell] =
            paths.max_by(|one, other| length(one).total_cmp(&length(other))).unwrap_or_default();
    }
    downstream
}

impl DownstreamWork {
    /// The same with one more cell before it.
    fn after(self, took: Option<f64>, share: Option<f64>, time: f64) -> Self {
        let searches = u32::from(share.is_none() && took.is_none());
        Self {
            seconds: self.seconds + took.unwrap_or(share.unwrap_or_default() * time),
            searches: self.searches + searches,
            cells: self.cells + 1,
        }
    }

    /// What all this leaves to the cell before it: never less than an equal share.
    fn leaves(self, left: f64) -> f64 {
        if self.cells == 0 {
            return left;
        }
        let late = LATE_ALLOWANCE.0.min(LATE_ALLOWANCE.1 * left);
        let rest = (left - self.seconds - late) / f64::from(self.searches + 1);
        rest.max(left / f64::from(self.cells + 1))
    }
}

/// The most time that each of a number of waiting cells can have, one core each, where every cell that runs now ends when it has to.
fn share(left: f64, jobs: usize, busy: &[f64], waiting: usize) -> f64 {
    let free = jobs.saturating_sub(busy.len());
    let open: Vec<f64> = busy.iter().map(|until| (left - until).max(0.0)).collect();
    let fit = |time: f64| {
        let turns = |open: f64| (open / time + 1e-9).floor();
        turns(left) * free as f64 + open.iter().map(|&open| turns(open)).sum::<f64>()
    };
    let (mut enough, mut too_much) = (0.0, left);
    if left <= 0.0 || fit(left) >= waiting as f64 {
        return left.max(0.0);
    }
    for _ in 0..50 {
        let middle = f64::midpoint(enough, too_much);
        if fit(middle) >= waiting as f64 { enough = middle } else { too_much = middle }
    }
    enough
}

/// Bytes of memory that processes here may use: those of the machine, or of the control group we are in if it has a limit.
pub(crate) fn memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits(Path::new("/sys/fs/cgroup"), line));
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| in_all(&text));
    limits.chain(machine).min()
}

/// `MemTotal` of /proc/meminfo in bytes.
fn in_all(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The limits of a control group and of those it is in; `line` is one of /proc/self/cgroup: `0::/a/b`, or `4:memory:/a/b`.
fn limits(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (top, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = top.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&top));
    let limit = |group: &Path| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    groups.filter_map(limit).collect()
}

/// Pools of threads that no cell has now. One is used again by the next cell that is given as many cores.
#[derive(Default)]
pub(super) struct Cores {
    idle: Mutex<Vec<ThreadPool>>,
}

impl Cores {
    /// Does some work in a pool of exactly that many threads, which no other cell uses meanwhile. The thread that calls waits.
    pub(super) fn lend<R: Send>(
        &self,
        threads: usize,
        work: impl FnOnce() -> R + Send,
    ) -> Result<R, ThreadPoolBuildError> {
        let pool = match self.take(threads) {
            Some(pool) => pool,
            None => ThreadPoolBuilder::new().num_threads(threads).build()?,
        };
        let result = pool.install(work);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(pool);
        Ok(result)
    }

    /// An idle pool of that size. Where there is none the others go, so that there are never many threads that do nothing.
    fn take(&self, threads: usize) -> Option<ThreadPool> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = idle.iter().position(|pool| pool.current_num_threads() == threads);
        match fits {
            Some(index) => Some(idle.swap_remove(index)),
            None => {
                idle.clear();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Option<f64> = Some(UNKNOWN);

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6
    }

    #[test]
    fn a_search_gets_all_but_what_the_stages_behind_it_took() {
        // A search, then two stages side by side, then one that needs both.
        let dependents = [vec![1, 2], vec![3], vec![3], vec![]];
        let took = [None, Some(1.0), Some(3.0), Some(0.5)];
        let all = downstream_work(&dependents, &took, &[None, OTHER, OTHER, OTHER], 100.0);
        assert!(close(all[0].leaves(100.0), 96.3));
        assert!(close(all[0].leaves(90.0), 86.3));
        // Where there is not enough for all, an equal share.
        assert!(close(all[0].leaves(3.0), 1.0));
        assert!(close(all[3].leaves(3.0), 3.0));
    }

    #[test]
    fn what_never_ran_counts_a_little_and_a_search_as_much_as_the_one_before() {
        let dependents = [vec![1], vec![2], vec![]];
        let searches = downstream_work(&dependents, &[None; 3], &[None, None, OTHER], 100.0);
        assert!(close(searches[0].leaves(100.0), 47.4));
        assert!(close(searches[1].leaves(100.0), 94.8));
        assert!(close(searches[2].leaves(100.0), 100.0));
        // An experiment behind a search takes nearly all.
        let experiment =
            downstream_work(&dependents, &[None; 3], &[None, Some(SHARE_OF_EXPERIMENTS), OTHER], 100.0);
        assert!(close(experiment[0].leaves(100.0), 100.0 / 3.0) && close(experiment[1].leaves(70.0), 64.8));
    }

    /// A bound had 5 s of 100 before a trial, and its end before that ended the run; a launcher had 50 s for its check, which
    /// then counted as disobeying.
    #[test]
    fn a_stage_that_is_no_search_has_half_of_the_time_left_and_a_live_one_all() {
        let deadline = |indivisible| Deadline {
            end: Instant::now() + Duration::from_secs(100),
            took: vec![None; 2],
            downstream: vec![DownstreamWork { seconds: 80.0, searches: 0, cells: 1 }],
            indivisible: vec![indivisible],
        };
        let seconds = |deadline: Deadline, is_live| {
            let end = deadline.of(0, is_live, 1, &[], 4);
            end.saturating_duration_since(Instant::now()).as_secs_f64().round()
        };
        assert!(close(seconds(deadline(true), false), 50.0) && seconds(deadline(false), false) < 20.0);
        assert!(close(seconds(deadline(true), true), 100.0) && seconds(deadline(false), true) < 20.0);
    }

    #[test]
    fn cells_that_wait_for_the_same_cores_all_get_as_much() {
        assert!(close(share(10.0, 2, &[], 8), 2.5));
        // The other one of the first two, and those that follow them.
        assert!(close(share(10.0, 2, &[2.5], 7), 2.5));
        assert!(close(share(7.5, 2, &[0.0], 6), 2.5));
        assert!(close(share(2.5, 2, &[2.5], 1), 2.5));
        assert!(close(share(10.0, 2, &[], 3), 5.0));
        assert!(close(share(10.0, 4, &[10.0, 10.0, 10.0], 2), 5.0));
        assert!(close(share(0.0, 2, &[], 8), 0.0));
    }

    #[test]
    fn the_memory_of_this_machine_is_known() {
        assert!(memory().unwrap() > 1 << 20);
        assert_eq!(in_all("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16384 * 1024));
    }

    #[test]
    fn every_control_group_around_us_may_have_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("slice/job")).unwrap();
        fs::create_dir_all(root.join("memory/slice")).unwrap();
        fs::write(root.join("slice/memory.max"), "4096\n").unwrap();
        fs::write(root.join("slice/job/memory.max"), "max\n").unwrap();
        fs::write(root.join("memory/slice/memory.limit_in_bytes"), "8192\n").unwrap();
        assert_eq!(limits(root, "0::/slice/job"), [4096]);
        assert_eq!(limits(root, "4:cpu,memory:/slice"), [8192]);
        assert_eq!(limits(root, "5:cpu:/slice"), [] as [u64; 0]);
        assert_eq!(limits(root, "nonsense"), [] as [u64; 0]);
    }
}
