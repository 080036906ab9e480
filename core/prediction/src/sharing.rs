//! Weighted max-min fair sharing of directed links among flows, solved again only where a change has effects.
//!
//! A flow of penalty p that has the level λ gets the rate λ / p. A link is *saturated* if the rates of its flows
//! add up to its capacity. Levels are max-min fair if and only if every flow has a *bottleneck*: a saturated
//! link of its route on which no flow has a higher level (Bertsekas and Gallager, *Data Networks*, section
//! 6.5.2). SimGrid's solver (`maxmin.cpp`) has the same solution, and solves the connected part of all changed
//! links again. In a fat tree under load that part is nearly everything, so this solver
//! releases only the flows that have their bottleneck on a changed link, fills the links with the released ones
//! while the others keep their rates (water-filling), and checks the condition on all links that it touched.
//! Flows that violate it are released too, until there are none: the condition then holds everywhere.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How flows share a link.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sharing {
    /// All flows on a bottleneck get the same rate.
    #[default]
    MaxMin,
    /// Rates on a bottleneck are inversely proportional to a penalty: the latency of the route in seconds, as
    /// TCP connections share by their round-trip times (Casanova and Marchal, *A Network Model for Simulation
    /// of Grid Application*, 2002; SimGrid's CM02).
    Rtt {
        /// Added to the penalty after division by the bandwidth of every link, in bytes; zero in CM02, 8775 in
        /// SMPI (`network/weight-S`).
        bytes_per_link: f64,
    },
}

/// Relative tolerance of comparisons between levels. Rounding errors are about 1e-15.
const TOLERANCE: f64 = 1e-11;
/// Changes of rates below this have no effect: they are rounding errors.
const UNCHANGED: f64 = 1e-13;
/// Solutions after which the use of a link is summed again, lest rounding errors add up.
const MOST_UPDATES: u8 = 64;
/// A difference this much smaller than its operands is computed again without cancellation.
const CANCELLATION: f64 = 1e-6;
const NONE: u32 = u32::MAX;

/// Flows on links and their rates.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    links: Vec<Link>,
    /// Of the links; apart from them, because solutions seldom need it.
    saturation: Vec<Saturation>,
    flows: Vec<Flow>,
    vacant: Vec<u32>,
    /// Flows added since the last solution.
    added: Vec<u32>,
    /// Links of flows added or removed since the last solution.
    touched: Vec<u32>,
    /// Flows whose levels are not known yet.
    released: Vec<u32>,
    /// Links of released flows, and changed links.
    involved: Vec<u32>,
    /// Links by level, the lowest first; levels only rise, and entries are renewed when they are reached.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Released flows whose levels are not set in this round.
    open: usize,
    solution: u32,
    round: u32,
}

#[derive(Debug, Default)]
struct Link {
    capacity: f64,
    members: Vec<u32>,
    /// Sum of the rates of its flows in the last solution, and updates since it was computed as a sum.
    used: f64,
    updates: u8,
    /// Flows that have their bottleneck here and are not released.
    owners: u32,
    /// Last solution that involved it.
    solution: u32,
    /// Released flows, the sum of their weights, and the capacity that the others leave to them.
    count: u32,
    weight: f64,
    left: f64,
    /// The same for released flows whose levels are not known yet.
    open_count: u32,
    open_weight: f64,
    open_left: f64,
    /// Level of the flows that have their bottleneck here in a round.
    level: f64,
    round: u32,
    is_saturated: bool,
}

/// When a link became saturated last, and for how long it was before.
#[derive(Debug, Clone, Copy, Default)]
struct Saturation {
    since: f64,
    before_s: f64,
}

#[derive(Debug, Default)]
struct Flow {
    weight: f64,
    level: f64,
    before: f64,
    bottleneck: u32,
    /// Last solution that released it, and last round that set its level.
    solution: u32,
    round: u32,
    hops: Vec<Hop>,
}

/// A link of a flow, and the place of the flow among its members.
#[derive(Debug, Clone, Copy)]
struct Hop {
    link: u32,
    place: u32,
}

