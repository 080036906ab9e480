//! Progress on standard error: bars on a terminal, plain lines elsewhere; how far a run is, and for how long it will go on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::output::Output;
use super::summary::{MOST_LISTED, MOST_SHOWN, state_word};
use crate::engine::{Events, Reason, Settled, State};
use crate::pipeline::{Cell, Pipeline};

/// Lines that say how far a sweep is come this far apart.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// A cell of a sweep gets a bar of its own when it has run for so long.
const WORTH_A_BAR: Duration = Duration::from_millis(500);

/// Shows what happens during a run.
pub(crate) struct Progress {
    output: Output,
    bars: Option<Bars>,
    /// Number of cells of every stage that has more than are listed.
    sweeps: HashMap<String, usize>,
    state: Mutex<RunState>,
}

struct RunState {
    estimate: Estimate,
    /// Cells that run: stage and since when.
    running: HashMap<String, (String, Instant)>,
    /// Failures that were printed, by stage.
    shown: HashMap<String, usize>,
    last_line: Instant,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    running: Mutex<HashMap<String, ProgressBar>>,
}

impl Progress {
    pub(crate) fn new(output: Output, pipeline: &Pipeline, jobs: usize) -> Self {
        let mut sweeps: HashMap<String, usize> = HashMap::new();
        for cell in &pipeline.cells {
            *sweeps.entry(cell.stage.clone()).or_default() += 1;
        }
        sweeps.retain(|_, cells| *cells > MOST_LISTED);
        // So many jobs run side by side in a batch system, whatever there is here.
        let of_job = jobs as f64 / pipeline.batch.jobs as f64;
        let cores = |cell: &Cell| if cell.is_batch() { of_job } else { cell.threads.unwrap_or(1) as f64 };
        let cells = pipeline.cells.iter().map(|cell| (cell.stage.as_str(), cores(cell)));
        let state = RunState {
            estimate: Estimate::new(jobs, cells),
            running: HashMap::new(),
            shown: HashMap::new(),
            last_line: Instant::now(),
        };
        let bars = output.is_interactive().then(|| Bars::new(pipeline.cells.len()));
        Self { output, bars, sweeps, state: Mutex::new(state) }
    }

    /// Clears the bars.
    pub(crate) fn finish(&self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
        }
    }

    fn line(&self, line: &str) {
        match &self.bars {
            // A run does not fail because its terminal cannot be written to.
            Some(bars) => drop(bars.all.println(line)),
            None => self.output.note(line),
        }
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a cell that settled gets a line of its own. What was in the store or never began is summed up at the end, and
    /// so are the cells of a sweep, but for the first that fail.
    fn is_told(&self, cell: &Cell, state: State) -> bool {
        match state {
            State::Cached | State::NotStarted => false,
            _ if !self.sweeps.contains_key(&cell.stage) => true,
            state if is_failure(state) => {
                let mut run = self.state();
                let shown = run.shown.entry(cell.stage.clone()).or_default();
                *shown += 1;
                *shown <= MOST_SHOWN
            }
            _ => false,
        }
    }

    /// Says how far the run is.
    fn show_total(&self) {
        let mut state = self.state();
        match &self.bars {
            Some(bars) => bars.total.set_message(state.line()),
            None if self.sweeps.is_empty() || state.estimate.is_over() => {}
            None if state.last_line.elapsed() < BETWEEN_LINES => {}
            None => {
                state.last_line = Instant::now();
                self.output.note(format!("  {}", state.line()));
            }
        }
    }
}

impl RunState {
    fn line(&self) -> String {
        let running =
            self.running.values().map(|(stage, since)| (stage.as_str(), since.elapsed().as_secs_f64()));
        self.estimate.line(self.estimate.seconds_left(running))
    }
}

