//! What every solution keeps and the relaxation does not: partners are spread over hosts, and hosts over switches.

use std::collections::BTreeMap;

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
