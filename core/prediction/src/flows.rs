//! Flows in progress, and when they end if no rate changes.
//!
//! Flows on the same path have the same rate, so they are one class: it counts the service, the bytes that each
//! of its flows has got, and a flow ends when the service reaches its goal. A changed rate then costs one update
//! per path, however many flows are on it (the virtual time of fair queueing: Demers, Keshav and Shenker,
//! *Analysis and Simulation of a Fair Queueing Algorithm*, SIGCOMM 1989).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopmap_graph::IndexedHeap;

use crate::sharing::Shares;

const NONE: u32 = u32::MAX;

/// Flows in progress on shared links.
pub(crate) struct Flows {
    shares: Shares,
    classes: Vec<Class>,
    /// Class of the flows on each path.
    of_path: Vec<u32>,
    ends: Ends,
    changed: Vec<u32>,
    /// Links that bound the rates of one class each, not in use.
    spare_bounds: Vec<u32>,
}

/// The flows on a path.
#[derive(Debug, Default)]
struct Class {
    /// What each of its flows got since the class has flows, at the time `since`.
    service: f64,
    since: f64,
    /// Of each flow.
    rate: f64,
    path: u32,
    /// Highest rate of a flow, and the link that models it.
    bound: f64,
    bound_link: u32,
    /// Service at which a flow ends, as bits, and its owner.
    goals: BinaryHeap<Reverse<(u64, u32)>>,
}

/// What a flow needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Bytes, or seconds of computation.
    pub(crate) amount: f64,
    /// Multiplies the share of the links.
    pub(crate) factor: f64,
    /// Returned when the flow ends.
    pub(crate) owner: u32,
}

/// The way of flows. All flows with the same number have the same way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    pub(crate) number: u32,
    pub(crate) links: &'a [u32],
    pub(crate) penalty: f64,
    /// Highest rate before the factor; infinite if the links alone bound it.
    pub(crate) bound: f64,
}

impl Flows {
    /// Links with these capacities, in bytes per second.
    pub(crate) fn new(capacities: Vec<f64>) -> Self {
        Self {
            shares: Shares::new(capacities),
            classes: Vec::new(),
            of_path: Vec::new(),
            ends: Ends::default(),
            changed: Vec::new(),
            spare_bounds: Vec::new(),
        }
    }

    /// Adds a link.
    pub(crate) fn add_link(&mut self, capacity: f64) -> u32 {
        self.shares.add_link(capacity)
    }

    /// Whether flows are on a link.
    pub(crate) fn is_used(&self, link: u32) -> bool {
        self.shares.is_used(link)
    }

    /// Starts a flow. Its rate is known after the next [`solve`](Self::solve).
    pub(crate) fn start(&mut self, demand: Demand, path: Path<'_>, now: f64) {
        let number = path.number as usize;
        if number >= self.of_path.len() {
            self.of_path.resize(number + 1, NONE);
        }
        let index = match self.of_path[number] {
            NONE => self.add(path, now),
            index => {
                self.shares.join(index);
                index
            }
        };
        let class = &mut self.classes[index as usize];
        class.advance(now);
        let goal = class.service + demand.amount / demand.factor;
        class.goals.push(Reverse((goal.to_bits(), demand.owner)));
        // The others may keep their rate, which then has no update to come.
        if class.rate > 0.0
            && let Some(end) = class.end()
        {
            self.ends.set(index, end);
        }
        class.set_bound(&mut self.shares);
    }