impl Bars {
    fn new(cells: usize) -> Self {
        let all = MultiProgress::new();
        let total = all.add(ProgressBar::new(cells as u64));
        total.set_style(style("{wide_bar} {msg}"));
        total.set_message(format!("0/{cells} cells"));
        Self { all, total, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, ProgressBar>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, cell: &Cell) -> ProgressBar {
        let bar = self.all.insert_before(&self.total, ProgressBar::new_spinner());
        bar.set_style(style("  {spinner} {msg} {elapsed}"));
        bar.set_message(cell.name.clone());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

impl Events for Progress {
    fn started(&self, cell: &Cell, _: &[Reason]) {
        self.state().running.insert(cell.id.clone(), (cell.stage.clone(), Instant::now()));
        let Some(bars) = &self.bars else { return };
        if !self.sweeps.contains_key(&cell.stage) {
            let bar = bars.begin(cell);
            bars.running().insert(cell.id.clone(), bar);
        }
    }

    fn progress(&self, cell: &Cell, done: u64, total: u64) {
        let Some(bars) = &self.bars else { return };
        let since = self.state().running.get(&cell.id).map(|(_, since)| since.elapsed());
        let mut running = bars.running();
        if !running.contains_key(&cell.id) && since.is_some_and(|since| since >= WORTH_A_BAR) {
            running.insert(cell.id.clone(), bars.begin(cell));
        }
        let Some(bar) = running.get(&cell.id) else { return };
        if total > 0 && bar.length() != Some(total) {
            bar.set_length(total);
            bar.set_style(style("  {spinner} {msg} {wide_bar} {percent}% {eta}"));
        }
        bar.set_position(done);
    }

    fn log(&self, cell: &Cell, line: &str) {
        // It is in the log of the cell; a thousand of them would bury everything else.
        if !self.sweeps.contains_key(&cell.stage) {
            self.line(&format!("  {}: {line}", cell.name));
        }
    }

    fn settled(&self, cell: &Cell, settled: &Settled) {
        if let Some(bars) = &self.bars {
            if let Some(bar) = bars.running().remove(&cell.id) {
                bar.finish_and_clear();
            }
            bars.total.inc(1);
        }
        {
            let mut state = self.state();
            state.running.remove(&cell.id);
            state.estimate.complete(&cell.stage, settled.state, settled.seconds);
        }
        if self.is_told(cell, settled.state) {
            let seconds = match settled.state {
                State::Blocked => String::new(),
                _ => format!("  {:.2} s", settled.seconds),
            };
            self.line(&format!("  {:<10} {}{seconds}", state_word(settled.state), cell.name));
        }
        self.show_total();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Cells that have settled and those that are left, by stage.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    jobs: f64,
    total: usize,
    settled: usize,
    failed: usize,
    stages: HashMap<String, StageEstimate>,
}

#[derive(Debug, Default)]
struct StageEstimate {
    left: usize,
    /// Cores that a cell takes.
    cores: f64,
    /// Cells that ran, and how many seconds.
    ran: usize,
    seconds: f64,
}

impl StageEstimate {
    fn mean(&self) -> Option<f64> {
        (self.ran > 0).then(|| self.seconds / self.ran as f64)
    }
}

impl Estimate {
    /// Nothing has run yet. `cells` are the stage and the cores of each cell.
    pub(crate) fn new<'a, C: Into<f64>>(jobs: usize, cells: impl IntoIterator<Item = (&'a str, C)>) -> Self {
        let mut estimate = Self { jobs: jobs as f64, ..Self::default() };
        for (stage, cores) in cells {
            estimate.total += 1;
            let stage = estimate.stages.entry(stage.to_owned()).or_default();
            stage.left += 1;
            stage.cores = cores.into().min(jobs as f64);
        }
        estimate
    }

    /// A cell has settled.
    pub(crate) fn complete(&mut self, name: &str, state: State, seconds: f64) {
        self.settled += 1;
        self.failed += usize::from(is_failure(state));
        if let Some(stage) = self.stages.get_mut(name) {
            stage.left = stage.left.saturating_sub(1);
            if !matches!(state, State::Cached | State::Blocked | State::NotWorthIt | State::NotStarted) {
                stage.ran += 1;
                stage.seconds += seconds;
            }
        }
    }

    /// Seconds until the end, if cells go on taking as long as those of their stage that ran; those of a stage of which none
    /// ran take as long as all others. `running` are the stages of the cells that run and for how many seconds they have.
    /// `None` before anything ran.
    pub(crate) fn seconds_left<'a>(&self, running: impl IntoIterator<Item = (&'a str, f64)>) -> Option<f64> {
        let ran: usize = self.stages.values().map(|stage| stage.ran).sum();
        let seconds: f64 = self.stages.values().map(|stage| stage.seconds).sum();
        if ran == 0 {
            return None;
        }
        let mean = |stage: &StageEstimate| stage.mean().unwrap_or(seconds / ran as f64);
        let waiting = self.stages.values().filter(|stage| stage.left > 0);
        let mut longest = waiting.clone().map(mean).fold(0.0, f64::max);
        let mut work: f64 = waiting.map(|stage| stage.left as f64 * mean(stage) * stage.cores).sum();
        let mut running_cells: HashMap<&str, usize> = HashMap::new();
        let mut longest_running: f64 = 0.0;
        for (name, since) in running {
            let Some(stage) = self.stages.get(name) else { continue };
            *running_cells.entry(name).or_default() += 1;
            longest_running = longest_running.max(mean(stage) - since);
            work -= since.min(mean(stage)) * stage.cores;
        }
        // Where every cell that is left runs already, the last of them is the end.
        let count = |name: &String| running_cells.get(name.as_str()).copied().unwrap_or(0);
        if self.stages.iter().all(|(name, stage)| count(name) >= stage.left) {
            longest = longest_running;
        }
        Some((work / self.jobs).max(longest).max(0.0))
    }

