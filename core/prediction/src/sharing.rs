//! Weighted max-min fair sharing of directed links among flows, solved again only where a change has effects.
//!
//! A flow of penalty p that has the level λ gets the rate λ / p. A link is *saturated* if the rates of its flows
//! add up to its capacity. Levels are max-min fair if and only if every flow has a *bottleneck*: a saturated
//! link of its route on which no flow has a higher level (Bertsekas and Gallager, *Data Networks*, section
//! 6.5.2). SimGrid's solver (`maxmin.cpp`) has the same solution, and solves the connected part of all changed
//! links again. In a fat tree under load that part is nearly everything, so this solver keeps levels while their
//! condition holds. It fills links with the *open* flows, whose levels are not known, by water-filling: one level
//! rises for all of them, and on the links that they use it comes to
//!
//! - the level of the flows that have their bottleneck there. If the link has room at that level, these flows
//!   are opened, too, to rise with the others;
//! - the level at which the open flows use what the others leave. Flows above it are opened, to be lowered; without
//!   them, the link is the bottleneck of its open flows, which get this level.
//!
//! Links are reached in the order of these levels, and an opened flow never had a level below the current one. So
//! what was filled stays valid, and every flow is opened and filled at most once per solution.
//!
//! Flows with the same links and penalty have the same level. They are one *class*, whose cost does not depend
//! on their number.

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
/// Solutions after which the rest of a link is summed again, lest rounding errors add up.
const MOST_UPDATES: u8 = 64;
const NONE: u32 = u32::MAX;
/// Of a link without a place in the queue.
const NOT_QUEUED: u64 = u64::MAX;

/// Flows on links and their rates. Flows with the same links and penalty are one class.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    links: Vec<Link>,
    /// Of the links; apart from them, because solutions seldom need it.
    saturation: Vec<Saturation>,
    classes: Vec<Class>,
    vacant: Vec<u32>,
    /// Classes with flows added since the last solution.
    added: Vec<u32>,
    /// Links of flows removed since the last solution.
    touched: Vec<u32>,
    /// Classes opened in this solution.
    opened: Vec<u32>,
    /// Links of opened classes, and changed links.
    involved: Vec<u32>,
    /// Links whose next level may be lower than the queued one.
    dirty: Vec<u32>,
    /// Links by their next level, above their number; two words compare faster than a pair. A level that has risen
    /// since is renewed when it is reached; entries that are not the `queued` level of their link are void.
    queue: BinaryHeap<Reverse<u128>>,
    solution: u32,
}

#[derive(Debug, Default)]
struct Link {
    capacity: f64,
    /// Capacity less the rates of all classes that are not open.
    left: f64,
    /// Weight of the open classes, and their number.
    weight: f64,
    open: u32,
    /// Classes that have their bottleneck here, and their level: the highest on the link.
    owners: u32,
    level: f64,
    queued: u64,
    /// Last solution that involved it.
    solution: u32,
    updates: u8,
    is_dirty: bool,
    is_saturated: bool,
    members: Vec<u32>,
}

/// When a link became saturated last, and for how long it was before.
#[derive(Debug, Clone, Copy, Default)]
struct Saturation {
    since: f64,
    before_s: f64,
}

#[derive(Debug, Default)]
struct Class {
    /// Of each flow, and of all together.
    weight: f64,
    total_weight: f64,
    flows: u32,
    level: f64,
    /// Level in the last solution.
    before: f64,
    bottleneck: u32,
    /// Last solution that opened it.
    solution: u32,
    /// Whether its level is not known yet.
    is_open: bool,
    hops: Vec<Hop>,
}

