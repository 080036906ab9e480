//! Intervals of simulated trials cover what is true: with skewed, drifting and correlated run times, the choice of the best of five
//! mappings, and an end as soon as the interval is precise. The decisions are those of `run/trial`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod simulation;

use hopmap_model::Trials;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_trials::{Design, Order, best, gain, rival};
use simulation::normal;

const DRAWS: u64 = 10_000;

/// The baseline and five others; the gain of each as a part of the largest one.
const GAINS: [f64; 6] = [0.0, 0.2, 1.0, 0.0, 0.5, 0.8];

/// Ends after 12 pairs or more, depending on the noise.
const DESIGN: Design = Design { blocks: 48, precision: Some(0.01), choose: Some(4) };

/// How the times of runs that follow each other differ.
#[derive(Debug, Clone, Copy, Default)]
struct Noise {
    /// Runs are longer by this times a lognormal number.
    skewed: f64,
    /// Probability of a run that takes 30 % longer.
    outliers: f64,
    /// Every run is slower than the one before it by this.
    drift: f64,
    /// Standard deviation of the state of the machine, which all runs share, and its correlation from run to run.
    shared: f64,
    correlation: f64,
    /// The same for a state of each mapping alone.
    own: f64,
    own_correlation: f64,
}

/// The machine.
struct Machine<'a> {
    noise: Noise,
    gains: &'a [f64],
    random: Pcg64,
    runs: f64,
    shared: f64,
    own: [f64; GAINS.len()],
}

impl<'a> Machine<'a> {
    fn new(noise: Noise, gains: &'a [f64], seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let shared = noise.shared * normal(&mut random);
        let own = std::array::from_fn(|_| noise.own * normal(&mut random));
        Self { noise, gains, random, runs: 0.0, shared, own }
    }
}

impl simulation::Machine for Machine<'_> {
    fn run(&mut self, mapping: usize) -> f64 {
        let Noise { skewed, outliers, drift, shared, correlation, own, own_correlation } = self.noise;
        let random = &mut self.random;
        let mut next = |state: f64, deviation: f64, correlation: f64| {
            let fresh = (1.0 - correlation * correlation).sqrt() * deviation;
            correlation * state + fresh * normal(random)
        };
        self.shared = next(self.shared, shared, correlation);
        self.own[mapping] = next(self.own[mapping], own, own_correlation);
        self.runs += 1.0;
        let outlier = if random.unit() < outliers { 1.3 } else { 1.0 };
        let skew = 1.0 + skewed * normal(random).exp();
        (1.0 - self.gains[mapping])
            * skew
            * outlier
            * (drift * self.runs + self.shared + self.own[mapping]).exp()
    }
}

/// A simulated trial: what `run/trial` measures if the mappings have these gains.
fn trial(noise: Noise, gains: &[f64], seed: u64) -> Trials {
    let order = Order::new(String::new(), seed as u32);
    let order = |block, mappings: &[usize]| order.of_block(block, mappings);
    simulation::trials(&DESIGN, gains.len(), order, &mut Machine::new(noise, gains, seed)).remove(0)
}

/// What many trials show.
#[derive(Debug, Default)]
struct Shown {
    /// Parts of the trials whose interval has the true gain, and that claim a gain.
    covered: f64,
    claimed: f64,
    /// Mean number of pairs.
    pairs: f64,
}

fn shown(noise: Noise, difference: f64) -> Shown {
    let gains = GAINS.map(|part| part * difference);
    let mut shown = Shown::default();
    for seed in 0..DRAWS {
        let trials = trial(noise, &gains, seed);
        let rival = rival(&trials).unwrap();
        let truth = gains[rival.name.parse::<usize>().unwrap()];
        let gain = gain(&trials, &rival.name).unwrap();
        let (low, high) = gain.interval.unwrap();
        assert_eq!(best(&trials, false) == Some(rival), low > 0.0);
        shown.covered += f64::from(u8::from(low <= truth && truth <= high)) / DRAWS as f64;
        shown.claimed += f64::from(u8::from(low > 0.0)) / DRAWS as f64;
        shown.pairs += gain.pairs as f64 / DRAWS as f64;
    }
    shown
}

fn intervals_cover(noise: Noise) {
    for difference in [0.0, 0.01, 0.05] {
        let shown = shown(noise, difference);
        assert!(shown.covered >= 0.94, "{noise:?}, {difference}: {shown:?}");
        assert!(difference > 0.0 || shown.claimed <= 0.05, "{noise:?}: {shown:?}");
        assert!(difference < 0.05 || shown.claimed >= 0.8, "{noise:?}: {shown:?}");
    }
}

#[test]
fn intervals_of_skewed_times_with_outliers_cover() {
    intervals_cover(Noise { skewed: 0.01, outliers: 0.05, ..Noise::default() });
}

#[test]
fn intervals_of_drifting_times_cover() {
    intervals_cover(Noise { skewed: 0.01, drift: 0.01, ..Noise::default() });
}

/// What both runs of a pair share is as likely to slow either of them.
#[test]
fn intervals_of_times_on_a_machine_with_slow_phases_cover() {
    intervals_cover(Noise { shared: 0.02, correlation: 0.5, ..Noise::default() });
}

/// What changes one mapping alone for several blocks does not cancel. docs/howto/trial.md says how much of it is too much.
#[test]
fn phases_of_one_mapping_may_be_correlated_by_a_tenth() {
    let covered =
        |own_correlation| shown(Noise { own: 0.02, own_correlation, ..Noise::default() }, 0.0).covered;
    assert!(covered(0.1) >= 0.94);
    assert!((0.8..0.9).contains(&covered(0.5)));
}