    /// Whether every cell has settled.
    pub(crate) fn is_over(&self) -> bool {
        self.settled >= self.total
    }

    /// The run in one line: `37/200 cells, 2 failed, 1 min 20 s left`.
    pub(crate) fn line(&self, seconds_left: Option<f64>) -> String {
        let mut line = format!("{}/{} cells", self.settled, self.total);
        if self.failed > 0 {
            line.push_str(&format!(", {} failed", self.failed));
        }
        if let Some(seconds) = seconds_left.filter(|_| !self.is_over()) {
            line.push_str(&format!(", {} left", spoken(seconds)));
        }
        line
    }
}

/// Whether a cell ended without what it was to give.
pub(crate) fn is_failure(state: State) -> bool {
    matches!(state, State::Failed | State::Infeasible)
}

/// A time as people say it: its two largest units.
fn spoken(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(estimate: &Estimate, running: &[(&'static str, f64)]) -> Option<f64> {
        estimate.seconds_left(running.iter().copied())
    }

    #[test]
    fn time_left_is_what_cells_of_the_same_stage_took() {
        let cells = [("a", 1); 10].into_iter().chain([("b", 1); 10]);
        let mut estimate = Estimate::new(2, cells);
        assert_eq!(left(&estimate, &[]), None);
        estimate.complete("a", State::Ran, 2.0);
        // Nobody knows of `b` yet: 9 cells of `a` and 10 of `b` at 2 s on two cores.
        assert_eq!(left(&estimate, &[]), Some(19.0));
        estimate.complete("b", State::Ran, 10.0);
        assert_eq!(left(&estimate, &[]), Some(f64::midpoint(9.0 * 2.0, 9.0 * 10.0)));
        assert_eq!(left(&estimate, &[("b", 4.0)]), Some((9.0 * 2.0 + 9.0 * 10.0 - 4.0) / 2.0));
    }

    #[test]
    fn cells_from_the_store_say_nothing_about_time() {
        let mut estimate = Estimate::new(1, [("a", 1); 4]);
        estimate.complete("a", State::Cached, 0.0);
        assert_eq!(left(&estimate, &[]), None);
        estimate.complete("a", State::Ran, 3.0);
        assert_eq!(left(&estimate, &[]), Some(6.0));
    }

    #[test]
    fn the_last_cells_take_as_long_as_the_longest_of_them() {
        let mut estimate = Estimate::new(8, [("a", 1); 3]);
        estimate.complete("a", State::Ran, 10.0);
        // Two are left for eight cores.
        assert_eq!(left(&estimate, &[]), Some(10.0));
        assert_eq!(left(&estimate, &[("a", 9.0), ("a", 4.0)]), Some(6.0));
        assert_eq!(left(&estimate, &[("a", 90.0), ("a", 40.0)]), Some(0.0));
    }

    #[test]
    fn a_cell_with_many_cores_keeps_others_away() {
        let mut estimate = Estimate::new(4, [("wide", 8); 3]);
        estimate.complete("wide", State::Ran, 10.0);
        assert_eq!(left(&estimate, &[]), Some(20.0));
    }

    #[test]
    fn a_run_is_told_in_one_line() {
        let mut estimate = Estimate::new(1, [("a", 1); 4]);
        assert_eq!(estimate.line(None), "0/4 cells");
        estimate.complete("a", State::Ran, 1.0);
        estimate.complete("a", State::Failed, 1.0);
        assert_eq!(estimate.line(Some(79.2)), "2/4 cells, 1 failed, 1 min 20 s left");
        estimate.complete("a", State::Infeasible, 1.0);
        estimate.complete("a", State::Blocked, 1.0);
        assert_eq!(estimate.line(Some(0.0)), "4/4 cells, 2 failed");
    }

    #[test]
    fn times_have_two_units() {
        assert_eq!(
            [0.2, 59.0, 60.0, 3599.0, 7500.0].map(spoken),
            ["1 s", "59 s", "1 min 0 s", "59 min 59 s", "2 h 5 min"]
        );
    }
}
