//! Of simulated trials of equal programs, at most 5 % claim a difference, whatever disturbs the machine: periodic tasks, drift, bursts,
//! failures, timeouts, and trials that are stopped, looked at and resumed.
//!
//! 100 trials of each kind; `HOPMAP_SOAK=1` simulates 2,000. More claims than an exact binomial limit fail.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod simulation;

use hopmap_model::Trials;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_trials::{Design, Order, best, fails, gain};
use simulation::normal;

/// Part of the trials of equal programs that may claim a difference.
const CLAIMS: f64 = 0.05;
/// Probability with which as many claims are an accident. Some thousand kinds of trials are counted.
const ACCIDENT: f64 = 1e-6;

/// Ends when it is precise, which noise makes soon or never; or after a number of blocks.
const DESIGNS: [Design; 4] = [
    Design { blocks: 96, precision: Some(0.01), choose: None },
    Design { blocks: 96, precision: Some(0.001), choose: None },
    Design { blocks: 17, precision: None, choose: None },
    Design { blocks: 12, precision: None, choose: None },
];

/// What disturbs the runs of the machine, one after the other.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    /// `hit` of `period` runs take 5 % longer.
    Periodic { period: u64, phase: u64, hit: u64 },
    /// Every run takes longer than the one before.
    Drift(f64),
    /// Times walk at random.
    Walk,
    /// Up to five runs in a row take 20 % longer.
    Bursts,
    /// A part of the runs fail.
    Failures(f64),
    /// `hit` of `period` runs fail.
    PeriodicFailures { period: u64, hit: u64 },
    /// Up to five runs in a row fail.
    BurstsOfFailures,
    /// Runs that take three times as long are stopped; how long they take has a heavy tail.
    Timeouts,
}

use Disturbance::{Bursts, BurstsOfFailures, Drift, Failures, Periodic, PeriodicFailures, Timeouts, Walk};

/// Two equal programs on a disturbed machine.
struct Machine {
    disturbance: Disturbance,
    /// Probability that the trial is stopped before a block.
    stops: f64,
    random: Pcg64,
    runs: u64,
    /// Runs until the burst begins, and ends.
    burst: (u64, u64),
    walk: f64,
}

impl Machine {
    fn new(disturbance: Disturbance, stops: f64, seed: u64) -> Self {
        let random = Pcg64::seed_from_u64(seed);
        Self { disturbance, stops, random, runs: 0, burst: (0, 0), walk: 0.0 }
    }

    fn is_in_burst(&mut self) -> bool {
        if self.runs >= self.burst.1 {
            let begin = self.runs + 1 + (8.0 * self.random.exponential()) as u64;
            self.burst = (begin, begin + 1 + self.random.below(5) as u64);
        }
        self.runs >= self.burst.0
    }
}

impl simulation::Machine for Machine {
    fn run(&mut self, _: usize) -> f64 {
        let noise = (0.002 * normal(&mut self.random)).exp();
        let runs = self.runs;
        let is_hit = |period: u64, phase: u64, hit: u64| (runs + phase) % period < hit;
        let fails = |fails: bool| if fails { f64::INFINITY } else { 1.0 };
        let factor = match self.disturbance {
            Periodic { period, phase, hit } if is_hit(period, phase, hit) => 1.05,
            Periodic { .. } => 1.0,
            Drift(drift) => (drift * self.runs as f64).exp(),
            Walk => {
                self.walk += 0.01 * normal(&mut self.random);
                self.walk.exp()
            }
            Bursts => 1.0 + 0.2 * f64::from(u8::from(self.is_in_burst())),
            Failures(part) => fails(self.random.unit() < part),
            PeriodicFailures { period, hit } => fails(is_hit(period, 0, hit)),
            BurstsOfFailures => fails(self.is_in_burst()),
            Timeouts => match (0.4 * normal(&mut self.random)).exp() {
                slow if slow > 2.0 => f64::INFINITY,
                time => time,
            },
        };
        self.runs += 1;
        noise * factor
    }

    fn stops(&mut self) -> bool {
        self.random.unit() < self.stops
    }
}

fn soaks() -> bool {
    std::env::var_os("HOPMAP_SOAK").is_some()
}

/// Whether any look claims that one of two equal programs is faster.
fn claims(shown: &[Trials]) -> bool {
    let is_seen = |trials: &Trials| {
        let are_counted = !["0", "1"].iter().any(|mapping| fails(trials, mapping));
        let gain = gain(trials, "1").filter(|gain| are_counted && gain.is_seen());
        let is_best = gain.is_some_and(|gain| gain.interval.unwrap().0 > 0.0);
        assert!(gain.is_none() || is_best == (best(trials, false).unwrap().name == "1"));
        gain.is_some()
    };
    shown.iter().any(is_seen)
}

