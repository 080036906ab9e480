//! Constraints that make the compact program quicker to solve: what every solution keeps and the relaxation does not (partners are
//! spread over hosts, and hosts over switches), one of several switches from which the machine looks the same, and cycles of the channel
//! dependency graph, forbidden one after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Meaning, Model, Sum, switches_of};
use super::shape::{NO_WAY, Shape};
use crate::linear::{Domain, Sense};

impl Model<'_> {
    /// Cuts from distances and from how many fit where.
    pub(super) fn cuts(&mut self) {
        if self.shape.parties.iter().all(|party| party.places.len() <= 1) {
            return;
        }
        self.within_reach();
        if self.shape.exclusive {
            self.within_switches();
            self.trees();
        }
        self.stars();
    }

    /// Parties are not further apart than the longest route reaches.
    fn within_reach(&mut self) {
        let Some(most) = self.window.most else { return };
        let shape = self.shape;
        let reach = most.saturating_sub(2);
        for commodity in &shape.commodities {
            let (source, destination) = (commodity.source, commodity.destination);
            for (party, other, is_forward) in [(source, destination, true), (destination, source, false)] {
                for switch in switches_of(shape, party) {
                    let distance = |to: usize| match is_forward {
                        true => shape.distances[switch][to],
                        false => shape.distances[to][switch],
                    };
                    let near = self.among(other, |place| {
                        shape.places[place].switch.is_some_and(|to| distance(to) <= reach)
                    });
                    if near.terms.len() < shape.parties[other].places.len() && near.constant == 0.0 {
                        let sum = self.at_switch(party, switch).plus(&near, -1.0);
                        self.constrain("reach", sum, Sense::AtMost, 0.0);
                    }
                }
            }
        }
    }

    /// What leaves its switch takes an arc, and beside a party at a switch there is room for one less than hosts are there.
    fn within_switches(&mut self) {
        let shape = self.shape;
        let rooms = rooms(shape);
        let mut pairs: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (number, own) in shape.commodities.iter().enumerate() {
            let pair = (own.source.min(own.destination), own.source.max(own.destination));
            pairs.entry(pair).or_default().push(number);
        }
        let mut beside: BTreeMap<(usize, usize), Sum> = BTreeMap::new();
        for (&(first, second), commodities) in &pairs {
            for switch in 0..shape.switches.len() {
                let [a, b] = [first, second].map(|party| self.at_switch(party, switch));
                let mut both = Sum::default();
                if !a.is_nothing() && !b.is_nothing() {
                    let meaning = Meaning::AtSwitch { commodity: commodities[0], switch };
                    let variable = self.variable(meaning, Domain::NotNegative);
                    self.program.limit(variable, 0.0, 1.0);
                    both = both.with(variable, 1.0);
                    for (party, at) in [(first, a), (second, b)] {
                        self.constrain("both", both.clone().plus(&at, -1.0), Sense::AtMost, 0.0);
                        let sum = beside.entry((party, switch)).or_default();
                        *sum = std::mem::take(sum).with(variable, 1.0);
                    }
                }
                for &commodity in commodities {
                    let ends =
                        [shape.commodities[commodity].source, shape.commodities[commodity].destination];
                    for (party, arcs) in
                        ends.into_iter().zip([&shape.leaving[switch], &shape.entering[switch]])
                    {
                        let sum = self
                            .at_switch(party, switch)
                            .plus(&both, -1.0)
                            .plus(&self.taken(commodity, arcs), -1.0);
                        self.constrain("apart", sum, Sense::AtMost, 0.0);
                    }
                }
            }
        }
        for ((party, switch), sum) in beside {
            let room = rooms[switch].saturating_sub(1) as f64;
            if sum.terms.len() as f64 > room {
                let sum = sum.plus(&self.at_switch(party, switch), -room);
                self.constrain("neighbours", sum, Sense::AtMost, 0.0);
            }
        }
    }

    /// The routes to a party come from as many switches as its sources need beside its own; each has an entry for it.
    fn trees(&mut self) {
        let shape = self.shape;
        if (0..shape.switches.len()).any(|switch| shape.is_two(switch)) {
            return;
        }
        for party in 0..shape.parties.len() {
            let entries = self.entries.iter().filter(|((_, destination), _)| *destination == party);
            let entries = Sum::of(entries.map(|(_, &variable)| (variable, 1.0)).collect());
            let mut sum = entries;
            for &place in &shape.parties[party].places {
                sum = sum.plus(&self.at(party, place), -(switches_needed(shape, party, place) as f64));
            }
            self.constrain("tree", sum, Sense::AtLeast, 0.0);
        }
    }

    /// The routes of a party are together as long as they are if its partners are as near as they can be.
    fn stars(&mut self) {
        let shape = self.shape;
        let most = self.window.most.unwrap_or(NO_WAY);
        for party in 0..shape.parties.len() {
            let mut sum = Sum::default();
            for (number, own) in shape.commodities.iter().enumerate() {
                if own.source == party || own.destination == party {
                    sum = sum.plus(&self.length(number), 1.0);
                }
            }
            for &place in &shape.parties[party].places {
                match star(shape, party, place, most) {
                    Some(length) => sum = sum.plus(&self.at(party, place), -(length as f64)),
                    None => match self.at[party].get(&place) {
                        Some(&variable) => self.program.limit(variable, 0.0, 0.0),
                        None => self.constrain("nowhere", Sum::constant(1.0), Sense::AtMost, 0.0),
                    },
                }
            }
            self.constrain("star", sum, Sense::AtLeast, 0.0);
        }
    }
}

