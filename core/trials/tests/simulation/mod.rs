//! Simulated trials, with the decisions of `run/trial`.

use hopmap_model::{TIMED_OUT, TrialMapping, TrialRun, Trials};
use hopmap_random::{Draw, Pcg64};
use hopmap_trials::{Decision, Design, Step, add_metrics};

/// Failures in a row after which a mapping is given up.
const MOST_FAILURES: usize = 4;

/// What runs, and when the trial is stopped.
pub(crate) trait Machine {
    /// The time of the next run, which is of a mapping; infinite if it fails.
    fn run(&mut self, mapping: usize) -> f64;
    /// Whether the trial is stopped before the next block, and resumed later.
    fn stops(&mut self) -> bool {
        false
    }
}

/// The trial of a number of mappings as it is shown each time that it is stopped, and at its end.
pub(crate) fn trials(
    design: &Design,
    mappings: usize,
    order: impl Fn(u32, &[usize]) -> Vec<usize>,
    machine: &mut impl Machine,
) -> Vec<Trials> {
    let mut decision = Decision::new(*design, mappings);
    let mut trials = Trials::default();
    let mapping = |name: usize| TrialMapping { name: name.to_string(), digest: String::new() };
    trials.mappings.extend((0..mappings).map(mapping));
    let (mut shown, mut failures) = (Vec::new(), vec![0; mappings]);
    for block in 0_u32.. {
        let (given_up, was_choosing) = (|failed: &usize| *failed >= MOST_FAILURES, decision.is_choosing());
        (0..mappings)
            .filter(|mapping| given_up(&failures[*mapping]))
            .for_each(|mapping| decision.give_up(mapping));
        let Step::Block(alive) = decision.next(None) else { break };
        if machine.stops() && !was_choosing {
            trials.looks.push(trials.runs.len() as u32);
            trials.looks.dedup();
            shown.push(with_metrics(&trials, design));
            decision.was_shown();
        }
        let choice = decision.is_choosing();
        let mut times = vec![None; mappings];
        for mapping in order(block, &alive) {
            let seconds = machine.run(mapping);
            times[mapping] = Some(seconds);
            failures[mapping] = if seconds.is_finite() { 0 } else { failures[mapping] + 1 };
            trials.runs.push(TrialRun { block: Some(block), choice, ..run(mapping, seconds) });
        }
        decision.add(times, choice);
    }
    shown.push(with_metrics(&trials, design));
    shown
}

fn with_metrics(trials: &Trials, design: &Design) -> Trials {
    let mut trials = trials.clone();
    add_metrics(&mut trials, design);
    trials
}

fn run(mapping: usize, seconds: f64) -> TrialRun {
    let complete = seconds.is_finite();
    TrialRun {
        mapping: mapping.to_string(),
        block: None,
        choice: false,
        seconds: complete.then_some(seconds),
        mpi_s: None,
        lateness_s: None,
        idle: None,
        exit: Some(if complete { 0 } else { TIMED_OUT }),
        complete,
    }
}

/// Normally distributed (Box and Muller).
pub(crate) fn normal(random: &mut Pcg64) -> f64 {
    (2.0 * random.exponential()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
}
