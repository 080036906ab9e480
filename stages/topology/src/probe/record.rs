//! What was measured, put together.

use hopmap_model::{Endpoint, Measurements, NodeState, ProbePhase, Sample};

use super::sampling::Timing;
use crate::fit::fits;

/// What is known so far of the endpoints and the ways between them.
#[derive(Debug)]
pub(crate) struct Record {
    endpoints: Vec<Endpoint>,
    samples: Vec<Sample>,
}

impl Record {
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, samples: Vec::new() }
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Takes what one endpoint measured with another; says what is wrong with times that cannot be.
    pub(crate) fn add(
        &mut self,
        (source, destination): (u32, u32),
        phase: ProbePhase,
        timings: &[Timing],
    ) -> Result<(), String> {
        if let Some(timing) = timings.iter().find(|timing| !is_possible(timing)) {
            return Err(format!("times {:?} for {} messages", timing.times, timing.messages));
        }
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

    /// Gives a host up: it is down, and what was measured with it does not count.
    pub(crate) fn lose(&mut self, host: &str) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.host == host) {
            endpoint.state = NodeState::Down;
        }
        let is_up = |endpoint: u32| self.endpoints[endpoint as usize].state == NodeState::Up;
        self.samples.retain(|sample| is_up(sample.source) && is_up(sample.destination));
    }

    pub(crate) fn is_up(&self, endpoint: u32) -> bool {
        self.endpoints[endpoint as usize].state == NodeState::Up
    }

    /// The measurements with what time depends on.
    pub(crate) fn finish(self) -> Measurements {
        let Self { endpoints, mut samples } = self;
        let key = |sample: &Sample| (sample.source, sample.destination, sample.phase, sample.bytes);
        samples.sort_unstable_by_key(key);
        // Whoever sends the same twice is believed once.
        samples.dedup_by_key(|sample| key(sample));
        Measurements { fits: fits(&samples), endpoints, samples }
    }
}

/// Whether somebody can have measured that: an endpoint may lie, or be broken.
fn is_possible(timing: &Timing) -> bool {
    timing.messages > 0
        && timing.times.iter().all(|time| time.is_finite() && (0.0..=1e6).contains(time))
        && timing.times.is_sorted()
        && timing.times[0] > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let endpoint = |host: &str| Endpoint { host: host.into(), core: 0, state: NodeState::Up };
        Record::new(["a", "b", "c"].map(endpoint).to_vec())
    }

    fn timing(bytes: u64, time: f64) -> Timing {
        Timing { bytes, messages: 5, times: [time; 5] }
    }

    #[test]
    fn what_is_put_together_is_sorted_and_right() {
        let mut record = record();
        record.add((2, 0), ProbePhase::Latency, &[timing(64, 3e-6), timing(1, 2e-6)]).unwrap();
        record.add((0, 2), ProbePhase::Isolated, &[timing(1 << 20, 1e-3)]).unwrap();
        record.add((0, 2), ProbePhase::Latency, &[timing(1, 2e-6)]).unwrap();
        let measured = record.finish();
        measured.check().unwrap();
        assert_eq!(measured.samples.len(), 4);
    }

    #[test]
    fn impossible_times_are_refused() {
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
    fn a_lost_host_is_down_and_its_times_do_not_count() {
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
