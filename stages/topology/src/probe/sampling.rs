//! Measurement of one pair: sizes, repetitions, and the stopping rule for the shortest time.

use hopmap_model::{Call, CallTime, Endpoint, Measurements, NodeState, ProbePhase, Sample, StreamRate};
use serde::{Deserialize, Serialize};

use crate::fit::fits;

/// A connection to another endpoint, from the measuring side.
pub trait Wire {
    /// Errors of the connection.
    type Error;

    /// Sends `messages` messages of `bytes` bytes, each after the one-byte reply to the previous one, and
    /// appends the round-trip times in seconds to `times`.
    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Self::Error>;
}

/// A measurement between two endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Message sizes in bytes, measured one after the other.
    pub sizes: Vec<u64>,
    /// Unmeasured messages before each size; more if these transfer less than [`Self::warm_up_bytes`].
    pub warm_up: u32,
    /// Bytes transferred before a size is measured, to open TCP windows; at most 64 messages.
    pub warm_up_bytes: u64,
    /// Messages per batch.
    pub batch: u32,
    /// Maximum number of messages per size.
    pub most: u32,
    /// A size is done when this many consecutive batches ...
    pub calm_batches: u32,
    /// ... have decreased the shortest time by less than this fraction.
    pub tolerance: f64,
    /// Time limit per size in seconds.
    pub seconds: f64,
}

/// Times of messages of one size, each with its reply.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Message size in bytes.
    pub bytes: u64,
    /// Number of measured messages.
    pub messages: u64,
    /// Shortest time, first decile, median, ninth decile and longest time, in seconds.
    pub times: [f64; 5],
}

impl Timing {
    /// The mean time in seconds, if times between two quantiles are spread evenly.
    fn mean_s(&self) -> f64 {
        let weights = [0.05, 0.25, 0.4, 0.25, 0.05];
        self.times.iter().zip(weights).map(|(time, weight)| time * weight).sum()
    }
}

/// Measures all sizes.
pub fn sample<W: Wire>(wire: &mut W, sampling: &Sampling) -> Result<Vec<Timing>, W::Error> {
    sampling.sizes.iter().map(|&bytes| sample_size(wire, sampling, bytes)).collect()
}

fn sample_size<W: Wire>(wire: &mut W, sampling: &Sampling, bytes: u64) -> Result<Timing, W::Error> {
    let mut times = Vec::new();
    let fill = (sampling.warm_up_bytes / bytes.max(1)).min(64) as u32;
    wire.time(bytes, sampling.warm_up.max(fill), &mut times)?;
    times.clear();
    let (mut spent, mut shortest, mut calm) = (0.0, f64::INFINITY, 0);
    while times.len() < sampling.most as usize && calm < sampling.calm_batches && spent < sampling.seconds {
        let first = times.len();
        let left = sampling.most - times.len() as u32;
        // A batch must not exceed the time left: slow connections get short batches.
        let pace = if first == 0 { 0.0 } else { spent / first as f64 };
        let affordable = if pace > 0.0 { ((sampling.seconds - spent) / pace).ceil().max(1.0) } else { 1.0 };
        let batch = if first == 0 { 1 } else { sampling.batch.min(left).min(affordable.min(1e9) as u32) };
        wire.time(bytes, batch, &mut times)?;
        spent += times[first..].iter().sum::<f64>();
        let found = times[first..].iter().copied().fold(shortest, f64::min);
        let is_calm = first > 0 && found > shortest * (1.0 - sampling.tolerance);
        calm = if is_calm { calm + 1 } else { 0 };
        shortest = found;
    }
    Ok(summary(bytes, times))
}

/// Quantiles of a non-empty list of times.
pub(crate) fn summary(bytes: u64, mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    let quantile = |part: f64| times.get((part * last as f64).round() as usize).copied().unwrap_or_default();
    Timing { bytes, messages: times.len() as u64, times: [0.0, 0.1, 0.5, 0.9, 1.0].map(quantile) }
}

/// Endpoints and results so far.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    endpoints: Vec<Endpoint>,
    samples: Vec<Sample>,
    calls: Vec<CallTime>,
    streams: Vec<StreamRate>,
    pub(crate) eager_limit: Option<u64>,
}