impl Shares {
    /// Links of positive, finite capacities in bytes per second.
    pub(crate) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let mut shares = Self::default();
        for capacity in capacities {
            shares.add_link(capacity);
        }
        shares
    }

    /// Adds a link.
    pub(crate) fn add_link(&mut self, capacity: f64) -> u32 {
        self.links.push(Link { capacity, ..Link::default() });
        self.saturation.push(Saturation::default());
        self.links.len() as u32 - 1
    }

    /// Changes the capacity of a link that no flow uses.
    pub(crate) fn set_capacity(&mut self, link: u32, capacity: f64) {
        self.links[link as usize].capacity = capacity;
    }

    /// Adds a flow of positive penalty on at least one link, all distinct. Its rate is zero until the next solution.
    pub(crate) fn add(&mut self, penalty: f64, links: impl IntoIterator<Item = u32>) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as u32 - 1
        });
        let flow = &mut self.flows[index as usize];
        (flow.weight, flow.level, flow.bottleneck) = (penalty.recip(), 0.0, NONE);
        for link in links {
            let members = &mut self.links[link as usize].members;
            flow.hops.push(Hop { link, place: members.len() as u32 });
            members.push(index);
            self.touched.push(link);
        }
        self.added.push(index);
        index
    }

    /// Removes a flow that was part of a solution.
    pub(crate) fn remove(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let rate = flow.rate();
        let mut hops = std::mem::take(&mut flow.hops);
        if let Some(link) = self.links.get_mut(flow.bottleneck as usize) {
            link.owners -= 1;
        }
        for &Hop { link, place } in &hops {
            let Link { members, used, .. } = &mut self.links[link as usize];
            members.swap_remove(place as usize);
            *used = if members.is_empty() { 0.0 } else { *used - rate };
            if let Some(&moved) = members.get(place as usize) {
                let hops = &mut self.flows[moved as usize].hops;
                if let Some(hop) = hops.iter_mut().find(|hop| hop.link == link) {
                    hop.place = place;
                }
            }
            self.touched.push(link);
        }
        hops.clear();
        self.flows[index as usize].hops = hops;
        self.vacant.push(index);
    }

    /// The rate of a flow in bytes per second.
    pub(crate) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate()
    }

    /// Whether flows were added or removed since the last solution.
    pub(crate) fn is_changed(&self) -> bool {
        !self.touched.is_empty()
    }

    /// For how long a link was saturated until now.
    pub(crate) fn saturated_s(&self, link: u32, now: f64) -> f64 {
        let Saturation { since, before_s } = self.saturation[link as usize];
        before_s + if self.links[link as usize].is_saturated { now - since } else { 0.0 }
    }

    /// Computes all rates; `changed` gets the flows whose rates changed.
    pub(crate) fn solve(&mut self, now: f64, changed: &mut Vec<u32>) {
        self.solution += 1;
        self.released.clear();
        self.involved.clear();
        for index in std::mem::take(&mut self.added) {
            self.release(index);
        }
        for link in std::mem::take(&mut self.touched) {
            self.involve(link);
            self.release_members(link, |flow| flow.bottleneck == link);
        }
        while {
            self.fill();
            self.release_unfair()
        } {}
        self.settle(now, changed);
    }

    /// Takes a flow out of the solution.
    fn release(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.solution == self.solution {
            return;
        }
        flow.solution = self.solution;
        flow.before = flow.level;
        let (weight, rate) = (flow.weight, flow.rate());
        self.released.push(index);
        let hops = std::mem::take(&mut flow.hops);
        if let Some(link) = self.links.get_mut(flow.bottleneck as usize) {
            link.owners -= 1;
        }
        for hop in &hops {
            self.involve(hop.link);
            let link = &mut self.links[hop.link as usize];
            link.count += 1;
            link.weight += weight;
            link.left += rate;
        }
        self.flows[index as usize].hops = hops;
    }

    fn release_members(&mut self, link: u32, is_wanted: impl Fn(&Flow) -> bool) {
        let members = std::mem::take(&mut self.links[link as usize].members);
        for &index in &members {
            if is_wanted(&self.flows[index as usize]) {
                self.release(index);
            }
        }
        self.links[link as usize].members = members;
    }

    /// Makes a link part of the solution, before any of its flows is.
    fn involve(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if link.solution == self.solution {
            return;
        }
        link.solution = self.solution;
        link.updates += 1;
        if link.updates == MOST_UPDATES {
            link.updates = 0;
            link.used = link.members.iter().map(|&member| self.flows[member as usize].rate()).sum();
        }
        (link.count, link.weight, link.left) = (0, 0.0, link.capacity - link.used);
        self.involved.push(index);
    }

    /// Water-filling: raises the levels of all released flows together, and ends with those of a link when it is
    /// saturated.
    fn fill(&mut self) {
        self.round += 1;
        self.open = self.released.len();
        let mut queue = std::mem::take(&mut self.queue).into_vec();
        queue.clear();
        for &index in &self.involved {
            let link = &mut self.links[index as usize];
            let left = if link.kept() == 0 { link.capacity } else { link.left };
            (link.open_count, link.open_weight, link.open_left) = (link.count, link.weight, left);
            if link.count > 0 {
                queue.push(Reverse((key(link.open_level()), index)));
            }
        }
        self.queue = BinaryHeap::from(queue);
        while self.open > 0
            && let Some(Reverse((bits, index))) = self.queue.peek().copied()
        {
            self.avoid_cancellation(index);
            let link = &mut self.links[index as usize];
            let level = link.open_level();
            if link.open_count > 0 && key(level) > bits {
                if let Some(mut first) = self.queue.peek_mut() {
                    *first = Reverse((key(level), index));
                }
                continue;
            }
            self.queue.pop();
            if link.open_count == 0 {
                continue;
            }
            (link.level, link.round) = (level, self.round);
            let members = std::mem::take(&mut link.members);
            for &member in &members {
                self.set_level(member, level, index);
            }
            self.links[index as usize].members = members;
        }
    }

    /// Sets the level of a released flow, unless this round did before.
    fn set_level(&mut self, index: u32, level: f64, bottleneck: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.solution != self.solution || flow.round == self.round {
            return;
        }
        (flow.level, flow.bottleneck, flow.round) = (level, bottleneck, self.round);
        self.open -= 1;
        for hop in &flow.hops {
            let link = &mut self.links[hop.link as usize];
            link.open_count -= 1;
            link.open_weight -= flow.weight;
            link.open_left -= level * flow.weight;
        }
    }

    fn avoid_cancellation(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        let is_exact =
            link.open_left > CANCELLATION * link.left && link.open_weight > CANCELLATION * link.weight;
        if is_exact || link.open_count == 0 {
            return;
        }
        (link.open_weight, link.open_left) = (0.0, link.capacity);
        for &member in &link.members {
            let flow = &self.flows[member as usize];
            match flow.solution == self.solution && flow.round != self.round {
                true => link.open_weight += flow.weight,
                false => link.open_left -= flow.level * flow.weight,
            }
        }
    }

    /// Releases the flows that violate the condition for fairness on an involved link; `false` if there are none.
    fn release_unfair(&mut self) -> bool {
        let before = self.released.len();
        for place in 0..self.involved.len() {
            let index = self.involved[place];
            let link = &self.links[index as usize];
            // Only flows that keep their levels can violate it, and only on a bottleneck.
            if link.kept() == 0 || (link.owners == 0 && link.round != self.round) {
                continue;
            }
            let Summary { highest, highest_kept, lowest_own } = self.summary(index);
            let link = &self.links[index as usize];
            let is_saturated = link.is_filled();
            let own = if is_saturated { highest * (1.0 - TOLERANCE) } else { f64::INFINITY };
            let others =
                if link.round == self.round { link.level * (1.0 + TOLERANCE) } else { f64::INFINITY };
            if lowest_own < own || highest_kept > others {
                let solution = self.solution;
                self.release_members(index, |flow| {
                    flow.solution != solution
                        && (flow.level > others || (flow.bottleneck == index && flow.level < own))
                });
            }
        }
        self.released.len() > before
    }

    fn summary(&self, index: u32) -> Summary {
        let mut summary = Summary { highest: 0.0, highest_kept: 0.0, lowest_own: f64::INFINITY };
        for &member in &self.links[index as usize].members {
            let flow = &self.flows[member as usize];
            summary.highest = summary.highest.max(flow.level);
            if flow.solution != self.solution {
                summary.highest_kept = summary.highest_kept.max(flow.level);
                if flow.bottleneck == index {
                    summary.lowest_own = summary.lowest_own.min(flow.level);
                }
            }
        }
        summary
    }

    /// Reports the changes of a solution.
    fn settle(&mut self, now: f64, changed: &mut Vec<u32>) {
        for &index in &self.involved {
            let link = &mut self.links[index as usize];
            let is_saturated = link.is_filled();
            link.used = if link.members.is_empty() { 0.0 } else { link.capacity - link.open_left };
            if link.is_saturated != is_saturated {
                let saturation = &mut self.saturation[index as usize];
                match is_saturated {
                    true => saturation.since = now,
                    false => saturation.before_s += now - saturation.since,
                }
                link.is_saturated = is_saturated;
            }
        }
        changed.clear();
        for &index in &self.released {
            let flow = &mut self.flows[index as usize];
            self.links[flow.bottleneck as usize].owners += 1;
            match (flow.level - flow.before).abs() > UNCHANGED * flow.before {
                true => changed.push(index),
                false => flow.level = flow.before,
            }
        }
    }
}

struct Summary {
    /// Highest level of all flows.
    highest: f64,
    /// Highest level of flows that are not released.
    highest_kept: f64,
    /// Lowest level of flows that are not released and have their bottleneck here.
    lowest_own: f64,
}

impl Link {
    /// Number of flows that keep their levels.
    fn kept(&self) -> usize {
        self.members.len() - self.count as usize
    }

    /// Whether its flows use its capacity at the end of a round.
    fn is_filled(&self) -> bool {
        self.open_left <= TOLERANCE * self.capacity
    }

    fn open_level(&self) -> f64 {
        (self.open_left / self.open_weight).max(0.0)
    }
}

impl Flow {
    fn rate(&self) -> f64 {
        self.level * self.weight
    }
}

/// Numbers that are not negative have the order of their bit patterns.
fn key(level: f64) -> u64 {
    level.to_bits()
}
