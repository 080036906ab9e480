//! What messages take, in ticks.

mod summary;

use hopmap_model::DelayModel;

use super::Scale;
use crate::machine::{Distances, Machine, Network};

pub(crate) use summary::DelaySummary;

/// Entries of a table that is worth its memory.
const MOST_ENTRIES: usize = 1 << 25;

/// What a message of every size takes between any two processors, in ticks.
#[derive(Debug, Clone)]
pub struct Delays {
    distances: Distances,
    classes: usize,
    /// What a message of size `s` takes between processors of class `c`, at `s * classes + c`.
    ticks: Vec<i64>,
    /// What there is where the table would be too large.
    computed: Option<Computed>,
}

#[derive(Debug, Clone)]
struct Computed {
    network: Network,
    sizes: Vec<u64>,
    scale: Scale,
    local: bool,
}

impl Delays {
    pub(crate) fn new(machine: &Machine, sizes: &[u64], model: DelayModel, scale: Scale) -> Self {
        let processors = machine.processors.len();
        // In the delay model what stays on a processor takes no time; the other one leaves it to the machine.
        let local = model == DelayModel::Receive;
        let (distances, classes) = match &machine.network {
            Network::Linear { distances, classes: linear } => {
                let mut distances = distances.clone();
                if !local {
                    distances.set_own(linear.len() as u32);
                }
                let more = usize::from(distances != Distances::Alike);
                (distances, linear.len() + more)
            }
            Network::Measured(_) => {
                let classes = (0..(processors * processors) as u32).collect();
                (Distances::Pairs { processors, classes }, processors * processors)
            }
        };
        if sizes.len().saturating_mul(classes) > MOST_ENTRIES {
            let computed = Computed { network: machine.network.clone(), sizes: sizes.to_vec(), scale, local };
            return Self { distances, classes, ticks: Vec::new(), computed: Some(computed) };
        }
        let mut ticks = Vec::with_capacity(sizes.len() * classes);
        for &bytes in sizes {
            match &machine.network {
                Network::Linear { classes: linear, .. } => {
                    ticks.extend(
                        linear.iter().map(|one| scale.ticks(one.latency + bytes as f64 * one.per_byte)),
                    );
                    ticks.resize(ticks.len().next_multiple_of(classes), 0);
                }
                Network::Measured(measured) => {
                    let all = 0..processors as u32;
                    let time =
                        |from, to| if local || from != to { measured.time(from, to, bytes) } else { 0.0 };
                    ticks.extend(
                        all.clone().flat_map(|from| all.clone().map(move |to| scale.ticks(time(from, to)))),
                    );
                }
            }
        }
        Self { distances, classes, ticks, computed: None }
    }

    /// What a message takes.
    #[inline]
    #[must_use]
    pub fn ticks(&self, size: u32, from: u32, to: u32) -> i64 {
        match &self.computed {
            None => self.ticks[size as usize * self.classes + self.distances.class(from, to)],
            Some(computed) => computed.ticks(size, from, to),
        }
    }

    /// Which processors are equally far from each other.
    pub(crate) fn distances(&self) -> &Distances {
        &self.distances
    }

    /// What a message of every size takes between any two different processors, if that is the same for all of them, and nothing
    /// takes time that stays on a processor.
    #[must_use]
    pub fn uniform(&self) -> Option<Vec<i64>> {
        let is_uniform = self.distances == Distances::Alike && self.computed.is_none();
        is_uniform.then(|| self.ticks.chunks(2).map(|pair| pair[1]).collect())
    }
}

impl Computed {
    fn ticks(&self, size: u32, from: u32, to: u32) -> i64 {
        match self.local || from != to {
            true => self.scale.ticks(self.network.time(from, to, self.sizes[size as usize])),
            false => 0,
        }
    }
}