impl Record {
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, samples: Vec::new(), calls: Vec::new(), streams: Vec::new(), eager_limit: None }
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Adds the results of one endpoint with another; returns an error for impossible times.
    pub(crate) fn add(
        &mut self,
        (source, destination): (u32, u32),
        phase: ProbePhase,
        timings: &[Timing],
    ) -> Result<(), String> {
        check(timings)?;
        for timing in timings {
            let [minimum_s, first_decile_s, median_s, ninth_decile_s, maximum_s] = timing.times;
            let (bytes, messages) = (timing.bytes, timing.messages);
            let sample = Sample {
                source,
                destination,
                phase,
                bytes,
                messages,
                minimum_s,
                first_decile_s,
                median_s,
                ninth_decile_s,
                maximum_s,
            };
            self.samples.push(sample);
        }
        Ok(())
    }

    /// Adds the times of a call; returns an error for impossible times.
    pub(crate) fn add_calls(
        &mut self,
        (source, destination): (u32, u32),
        call: Call,
        timings: &[Timing],
    ) -> Result<(), String> {
        check(timings)?;
        self.calls.extend(timings.iter().map(|timing| {
            let [minimum_s, _, median_s, _, maximum_s] = timing.times;
            let (bytes, messages) = (timing.bytes, timing.messages);
            CallTime { source, destination, call, bytes, messages, minimum_s, median_s, maximum_s }
        }));
        Ok(())
    }

    /// Adds the rate of a stream; returns an error for impossible times.
    pub(crate) fn add_stream(
        &mut self,
        (source, destination): (u32, u32),
        step: u32,
        timings: &[Timing],
    ) -> Result<(), String> {
        check(timings)?;
        let stream = |timing: &Timing| StreamRate {
            step,
            source,
            destination,
            bytes: timing.bytes * timing.messages,
            seconds: timing.mean_s() * timing.messages as f64,
        };
        self.streams.extend(timings.first().map(stream));
        Ok(())
    }

    /// Gives up a host: it is down, and its measurements are discarded.
    pub(crate) fn lose(&mut self, host: &str) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.host == host) {
            endpoint.state = NodeState::Down;
        }
        let is_up = |endpoint: u32| self.endpoints[endpoint as usize].state == NodeState::Up;
        self.samples.retain(|sample| is_up(sample.source) && is_up(sample.destination));
        self.calls.retain(|call| is_up(call.source) && is_up(call.destination));
        self.streams.retain(|stream| is_up(stream.source) && is_up(stream.destination));
    }

    pub(crate) fn is_up(&self, endpoint: u32) -> bool {
        self.endpoints[endpoint as usize].state == NodeState::Up
    }

    /// The measurements with the fitted latencies and bandwidths.
    pub(crate) fn finish(self) -> Measurements {
        let Self { endpoints, mut samples, mut calls, mut streams, eager_limit } = self;
        let key = |sample: &Sample| (sample.source, sample.destination, sample.phase, sample.bytes);
        samples.sort_unstable_by_key(key);
        // Of duplicates only the first is kept.
        samples.dedup_by_key(|sample| key(sample));
        calls.sort_unstable_by_key(|call| (call.source, call.destination, call.call, call.bytes));
        calls.dedup_by_key(|call| (call.source, call.destination, call.call, call.bytes));
        streams.sort_unstable_by_key(|stream| (stream.step, stream.source));
        streams.dedup_by_key(|stream| (stream.step, stream.source));
        Measurements { fits: fits(&samples), endpoints, samples, calls, streams, eager_limit }
    }
}

/// Returns an error for impossible times.
fn check(timings: &[Timing]) -> Result<(), String> {
    match timings.iter().find(|timing| !is_possible(timing)) {
        Some(timing) => Err(format!("times {:?} for {} messages", timing.times, timing.messages)),
        None => Ok(()),
    }
}