/// A link of a class, and the place of the class among its members.
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
        self.links.push(Link { capacity, left: capacity, ..Link::default() });
        self.saturation.push(Saturation::default());
        self.links.len() as u32 - 1
    }

    /// Whether flows are on a link.
    pub(crate) fn is_used(&self, link: u32) -> bool {
        !self.links[link as usize].members.is_empty()
    }

    /// Changes the capacity of a link whose flows changed since the last solution, or that has none.
    pub(crate) fn set_capacity(&mut self, index: u32, capacity: f64) {
        let link = &mut self.links[index as usize];
        link.left += capacity - link.capacity;
        link.capacity = capacity;
        if link.members.is_empty() {
            link.left = capacity;
        }
    }

    /// Adds a class of one flow, of positive penalty on at least one link, all distinct. Its rate is zero until the
    /// next solution.
    pub(crate) fn add(&mut self, penalty: f64, links: impl IntoIterator<Item = u32>) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.classes.push(Class::default());
            self.classes.len() as u32 - 1
        });
        let class = &mut self.classes[index as usize];
        class.weight = penalty.recip();
        (class.total_weight, class.flows) = (class.weight, 1);
        (class.level, class.before, class.bottleneck) = (0.0, 0.0, NONE);
        for link in links {
            let members = &mut self.links[link as usize].members;
            class.hops.push(Hop { link, place: members.len() as u32 });
            members.push(index);
        }
        self.added.push(index);
        index
    }

    /// Adds a flow to a class, whose rate is zero until the next solution.
    pub(crate) fn join(&mut self, index: u32) {
        self.withdraw(index);
        let class = &mut self.classes[index as usize];
        class.flows += 1;
        class.total_weight = class.weight * f64::from(class.flows);
        self.added.push(index);
    }

    /// Removes a flow of a class. The class ends with its last flow.
    pub(crate) fn remove(&mut self, index: u32) {
        let class = &mut self.classes[index as usize];
        let rate = class.level * class.weight;
        class.flows -= 1;
        class.total_weight = class.weight * f64::from(class.flows);
        let is_last = class.flows == 0;
        for &Hop { link, .. } in &class.hops {
            self.links[link as usize].left += rate;
            self.touched.push(link);
        }
        if is_last {
            self.end(index);
        }
    }

    fn end(&mut self, index: u32) {
        let class = &mut self.classes[index as usize];
        if let Some(link) = self.links.get_mut(class.bottleneck as usize) {
            link.owners -= 1;
        }
        let mut hops = std::mem::take(&mut class.hops);
        for Hop { link, place } in hops.drain(..) {
            let Link { members, left, capacity, .. } = &mut self.links[link as usize];
            members.swap_remove(place as usize);
            if members.is_empty() {
                *left = *capacity;
            }
            if let Some(&moved) = members.get(place as usize) {
                let hops = &mut self.classes[moved as usize].hops;
                if let Some(hop) = hops.iter_mut().find(|hop| hop.link == link) {
                    hop.place = place;
                }
            }
        }
        self.classes[index as usize].hops = hops;
        self.vacant.push(index);
    }

    /// The rate of each flow of a class in bytes per second.
    pub(crate) fn rate(&self, class: u32) -> f64 {
        let class = &self.classes[class as usize];
        class.level * class.weight
    }

    /// Whether flows were added or removed since the last solution.
    pub(crate) fn is_changed(&self) -> bool {
        !self.touched.is_empty() || !self.added.is_empty()
    }

    /// For how long a link was saturated until now.
    pub(crate) fn saturated_s(&self, link: u32, now: f64) -> f64 {
        let Saturation { since, before_s } = self.saturation[link as usize];
        before_s + if self.links[link as usize].is_saturated { now - since } else { 0.0 }
    }

    /// Computes all rates; `changed` gets the classes whose rates changed.
    pub(crate) fn solve(&mut self, now: f64, changed: &mut Vec<u32>) {
        self.solution += 1;
        self.opened.clear();
        self.involved.clear();
        while let Some(link) = self.touched.pop() {
            self.involve(link);
            self.mark(link);
        }
        while let Some(class) = self.added.pop() {
            if self.classes[class as usize].flows > 0 {
                self.open(class);
            }
        }
        self.enqueue();
        while let Some(Reverse(entry)) = self.queue.pop() {
            let (bits, index) = ((entry >> 32) as u64, entry as u32);
            let link = &mut self.links[index as usize];
            if link.queued != bits {
                continue;
            }
            link.queued = NOT_QUEUED;
            if link.next_level() > bits {
                self.mark(index);
            } else {
                self.reach(index);
            }
            self.enqueue();
        }
        self.publish(now, changed);
    }

    /// Gives the rates of a class back to its links.
    fn withdraw(&mut self, index: u32) {
        let class = &mut self.classes[index as usize];
        let Some(link) = self.links.get_mut(class.bottleneck as usize) else { return };
        link.owners -= 1;
        let rate = class.level * class.total_weight;
        for hop in &class.hops {
            self.links[hop.link as usize].left += rate;
        }
        (class.before, class.level, class.bottleneck) = (class.level, 0.0, NONE);
    }

    /// Makes the level of a class unknown, unless this solution did before.
    fn open(&mut self, index: u32) {
        if self.classes[index as usize].solution == self.solution {
            return;
        }
        self.withdraw(index);
        let class = &mut self.classes[index as usize];
        (class.solution, class.is_open) = (self.solution, true);
        let weight = class.total_weight;
        self.opened.push(index);
        let hops = std::mem::take(&mut class.hops);
        for hop in &hops {
            self.involve(hop.link);
            self.mark(hop.link);
            let link = &mut self.links[hop.link as usize];
            link.open += 1;
            link.weight += weight;
            if link.open as usize == link.members.len() {
                link.left = link.capacity;
            }
        }
        self.classes[index as usize].hops = hops;
    }

    /// Releases members of a link that keep their levels; whether there are any.
    fn open_members(&mut self, link: u32, is_wanted: impl Fn(&Class) -> bool) -> bool {
        let before = self.opened.len();
        let members = std::mem::take(&mut self.links[link as usize].members);
        let count = members.len();
        for &index in &members {
            if is_wanted(&self.classes[index as usize]) {
                self.open(index);
            }
        }
        let link = &mut self.links[link as usize];
        link.members = members;
        if link.open as usize == count {
            link.left = link.capacity;
        }
        self.opened.len() > before
    }

    /// Makes a link part of the solution.
    fn involve(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if link.solution == self.solution {
            return;
        }
        link.solution = self.solution;
        (link.open, link.weight, link.queued) = (0, 0.0, NOT_QUEUED);
        link.updates += 1;
        if link.updates == MOST_UPDATES {
            link.updates = 0;
            let rates = link.members.iter().map(|&member| self.classes[member as usize].total_rate());
            link.left = link.capacity - rates.sum::<f64>();
        }
        self.involved.push(index);
    }

    fn mark(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if !link.is_dirty {
            link.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Gives marked links their places in the queue.
    fn enqueue(&mut self) {
        while let Some(index) = self.dirty.pop() {
            let link = &mut self.links[index as usize];
            link.is_dirty = false;
            let level = link.next_level();
            if level < link.queued {
                link.queued = level;
                self.queue.push(Reverse(u128::from(level) << 32 | u128::from(index)));
            }
        }
    }

    /// Does what happens on a link when the rising level of the open classes reaches its next level.
    fn reach(&mut self, index: u32) {
        let link = &self.links[index as usize];
        let solution = self.solution;
        // At the level of the classes that have their bottleneck here, the link must be saturated.
        if link.owners > 0
            && link.has_room_at(link.level)
            && self.open_members(index, |class| class.bottleneck == index && class.solution != solution)
        {
            return;
        }
        if self.links[index as usize].open > 0 {
            self.fill(index);
        }
    }

    /// Gives the open classes of a link the level at which they use what is left, unless others have higher levels:
    /// these are opened.
    fn fill(&mut self, index: u32) {
        let link = &self.links[index as usize];
        let limit = link.open_level() * (1.0 + TOLERANCE);
        let (mut weight, mut used) = (0.0, 0.0);
        let (mut higher_weight, mut higher_used) = (0.0, 0.0);
        for &member in &link.members {
            let class = &self.classes[member as usize];
            if class.is_open {
                weight += class.total_weight;
                continue;
            }
            used += class.total_rate();
            if class.level > limit && class.solution != self.solution {
                higher_weight += class.total_weight;
                higher_used += class.total_rate();
            }
        }
        let (owners, owned) = (link.owners, link.level);
        let mut level = ((link.capacity - used) / weight).max(0.0);
        if higher_weight > 0.0 {
            // Classes below this level stay below the level of the link, however many of the others are opened.
            let least = (link.capacity - used + higher_used) / (weight + higher_weight);
            let limit = least * (1.0 + TOLERANCE);
            let solution = self.solution;
            if self.open_members(index, |class| class.level > limit && class.solution != solution) {
                return;
            }
            level = least;
        }
        if owners > 0 && (level - owned).abs() <= 2.0 * TOLERANCE * owned {
            level = owned;
        }
        let link = &mut self.links[index as usize];
        link.left = link.capacity - used;
        link.level = level;
        link.owners += link.open;
        let members = std::mem::take(&mut link.members);
        for &member in &members {
            if self.classes[member as usize].is_open {
                self.set_level(member, level, index);
            }
        }
        self.links[index as usize].members = members;
    }

    fn set_level(&mut self, index: u32, level: f64, bottleneck: u32) {
        let class = &mut self.classes[index as usize];
        (class.level, class.bottleneck, class.is_open) = (level, bottleneck, false);
        for hop in &class.hops {
            let link = &mut self.links[hop.link as usize];
            link.open -= 1;
            link.weight -= class.total_weight;
            link.left -= level * class.total_weight;
        }
    }

    /// Reports the changes of a solution.
    fn publish(&mut self, now: f64, changed: &mut Vec<u32>) {
        for &index in &self.involved {
            let link = &mut self.links[index as usize];
            let is_saturated = link.is_full();
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
        for &index in &self.opened {
            let class = &mut self.classes[index as usize];
            match (class.level - class.before).abs() > UNCHANGED * class.before {
                true => changed.push(index),
                false => class.level = class.before,
            }
        }
    }
}

impl Link {
    fn is_full(&self) -> bool {
        self.left <= TOLERANCE * self.capacity
    }

    /// The level at which the open classes use what is left.
    fn open_level(&self) -> f64 {
        (self.left / self.weight).max(0.0)
    }

    /// Whether its classes do not use its capacity if the open ones have a level.
    fn has_room_at(&self, level: f64) -> bool {
        match self.open {
            0 => !self.is_full(),
            _ => self.open_level() > level * (1.0 + TOLERANCE),
        }
    }

    /// The level at which something happens on it, as bits, which have the same order.
    fn next_level(&self) -> u64 {
        match (self.open, self.owners) {
            (0, 0) => NOT_QUEUED,
            (0, _) => self.level.to_bits(),
            (_, 0) => self.open_level().to_bits(),
            _ => self.open_level().min(self.level).to_bits(),
        }
    }
}

impl Class {
    fn total_rate(&self) -> f64 {
        self.level * self.total_weight
    }
}