    fn add(&mut self, path: Path<'_>, now: f64) -> u32 {
        let Path { number, links, penalty, bound } = path;
        let bound_link = if bound.is_finite() { self.bound(bound) } else { NONE };
        let links = links.iter().copied().chain((bound_link != NONE).then_some(bound_link));
        let index = self.shares.add(penalty, links);
        self.of_path[number as usize] = index;
        if index as usize >= self.classes.len() {
            self.classes.resize_with(index as usize + 1, Class::default);
        }
        let class = &mut self.classes[index as usize];
        (class.path, class.bound, class.bound_link) = (number, bound, bound_link);
        (class.service, class.since, class.rate) = (0.0, now, 0.0);
        index
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
        let (time, index) = self.ends.first()?;
        self.shares.remove(index);
        let class = &mut self.classes[index as usize];
        let Reverse((goal, owner)) = class.goals.pop()?;
        (class.service, class.since) = (f64::from_bits(goal), time);
        match class.end() {
            Some(end) => {
                self.ends.set(index, end);
                class.set_bound(&mut self.shares);
            }
            None => {
                self.ends.remove(index);
                self.of_path[class.path as usize] = NONE;
                if class.bound_link != NONE {
                    self.spare_bounds.push(class.bound_link);
                }
            }
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
        for &index in &self.changed {
            let class = &mut self.classes[index as usize];
            class.advance(now);
            class.rate = self.shares.rate(index);
            if let Some(end) = class.end() {
                self.ends.set(index, end);
            }
        }
    }

    /// For how long a link was at capacity until now.
    pub(crate) fn saturated_s(&self, link: u32, now: f64) -> f64 {
        self.shares.saturated_s(link, now)
    }
}

impl Class {
    fn advance(&mut self, now: f64) {
        self.service += self.rate * (now - self.since);
        self.since = now;
    }

    /// Gives the link that bounds the rate of its flows the capacity for all of them.
    fn set_bound(&self, shares: &mut Shares) {
        if self.bound_link != NONE {
            shares.set_capacity(self.bound_link, self.bound * self.goals.len() as f64);
        }
    }

    /// When its next flow ends.
    fn end(&self) -> Option<f64> {
        let Reverse((goal, _)) = self.goals.peek()?;
        Some(self.since + (f64::from_bits(*goal) - self.service).max(0.0) / self.rate)
    }
}

/// Classes by time, then by number. Times can change; they are not negative.
#[derive(Debug, Default)]
struct Ends(IndexedHeap<Reverse<(u64, u32)>>);

impl Ends {
    fn first(&self) -> Option<(f64, u32)> {
        self.0.first().map(|Reverse((bits, flow))| (f64::from_bits(bits), flow))
    }

    fn set(&mut self, flow: u32, time: f64) {
        self.0.set(Reverse((time.to_bits(), flow)));
    }

    fn remove(&mut self, flow: u32) {
        self.0.remove(flow);
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

    fn start(flows: &mut Flows, (amount, owner): (f64, u32), number: u32, bound: f64, now: f64) {
        let path = Path { number, links: &[0], penalty: 1.0, bound };
        flows.start(Demand { amount, factor: 1.0, owner }, path, now);
    }

    #[test]
    fn a_flow_keeps_the_bytes_it_sent_when_its_rate_changes() {
        for second_path in [0, 1] {
            let mut flows = Flows::new(vec![10.0]);
            start(&mut flows, (100.0, 1), 0, f64::INFINITY, 0.0);
            flows.solve(0.0);
            assert_eq!(flows.next_end(), Some(10.0));
            start(&mut flows, (25.0, 2), second_path, f64::INFINITY, 5.0);
            flows.solve(5.0);
            assert_eq!((flows.next_end(), flows.end()), (Some(10.0), Some(2)));
            flows.solve(10.0);
            assert_eq!((flows.next_end(), flows.end(), flows.next_end()), (Some(12.5), Some(1), None));
            assert_eq!(flows.saturated_s(0, 12.5), 12.5);
        }
    }

    #[test]
    fn a_bound_holds_for_the_flows_of_one_path_only() {
        let mut flows = Flows::new(vec![10.0]);
        for (owner, bound) in [(0, 2.0), (1, f64::INFINITY)] {
            start(&mut flows, (8.0, owner), owner, bound, 0.0);
        }
        flows.solve(0.0);
        assert_eq!((flows.next_end(), flows.end()), (Some(1.0), Some(1)));
        flows.solve(1.0);
        assert_eq!((flows.next_end(), flows.end(), flows.next_end()), (Some(4.0), Some(0), None));
    }

    /// The rate stays at the bound, so that only the new flow changes when the next one ends.
    #[test]
    fn every_flow_of_a_path_gets_its_bound() {
        let mut flows = Flows::new(vec![10.0]);
        start(&mut flows, (8.0, 0), 0, 2.0, 0.0);
        flows.solve(0.0);
        start(&mut flows, (2.0, 1), 0, 2.0, 1.0);
        flows.solve(1.0);
        assert_eq!((flows.next_end(), flows.end()), (Some(2.0), Some(1)));
        flows.solve(2.0);
        assert_eq!((flows.next_end(), flows.end(), flows.next_end()), (Some(4.0), Some(0), None));
    }
}
