//! A search for tests.

use hopmap_islands::{Candidate, Evolution, Exchange, Meter};
use hopmap_model::Error;

/// Draws random numbers; the smallest wins. An epoch takes up to 100 evaluations.
pub(crate) struct Climb {
    pub(crate) exchange: Exchange,
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Climber {
    state: u64,
    best: u64,
}

impl Evolution for Climb {
    type Island = Climber;
    type Solution = u64;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Climber, Error> {
        Ok(Climber { state: u64::from(island) + 1, best: u64::MAX >> 1 })
    }

    fn advance(&self, island: &mut Climber, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        for _ in 0..100 {
            if !meter.take() {
                return Ok(false);
            }
            island.state = island.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            island.best = island.best.min(island.state >> 1);
            meter.record(island.best.cast_signed());
        }
        Ok(island.best > 1 << 20)
    }

    fn best(&self, island: &Climber) -> Candidate<u64> {
        Candidate { cost: island.best.cast_signed(), solution: island.best }
    }

    fn exchange(&self, _: u64) -> Exchange {
        self.exchange
    }

    fn receive(&self, island: &mut Climber, _: u64, heard: Vec<Candidate<u64>>) {
        for candidate in heard {
            // Received values change the state, so that a search that receives different ones ends
            // differently.
            island.state = island.state.rotate_left(1) ^ candidate.solution;
            island.best = island.best.min(candidate.solution);
        }
    }
}
