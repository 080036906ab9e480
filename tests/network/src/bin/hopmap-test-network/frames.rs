//! Frames on their way: one event per link, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::links::{Flight, Links};

/// A frame and the link that it gets to next.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bytes: Box<[u8]>,
    /// Links passed so far.
    passed: usize,
    /// Links of its route when it was sent: the links of the calibration are replaced while its last frames are on their way.
    hops: usize,
    flight: Flight,
}

impl Frame {
    /// When its last byte is due at the host.
    pub(crate) fn due(&self) -> u64 {
        self.flight.tail
    }
}

/// The next event of a frame: its head gets to a link, or its last byte to the host.
#[derive(Debug)]
struct Event {
    due: u64,
    /// Orders events of the same time.
    number: u64,
    frame: Frame,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// All frames between hosts.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    events: BinaryHeap<Reverse<Event>>,
    /// Events so far.
    count: u64,
}

impl Frames {
    /// Takes a frame that a host sent at `now`; whether it is on its way.
    pub(crate) fn enter(
        &mut self,
        links: &mut Links,
        (from, to): (usize, usize),
        bytes: Box<[u8]>,
        now: u64,
    ) -> bool {
        let Some(flight) = links.enter(from, to, now) else { return false };
        let hops = links.description().route(from, to).len();
        self.pass(links, Frame { from, to, bytes, passed: 0, hops, flight })
    }

    /// When the next event is due, and whether somebody may notice if it is late: not if the frame had to wait for others.
    pub(crate) fn next(&self) -> Option<(u64, bool)> {
        let Reverse(Event { due, frame, .. }) = self.events.peek()?;
        Some((*due, !frame.flight.waited))
    }

    /// The next frame whose last byte is due at its host by `now`, after all links on the way; an error is a frame that was lost.
    pub(crate) fn arrive(&mut self, links: &mut Links, now: u64) -> Option<Result<Frame, Lost>> {
        while self.events.peek().is_some_and(|Reverse(event)| event.due <= now) {
            let Reverse(Event { frame, .. }) = self.events.pop()?;
            if frame.passed == frame.hops {
                return Some(Ok(frame));
            }
            if !self.pass(links, frame) {
                return Some(Err(Lost));
            }
        }
        None
    }

    /// Sends a frame over its next link; whether it was not lost.
    fn pass(&mut self, links: &mut Links, mut frame: Frame) -> bool {
        let route = links.description().route(frame.from, frame.to);
        let (link, is_last) = (route[frame.passed], frame.passed + 1 == route.len());
        let Some(flight) = links.pass(link, frame.bytes.len(), frame.flight) else { return false };
        (frame.flight, frame.passed) = (flight, frame.passed + 1);
        self.count += 1;
        let due = if is_last { flight.tail } else { flight.head };
        self.events.push(Reverse(Event { due, number: self.count, frame }));
        true
    }
}

/// A frame that was lost on the way.
#[derive(Debug)]
pub(crate) struct Lost;

#[cfg(test)]
mod tests {
    use hopmap_test_network::{Description, Link};

    use super::*;

    /// Sends frames of 1000 bytes, by when they are sent, and returns when and from where they arrive.
    fn arrivals(description: Description, sent: &[(u64, usize, usize)]) -> Vec<(u64, usize)> {
        let (mut links, mut frames) = (Links::new(description, 0.0), Frames::default());
        let mut arrived = Vec::new();
        for (now, from, to) in sent.iter().copied().chain([(u64::MAX, 0, 0)]) {
            while let Some(frame) = frames.arrive(&mut links, now) {
                let frame = frame.unwrap();
                arrived.push((frame.due(), frame.from));
            }
            if from != to {
                assert!(frames.enter(&mut links, (from, to), vec![0; 1000].into(), now));
            }
        }
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

    /// The last frames of the calibration were on a route that the network does not have: its switch panicked.
    #[test]
    fn frames_of_links_that_were_replaced_still_arrive() {
        let mut links = Links::new(Description::uniform(2, 1e-3), 0.0);
        let mut frames = Frames::default();
        assert!(frames.enter(&mut links, (0, 1), vec![0; 10].into(), 0));
        links = Links::new(Description::links(2, 0, Vec::new()), 0.0);
        assert!(frames.arrive(&mut links, 2_000_000).unwrap().is_ok());
        assert!(!frames.enter(&mut links, (0, 1), vec![0; 10].into(), 0));
    }

    #[test]
    fn a_frame_without_a_route_is_lost_at_once() {
        let mut links = Links::new(Description::links(2, 0, vec![Link::new(0, 1, 0.0, None)]), 0.0);
        assert!(!Frames::default().enter(&mut links, (1, 0), vec![0; 10].into(), 0));
    }
}
