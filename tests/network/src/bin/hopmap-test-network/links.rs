//! When a frame is due.

use hopmap_test_network::{Description, Request};

/// The most bytes that wait for one ordered pair of hosts; more are dropped.
const QUEUE: u64 = 64 << 20;

/// The ways between hosts; times are nanoseconds of one clock.
#[derive(Debug)]
pub(crate) struct Links {
    hosts: usize,
    base_s: f64,
    /// By sender, then by receiver.
    pairs: Vec<Link>,
    cut: Vec<bool>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Link {
    delay: u64,
    /// Nanoseconds per byte.
    pace: f64,
    /// When the last frame has gone.
    free: u64,
    /// When the last frame is due: frames of a pair keep their order.
    last: u64,
}

impl Links {
    /// The ways of a description, with the seconds that a message takes on none of them.
    pub(crate) fn new(description: &Description, base_s: f64) -> Self {
        let hosts = description.hosts();
        let mut links =
            Self { hosts, base_s, pairs: vec![Link::default(); hosts * hosts], cut: vec![false; hosts] };
        for (from, (latencies, rates)) in description.latencies_s.iter().zip(&description.rates).enumerate() {
            for (to, (&seconds, &bytes_per_s)) in latencies.iter().zip(rates).enumerate() {
                links.set_latency(from, to, seconds);
                links.set_rate(from, to, bytes_per_s);
            }
        }
        links
    }

    pub(crate) fn hosts(&self) -> usize {
        self.hosts
    }

    /// What is taken off every latency, in seconds.
    pub(crate) fn base_s(&self) -> f64 {
        self.base_s
    }

    /// Makes the change of a request that has been checked.
    pub(crate) fn change(&mut self, request: &Request) {
        match *request {
            Request::Latency { from, to, seconds } => self.set_latency(from, to, seconds),
            Request::Rate { from, to, bytes_per_s } => self.set_rate(from, to, bytes_per_s),
            Request::Cut { host } => self.cut[host] = true,
            Request::Join { host } => self.cut[host] = false,
            Request::Counters => {}
        }
    }

    fn set_latency(&mut self, from: usize, to: usize, seconds: f64) {
        self.pairs[from * self.hosts + to].delay = ((seconds - self.base_s).max(0.0) * 1e9) as u64;
    }

    fn set_rate(&mut self, from: usize, to: usize, bytes_per_s: Option<f64>) {
        self.pairs[from * self.hosts + to].pace = bytes_per_s.map_or(0.0, |rate| 1e9 / rate);
    }

    /// When a frame that came at `now` is due; none if it is lost.
    pub(crate) fn due(&mut self, from: usize, to: usize, bytes: usize, now: u64) -> Option<u64> {
        if from >= self.hosts || to >= self.hosts || self.cut[from] || self.cut[to] {
            return None;
        }
        let link = &mut self.pairs[from * self.hosts + to];
        let begin = link.free.max(now);
        if (begin - now) as f64 > QUEUE as f64 * link.pace {
            return None;
        }
        link.free = begin + (bytes as f64 * link.pace) as u64;
        link.last = link.last.max(link.free + link.delay);
        Some(link.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_due_after_queue_rate_and_latency() {
        let mut links = Links::new(&Description::uniform(2, 1e-3).with_rate(1e6), 0.0);
        assert_eq!(links.due(0, 1, 1000, 5_000), Some(2_005_000));
        assert_eq!(links.due(0, 1, 1000, 6_000), Some(3_005_000));
        assert_eq!(links.due(1, 0, 500, 6_000), Some(1_506_000));
        assert_eq!(links.due(0, 1, 1000, 9_000_000), Some(11_000_000));
    }

    #[test]
    fn the_base_is_taken_off_as_far_as_there_is_latency() {
        let mut links = Links::new(&Description::uniform(3, 100e-6), 30e-6);
        links.change(&Request::Latency { from: 0, to: 2, seconds: 10e-6 });
        assert_eq!(links.due(0, 1, 1, 0), Some(70_000));
        assert_eq!(links.due(0, 2, 1, 0), Some(0));
    }

    #[test]
    fn frames_keep_their_order_when_a_latency_falls() {
        let mut links = Links::new(&Description::uniform(2, 1e-3), 0.0);
        assert_eq!(links.due(0, 1, 1, 0), Some(1_000_000));
        links.change(&Request::Latency { from: 0, to: 1, seconds: 0.0 });
        assert_eq!(links.due(0, 1, 1, 10), Some(1_000_000));
        assert_eq!(links.due(0, 1, 1, 2_000_000), Some(2_000_000));
    }

    #[test]
    fn nothing_passes_a_host_that_is_cut() {
        let mut links = Links::new(&Description::uniform(3, 0.0), 0.0);
        links.change(&Request::Cut { host: 1 });
        assert_eq!([links.due(0, 1, 1, 0), links.due(1, 2, 1, 0)], [None, None]);
        assert_eq!(links.due(0, 2, 1, 0), Some(0));
        assert_eq!(links.due(0, 9, 1, 0), None);
        links.change(&Request::Join { host: 1 });
        assert_eq!(links.due(0, 1, 1, 7), Some(7));
    }
}
