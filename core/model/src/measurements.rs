//! What probing measured: how long messages of several sizes took between the endpoints of a machine.

use std::collections::BTreeMap;

use miette::Diagnostic;

use crate::{Artifact, NodeState};

/// What probing measured.
///
/// Hosts are measured between their first endpoints, which speak for all of them; endpoints of one host among each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurements {
    /// Who was asked, host by host; the index is the endpoint.
    pub endpoints: Vec<Endpoint>,
    /// How long messages took, by source, destination, phase and bytes.
    pub samples: Vec<Sample>,
    /// What time depends on, by source, destination and first size.
    pub fits: Vec<Fit>,
}

/// A process or a core that was asked to send and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of its host.
    pub host: String,
    /// Which core of the host it was on, or how many processes of the host stand before it.
    pub core: u32,
    /// Whether it answered.
    pub state: NodeState,
}

/// What else was going on while a message was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbePhase {
    /// Every endpoint had one partner, and all pairs sent small messages at once.
    Latency,
    /// Few pairs sent at once.
    Isolated,
    /// Every endpoint had one partner, and all pairs sent at once.
    Loaded,
}

/// How long messages of one size took from one endpoint to another, each with its answer of one byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Endpoint that sent and timed.
    pub source: u32,
    /// Endpoint that answered.
    pub destination: u32,
    /// What else was going on.
    pub phase: ProbePhase,
    /// Bytes of a message.
    pub bytes: u64,
    /// Number of messages that were timed.
    pub messages: u64,
    /// Shortest time, in seconds.
    pub minimum_s: f64,
    /// A tenth took no longer.
    pub first_decile_s: f64,
    /// Half took no longer.
    pub median_s: f64,
    /// Nine tenths took no longer.
    pub ninth_decile_s: f64,
    /// Longest time.
    pub maximum_s: f64,
}

/// The time of a message of D bytes is L + D / S from some size on (t = L·N + D/S for N messages).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Endpoint that sends.
    pub source: u32,
    /// Endpoint that receives.
    pub destination: u32,
    /// Fewest bytes of a message for which this holds; up to those of the next fit of the pair.
    pub from_bytes: u64,
    /// L, in seconds.
    pub latency_s: f64,
    /// S; unknown where time did not grow with size.
    pub bandwidth_bytes_per_s: Option<f64>,
}

/// Two different endpoints, the smaller one first.
pub type Pair = (u32, u32);

impl Measurements {
    /// Seconds on the way of the smallest message between two endpoints: half of the shortest time there and back in either
    /// direction, as clocks of two hosts cannot be compared.
    #[must_use]
    pub fn latencies(&self) -> BTreeMap<Pair, f64> {
        let mut smallest: BTreeMap<Pair, (u64, f64)> = BTreeMap::new();
        for sample in &self.samples {
            let pair = (sample.source.min(sample.destination), sample.source.max(sample.destination));
            let found = (sample.bytes, sample.minimum_s / 2.0);
            let best = smallest.entry(pair).or_insert(found);
            if found.0 < best.0 || (found.0 == best.0 && found.1 < best.1) {
                *best = found;
            }
        }
        smallest.into_iter().map(|(pair, (_, latency))| (pair, latency)).collect()
    }

    /// Bytes per second of large messages by source and destination: S of the last fit.
    #[must_use]
    pub fn bandwidths(&self) -> BTreeMap<(u32, u32), f64> {
        let known = self.fits.iter().filter_map(|fit| {
            fit.bandwidth_bytes_per_s.map(|bandwidth| ((fit.source, fit.destination), bandwidth))
        });
        known.collect()
    }

    /// Names of the hosts in the order of their endpoints, with their first endpoint and how many they have.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, u32, u32)> + '_ {
        let mut first = 0;
        self.endpoints.chunk_by(|a, b| a.host == b.host).map(move |endpoints| {
            let host = (endpoints[0].host.as_str(), first, endpoints.len() as u32);
            first += endpoints.len() as u32;
            host
        })
    }

    /// The part of the hosts that answered, from 0 to 1.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        let (mut up, mut all) = (0_u32, 0_u32);
        for (_, first, _) in self.hosts() {
            all += 1;
            up += u32::from(self.endpoints[first as usize].state == NodeState::Up);
        }
        if all == 0 { 1.0 } else { f64::from(up) / f64::from(all) }
    }

    /// Checks that every host stands once, that samples and fits join two endpoints, their order and their numbers.
    pub fn check(&self) -> Result<(), MeasurementsError> {
        let mut names = std::collections::HashSet::new();
        if let Some((name, ..)) = self.hosts().find(|(name, ..)| !names.insert(*name)) {
            return Err(MeasurementsError::ScatteredEndpoints(name.to_owned()));
        }
        let is_pair = |source: u32, destination: u32| {
            source != destination && (source.max(destination) as usize) < self.endpoints.len()
        };
        let right = |sample: &Sample| {
            let times = sample.times();
            is_pair(sample.source, sample.destination)
                && sample.messages > 0
                && times.iter().all(|time| time.is_finite() && *time >= 0.0)
                && times.is_sorted()
        };
        if let Some(index) = self.samples.iter().position(|sample| !right(sample)) {
            return Err(MeasurementsError::Row { what: "sample", index });
        }
        let key = |sample: &Sample| (sample.source, sample.destination, sample.phase, sample.bytes);
        if let Some(index) = self.samples.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            return Err(MeasurementsError::Order { what: "sample", index: index + 1 });
        }
        let right = |fit: &Fit| {
            is_pair(fit.source, fit.destination)
                && fit.latency_s.is_finite()
                && fit.bandwidth_bytes_per_s.is_none_or(|bandwidth| bandwidth.is_finite() && bandwidth > 0.0)
        };
        if let Some(index) = self.fits.iter().position(|fit| !right(fit)) {
            return Err(MeasurementsError::Row { what: "fit", index });
        }
        let key = |fit: &Fit| (fit.source, fit.destination, fit.from_bytes);
        match self.fits.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            Some(index) => Err(MeasurementsError::Order { what: "fit", index: index + 1 }),
            None => Ok(()),
        }
    }
}

