//! Frames on their way: one event per link, in the order of time.

use std::collections::BTreeMap;

use hopmap_test_network::{Counters, Description};

use crate::lateness::Lateness;
use crate::links::{Flight, Links};

/// A frame and the link that it gets to next.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bytes: Box<[u8]>,
    /// Links passed so far.
    passed: usize,
    flight: Flight,
}

impl Frame {
    /// When its last byte is due at the host.
    pub(crate) fn due(&self) -> u64 {
        self.flight.tail
    }
}

/// The links of a network and all frames on them.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) links: Links,
    /// What has been done so far; the links count for themselves.
    pub(crate) counters: Counters,
    /// How late frames were since somebody asked.
    pub(crate) lateness: Lateness,
    /// The next event of every frame: its head gets to a link, or its last byte to the host. Numbers order those of the same time.
    events: BTreeMap<(u64, u64), Frame>,
    /// Events so far.
    count: u64,
}

impl Frames {
    /// No frames on the links of a description, where a message takes some seconds without any latency.
    pub(crate) fn new(description: Description, base_s: f64) -> Self {
        let counters = Counters { base_s, ..Counters::default() };
        let (links, lateness) = (Links::new(description, base_s), Lateness::new());
        Self { links, counters, lateness, events: BTreeMap::new(), count: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes a frame that a host sent at `now`.
    pub(crate) fn enter(&mut self, from: usize, to: usize, bytes: Box<[u8]>, now: u64) {
        match self.links.enter(from, to, now) {
            Some(flight) => self.pass(Frame { from, to, bytes, passed: 0, flight }),
            None => self.counters.dropped += 1,
        }
    }

    /// When the next event is due, and whether somebody may notice if it is late: not if the frame had to wait for others.
    pub(crate) fn next(&self) -> Option<(u64, bool)> {
        self.events.first_key_value().map(|((due, _), frame)| (*due, !frame.flight.waited))
    }

    /// The next frame whose last byte is due at its host by `now`, after all links on the way.
    pub(crate) fn arrive(&mut self, now: u64) -> Option<Frame> {
        while let Some(event) = self.events.first_entry().filter(|event| event.key().0 <= now) {
            let frame = event.remove();
            if frame.passed == self.links.description().route(frame.from, frame.to).len() {
                return Some(frame);
            }
            self.pass(frame);
        }
        None
    }

    /// Sends a frame over its next link, unless it is lost there.
    fn pass(&mut self, mut frame: Frame) {
        let route = self.links.description().route(frame.from, frame.to);
        let (link, is_last) = (route[frame.passed], frame.passed + 1 == route.len());
        let Some(flight) = self.links.pass(link, frame.bytes.len(), frame.flight) else {
            self.counters.dropped += 1;
            return;
        };
        (frame.flight, frame.passed) = (flight, frame.passed + 1);
        self.count += 1;
        let due = if is_last { flight.tail } else { flight.head };
        self.events.insert((due, self.count), frame);
    }
}

#[cfg(test)]
mod tests {
    use hopmap_test_network::Link;

    use super::*;

    /// Sends frames of 1000 bytes, by when they are sent, and returns when and from where they arrive.
    fn arrivals(description: Description, sent: &[(u64, usize, usize)]) -> Vec<(u64, usize)> {
        let mut frames = Frames::new(description, 0.0);
        let mut arrived = Vec::new();
        for (now, from, to) in sent.iter().copied().chain([(u64::MAX, 0, 0)]) {
            while let Some(frame) = frames.arrive(now) {
                arrived.push((frame.due(), frame.from));
            }
            if from != to {
                frames.enter(from, to, vec![0; 1000].into(), now);
            }
        }
        assert_eq!(frames.counters.dropped, 0);
        arrived
    }

    /// Two hosts with different distances to the switch before a link of 1 MB/s to the third: `links.due` at the entry of a route
    /// would book the link for the first frame sent.
    #[test]
    fn frames_of_unequal_routes_leave_a_link_in_the_order_of_arrival() {
        let link = |from, to, latency_s, rate| Link::new(from, to, latency_s, rate);
        let links = vec![link(0, 3, 10e-3, None), link(1, 3, 1e-3, None), link(3, 2, 0.0, Some(1e6))];
        let description = Description::links(3, 1, links);
        let sent = [(0, 0, 2), (1_000_000, 1, 2), (2_000_000, 1, 2), (8_500_000, 1, 2)];
        let expected = [(3_000_000, 1), (4_000_000, 1), (10_500_000, 1), (11_500_000, 0)];
        assert_eq!(arrivals(description, &sent), expected);
    }

    #[test]
    fn two_streams_over_one_uplink_get_half_of_it_each() {
        let description = Description::tree_links(&[2, 2], &[1e9, 1e6], &[0.0]);
        let sent: Vec<_> = (0..1000).flat_map(|k| [(k * 1000, 0, 2), (k * 1000, 1, 3)]).collect();
        let arrived = arrivals(description, &sent);
        let (end, _) = *arrived.last().unwrap();
        assert_eq!((arrived.len(), end / 1_000_000), (2000, 2000));
        let first = arrived[..1000].iter().filter(|(_, from)| *from == 0).count();
        assert!((490..=510).contains(&first), "{first}");
    }

    #[test]
    fn a_frame_without_a_route_is_lost_at_once() {
        let mut frames = Frames::new(Description::links(2, 0, vec![Link::new(0, 1, 0.0, None)]), 0.0);
        frames.enter(1, 0, vec![0; 10].into(), 0);
        assert_eq!((frames.is_empty(), frames.counters.dropped), (true, 1));
    }
}
