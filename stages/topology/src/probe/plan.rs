//! What is measured in which order: phases, their sizes, and how many pairs at once.

use hopmap_model::{Pair, ProbePhase};

use super::sampling::Sampling;
use super::tournament::{count_steps, steps};
use crate::{BandwidthPhase, ProbeParams};

/// Largest message of the phase for latencies, in bytes; larger ones would disturb each other.
const LARGEST_SMALL: u64 = 1 << 16;

/// Messages of some sizes between some endpoints.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) phase: ProbePhase,
    /// Groups whose members are measured with each other.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Pairs of a group at once.
    pub(crate) at_once: Option<usize>,
    pub(crate) sampling: Sampling,
}

impl Part {
    /// The pairs that are measured at the same time, one step after the other.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Vec<Pair>> + '_ {
        steps(&self.groups, self.at_once)
    }

    pub(crate) fn count_steps(&self) -> u64 {
        count_steps(&self.groups, self.at_once)
    }
}

/// The parts of a probing, without those in which there is nobody or nothing to measure.
pub(crate) fn parts(params: &ProbeParams, groups: &[Vec<u32>]) -> Vec<Part> {
    phases(params)
        .into_iter()
        .map(|(phase, sampling)| Part {
            phase,
            groups: groups.to_vec(),
            at_once: (phase == ProbePhase::Isolated).then_some(params.parallel as usize),
            sampling,
        })
        .filter(|part| part.count_steps() > 0)
        .collect()
}

/// The phases that the parameters ask for, each with its sizes.
pub(crate) fn phases(params: &ProbeParams) -> Vec<(ProbePhase, Sampling)> {
    let mut sizes = params.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|&bytes| bytes <= LARGEST_SMALL);
    let large_phases: &[ProbePhase] = match params.bandwidth {
        BandwidthPhase::None => &[],
        BandwidthPhase::Isolated => &[ProbePhase::Isolated],
        BandwidthPhase::Loaded => &[ProbePhase::Loaded],
        BandwidthPhase::Both => &[ProbePhase::Isolated, ProbePhase::Loaded],
    };
    let mut phases = vec![(ProbePhase::Latency, sampling(params, small))];
    phases.extend(large_phases.iter().map(|&phase| (phase, sampling(params, large.clone()))));
    phases.retain(|(_, sampling)| !sampling.sizes.is_empty());
    phases
}

fn sampling(params: &ProbeParams, sizes: Vec<u64>) -> Sampling {
    Sampling {
        // Small sizes are over soon; large ones first fill the windows of the way.
        warm_up: 3,
        warm_up_bytes: if sizes.iter().any(|&bytes| bytes > LARGEST_SMALL) { 4 << 20 } else { 1 << 12 },
        sizes,
        batch: 20,
        most: params.messages,
        calm_batches: 3,
        tolerance: params.tolerance,
        seconds: params.seconds,
    }
}

/// Most seconds that measuring a pair in one direction takes, a slow way with its last batches included.
pub(crate) fn most_seconds(sampling: &Sampling) -> f64 {
    2.0 + 4.0 * sampling.seconds * sampling.sizes.len() as f64
}