impl Sample {
    /// Shortest, first decile, median, ninth decile, longest.
    #[must_use]
    pub fn times(&self) -> [f64; 5] {
        [self.minimum_s, self.first_decile_s, self.median_s, self.ninth_decile_s, self.maximum_s]
    }
}

impl Artifact for Measurements {
    const KIND: &'static str = "measurements";
}

/// Measurements that contradict themselves.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MeasurementsError {
    /// The endpoints of a host are not together.
    #[error("the endpoints of host `{0}` are not one behind the other")]
    ScatteredEndpoints(String),
    /// A sample or a fit does not join two endpoints, or holds an impossible number.
    #[error("{what} {index} does not join two endpoints, or has numbers that cannot be")]
    Row {
        /// `sample` or `fit`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// Samples or fits are not sorted, or one is there twice.
    #[error("{what} {index} does not come after the one before it")]
    Order {
        /// `sample` or `fit`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(source: u32, destination: u32, bytes: u64, minimum_s: f64) -> Sample {
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes,
            messages: 10,
            minimum_s,
            first_decile_s: minimum_s,
            median_s: minimum_s * 2.0,
            ninth_decile_s: minimum_s * 2.0,
            maximum_s: minimum_s * 3.0,
        }
    }

    fn two_hosts() -> Measurements {
        let endpoint = |host: &str, core| Endpoint { host: host.into(), core, state: NodeState::Up };
        let fit = |source, destination, from_bytes, bandwidth| Fit {
            source,
            destination,
            from_bytes,
            latency_s: 1e-6,
            bandwidth_bytes_per_s: Some(bandwidth),
        };
        Measurements {
            endpoints: vec![endpoint("a", 0), endpoint("a", 1), endpoint("b", 0)],
            samples: vec![sample(0, 2, 1, 8e-6), sample(0, 2, 64, 2e-6), sample(2, 0, 1, 6e-6)],
            fits: vec![fit(0, 2, 1, 1e9), fit(0, 2, 65536, 2e9)],
        }
    }

    #[test]
    fn latency_is_half_of_the_shortest_time_of_the_smallest_message_in_either_direction() {
        let measured = two_hosts();
        measured.check().unwrap();
        assert_eq!(measured.latencies(), [((0, 2), 3e-6)].into());
        assert_eq!(measured.bandwidths(), [((0, 2), 2e9)].into());
        assert_eq!(measured.hosts().collect::<Vec<_>>(), [("a", 0, 2), ("b", 2, 1)]);
    }

    #[test]
    fn coverage_counts_hosts() {
        let mut measured = two_hosts();
        let percent = |measured: &Measurements| (measured.coverage() * 100.0) as u32;
        assert_eq!(percent(&measured), 100);
        measured.endpoints[2].state = NodeState::Down;
        assert_eq!(percent(&measured), 50);
        assert_eq!(percent(&Measurements::default()), 100);
    }

    #[test]
    fn contradictions_are_named() {
        let broken = |change: fn(&mut Measurements)| {
            let mut measured = two_hosts();
            change(&mut measured);
            measured.check().unwrap_err().to_string()
        };
        let scattered = |m: &mut Measurements| m.endpoints.push(m.endpoints[0].clone());
        assert!(broken(scattered).contains("`a` are not one behind the other"));
        assert!(broken(|m| m.samples[0].destination = 0).starts_with("sample 0 does not join"));
        assert!(broken(|m| m.samples[1].maximum_s = 0.0).starts_with("sample 1 does not join"));
        assert!(broken(|m| m.samples.swap(0, 1)).starts_with("sample 1 does not come after"));
        assert!(broken(|m| m.fits[1].destination = 9).starts_with("fit 1 does not join"));
        assert!(broken(|m| m.fits[1].from_bytes = 1).starts_with("fit 1 does not come after"));
    }
}
