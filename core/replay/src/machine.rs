//! Processors and message times, in units of time of the program.

use std::ops::Range;

use hopmap_model::{OutOfRange, Processor, require};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distances::Distances;
use crate::error::{MachineError, Refusal};

/// Maximum number of processors.
pub const MAX_PROCESSORS: u32 = 1 << 16;

/// Processors and message times, in units of time of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The processors.
    pub processors: Vec<Processor>,
    /// Time of a unit of work on every processor.
    pub pace: Vec<f64>,
    /// Message times.
    pub network: Network,
}

/// Message times.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// A latency and a time per byte for every class of pairs of processors.
    Linear {
        /// The class of every pair.
        distances: Distances,
        /// Message time of every class.
        classes: Vec<Linear>,
    },
    /// Times measured between every two processors.
    Measured(Measured),
}

/// Message time of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Time per message.
    pub latency: f64,
    /// Time per byte.
    pub per_byte: f64,
}

impl Linear {
    /// Messages that take no time.
    pub const FREE: Self = Self { latency: 0.0, per_byte: 0.0 };

    /// A latency, and a bandwidth in bytes per unit of time. With infinite bandwidth, messages take only
    /// their latency.
    pub fn new(latency: f64, bandwidth: f64) -> Result<Self, MachineError> {
        if !(latency.is_finite() && latency >= 0.0) {
            return Err(out_of_range("latency", latency));
        }
        if bandwidth.is_nan() || bandwidth <= 0.0 {
            return Err(out_of_range("bandwidth", bandwidth));
        }
        Ok(Self { latency, per_byte: 1.0 / bandwidth })
    }
}

impl Network {
    /// Time of a message between two processors, or within one.
    #[must_use]
    pub fn time(&self, from: u32, to: u32, bytes: u64) -> f64 {
        match self {
            Self::Linear { distances, classes } => {
                let Linear { latency, per_byte } = classes[distances.class(from, to)];
                latency + bytes as f64 * per_byte
            }
            Self::Measured(measured) => measured.time(from, to, bytes),
        }
    }

    /// Whether larger messages never take less time; measured times may violate this.
    pub(crate) fn is_monotone(&self) -> bool {
        matches!(self, Self::Linear { .. })
    }

    /// Maximum time of a message of this size, and whether its times between all processors are integers.
    pub(crate) fn longest(&self, bytes: u64) -> (f64, bool) {
        let both =
            |(longest, integral): (f64, bool), time: f64| (longest.max(time), integral && is_whole(time));
        match self {
            Self::Linear { classes, .. } => {
                let times = classes.iter().map(|one| one.latency + bytes as f64 * one.per_byte);
                times.fold((0.0, true), both)
            }
            Self::Measured(measured) => measured.times(bytes).fold((0.0, true), both),
        }
    }
}

impl Machine {
    /// Identical processors; messages within one take no time.
    pub fn uniform(processors: u32, messages: Linear) -> Result<Self, MachineError> {
        let is_right = (1..=MAX_PROCESSORS).contains(&processors);
        require(is_right, "processors", processors, format!("1 to {MAX_PROCESSORS}"))?;
        let processor = |number| Processor { name: format!("p{number}"), ..Processor::default() };
        let classes = vec![Linear::FREE, messages];
        Ok(Self {
            processors: (0..processors).map(processor).collect(),
            pace: vec![1.0; processors as usize],
            network: Network::Linear { distances: Distances::Alike, classes },
        })
    }

    /// Keeps the first `processors` processors, if given.
    pub fn with_first(mut self, processors: Option<u32>) -> Result<Self, MachineError> {
        let there = self.processors.len();
        let wanted = processors.map_or(there, |processors| processors as usize);
        if wanted == 0 || wanted > there {
            return Err(MachineError::TooFew { wanted, there });
        }
        self.processors.truncate(wanted);
        self.pace.truncate(wanted);
        match &mut self.network {
            Network::Linear { distances, .. } => distances.truncate(wanted),
            Network::Measured(measured) => measured.keep(0..wanted),
        }
        Ok(self)
    }

    /// Divides the time of a unit of work by the speed of every processor, if given.
    pub fn with_speeds(mut self, speeds: &[f64]) -> Result<Self, MachineError> {
        if speeds.is_empty() {
            return Ok(self);
        }
        self.check_values("speeds", speeds, |speed| speed > 0.0)?;
        for (pace, speed) in self.pace.iter_mut().zip(speeds) {
            *pace /= speed;
        }
        Ok(self)
    }

    /// Sets the start time of every processor, if given.
    pub fn with_available(mut self, available: &[f64]) -> Result<Self, MachineError> {
        if available.is_empty() {
            return Ok(self);
        }
        self.check_values("available", available, |time| time >= 0.0)?;
        for (processor, &time) in self.processors.iter_mut().zip(available) {
            processor.available = time;
        }
        Ok(self)
    }