/// How many hosts each switch has.
fn rooms(shape: &Shape<'_>) -> Vec<usize> {
    let mut rooms = vec![0; shape.switches.len()];
    for place in &shape.places {
        if let Some(switch) = place.switch {
            rooms[switch] += place.hosts.len();
        }
    }
    rooms
}

/// How many switches beside its own the sources of a party alone on its host need at least.
pub(super) fn switches_needed(shape: &Shape<'_>, party: usize, place: usize) -> usize {
    let Some(own) = shape.places[place].switch else { return 0 };
    let mut rooms = rooms(shape);
    let sources = shape.received(party).count();
    let mut left = sources.saturating_sub(rooms[own].saturating_sub(1));
    rooms[own] = 0;
    rooms.sort_unstable_by(|a, b| b.cmp(a));
    let mut needed = 0;
    for room in rooms.into_iter().take_while(|room| *room > 0) {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(room);
        needed += 1;
    }
    needed
}

/// The least that the routes of a party at a place are long together, if none is longer than `most`; nothing if its partners do not fit
/// that near.
pub(super) fn star(shape: &Shape<'_>, party: usize, place: usize, most: usize) -> Option<usize> {
    let mut partners: BTreeMap<usize, usize> = BTreeMap::new();
    for own in &shape.commodities {
        match party {
            _ if own.source == party => *partners.entry(own.destination).or_default() += 1,
            _ if own.destination == party => *partners.entry(own.source).or_default() += 1,
            _ => {}
        }
    }
    let mut partners: Vec<usize> = partners.into_values().collect();
    // Those with most routes are nearest.
    partners.sort_unstable_by(|a, b| b.cmp(a));
    let mut seats: Vec<(usize, usize)> = Vec::new();
    for (number, other) in shape.places.iter().enumerate() {
        let hosts = if number == place { other.hosts.len() - 1 } else { other.hosts.len() };
        let seat = shape.seats[number].min(partners.len() + 1);
        if number == place {
            seats.push((0, seat.saturating_sub(1)));
        }
        let distance = match (shape.places[place].switch, other.switch) {
            (Some(from), Some(to)) => shape.distances[from][to].min(shape.distances[to][from]),
            _ => NO_WAY,
        };
        if distance + 2 <= most && distance < NO_WAY {
            seats.push((distance + 2, hosts * seat));
        }
    }
    seats.sort_unstable();
    let mut length = 0;
    let mut seats = seats.into_iter();
    let mut seat = (0, 0);
    for routes in partners {
        while seat.1 == 0 {
            seat = seats.next()?;
        }
        length += routes * seat.0;
        seat.1 -= 1;
    }
    Some(length)
}

