//! How far a run is, and for how long it will go on.

use std::collections::HashMap;

use crate::engine::State;

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
    pub(crate) fn settle(&mut self, name: &str, state: State, seconds: f64) {
        self.settled += 1;
        self.failed += usize::from(is_failure(state));
        if let Some(stage) = self.stages.get_mut(name) {
            stage.left = stage.left.saturating_sub(1);
            if !matches!(state, State::Cached | State::Blocked | State::NotStarted) {
                stage.ran += 1;
                stage.seconds += seconds;
            }
        }
    }

    /// Seconds until the end, if cells go on taking as long as those of their stage that ran; those of a stage of which none
    /// ran take as long as all others. `running` are the stages of the cells that run and for how many seconds they have.
    /// `None` before anything ran.
    pub(crate) fn seconds_left<'a>(&self, running: impl IntoIterator<Item = (&'a str, f64)>) -> Option<f64> {
        let (ran, seconds) = self
            .stages
            .values()
            .fold((0, 0.0), |(ran, seconds), stage| (ran + stage.ran, seconds + stage.seconds));
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
        if self
            .stages
            .iter()
            .all(|(name, stage)| running_cells.get(name.as_str()).copied().unwrap_or(0) >= stage.left)
        {
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
        estimate.settle("a", State::Ran, 2.0);
        // Nobody knows of `b` yet: 9 cells of `a` and 10 of `b` at 2 s on two cores.
        assert_eq!(left(&estimate, &[]), Some(19.0));
        estimate.settle("b", State::Ran, 10.0);
        assert_eq!(left(&estimate, &[]), Some(f64::midpoint(9.0 * 2.0, 9.0 * 10.0)));
        assert_eq!(left(&estimate, &[("b", 4.0)]), Some((9.0 * 2.0 + 9.0 * 10.0 - 4.0) / 2.0));
    }

    #[test]
    fn cells_from_the_store_say_nothing_about_time() {
        let mut estimate = Estimate::new(1, [("a", 1); 4]);
        estimate.settle("a", State::Cached, 0.0);
        assert_eq!(left(&estimate, &[]), None);
        estimate.settle("a", State::Ran, 3.0);
        assert_eq!(left(&estimate, &[]), Some(6.0));
    }

    #[test]
    fn the_last_cells_take_as_long_as_the_longest_of_them() {
        let mut estimate = Estimate::new(8, [("a", 1); 3]);
        estimate.settle("a", State::Ran, 10.0);
        // Two are left for eight cores.
        assert_eq!(left(&estimate, &[]), Some(10.0));
        assert_eq!(left(&estimate, &[("a", 9.0), ("a", 4.0)]), Some(6.0));
        assert_eq!(left(&estimate, &[("a", 90.0), ("a", 40.0)]), Some(0.0));
    }

    #[test]
    fn a_cell_with_many_cores_keeps_others_away() {
        let mut estimate = Estimate::new(4, [("wide", 8); 3]);
        estimate.settle("wide", State::Ran, 10.0);
        assert_eq!(left(&estimate, &[]), Some(20.0));
    }

    #[test]
    fn a_run_is_told_in_one_line() {
        let mut estimate = Estimate::new(1, [("a", 1); 4]);
        assert_eq!(estimate.line(None), "0/4 cells");
        estimate.settle("a", State::Ran, 1.0);
        estimate.settle("a", State::Failed, 1.0);
        assert_eq!(estimate.line(Some(79.2)), "2/4 cells, 1 failed, 1 min 20 s left");
        estimate.settle("a", State::Infeasible, 1.0);
        estimate.settle("a", State::Blocked, 1.0);
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
