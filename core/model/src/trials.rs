//! Measured run times of a program under several mappings.

use std::collections::{BTreeMap, BTreeSet};

use miette::Diagnostic;

use crate::files::FileSet;
use crate::stage::Artifact;

/// Measured runs of a program under several mappings, in the order in which they ran.
#[derive(Debug, Clone, Default)]
pub struct Trials {
    /// The mappings, in the order in which they were given: the first one is the baseline.
    pub mappings: Vec<TrialMapping>,
    /// All runs, those of the warm-up included.
    pub runs: Vec<TrialRun>,
    /// Numbers of runs after which the trial was stopped and its results were shown, in ascending order: who looks at results
    /// several times is wrong more often.
    pub looks: Vec<u32>,
    /// Metrics by name, such as `gain`.
    pub metrics: BTreeMap<String, f64>,
    /// The output of every run, by the number of its row: `0/stdout`, `0/stderr`, and what the program wrote into
    /// its folder.
    pub files: FileSet,
}

/// A mapping that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialMapping {
    /// Its name: that of its cell in the pipeline.
    pub name: String,
    /// Digest of the mapping.
    pub digest: String,
}

/// One run of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRun {
    /// Name of the mapping.
    pub mapping: String,
    /// Number of the block, in which each mapping runs once; `None` for the warm-up.
    pub block: Option<u32>,
    /// Whether the block served to choose the best mapping: it does not count for the gain.
    pub choice: bool,
    /// Run time, if it is known.
    pub seconds: Option<f64>,
    /// Seconds inside MPI, the mean of all ranks, if recorded.
    pub mpi_s: Option<f64>,
    /// How late an emulated network delivered its frames, in seconds.
    pub lateness_s: Option<f64>,
    /// Idle fraction of the processors of the host that started the program.
    pub idle: Option<f64>,
    /// Exit status of the launcher, 128 + the signal that ended it, [`TIMED_OUT`] or [`NOT_PREPARED`]; `None` if the trial was stopped.
    pub exit: Option<u32>,
    /// Whether it ended without an error and its run time is known.
    pub complete: bool,
}

/// Exit status of a run that took longer than allowed, as that of timeout(1).
pub const TIMED_OUT: u32 = 124;
/// Exit status of a run that did not begin, because what prepares it failed, as that of timeout(1) and env(1) themselves.
pub const NOT_PREPARED: u32 = 125;

impl TrialRun {
    /// A run that was not measured.
    #[must_use]
    pub fn without_time(mapping: String, (block, choice): (Option<u32>, bool), exit: Option<u32>) -> Self {
        let (seconds, mpi_s, lateness_s, idle) = (None, None, None, None);
        Self { mapping, block, choice, seconds, mpi_s, lateness_s, idle, exit, complete: false }
    }

    /// Whether it failed: it was not stopped with the trial, but ended with an error, or without a run time.
    #[must_use]
    pub fn failed(&self) -> bool {
        !self.complete && self.exit.is_some()
    }

    /// The run time; infinite if it failed, and `None` if it was stopped with the trial.
    #[must_use]
    pub fn time(&self) -> Option<f64> {
        if self.failed() { Some(f64::INFINITY) } else { self.seconds.filter(|_| self.complete) }
    }
}

impl Trials {
    /// The run times of a mapping, without the warm-up and incomplete runs, in the order in which they were measured.
    #[must_use]
    pub fn seconds(&self, mapping: &str) -> Vec<f64> {
        self.measured(mapping).map(|(_, seconds)| seconds).collect()
    }

    /// The run times of two mappings in the blocks in which both ran, without those of the choice. A run that failed took
    /// infinitely long; blocks in which both failed are left out.
    #[must_use]
    pub fn pairs(&self, first: &str, second: &str) -> Vec<(f64, f64)> {
        self.numbered_pairs(first, second).into_iter().map(|(_, pair)| pair).collect()
    }

    /// The pairs, and the number of runs with which each was complete.
    #[must_use]
    pub fn numbered_pairs(&self, first: &str, second: &str) -> Vec<(usize, (f64, f64))> {
        let fresh = |mapping: &str| -> BTreeMap<u32, (usize, f64)> {
            let own = (1..).zip(&self.runs).filter(|(_, run)| !run.choice && run.mapping == mapping);
            own.filter_map(|(number, run)| Some((run.block?, (number, run.time()?)))).collect()
        };
        let seconds = fresh(second);
        let pair = |(block, (number, time)): (u32, (usize, f64))| {
            let (other_number, other) = *seconds.get(&block)?;
            (time.is_finite() || other.is_finite()).then_some((number.max(other_number), (time, other)))
        };
        fresh(first).into_iter().filter_map(pair).collect()
    }

    /// How many of the measured runs of a mapping failed, and how many of them were not stopped with the trial.
    #[must_use]
    pub fn failed(&self, mapping: &str) -> (usize, usize) {
        let measured = self.runs.iter().filter(|run| run.block.is_some() && run.mapping == mapping);
        let ended = measured.filter(|run| run.time().is_some());
        ended.fold((0, 0), |(failed, all), run| (failed + usize::from(run.failed()), all + 1))
    }