impl Model<'_> {
    /// Forbids that routes go on from each of these links to the next, and from the last to the first.
    pub(super) fn forbid(&mut self, cycle: &[u32]) {
        let arc = |link: &u32| self.shape.arcs.iter().position(|arc| arc.link == *link);
        let Some(arcs) = cycle.iter().map(arc).collect::<Option<Vec<usize>>>() else { return };
        let mut sum = Sum::default();
        for (at, &arc) in arcs.iter().enumerate() {
            let variable = self.going_on(arc, arcs[(at + 1) % arcs.len()]);
            sum = sum.with(variable, 1.0);
        }
        let most = sum.terms.len() as f64 - 1.0;
        self.constrain("cycle", sum, Sense::AtMost, most);
    }

    /// A variable that is 1 if some route goes on from an arc to another.
    fn going_on(&mut self, arc: usize, next: usize) -> usize {
        if let Some(&variable) = self.goes_on.get(&(arc, next)) {
            return variable;
        }
        let variable = self.variable(Meaning::GoesOn { arc, next }, Domain::NotNegative);
        self.program.limit(variable, 0.0, 1.0);
        self.goes_on.insert((arc, next), variable);
        for commodity in 0..self.shape.commodities.len() {
            let both = [arc, next].map(|arc| self.takes[commodity].get(&arc).copied());
            let [Some(first), Some(second)] = both else { continue };
            // Where one table decides, an entry says where all goes on.
            let destination = self.shape.commodities[commodity].destination;
            let entry = self
                .entries
                .get(&(next, destination))
                .filter(|_| self.shape.exclusive && !self.shape.is_two(self.shape.arcs[next].from));
            let second = entry.copied().unwrap_or(second);
            let sum = Sum::of(vec![(first, 1.0), (second, 1.0), (variable, -1.0)]);
            self.constrain("goes", sum, Sense::AtMost, 1.0);
        }
        variable
    }
}

/// Switches that are tried before it is given up to find out from which switches a machine looks the same.
const MOST_TRIES: usize = 100_000;
/// Switches of a machine for which it is tried.
const MOST_SWITCHES: usize = 256;

/// A party that need not be at switches from which the machine looks as from another one.
#[derive(Debug, Clone, Default)]
pub(super) struct Symmetry {
    /// The party.
    party: usize,
    /// Places at which it need not be.
    left_out: Vec<usize>,
}

/// What a switch is apart from its arcs: its type, and what its hosts are.
type Look = (bool, Vec<(Option<u64>, Option<u64>, usize, Vec<usize>, Vec<u64>)>);

impl Symmetry {
    /// What looks the same in a shape.
    pub(super) fn new(shape: &Shape<'_>) -> Self {
        let degree = |party: usize| shape.sent(party).count() + shape.received(party).count();
        let is_small = shape.switches.len() <= MOST_SWITCHES;
        let free =
            (0..shape.parties.len()).filter(|&party| is_small && shape.parties[party].places.len() > 1);
        let Some(party) = free.max_by_key(|&party| (shape.parties[party].places.len(), degree(party))) else {
            return Self::default();
        };
        let machine = Machine::new(shape);
        let mut kept: Vec<usize> = Vec::new();
        let mut tries = MOST_TRIES;
        for switch in 0..shape.switches.len() {
            if !kept.iter().any(|&other| machine.looks_the_same(other, switch, &mut tries)) {
                kept.push(switch);
            }
        }
        let is_left_out =
            |place: &usize| shape.places[*place].switch.is_some_and(|switch| !kept.contains(&switch));
        let left_out = shape.parties[party].places.iter().copied().filter(is_left_out).collect();
        Self { party, left_out }
    }

    /// Leaves out what is the same elsewhere.
    pub(super) fn restrict(&self, model: &mut Model<'_>) {
        for (variable, meaning) in model.meanings.iter().enumerate() {
            if let Meaning::At { party, place } = *meaning
                && party == self.party
                && self.left_out.contains(&place)
            {
                model.program.limit(variable, 0.0, 0.0);
            }
        }
    }
}

/// The switches of a machine and the arcs between them.
struct Machine {
    looks: Vec<Look>,
    /// Capacities of the arcs from switch to switch, in order.
    arcs: BTreeMap<(usize, usize), Vec<u64>>,
    /// Switches in an order in which each is next to one before if it can be.
    neighbours: Vec<BTreeSet<usize>>,
}

