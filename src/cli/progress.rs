//! Progress on standard error: bars on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::output::Output;
use super::summary::state_word;
use crate::engine::{Events, Reason, Settled, State};
use crate::pipeline::Cell;

/// Shows what happens during a run.
pub(crate) struct Progress {
    output: Output,
    bars: Option<Bars>,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    running: Mutex<HashMap<String, ProgressBar>>,
}

impl Progress {
    pub(crate) fn new(output: Output, cells: usize) -> Self {
        Self { output, bars: output.is_interactive().then(|| Bars::new(cells)) }
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
}

impl Bars {
    fn new(cells: usize) -> Self {
        let all = MultiProgress::new();
        let total = all.add(ProgressBar::new(cells as u64));
        total.set_style(style("{pos}/{len} stages {wide_bar} {elapsed}"));
        Self { all, total, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, ProgressBar>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events for Progress {
    fn started(&self, cell: &Cell, _: &[Reason]) {
        let Some(bars) = &self.bars else { return };
        let bar = bars.all.insert_before(&bars.total, ProgressBar::new_spinner());
        bar.set_style(style("  {spinner} {msg} {elapsed}"));
        bar.set_message(cell.id.clone());
        bar.enable_steady_tick(Duration::from_millis(120));
        bars.running().insert(cell.id.clone(), bar);
    }

    fn progress(&self, cell: &Cell, done: u64, total: u64) {
        let Some(bars) = &self.bars else { return };
        let running = bars.running();
        let Some(bar) = running.get(&cell.id) else { return };
        if total > 0 && bar.length() != Some(total) {
            bar.set_length(total);
            bar.set_style(style("  {spinner} {msg} {wide_bar} {percent}% {eta}"));
        }
        bar.set_position(done);
    }

    fn log(&self, cell: &Cell, line: &str) {
        self.line(&format!("  {}: {line}", cell.id));
    }

    fn settled(&self, cell: &Cell, settled: &Settled, _: usize) {
        if let Some(bars) = &self.bars {
            if let Some(bar) = bars.running().remove(&cell.id) {
                bar.finish_and_clear();
            }
            bars.total.inc(1);
        }
        // What was in the store or never began is summed up at the end.
        if !matches!(settled.state, State::Cached | State::NotStarted) {
            let seconds = match settled.state {
                State::Blocked => String::new(),
                _ => format!("  {:.2} s", settled.seconds),
            };
            self.line(&format!("  {:<10} {}{seconds}", state_word(settled.state), cell.id));
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