    fn check_values(
        &self,
        name: &'static str,
        values: &[f64],
        is_valid: impl Fn(f64) -> bool,
    ) -> Result<(), MachineError> {
        let processors = self.processors.len();
        if values.len() != processors {
            let problem = format!("{name} has {} values for {processors} processors", values.len());
            return Err(Refusal::new(problem, "list one value per processor").into());
        }
        match values.iter().find(|&&value| !(value.is_finite() && is_valid(value))) {
            Some(&value) => Err(out_of_range(name, value)),
            None => Ok(()),
        }
    }
}

fn out_of_range(name: &str, value: f64) -> MachineError {
    OutOfRange::new(name, value, "speeds and bandwidth above 0; latency and times 0 or more").into()
}

/// How to compute times of lengths that were not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lookup {
    /// Interpolates linearly between adjacent lengths; extrapolates from the last two.
    #[default]
    Linear,
    /// Uses the time of the next longer measured length, or of the longest, like PARUS.
    Parus,
}

/// Message times between every two processors for some lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Number of processors.
    processors: usize,
    /// Lengths in bytes, ascending.
    lengths: Vec<u64>,
    /// For every length, the time from `from` to `to` at `to * processors + from`.
    times: Vec<Vec<f64>>,
    lookup: Lookup,
}

impl Measured {
    /// Times for at least one length; the time from `from` to `to` of `processors` is at
    /// `to * processors + from`.
    #[must_use]
    pub fn new(processors: usize, lengths: Vec<u64>, times: Vec<Vec<f64>>, lookup: Lookup) -> Self {
        Self { processors, lengths, times, lookup }
    }

    /// The measured lengths, ascending, their times in the order of [`Measured::new`], and the
    /// interpolation.
    #[must_use]
    pub fn parts(&self) -> (&[u64], &[Vec<f64>], Lookup) {
        (&self.lengths, &self.times, self.lookup)
    }

    /// Time of a message.
    #[must_use]
    pub fn time(&self, from: u32, to: u32, bytes: u64) -> f64 {
        let at = |index: usize| self.times[index][to as usize * self.processors + from as usize];
        let last = self.lengths.len() - 1;
        let above = self.lengths.partition_point(|&length| length < bytes);
        if self.lookup == Lookup::Parus || self.lengths.get(above) == Some(&bytes) || last == 0 {
            return at(above.min(last));
        }
        // Shorter messages take the time of the shortest length: a latency does not vanish.
        if above == 0 {
            return at(0);
        }
        let (low, high) = if above > last { (last - 1, last) } else { (above - 1, above) };
        let [begin, end] = [self.lengths[low], self.lengths[high]].map(|length| length as f64);
        let part = (bytes as f64 - begin) / (end - begin);
        (at(low) + part * (at(high) - at(low))).max(0.0)
    }

    /// Time of a message between all processors.
    pub(crate) fn times(&self, bytes: u64) -> impl Iterator<Item = f64> + '_ {
        let all = 0..self.processors as u32;
        all.clone().flat_map(move |from| all.clone().map(move |to| self.time(from, to, bytes)))
    }

    /// Keeps some processors.
    pub fn keep(&mut self, kept: Range<usize>) {
        let processors = self.processors;
        for times in &mut self.times {
            let rows = times.chunks(processors).skip(kept.start).take(kept.len());
            *times = rows.flat_map(|row| row[kept.clone()].iter().copied()).collect();
        }
        self.processors = kept.len();
    }
}

/// Whether a time is an integer.
pub(crate) fn is_whole(time: f64) -> bool {
    time.fract() == 0.0
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these times are integers")]
mod tests {
    use super::*;

    fn measured(lookup: Lookup) -> Measured {
        let times = vec![vec![0.0, 1.0, 2.0, 0.0], vec![0.0, 3.0, 6.0, 0.5]];
        Measured::new(2, vec![10, 20], times, lookup)
    }

    #[test]
    fn times_are_interpolated() {
        let linear = measured(Lookup::Linear);
        assert_eq!([0, 10, 15, 20, 30].map(|bytes| linear.time(1, 0, bytes)), [1.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!(linear.time(0, 1, 15), 4.0);
        let steps = measured(Lookup::Parus);
        assert_eq!([0, 10, 15, 20, 30].map(|bytes| steps.time(0, 1, bytes)), [2.0, 2.0, 6.0, 6.0, 6.0]);
    }

    #[test]
    fn kept_processors_keep_their_times() {
        let mut right = measured(Lookup::Parus);
        right.keep(1..2);
        assert_eq!(right.time(0, 0, 20), 0.5);
    }
}
