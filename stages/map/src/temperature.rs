//! Temperatures: their unit, how they fall, and what they accept.

use hopmap_model::{Stage, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};

use crate::AutoStage;

/// Moves that the mean change of cost is taken of.
const SAMPLES: usize = 1024;
/// Random numbers that acceptance tells apart; a power of two.
const THRESHOLDS: usize = 1024;

/// Mean change of cost, up or down, of a rank that moves from its slot in one random placement to its slot in another.
///
/// Moves that break a constraint do not count. Never zero; the same for every seed and island.
pub(crate) fn mean_change(problem: &Problem, movable: &[u32]) -> Result<f64, ObjectiveError> {
    let placement = |number| problem.random(seed_stream(AutoStage::KIND, 0, u64::MAX - number as u64));
    let mut sum = 0.0;
    let (mut moves, mut admitted) = (0, 0usize);
    let mut number = 0;
    while moves < SAMPLES {
        let assignment = Assignment::new(problem, &placement(number))?;
        let slots = placement(number + 1);
        for &rank in movable.iter().take(SAMPLES - moves) {
            let delta = assignment.delta(rank, slots[rank as usize]);
            if delta != Assignment::NEVER {
                sum += delta.abs() as f64;
                admitted += 1;
            }
            moves += 1;
        }
        number += 2;
    }
    Ok((sum / admitted.max(1) as f64).max(f64::MIN_POSITIVE))
}

/// Temperatures of one cycle, from hot to cold: as many as sweeps, each the same part of the one before.
pub(crate) struct Temperatures {
    next: f64,
    factor: f64,
    left: u64,
}

impl Temperatures {
    /// With M = sweeps − 1 coolings, each is by (cold / hot)^(1 / M); the last temperature is `cold`.
    pub(crate) fn new(hot: f64, cold: f64, sweeps: u64) -> Self {
        let coolings = sweeps.saturating_sub(1).max(1) as f64;
        Self { next: hot, factor: libm::pow(cold / hot, 1.0 / coolings), left: sweeps }
    }
}

impl Iterator for Temperatures {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.left = self.left.checked_sub(1)?;
        let temperature = self.next;
        self.next = self.factor * temperature;
        Some(temperature)
    }
}

/// Accepts a rise of cost Δ at temperature T with probability exp(−Δ / T) (Metropolis): if Δ ≤ T · −ln u for a random u.
///
/// The values of −ln u come from a table, so a decision takes no logarithm.
pub(crate) struct Acceptance {
    thresholds: Vec<f64>,
}

impl Acceptance {
    pub(crate) fn new() -> Self {
        let threshold = |index| -libm::log((f64::from(index) + 0.5) / THRESHOLDS as f64);
        Self { thresholds: (0..THRESHOLDS as u32).map(threshold).collect() }
    }

    /// The rise of cost, in units of the temperature, that is accepted with these random bits.
    #[inline]
    pub(crate) fn threshold(&self, bits: u32) -> f64 {
        self.thresholds[bits as usize % THRESHOLDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    #[test]
    fn temperatures_fall_from_hot_to_cold() {
        let temperatures: Vec<_> = Temperatures::new(200.0, 2.0, 64).collect();
        assert_eq!(temperatures.len(), 64);
        assert!((temperatures[0] - 200.0).abs() < 1e-9 && (temperatures[63] - 2.0).abs() < 1e-9);
        assert!(temperatures.windows(2).all(|pair| pair[0] > pair[1]));
        assert_eq!(Temperatures::new(2.0, 1.0, 1).count(), 1);
    }

    #[test]
    fn a_rise_of_one_temperature_is_accepted_with_probability_one_over_e() {
        let acceptance = Acceptance::new();
        let mut random = Pcg64::from_seed([1; 32]);
        let accepted = (0..100_000).filter(|_| acceptance.threshold(random.next_u32()) >= 1.0).count();
        assert!((accepted as f64 / 100_000.0 - 0.3679).abs() < 0.005, "{accepted}");
    }
}
