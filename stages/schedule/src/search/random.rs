//! Random numbers.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// Draws that an acceptance tells apart; a power of two.
const DRAWS: usize = 4096;

/// Whether something happens that has a probability.
pub(crate) fn chance(random: &mut Pcg64, probability: f64) -> bool {
    f64::from(random.next_u32()) < probability * 4_294_967_296.0
}

/// How much worse a proposal may be at a temperature of 1: −ln of a number between 0 and 1, which is the rule of Metropolis when it
/// is drawn before the proposal is evaluated.
#[derive(Debug, Clone)]
pub(crate) struct Acceptance {
    draws: Vec<f64>,
}

impl Acceptance {
    pub(crate) fn new() -> Self {
        let draw = |number: usize| -libm::log((number as f64 + 0.5) / DRAWS as f64);
        Self { draws: (0..DRAWS).map(draw).collect() }
    }

    /// How much worse a proposal may be, of random bits.
    #[inline]
    pub(crate) fn slack(&self, bits: u32, temperature: f64) -> i64 {
        (self.draws[bits as usize % DRAWS] * temperature) as i64
    }
}
