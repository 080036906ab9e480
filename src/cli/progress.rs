//! Progress on standard error: bars on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::estimate::{Estimate, is_failure};
use super::output::Output;
use super::summary::{MOST_LISTED, MOST_TOLD, state_word};
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
    /// Failures that were told, by stage.
    told: HashMap<String, usize>,
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
            told: HashMap::new(),
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
            // A terminal that cannot be written to is no reason to fail a run.
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
                let told = run.told.entry(cell.stage.clone()).or_default();
                *told += 1;
                *told <= MOST_TOLD
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
        bar.set_message(cell.id.clone());
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
            self.line(&format!("  {}: {line}", cell.id));
        }
    }

    fn settled(&self, cell: &Cell, settled: &Settled, _: usize) {
        if let Some(bars) = &self.bars {
            if let Some(bar) = bars.running().remove(&cell.id) {
                bar.finish_and_clear();
            }
            bars.total.inc(1);
        }
        {
            let mut state = self.state();
            state.running.remove(&cell.id);
            state.estimate.settle(&cell.stage, settled.state, settled.seconds);
        }
        if self.is_told(cell, settled.state) {
            let seconds = match settled.state {
                State::Blocked => String::new(),
                _ => format!("  {:.2} s", settled.seconds),
            };
            self.line(&format!("  {:<10} {}{seconds}", state_word(settled.state), cell.id));
        }
        self.show_total();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