/// Whether a result is possible: an endpoint may be faulty or malicious.
fn is_possible(timing: &Timing) -> bool {
    timing.messages > 0
        && timing.times.iter().all(|time| time.is_finite() && (0.0..=1e6).contains(time))
        && timing.times.is_sorted()
        && timing.times[0] > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A connection whose message times are a function of the message number.
    struct Scripted<F> {
        time: F,
        messages: u32,
        batches: Vec<u32>,
    }

    impl<F: Fn(u64, u32) -> f64> Wire for Scripted<F> {
        type Error = Infallible;

        fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Infallible> {
            self.batches.push(messages);
            for _ in 0..messages {
                times.push((self.time)(bytes, self.messages));
                self.messages += 1;
            }
            Ok(())
        }
    }

    fn scripted<F: Fn(u64, u32) -> f64>(time: F) -> Scripted<F> {
        Scripted { time, messages: 0, batches: Vec::new() }
    }

    fn sampling() -> Sampling {
        Sampling {
            sizes: vec![1],
            warm_up: 5,
            warm_up_bytes: 0,
            batch: 10,
            most: 1000,
            calm_batches: 3,
            tolerance: 0.01,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_stable_connection_is_done_after_a_few_batches() {
        let mut wire = scripted(|_, _| 1e-4);
        let timing = sample(&mut wire, &sampling()).unwrap()[0];
        assert_eq!(wire.batches, [5, 1, 10, 10, 10]);
        assert_eq!((timing.messages, timing.times), (31, [1e-4; 5]));
    }

    #[test]
    fn a_connection_is_measured_until_its_minimum_converges() {
        let shrinking = |_: u64, message: u32| 1e-4 + 1e-4 * 0.97_f64.powf(f64::from(message));
        let mut wire = scripted(shrinking);
        let timing = sample(&mut wire, &sampling()).unwrap()[0];
        assert!(timing.times[0] < 1.02e-4, "{timing:?}");
        assert!(timing.messages < 300, "{timing:?}");
    }

    #[test]
    fn a_slow_connection_ends_in_time_with_at_least_one_message() {
        let mut wire = scripted(|_, _| 0.4);
        let timing = sample(&mut wire, &sampling()).unwrap()[0];
        assert_eq!(timing.messages, 3);
        let mut wire = scripted(|_, _| 60.0);
        assert_eq!(sample(&mut wire, &sampling()).unwrap()[0].messages, 1);
    }

    #[test]
    fn windows_are_opened_before_large_messages_are_timed() {
        let mut wire = scripted(|_, _| 1e-3);
        let sizes = vec![1, 1 << 16, 1 << 22];
        sample(&mut wire, &Sampling { sizes, warm_up_bytes: 1 << 20, ..sampling() }).unwrap();
        let warm_ups: Vec<u32> =
            wire.batches.into_iter().filter(|&batch| batch != 1 && batch != 10).collect();
        assert_eq!(warm_ups, [64, 16, 5]);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let timing = summary(8, (0..=10).rev().map(f64::from).collect());
        assert_eq!(timing, Timing { bytes: 8, messages: 11, times: [0.0, 1.0, 5.0, 9.0, 10.0] });
    }

    fn record() -> Record {
        let endpoint = |host: &str| Endpoint { host: host.into(), core: 0, state: NodeState::Up };
        Record::new(["a", "b", "c"].map(endpoint).to_vec())
    }

    fn timing(bytes: u64, time: f64) -> Timing {
        Timing { bytes, messages: 5, times: [time; 5] }
    }

    #[test]
    fn combined_results_are_sorted_and_correct() {
        let mut record = record();
        record.add((2, 0), ProbePhase::Latency, &[timing(64, 3e-6), timing(1, 2e-6)]).unwrap();
        record.add((0, 2), ProbePhase::Isolated, &[timing(1 << 20, 1e-3)]).unwrap();
        record.add((0, 2), ProbePhase::Latency, &[timing(1, 2e-6)]).unwrap();
        let measured = record.finish();
        measured.check().unwrap();
        assert_eq!(measured.samples.len(), 4);
    }

    #[test]
    fn impossible_times_are_rejected() {
        let mut record = record();
        for times in [[-1.0; 5], [f64::NAN; 5], [0.0; 5], [1.0, 2.0, 3.0, 2.0, 5.0], [1e9; 5]] {
            let timing = Timing { bytes: 1, messages: 1, times };
            record.add((0, 1), ProbePhase::Latency, &[timing]).unwrap_err();
        }
        let none = Timing { bytes: 1, messages: 0, times: [1.0; 5] };
        record.add((0, 1), ProbePhase::Latency, &[none]).unwrap_err();
        assert!(record.finish().samples.is_empty());
    }

    #[test]
    fn a_lost_host_is_down_and_its_times_are_discarded() {
        let mut record = record();
        for pair in [(0, 1), (1, 2), (2, 0)] {
            record.add(pair, ProbePhase::Latency, &[timing(1, 1e-6)]).unwrap();
        }
        record.lose("b");
        assert!(record.is_up(0) && !record.is_up(1));
        let measured = record.finish();
        assert_eq!(measured.samples.iter().map(|sample| sample.source).collect::<Vec<_>>(), [2]);
        assert!((measured.coverage() - 2.0 / 3.0).abs() < 1e-12);
    }
}