/// How many of some trials claim something.
fn count(design: &Design, trials: u64, disturbance: Disturbance, stops: f64) -> u64 {
    let claims = |seed: &u64| {
        let order = Order::new(format!("{disturbance:?}"), *seed as u32);
        let order = |block, mappings: &[usize]| order.of_block(block, mappings);
        let mut machine = Machine::new(disturbance, stops, *seed);
        claims(&simulation::trials(design, 2, order, &mut machine))
    };
    (0..trials).filter(claims).count() as u64
}

/// The most claims of which more are an accident, if each has a probability.
fn most_claims(trials: u64) -> u64 {
    let (mut logarithm, mut below, mut claims) = (trials as f64 * (1.0 - CLAIMS).ln(), 0.0, 0);
    loop {
        below += logarithm.exp();
        if 1.0 - below <= ACCIDENT {
            return claims;
        }
        logarithm += ((trials - claims) as f64 / (claims + 1) as f64 * CLAIMS / (1.0 - CLAIMS)).ln();
        claims += 1;
    }
}

/// No more claims than that in any design, of trials that are never stopped.
fn few_claims(disturbances: &[Disturbance]) {
    few_claims_if_stopped(disturbances, 0.0);
}

fn few_claims_if_stopped(disturbances: &[Disturbance], stops: f64) {
    let trials = if soaks() { 2000 } else { 100 };
    for design in &DESIGNS {
        let mut all = 0;
        for disturbance in disturbances {
            let (claims, most) = (count(design, trials, *disturbance, stops), most_claims(trials));
            assert!(claims <= most, "{disturbance:?}, {design:?}: {claims} of {trials}, more than {most}");
            all += claims;
        }
        let trials = trials * disturbances.len() as u64;
        let most = most_claims(trials);
        assert!(all <= most, "{design:?}: {all} of {trials}, more than {most}");
    }
}

fn periodic(most: u64, is_long: bool) -> Vec<Disturbance> {
    let phases = (2..=most).flat_map(|period| (0..period).map(move |phase| (period, phase)));
    let hit = |period: u64| if is_long { period / 2 } else { 1 };
    phases.map(|(period, phase)| Periodic { period, phase, hit: hit(period) }).collect()
}

#[test]
fn a_run_of_every_period_that_is_slow_makes_no_gain() {
    few_claims(&periodic(12, false));
}

#[test]
fn periods_of_which_half_is_slow_make_no_gain() {
    few_claims(&periodic(12, true));
}

#[test]
fn drift_bursts_and_random_walks_make_no_gain() {
    few_claims(&[Drift(0.002), Drift(-0.01), Walk, Bursts]);
}

#[test]
fn failures_and_timeouts_make_no_gain() {
    let every = |period| PeriodicFailures { period, hit: 1 };
    few_claims(&[Failures(0.02), Failures(0.1), Failures(0.45), every(4), every(12), every(25), every(40)]);
    few_claims(&[PeriodicFailures { period: 60, hit: 2 }, BurstsOfFailures, Timeouts]);
}

#[test]
fn stopped_trials_make_no_gain_at_any_look() {
    let disturbances = [Drift(0.0), Drift(0.002), Walk, Bursts, Failures(0.02), Timeouts];
    let period = Periodic { period: 4, phase: 1, hit: 1 };
    for stops in [0.05, 0.3] {
        few_claims_if_stopped(&disturbances, stops);
        few_claims_if_stopped(&[period], stops);
    }
    // Who looks at every pair.
    few_claims_if_stopped(&[Drift(0.0), period], 1.0);
}

/// Every other block in reverse.
fn reversed(block: u32, mut order: Vec<usize>) -> Vec<usize> {
    if block % 2 == 1 {
        order.reverse();
    }
    order
}

/// Why each block draws its order: a fixed one meets a period, and one that is balanced within two blocks counts a disturbance of both
/// twice.
#[test]
fn fixed_and_balanced_orders_would_claim_gains() {
    let part = |disturbance, order: fn(&Order, u32, &[usize]) -> Vec<usize>| {
        let claims = |seed: &u32| {
            let drawn = Order::new(String::new(), *seed);
            let mut machine = Machine::new(disturbance, 0.0, u64::from(*seed));
            let order = |block, mappings: &[usize]| order(&drawn, block, mappings);
            claims(&simulation::trials(&DESIGNS[3], 2, order, &mut machine))
        };
        (0..2000).filter(claims).count() as f64 / 2000.0
    };
    let fixed = part(Periodic { period: 4, phase: 2, hit: 1 }, |_, block, mappings| {
        reversed(block, mappings.to_vec())
    });
    let burst = Periodic { period: 4, phase: 3, hit: 2 };
    let balanced = part(burst, |order, block, mappings| reversed(block, order.of_block(block / 2, mappings)));
    let drawn = part(burst, Order::of_block);
    assert!(fixed > 0.3 && balanced > 0.1 && drawn <= 0.06, "{fixed}, {balanced}, {drawn}");
}

#[test]
fn the_limit_is_that_of_the_binomial_distribution() {
    // With fractions: the smallest k of which P(X > k) <= 1e-6 for X ~ B(n, 0.05).
    assert_eq!((most_claims(100), most_claims(2000)), (18, 149));
}
