//! When a frame gets to the end of a link.

use hopmap_test_network::{Description, LinkCounters, Request};

/// Where a frame is in time, in nanoseconds of one clock: when its first and its last byte get to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) head: u64,
    pub(crate) tail: u64,
    /// Whether it waited for another frame, so that nobody measures a latency with it.
    pub(crate) waited: bool,
}

/// The links of a network.
#[derive(Debug)]
pub(crate) struct Links {
    description: Description,
    base_s: f64,
    state: Vec<Link>,
    cut: Vec<bool>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Link {
    delay: u64,
    /// Nanoseconds per byte.
    pace: f64,
    /// When the last byte of the last frame has gone.
    free: u64,
    /// When it has arrived: frames keep their order.
    last: u64,
    counters: LinkCounters,
}

impl Links {
    /// The links of a description, with the seconds that a message takes on none of them.
    pub(crate) fn new(description: Description, base_s: f64) -> Self {
        let nodes = description.hosts.len() + description.switches.len();
        let link = |link: &hopmap_test_network::Link| Link {
            delay: nanoseconds(link.latency_s),
            pace: pace(link.bytes_per_s),
            ..Link::default()
        };
        Self {
            base_s,
            state: description.links.iter().map(link).collect(),
            cut: vec![false; nodes],
            description,
        }
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// What has happened on every link.
    pub(crate) fn counters(&self) -> Vec<LinkCounters> {
        self.state.iter().map(|link| link.counters).collect()
    }

    /// Makes the change of a request that has been checked.
    pub(crate) fn change(&mut self, request: &Request) {
        let node = |name: &String| self.description.node(name).ok();
        let mut change = |from, to, change: &dyn Fn(&mut Link)| {
            let ends = (node(from), node(to));
            let ours = self.description.links.iter().zip(&mut self.state);
            ours.filter(|(link, _)| (Some(link.from), Some(link.to)) == ends)
                .for_each(|(_, link)| change(link));
        };
        match request {
            Request::Latency { from, to, seconds } => {
                change(from, to, &|link| link.delay = nanoseconds(*seconds));
            }
            Request::Rate { from, to, bytes_per_s } => {
                change(from, to, &|link| link.pace = pace(*bytes_per_s));
            }
            Request::Cut { node: cut } => node(cut).into_iter().for_each(|node| self.cut[node] = true),
            Request::Join { node: cut } => node(cut).into_iter().for_each(|node| self.cut[node] = false),
            Request::Counters | Request::Lateness => {}
            Request::Fault => self.state.clear(),
        }
    }

    /// When a frame that came at `now` enters its route; none if there is no route.
    pub(crate) fn enter(&self, from: usize, to: usize, now: u64) -> Option<Flight> {
        let hosts = self.description.hosts.len();
        if from >= hosts || to >= hosts || self.description.route(from, to).is_empty() {
            return None;
        }
        let entered = now.saturating_sub(nanoseconds(self.base_s));
        Some(Flight { head: entered, tail: entered, waited: false })
    }

    /// Sends a frame of `bytes` bytes over the next link of its route; none if it is lost there.
    pub(crate) fn pass(&mut self, number: usize, bytes: usize, flight: Flight) -> Option<Flight> {
        let ends = self.description.links[number];
        let link = &mut self.state[number];
        let time = bytes as f64 * link.pace;
        // A link that is faster than the one before waits until it can send the frame without a pause.
        let ready = flight.head.max(flight.tail.saturating_sub(time as u64));
        let begin = link.free.max(ready);
        let waiting = if link.pace > 0.0 { ((begin - ready) as f64 / link.pace) as u64 } else { 0 };
        if self.cut[ends.from] || self.cut[ends.to] || waiting > ends.queue_bytes {
            link.counters.dropped += 1;
            return None;
        }
        link.free = begin + time as u64;
        link.last = link.last.max(link.free + link.delay);
        link.counters.bytes += bytes as u64;
        link.counters.busy_s += time / 1e9;
        link.counters.longest_queue_bytes = link.counters.longest_queue_bytes.max(waiting);
        let head = link.last.saturating_sub(time as u64).max(begin + link.delay);
        Some(Flight { head, tail: link.last, waited: flight.waited || begin > ready })
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn pace(bytes_per_s: Option<f64>) -> f64 {
    bytes_per_s.map_or(0.0, |rate| 1e9 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a frame is at the end of its route, if nothing else is on the way in between.
    fn due(links: &mut Links, from: usize, to: usize, bytes: usize, now: u64) -> Option<u64> {
        let route = links.description().route(from, to).to_vec();
        let entered = links.enter(from, to, now)?;
        route
            .into_iter()
            .try_fold(entered, |flight, link| links.pass(link, bytes, flight))
            .map(|flight| flight.tail)
    }

    #[test]
    fn frames_are_due_after_queue_rate_and_latency() {
        let mut links = Links::new(Description::uniform(2, 1e-3).with_rate(1e6), 0.0);
        assert_eq!(due(&mut links, 0, 1, 1000, 5_000), Some(2_005_000));
        assert_eq!(due(&mut links, 0, 1, 1000, 6_000), Some(3_005_000));
        assert_eq!(due(&mut links, 1, 0, 500, 6_000), Some(1_506_000));
        assert_eq!(due(&mut links, 0, 1, 1000, 9_000_000), Some(11_000_000));
        let counted = links.counters();
        assert_eq!((counted[0].bytes, counted[0].longest_queue_bytes, counted[0].dropped), (3000, 999, 0));
        assert!((counted[0].busy_s - 3e-3).abs() < 1e-12);
    }

    #[test]
    fn a_route_takes_its_latencies_and_the_time_of_its_slowest_link() {
        let tree = Description::tree_links(&[2, 2], &[1e6, 0.5e6], &[1e-3, 2e-3]);
        let mut links = Links::new(tree, 0.0);
        assert_eq!(due(&mut links, 0, 3, 1000, 0), Some(8_000_000));
        assert_eq!(due(&mut links, 2, 3, 1000, 0), Some(3_000_000 + 6_000_000));
    }

    #[test]
    fn frames_of_two_hosts_share_a_link_and_wait_for_each_other() {
        let mut links = Links::new(Description::tree_links(&[2, 2], &[1e9, 1e6], &[0.0]), 0.0);
        assert_eq!(due(&mut links, 0, 2, 1000, 0), Some(1_000_000));
        assert_eq!(due(&mut links, 1, 3, 1000, 0), Some(2_000_000));
        assert_eq!(due(&mut links, 1, 0, 1000, 0), Some(2_000));
    }

    #[test]
    fn a_queue_that_is_full_drops_frames() {
        let wire = hopmap_test_network::Link {
            queue_bytes: 2000,
            ..hopmap_test_network::Link::new(0, 1, 0.0, Some(1e6))
        };
        let mut links = Links::new(Description::links(2, 0, vec![wire]), 0.0);
        let taken = (0..5).filter(|_| due(&mut links, 0, 1, 1000, 0).is_some()).count();
        assert_eq!((taken, links.counters()[0].dropped), (3, 2));
        assert_eq!(due(&mut links, 1, 0, 1, 0), None);
    }

    #[test]
    fn the_base_is_taken_off_as_far_as_there_is_latency() {
        let mut links = Links::new(Description::uniform(3, 100e-6), 30e-6);
        links.change(&Request::Latency { from: "h0".into(), to: "h2".into(), seconds: 10e-6 });
        assert_eq!(due(&mut links, 0, 1, 1, 50_000), Some(120_000));
        assert_eq!(due(&mut links, 0, 2, 1, 50_000), Some(30_000));
    }

    #[test]
    fn frames_keep_their_order_when_a_latency_falls() {
        let mut links = Links::new(Description::uniform(2, 1e-3), 0.0);
        assert_eq!(due(&mut links, 0, 1, 1, 0), Some(1_000_000));
        links.change(&Request::Latency { from: "h0".into(), to: "h1".into(), seconds: 0.0 });
        assert_eq!(due(&mut links, 0, 1, 1, 10), Some(1_000_000));
        assert_eq!(due(&mut links, 0, 1, 1, 2_000_000), Some(2_000_000));
    }

    #[test]
    fn nothing_passes_a_node_that_is_cut() {
        let mut links = Links::new(Description::uniform(3, 0.0), 0.0);
        links.change(&Request::Cut { node: "h1".into() });
        assert_eq!([due(&mut links, 0, 1, 1, 0), due(&mut links, 1, 2, 1, 0)], [None, None]);
        assert_eq!(due(&mut links, 0, 2, 1, 0), Some(0));
        assert_eq!(due(&mut links, 0, 9, 1, 0), None);
        links.change(&Request::Join { node: "h1".into() });
        assert_eq!(due(&mut links, 0, 1, 1, 7), Some(7));
    }
}
