//! Results of probing: message times for several sizes between the endpoints of a machine.

use std::collections::BTreeMap;

use miette::Diagnostic;

use crate::stage::Artifact;
use crate::system_graph::NodeState;

/// Results of probing.
///
/// Between hosts, the first endpoint of each host is measured and represents the host. All endpoints within a
/// host are measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurements {
    /// The probed endpoints, host by host; the index is the endpoint.
    pub endpoints: Vec<Endpoint>,
    /// Message times, by source, destination, phase and bytes.
    pub samples: Vec<Sample>,
    /// Fitted latency and bandwidth, by source, destination and first size.
    pub fits: Vec<Fit>,
    /// Times of MPI calls, by source, destination, call and bytes.
    pub calls: Vec<CallTime>,
    /// Streams, by step and source. Those of a step ran at once.
    pub streams: Vec<StreamRate>,
    /// Bytes of the shortest message whose blocking send waits for its receiver, between hosts.
    pub eager_limit: Option<u64>,
}

/// A process or core that took part in the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of its host.
    pub host: String,
    /// Core of the host, or index among the processes of the host.
    pub core: u32,
    /// Whether it answered.
    pub state: NodeState,
}

crate::named_values! {
    /// Load on the network during a measurement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ProbePhase {
        /// All pairs exchanged small messages at once; every endpoint had one partner.
        Latency = "latency",
        /// Few pairs sent at once.
        Isolated = "isolated",
        /// All pairs exchanged messages at once; every endpoint had one partner.
        Loaded = "loaded",
        /// One pair exchanged messages, and nobody else.
        Alone = "alone",
    }
}

/// A call of MPI that costs its caller time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// A blocking send to a process that receives at once.
    Send,
    /// A nonblocking send.
    Isend,
    /// A receive of a message that has arrived.
    Recv,
}

/// Times that a call takes for messages of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTime {
    /// Endpoint that called.
    pub source: u32,
    /// The other endpoint of the message.
    pub destination: u32,
    /// The call.
    pub call: Call,
    /// Message size in bytes.
    pub bytes: u64,
    /// Number of measured calls.
    pub messages: u64,
    /// Shortest time, in seconds.
    pub minimum_s: f64,
    /// Median, in seconds.
    pub median_s: f64,
    /// Longest time, in seconds.
    pub maximum_s: f64,
}

/// Messages that one endpoint sent to another as fast as it could, while the other streams of its step ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRate {
    /// Streams with the same number ran at once.
    pub step: u32,
    /// Sending endpoint.
    pub source: u32,
    /// Receiving endpoint.
    pub destination: u32,
    /// Bytes of all its messages.
    pub bytes: u64,
    /// From its first message to the arrival of the last one. The streams of a step begin together.
    pub seconds: f64,
}

/// Times of messages of one size from one endpoint to another, each including the one-byte reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Endpoint that sent and measured.
    pub source: u32,
    /// Endpoint that replied.
    pub destination: u32,
    /// Load on the network.
    pub phase: ProbePhase,
    /// Message size in bytes.
    pub bytes: u64,
    /// Number of measured messages.
    pub messages: u64,
    /// Shortest time, in seconds.
    pub minimum_s: f64,
    /// First decile, in seconds.
    pub first_decile_s: f64,
    /// Median, in seconds.
    pub median_s: f64,
    /// Ninth decile, in seconds.
    pub ninth_decile_s: f64,
    /// Longest time, in seconds.
    pub maximum_s: f64,
}

/// Fitted message time L + D / S for D bytes, valid from a given size (t = L·N + D/S for N messages).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Sending endpoint.
    pub source: u32,
    /// Receiving endpoint.
    pub destination: u32,
    /// Smallest message size of the fit, which extends to that of the next fit of the pair.
    pub from_bytes: u64,
    /// L, in seconds.
    pub latency_s: f64,
    /// S; `None` if the time did not grow with the size.
    pub bandwidth_bytes_per_s: Option<f64>,
}

/// Two distinct endpoints, the smaller one first.
pub type Pair = (u32, u32);

impl Measurements {
    /// One-way time of the smallest message between two endpoints in seconds: half of the shortest round trip
    /// in either direction, since clocks of two hosts cannot be compared.
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

    /// Bandwidth of large messages in bytes per second, by source and destination: S of the last fit.
    #[must_use]
    pub fn bandwidths(&self) -> BTreeMap<(u32, u32), f64> {
        let known = self.fits.iter().filter_map(|fit| {
            fit.bandwidth_bytes_per_s.map(|bandwidth| ((fit.source, fit.destination), bandwidth))
        });
        known.collect()
    }