impl Machine {
    fn new(shape: &Shape<'_>) -> Self {
        let mut arcs: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        let mut neighbours = vec![BTreeSet::new(); shape.switches.len()];
        for arc in &shape.arcs {
            arcs.entry((arc.from, arc.to)).or_default().push(arc.capacity.to_bits());
            neighbours[arc.from].insert(arc.to);
            neighbours[arc.to].insert(arc.from);
        }
        arcs.values_mut().for_each(|own| own.sort_unstable());
        Self {
            looks: (0..shape.switches.len()).map(|switch| look(shape, switch)).collect(),
            arcs,
            neighbours,
        }
    }

    /// Whether some exchange of switches brings one to the place of another and changes nothing. If that takes too long to find out, not.
    fn looks_the_same(&self, first: usize, second: usize, tries: &mut usize) -> bool {
        let order = self.order(first);
        let mut image = vec![None; self.looks.len()];
        self.extends(&order, 0, Some(second), &mut image, tries)
    }

    /// All switches, beginning with one, and neighbours of those before as long as there are some.
    fn order(&self, first: usize) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.looks.len());
        let mut is_in = vec![false; self.looks.len()];
        for start in std::iter::once(first).chain(0..self.looks.len()) {
            let mut next = order.len();
            if !is_in[start] {
                is_in[start] = true;
                order.push(start);
            }
            while next < order.len() {
                for &neighbour in &self.neighbours[order[next]] {
                    if !is_in[neighbour] {
                        is_in[neighbour] = true;
                        order.push(neighbour);
                    }
                }
                next += 1;
            }
        }
        order
    }

    /// Whether the images of the first switches in an order can be extended to all; `forced` is the image of the next one.
    fn extends(
        &self,
        order: &[usize],
        at: usize,
        forced: Option<usize>,
        image: &mut Vec<Option<usize>>,
        tries: &mut usize,
    ) -> bool {
        let Some(&switch) = order.get(at) else { return true };
        let candidates: Vec<usize> = match forced {
            Some(forced) => vec![forced],
            None => (0..self.looks.len()).filter(|other| !image.contains(&Some(*other))).collect(),
        };
        for other in candidates {
            if *tries == 0 {
                return false;
            }
            *tries -= 1;
            if self.looks[switch] == self.looks[other] && self.fits(&order[..at], switch, other, image) {
                image[switch] = Some(other);
                if self.extends(order, at + 1, None, image, tries) {
                    return true;
                }
                image[switch] = None;
            }
        }
        false
    }

    /// Whether the arcs between a switch and those before it are those between their images.
    fn fits(&self, before: &[usize], switch: usize, other: usize, image: &[Option<usize>]) -> bool {
        before.iter().all(|&earlier| {
            image[earlier].is_some_and(|there| {
                self.arcs.get(&(switch, earlier)) == self.arcs.get(&(other, there))
                    && self.arcs.get(&(earlier, switch)) == self.arcs.get(&(there, other))
            })
        })
    }
}

fn look(shape: &Shape<'_>, switch: usize) -> Look {
    let problem = shape.problem;
    let homes = problem.home.as_ref().filter(|home| home.cost > 0.0);
    let hosts = |(number, place): (usize, &super::shape::Place)| {
        let held =
            (0..shape.parties.len()).filter(|&party| shape.parties[party].places.contains(&number)).collect();
        let mut room = Vec::new();
        if !shape.exclusive {
            let host = place.hosts[0] as usize;
            room.push(problem.performance[host].to_bits());
            let devices = &problem.system.nodes[host].traits.devices;
            let kinds: BTreeSet<&String> =
                problem.graph.demands.processes.iter().flat_map(|process| process.devices.keys()).collect();
            room.extend(
                kinds.into_iter().map(|kind| u64::from(devices.get(kind).copied().unwrap_or_default())),
            );
        }
        // Homes are unlike all other hosts.
        room.extend(
            place
                .hosts
                .iter()
                .filter(|host| homes.is_some_and(|home| home.hosts.contains(host)))
                .map(|&host| u64::from(host)),
        );
        let bits = |capacity: Option<f64>| capacity.map(f64::to_bits);
        (bits(place.sends), bits(place.receives), place.hosts.len(), held, room)
    };
    let here = shape.places.iter().enumerate().filter(|(_, place)| place.switch == Some(switch));
    let mut looks: Vec<_> = here.map(hosts).collect();
    looks.sort_unstable();
    (shape.is_two(switch), looks)
}