    /// Whether the trial was stopped before its end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.looks.last().is_some_and(|runs| *runs as usize == self.runs.len())
    }

    /// Whether blocks served to choose the best of several mappings.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        self.runs.iter().any(|run| run.choice)
    }

    fn measured(&self, mapping: &str) -> impl Iterator<Item = (&TrialRun, f64)> {
        let runs =
            self.runs.iter().filter(move |run| run.complete && run.block.is_some() && run.mapping == mapping);
        runs.filter_map(|run| Some((run, run.seconds?)))
    }

    /// Checks that the mappings have different names, that each runs at most once in a block, and that values are
    /// in their ranges.
    pub fn check(&self) -> Result<(), TrialsError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.mappings.iter().find(|mapping| !names.insert(mapping.name.as_str())) {
            return Err(TrialsError::SameName(twice.name.clone()));
        }
        let is_time = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
        let mut measured = BTreeSet::new();
        for (row, run) in self.runs.iter().enumerate() {
            let name = run.mapping.as_str();
            let is_valid = names.contains(name)
                && run.block.is_none_or(|block| measured.insert((name, block)))
                && [run.seconds, run.mpi_s, run.lateness_s].into_iter().all(is_time)
                && run.idle.is_none_or(|idle| (0.0..=1.0).contains(&idle))
                && (run.seconds.is_some() || !run.complete);
            if !is_valid {
                return Err(TrialsError::Row(row));
            }
        }
        let are_ascending = self.looks.is_sorted_by(|one, other| one < other);
        match self.looks.last() {
            Some(last) if !are_ascending || *last as usize > self.runs.len() => Err(TrialsError::Looks),
            _ => Ok(()),
        }
    }
}

impl Artifact for Trials {
    const KIND: &'static str = "trials";
}

/// Inconsistent trials.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TrialsError {
    /// Two mappings have one name.
    #[error("two mappings are named `{0}`")]
    #[diagnostic(code(model::trials_name))]
    SameName(String),
    /// A run of an unknown mapping, a second one in its block, or a value out of range.
    #[error("run {0} is of no mapping, the second one of its mapping in its block, or has invalid values")]
    #[diagnostic(code(model::trials_row))]
    Row(usize),
    /// Looks that are not in order, or after more runs than there are.
    #[error("the looks are not numbers of runs in ascending order")]
    #[diagnostic(code(model::trials_looks))]
    Looks,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mapping: &str, block: Option<u32>, seconds: f64) -> TrialRun {
        let (mapping, complete) = (mapping.to_owned(), seconds < 9.0);
        TrialRun {
            mapping,
            block,
            choice: false,
            seconds: Some(seconds),
            mpi_s: None,
            lateness_s: None,
            idle: Some(0.5),
            exit: Some(u32::from(!complete)),
            complete,
        }
    }

    fn trials() -> Trials {
        let mapping = |name: &str| TrialMapping { name: name.into(), digest: "d".into() };
        let runs = vec![
            run("a", None, 5.0),
            run("a", Some(0), 2.0),
            run("b", Some(0), 1.0),
            run("b", Some(1), 1.5),
            run("a", Some(1), 9.0),
            run("b", Some(2), 1.2),
            run("a", Some(2), 2.2),
        ];
        Trials { mappings: vec![mapping("a"), mapping("b")], runs, ..Trials::default() }
    }

    #[test]
    fn pairs_are_complete_runs_of_a_block() {
        let trials = trials();
        trials.check().unwrap();
        assert_eq!(trials.seconds("a"), [2.0, 2.2]);
        assert_eq!(trials.seconds("b"), [1.0, 1.5, 1.2]);
        let failed = (f64::INFINITY, 1.5);
        assert_eq!(trials.pairs("a", "b"), [(2.0, 1.0), failed, (2.2, 1.2)]);
        assert_eq!(trials.numbered_pairs("a", "b").iter().map(|pair| pair.0).collect::<Vec<_>>(), [3, 5, 7]);
        assert_eq!((trials.failed("a"), trials.failed("b")), ((1, 3), (0, 3)));
        // A run that was stopped with the trial did not fail, and blocks in which both failed say nothing.
        let mut stopped = trials.clone();
        stopped.runs[4].exit = None;
        assert_eq!((stopped.pairs("a", "b").len(), stopped.failed("a")), (2, (0, 2)));
        stopped.runs[4].exit = Some(TIMED_OUT);
        stopped.runs[3].complete = false;
        assert_eq!((stopped.pairs("a", "b").len(), stopped.failed("b")), (2, (1, 3)));
        let mut chosen = trials.clone();
        chosen.runs[1..3].iter_mut().for_each(|run| run.choice = true);
        assert_eq!((trials.has_choice(), chosen.has_choice()), (false, true));
        assert_eq!((chosen.pairs("a", "b"), chosen.seconds("a")), (vec![failed, (2.2, 1.2)], vec![2.0, 2.2]));
    }

    #[test]
    fn inconsistencies_are_reported() {
        let broken = |change: fn(&mut Trials)| {
            let mut trials = trials();
            change(&mut trials);
            trials.check().unwrap_err().to_string()
        };
        assert_eq!(broken(|t| t.mappings[1].name = "a".into()), "two mappings are named `a`");
        assert!(broken(|t| t.runs[3].block = Some(0)).starts_with("run 3 is of no mapping"));
        assert!(broken(|t| t.runs[2].mapping = "c".into()).starts_with("run 2"));
        assert!(broken(|t| t.runs[0].idle = Some(1.5)).starts_with("run 0"));
        assert!(broken(|t| t.runs[1].seconds = None).starts_with("run 1"));
        assert!(broken(|t| t.looks = vec![2, 2]).starts_with("the looks"));
        assert!(broken(|t| t.looks = vec![8]).starts_with("the looks"));
        assert!(broken(|t| t.runs[1].mpi_s = Some(f64::NAN)).starts_with("run 1"));
    }
}