    /// Hosts in endpoint order: name, first endpoint, number of endpoints.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, u32, u32)> + '_ {
        let mut first = 0;
        self.endpoints.chunk_by(|a, b| a.host == b.host).map(move |endpoints| {
            let host = (endpoints[0].host.as_str(), first, endpoints.len() as u32);
            first += endpoints.len() as u32;
            host
        })
    }

    /// Fraction of hosts that answered.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        let (mut up, mut all) = (0_u32, 0_u32);
        for (_, first, _) in self.hosts() {
            all += 1;
            up += u32::from(self.endpoints[first as usize].state == NodeState::Up);
        }
        if all == 0 { 1.0 } else { f64::from(up) / f64::from(all) }
    }

    /// Checks that the endpoints of a host are consecutive, and that samples and fits are sorted, refer to
    /// two endpoints and have valid values.
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
        if let Some(index) = self.fits.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            return Err(MeasurementsError::Order { what: "fit", index: index + 1 });
        }
        self.check_calls(is_pair)?;
        self.check_streams(is_pair)
    }

    fn check_calls(&self, is_pair: impl Fn(u32, u32) -> bool) -> Result<(), MeasurementsError> {
        let right = |call: &CallTime| {
            let times = [call.minimum_s, call.median_s, call.maximum_s];
            is_pair(call.source, call.destination)
                && call.messages > 0
                && times.iter().all(|time| time.is_finite() && *time >= 0.0)
                && times.is_sorted()
        };
        if let Some(index) = self.calls.iter().position(|call| !right(call)) {
            return Err(MeasurementsError::Row { what: "overhead", index });
        }
        let key = |call: &CallTime| (call.source, call.destination, call.call, call.bytes);
        match self.calls.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            Some(index) => Err(MeasurementsError::Order { what: "overhead", index: index + 1 }),
            None => Ok(()),
        }
    }

    fn check_streams(&self, is_pair: impl Fn(u32, u32) -> bool) -> Result<(), MeasurementsError> {
        let right = |stream: &StreamRate| {
            is_pair(stream.source, stream.destination)
                && stream.bytes > 0
                && stream.seconds.is_finite()
                && stream.seconds > 0.0
        };
        if let Some(index) = self.streams.iter().position(|stream| !right(stream)) {
            return Err(MeasurementsError::Row { what: "stream", index });
        }
        let key = |stream: &StreamRate| (stream.step, stream.source);
        match self.streams.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            Some(index) => Err(MeasurementsError::Order { what: "stream", index: index + 1 }),
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

/// Inconsistent measurements.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MeasurementsError {
    /// The endpoints of a host are not consecutive.
    #[error("the endpoints of host `{0}` are not consecutive")]
    #[diagnostic(code(model::scattered_endpoints))]
    ScatteredEndpoints(String),
    /// A row does not refer to two endpoints, or has an invalid value.
    #[error("{what} {index} does not refer to two endpoints, or has invalid values")]
    #[diagnostic(code(model::row))]
    Row {
        /// What the row is, such as `sample`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// Rows are not sorted or not unique.
    #[error("{what} {index} is out of order or a duplicate")]
    #[diagnostic(code(model::order))]
    Order {
        /// What the row is, such as `sample`.
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
            ..Measurements::default()
        }
    }

    #[test]
    fn latency_is_half_of_the_shortest_round_trip_of_the_smallest_message() {
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
    fn inconsistencies_are_reported() {
        let broken = |change: fn(&mut Measurements)| {
            let mut measured = two_hosts();
            change(&mut measured);
            measured.check().unwrap_err().to_string()
        };
        let scattered = |m: &mut Measurements| m.endpoints.push(m.endpoints[0].clone());
        assert!(broken(scattered).contains("`a` are not consecutive"));
        assert!(broken(|m| m.samples[0].destination = 0).starts_with("sample 0 does not refer"));
        assert!(broken(|m| m.samples[1].maximum_s = 0.0).starts_with("sample 1 does not refer"));
        assert!(broken(|m| m.samples.swap(0, 1)).starts_with("sample 1 is out of order"));
        assert!(broken(|m| m.fits[1].destination = 9).starts_with("fit 1 does not refer"));
        assert!(broken(|m| m.fits[1].from_bytes = 1).starts_with("fit 1 is out of order"));
    }
}
