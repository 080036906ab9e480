//! Message times in integer ticks.
//!
//! Searches add and compare integers, so a makespan depends neither on the order of summation nor on the
//! number of threads.

use hopmap_model::{DelayModel, Dependency, TaskDag};

use crate::distances::Distances;
use crate::error::{ProblemError, Refusal};
use crate::machine::{Machine, Network, is_whole};

/// Maximum sum of all times in ticks; exact in a double.
const MOST_TICKS: f64 = (1u64 << 52) as f64;
/// Finest resolution: 10⁻¹² units.
const MOST_DIGITS: i32 = 12;
/// Maximum number of table entries.
const MOST_ENTRIES: usize = 1 << 25;

/// The messages of a program that can delay a task, and their distinct sizes.
#[derive(Debug)]
pub struct SizedMessages {
    /// The messages by source, destination and bytes.
    pub dependencies: Vec<Dependency>,
    /// The distinct sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Index of the size of every message.
    pub size_of: Vec<u32>,
}

impl SizedMessages {
    /// Where larger messages never take less time, keeps only the largest of several messages between two
    /// tasks.
    #[must_use]
    pub fn new(dag: &TaskDag, machine: &Machine) -> Self {
        let mut dependencies = dag.dependencies.clone();
        dependencies.dedup();
        if machine.network.is_monotone() {
            dependencies.reverse();
            dependencies.dedup_by_key(|edge| (edge.source, edge.destination));
            dependencies.reverse();
        }
        let mut sizes: Vec<u64> = dependencies.iter().map(|edge| edge.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let size_of = |edge: &Dependency| sizes.partition_point(|&size| size < edge.bytes) as u32;
        Self { size_of: dependencies.iter().map(size_of).collect(), dependencies, sizes }
    }

    /// Every message with the index of its size.
    pub fn with_sizes(&self) -> impl Iterator<Item = (&Dependency, u32)> + Clone {
        self.dependencies.iter().zip(self.size_of.iter().copied())
    }
}

/// Ticks per unit of time, a power of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickScale {
    ticks_per_unit: f64,
}

impl TickScale {
    /// One tick per unit if all times are integers, else as many digits as fit.
    pub fn new(dag: &TaskDag, messages: &SizedMessages, machine: &Machine) -> Result<Self, ProblemError> {
        let mut paces = machine.pace.clone();
        paces.sort_unstable_by(f64::total_cmp);
        paces.dedup();
        let slowest = paces.last().copied().unwrap_or_default();
        let available = machine.processors.iter().map(|one| one.available).fold(0.0, f64::max);
        let mut total = available + dag.work() * slowest;
        let mut integral = machine.processors.iter().all(|one| is_whole(one.available));
        for task in &dag.tasks {
            integral = integral && paces.iter().all(|pace| is_whole(task.work * pace));
        }
        // Many messages share a length, and a large machine has many distances.
        let longest: Vec<_> = messages.sizes.iter().map(|&bytes| machine.network.longest(bytes)).collect();
        for &size in &messages.size_of {
            let (time, is_whole) = longest[size as usize];
            total += time;
            integral &= is_whole;
        }
        if !total.is_finite() || total > MOST_TICKS {
            let problem =
                format!("the total time of all tasks and messages, {total}, is too large to count in ticks");
            let help = "check the units: work is scaled by `speeds`, bytes by `bandwidth`";
            return Err(Refusal::new(problem, help).into());
        }
        let mut ticks_per_unit = 1.0;
        for _ in 0..MOST_DIGITS {
            if integral || total * ticks_per_unit * 10.0 > MOST_TICKS {
                break;
            }
            ticks_per_unit *= 10.0;
        }
        Ok(Self { ticks_per_unit })
    }

    /// A time as ticks.
    #[must_use]
    pub fn ticks(self, time: f64) -> i64 {
        (time * self.ticks_per_unit).round() as i64
    }

    /// Ticks as a time.
    #[must_use]
    pub fn real(self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_per_unit
    }
}

/// Time of a message of every size between any two processors, in ticks.
#[derive(Debug, Clone)]
pub struct Delays {
    sizes: usize,
    distances: Distances,
    classes: usize,
    /// Time of a message of size `s` between processors of class `c`, at `s * classes + c`.
    ticks: Vec<i64>,
    /// Replacement for tables that would be too large.
    computed: Option<Computed>,
}

#[derive(Debug, Clone)]
struct Computed {
    network: Network,
    sizes: Vec<u64>,
    scale: TickScale,
    local: bool,
}

impl Delays {
    /// Message times of the given sizes on a machine.
    #[must_use]
    pub fn new(machine: &Machine, sizes: &[u64], model: DelayModel, scale: TickScale) -> Self {
        let processors = machine.processors.len();
        // In the delay model, messages within a processor take no time; the other model leaves this to the
        // machine.
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
            return Self {
                sizes: sizes.len(),
                distances,
                classes,
                ticks: Vec::new(),
                computed: Some(computed),
            };
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
        Self { sizes: sizes.len(), distances, classes, ticks, computed: None }
    }

    /// Number of sizes.
    #[must_use]
    pub fn sizes(&self) -> usize {
        self.sizes
    }

    /// Time of a message.
    #[inline]
    #[must_use]
    pub fn ticks(&self, size: u32, from: u32, to: u32) -> i64 {
        match &self.computed {
            None => self.ticks[size as usize * self.classes + self.distances.class(from, to)],
            Some(computed) => computed.ticks(size, from, to),
        }
    }

    /// Distance classes of the processors.
    #[must_use]
    pub fn distances(&self) -> &Distances {
        &self.distances
    }

    /// Time of a message of every size between two different processors, if it is the same for all pairs and
    /// messages within a processor take no time.
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
