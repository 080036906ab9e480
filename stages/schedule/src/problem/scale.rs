//! From times to whole ticks and back.

use std::collections::HashMap;

use hopmap_model::{Dependency, TaskDag};

use crate::{Machine, ProblemError};

/// The longest sum of everything, in ticks: exact in a double.
const MOST_TICKS: f64 = (1u64 << 52) as f64;
/// The finest ticks: 10⁻¹² units.
const MOST_DIGITS: i32 = 12;

/// Ticks per unit of time, a power of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    ticks_per_unit: f64,
}

impl Scale {
    /// One tick a unit if all times are whole, else as many digits as fit.
    pub(crate) fn new(
        dag: &TaskDag,
        dependencies: &[Dependency],
        machine: &Machine,
    ) -> Result<Self, ProblemError> {
        let mut paces = machine.pace.clone();
        paces.sort_unstable_by(f64::total_cmp);
        paces.dedup();
        let slowest = paces.last().copied().unwrap_or_default();
        let available = machine.processors.iter().map(|one| one.available).fold(0.0, f64::max);
        let mut total = available + dag.work() * slowest;
        let mut whole = machine.processors.iter().all(|one| is_whole(one.available));
        for task in &dag.tasks {
            whole = whole && paces.iter().all(|pace| is_whole(task.work * pace));
        }
        // Many messages have one length, and a large machine has many distances.
        let mut known = HashMap::new();
        for edge in dependencies {
            let of_length = || machine.network.longest(edge.bytes);
            let (longest, is_whole) = *known.entry(edge.bytes).or_insert_with(of_length);
            total += longest;
            whole &= is_whole;
        }
        if !total.is_finite() || total > MOST_TICKS {
            return Err(ProblemError::TooLong { total });
        }
        let mut ticks_per_unit = 1.0;
        for _ in 0..MOST_DIGITS {
            if whole || total * ticks_per_unit * 10.0 > MOST_TICKS {
                break;
            }
            ticks_per_unit *= 10.0;
        }
        Ok(Self { ticks_per_unit })
    }

    /// A time as ticks.
    pub(crate) fn ticks(self, time: f64) -> i64 {
        (time * self.ticks_per_unit).round() as i64
    }

    /// Ticks as a time.
    pub(crate) fn real(self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_per_unit
    }
}

/// Whether a time is a number of whole units.
pub(crate) fn is_whole(time: f64) -> bool {
    time.fract() == 0.0
}
