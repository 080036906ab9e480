//! Flows in progress: their remaining bytes, and when they end if no rate changes.

use crate::sharing::Shares;

const NONE: u32 = u32::MAX;

/// Flows in progress on shared links.
pub(crate) struct Flows {
    shares: Shares,
    progress: Vec<Progress>,
    ends: Ends,
    changed: Vec<u32>,
    /// Links that bound the rate of one flow each, not in use.
    spare_bounds: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    left: f64,
    rate: f64,
    since: f64,
    factor: f64,
    owner: u32,
    bound: u32,
}

/// What a flow needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Bytes, or seconds of computation.
    pub(crate) amount: f64,
    /// Multiplies the share of the links.
    pub(crate) factor: f64,
    pub(crate) penalty: f64,
    /// Highest rate before the factor; infinite if the links alone bound it.
    pub(crate) bound: f64,
    /// Returned when the flow ends.
    pub(crate) owner: u32,
}

impl Flows {
    /// Links with these capacities, in bytes per second.
    pub(crate) fn new(capacities: Vec<f64>) -> Self {
        let (progress, changed, spare_bounds) = (Vec::new(), Vec::new(), Vec::new());
        Self { shares: Shares::new(capacities), progress, ends: Ends::default(), changed, spare_bounds }
    }

    /// Adds a link.
    pub(crate) fn add_link(&mut self, capacity: f64) -> u32 {
        self.shares.add_link(capacity)
    }

    /// Starts a flow. It makes progress after the next [`solve`](Self::solve).
    pub(crate) fn start(&mut self, demand: Demand, links: &[u32]) {
        let Demand { amount, factor, penalty, bound, owner } = demand;
        let bound = if bound.is_finite() { self.bound(bound) } else { NONE };
        let flow = self.shares.add(penalty, links.iter().copied().chain((bound != NONE).then_some(bound)));
        let place = flow as usize;
        if place >= self.progress.len() {
            self.progress.resize(place + 1, Progress::default());
        }
        self.progress[place] = Progress { left: amount, rate: 0.0, since: 0.0, factor, owner, bound };
    }

    fn bound(&mut self, bound: f64) -> u32 {
        match self.spare_bounds.pop() {
            Some(link) => {
                self.shares.set_capacity(link, bound);
                link
            }
            None => self.shares.add_link(bound),
        }
    }

    /// When the next flow ends.
    pub(crate) fn next_end(&self) -> Option<f64> {
        self.ends.first().map(|(time, _)| time)
    }

    /// Ends the next flow; gives its owner.
    pub(crate) fn end(&mut self) -> Option<u32> {
        let (_, flow) = self.ends.first()?;
        self.ends.remove(flow);
        self.shares.remove(flow);
        let Progress { owner, bound, .. } = self.progress[flow as usize];
        if bound != NONE {
            self.spare_bounds.push(bound);
        }
        Some(owner)
    }

    /// Whether flows started or ended since the last [`solve`](Self::solve).
    pub(crate) fn is_changed(&self) -> bool {
        self.shares.is_changed()
    }

    /// Shares the links among the flows of now.
    pub(crate) fn solve(&mut self, now: f64) {
        self.shares.solve(now, &mut self.changed);
        for &flow in &self.changed {
            let progress = &mut self.progress[flow as usize];
            progress.left = (progress.left - progress.rate * (now - progress.since)).max(0.0);
            progress.rate = self.shares.rate(flow) * progress.factor;
            progress.since = now;
            self.ends.set(flow, now + progress.left / progress.rate);
        }
    }

    /// For how long a link was at capacity until now.
    pub(crate) fn saturated_s(&self, link: u32, now: f64) -> f64 {
        self.shares.saturated_s(link, now)
    }
}

/// Binary heap of flows by time, then by number, in which times can change.
#[derive(Debug, Default)]
struct Ends {
    heap: Vec<(u64, u32)>,
    /// Place of a flow in the heap.
    places: Vec<u32>,
}

impl Ends {
    fn first(&self) -> Option<(f64, u32)> {
        self.heap.first().map(|(bits, flow)| (f64::from_bits(*bits), *flow))
    }

    /// Sets the time of a flow, non-negative.
    fn set(&mut self, flow: u32, time: f64) {
        let entry = (time.to_bits(), flow);
        if flow as usize >= self.places.len() {
            self.places.resize(flow as usize + 1, NONE);
        }
        let place = self.places[flow as usize];
        if place == NONE {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        } else if entry < self.heap[place as usize] {
            self.rise(place as usize, entry);
        } else {
            self.sink(place as usize, entry);
        }
    }

    fn remove(&mut self, flow: u32) {
        let place = std::mem::replace(&mut self.places[flow as usize], NONE) as usize;
        let Some(last) = self.heap.pop() else { return };
        if place == self.heap.len() {
            return;
        }
        if last < self.heap[place] {
            self.rise(place, last);
        } else {
            self.sink(place, last);
        }
    }

    fn rise(&mut self, mut place: usize, entry: (u64, u32)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize, entry: (u64, u32)) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u64, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the compared values are exact")]
mod tests {
    use hopmap_random::{Draw, Pcg64, SeedableRng};

    use super::*;

    #[test]
    fn flows_end_in_order_of_their_times_however_these_change() {
        let mut random = Pcg64::seed_from_u64(1);
        for _ in 0..200 {
            let mut ends = Ends::default();
            let mut times = vec![None; 20];
            for _ in 0..100 {
                let flow = random.below(20);
                match random.below(3) {
                    0 if times[flow].take().is_some() => ends.remove(flow as u32),
                    _ => {
                        let time = random.below(30) as f64;
                        times[flow] = Some(time);
                        ends.set(flow as u32, time);
                    }
                }
                let known =
                    times.iter().enumerate().filter_map(|(flow, time)| Some((time.as_ref()?, flow as u32)));
                let first = known.min_by(|a, b| a.partial_cmp(b).unwrap()).map(|(time, flow)| (*time, flow));
                assert_eq!(ends.first(), first);
            }
        }
    }

    #[test]
    fn a_flow_keeps_the_bytes_it_sent_when_its_rate_changes() {
        let mut flows = Flows::new(vec![10.0]);
        let demand =
            |amount, owner| Demand { amount, factor: 1.0, penalty: 1.0, bound: f64::INFINITY, owner };
        flows.start(demand(100.0, 1), &[0]);
        flows.solve(0.0);
        assert_eq!(flows.next_end(), Some(10.0));
        flows.start(demand(25.0, 2), &[0]);
        flows.solve(5.0);
        assert_eq!((flows.next_end(), flows.end()), (Some(10.0), Some(2)));
        flows.solve(10.0);
        assert_eq!((flows.next_end(), flows.end(), flows.next_end()), (Some(12.5), Some(1), None));
        assert_eq!(flows.saturated_s(0, 12.5), 12.5);
    }

    #[test]
    fn a_bound_holds_for_one_flow_only() {
        let mut flows = Flows::new(vec![10.0]);
        for bound in [2.0, f64::INFINITY] {
            flows.start(Demand { amount: 8.0, factor: 1.0, penalty: 1.0, bound, owner: bound as u32 }, &[0]);
        }
        flows.solve(0.0);
        assert_eq!((flows.next_end(), flows.end()), (Some(1.0), Some(u32::MAX)));
        flows.solve(1.0);
        assert_eq!((flows.next_end(), flows.end()), (Some(4.0), Some(2)));
    }
}
