//! Constraints of the compact program. Table entries: (6) to (9), (16) and (17) without sums over all links. Cuts: constraints
//! that every solution satisfies but the relaxation does not (partners are spread over hosts, and hosts over switches). Cycles of
//! the channel dependency graph, forbidden one by one.

use std::collections::BTreeMap;

use super::model::{Input, Meaning, Model, Sum, switches_of};
use super::shape::{Shape, UNREACHABLE};
use crate::linear::{Domain, Sense};

impl Model<'_> {
    /// Routes follow tables, and entries have a cost.
    pub(super) fn tables(&mut self) {
        match self.shape.exclusive {
            true => self.tables_of_parties(),
            false => self.tables_of_hosts(),
        }
    }

    /// Every destination is alone on its host: entries belong to the party.
    fn tables_of_parties(&mut self) {
        let shape = self.shape;
        let weight = shape.problem.rules.weights.table_entries;
        for destination in 0..shape.parties.len() {
            let commodities = shape.commodities.iter().enumerate();
            let commodities: Vec<usize> = commodities
                .filter(|(_, own)| own.destination == destination)
                .map(|(number, _)| number)
                .collect();
            if commodities.is_empty() {
                continue;
            }
            for arc in 0..shape.arcs.len() {
                self.entry_of_party(arc, destination, &commodities);
            }
            for switch in 0..shape.switches.len() {
                let here = self.at_switch(destination, switch);
                if shape.is_two(switch) {
                    self.turns(switch, destination, &commodities);
                } else {
                    let arcs = shape.leaving[switch].iter();
                    let entries = Sum::each(arcs.filter_map(|&arc| self.entries.get(&(arc, destination))));
                    self.constrain("table", entries.plus(&here, 1.0), Sense::AtMost, 1.0);
                }
            }
            // The last entry, at the switch of the host; in a switch of type 2, for the incoming arc.
            let last = self
                .among(destination, |place| shape.places[place].switch.is_some_and(|it| !shape.is_two(it)));
            self.charge(&last, weight);
        }
        // The first entry; in a switch of type 2, for the port of the host.
        for commodity in &shape.commodities {
            let first = self.among(commodity.source, |place| {
                shape.places[place].switch.is_some_and(|it| shape.is_two(it))
            });
            self.charge(&first, weight);
        }
    }

    /// Traffic that leaves a switch of type 1 on an arc needs an entry there; traffic that enters a switch of type 2 on it needs
    /// one in that switch.
    fn entry_of_party(&mut self, arc: usize, destination: usize, commodities: &[usize]) {
        let ends = self.shape.arcs[arc];
        let entries = f64::from(u8::from(!self.shape.is_two(ends.from)))
            + f64::from(u8::from(self.shape.is_two(ends.to)));
        let taken: Vec<usize> =
            commodities.iter().filter_map(|&commodity| self.takes[commodity].get(&arc).copied()).collect();
        if entries == 0.0 || taken.is_empty() {
            return;
        }
        let entry = self.variable(Meaning::Entry { arc, destination }, Domain::Binary);
        self.entries.insert((arc, destination), entry);
        self.charge(&Sum::of(vec![(entry, entries)]), self.shape.problem.rules.weights.table_entries);
        for variable in taken {
            self.constrain("follow", Sum::of(vec![(variable, 1.0), (entry, -1.0)]), Sense::AtMost, 0.0);
        }
    }

    /// All traffic for one destination that enters a switch of type 2 on one arc leaves on the same arc.
    fn turns(&mut self, switch: usize, destination: usize, commodities: &[usize]) {
        let shape = self.shape;
        if commodities.len() < 2 {
            return;
        }
        for &input in &shape.entering[switch] {
            let mut one = Sum::default();
            for &output in &shape.leaving[switch] {
                let takes = commodities.iter().map(|&commodity| &self.takes[commodity]);
                let both =
                    takes.filter_map(|takes| Some(Sum::each([takes.get(&input)?, takes.get(&output)?])));
                let both: Vec<Sum> = both.collect();
                if shape.arcs[output].to == shape.arcs[input].from || both.is_empty() {
                    continue;
                }
                let meaning = Meaning::Turn { input: Input::Arc(input), output: Some(output), destination };
                let turn = self.variable(meaning, Domain::Binary);
                one = one.with(turn, 1.0);
                both.into_iter()
                    .for_each(|sum| self.constrain("turn", sum.with(turn, -1.0), Sense::AtMost, 1.0));
            }
            self.constrain("table2", one, Sense::AtMost, 1.0);
        }
    }

    /// Hosts hold several destinations: entries belong to the host (16), (17).
    fn tables_of_hosts(&mut self) {
        let shape = self.shape;
        for place in 0..shape.places.len() {
            let Some(home) = shape.places[place].switch else { continue };
            let commodities: Vec<(usize, Sum)> = shape
                .commodities
                .iter()
                .enumerate()
                .map(|(number, commodity)| (number, self.at(commodity.destination, place)))
                .filter(|(_, there)| !there.is_nothing())
                .collect();
            if commodities.is_empty() {
                continue;
            }
            if !shape.is_two(home) {
                self.last_entry(place, &commodities);
            }
            for switch in 0..shape.switches.len() {
                match shape.is_two(switch) {
                    true => self.tables_of_ports(switch, place, &commodities),
                    false if switch != home => self.table_of_switch(switch, place, &commodities),
                    false => {}
                }
            }
        }
    }

    /// The entry for a host at its own switch of type 1.
    fn last_entry(&mut self, place: usize, commodities: &[(usize, Sum)]) {
        let entry = self.entry_variable(Meaning::Arrives { destination: place });
        for (commodity, there) in commodities {
            let mut sum = there.clone().with(entry, -1.0);
            if let Some(&inside) = self.together.get(&(place, *commodity)) {
                sum = sum.with(inside, -1.0);
            }
            self.constrain("last", sum, Sense::AtMost, 0.0);
        }
    }

    /// A variable for an entry, with its cost.
    fn entry_variable(&mut self, meaning: Meaning) -> usize {
        let variable = self.variable(meaning, Domain::Binary);
        self.charge(&Sum::each([&variable]), self.shape.problem.rules.weights.table_entries);
        variable
    }

    /// The table of a switch of type 1 for a remote host.
    fn table_of_switch(&mut self, switch: usize, place: usize, commodities: &[(usize, Sum)]) {
        let shape = self.shape;
        let mut one = Sum::default();
        for &arc in &shape.leaving[switch] {
            let entry = self.entry_variable(Meaning::Entry { arc, destination: place });
            self.entries.insert((arc, place), entry);
            one = one.with(entry, 1.0);
            for (commodity, there) in commodities {
                if let Some(&taken) = self.takes[*commodity].get(&arc) {
                    let sum = there.clone().with(taken, 1.0).with(entry, -1.0);
                    self.constrain("follow", sum, Sense::AtMost, 1.0);
                }
            }
        }
        self.constrain("table", one, Sense::AtMost, 1.0);
    }

    /// The tables of the input ports of a switch of type 2 for a host.
    fn tables_of_ports(&mut self, switch: usize, place: usize, commodities: &[(usize, Sum)]) {
        let shape = self.shape;
        for &input in &shape.entering[switch] {
            let enters = |own: &Self, commodity: usize| own.taken(commodity, &[input]);
            let back = Some(shape.arcs[input].from);
            self.table_of_port(switch, Input::Arc(input), back, place, commodities, &enters);
        }
        for (other, there) in shape.places.iter().enumerate() {
            if there.switch == Some(switch) && other != place {
                let enters =
                    |own: &Self, commodity: usize| own.at(shape.commodities[commodity].source, other);
                self.table_of_port(switch, Input::Host(other), None, place, commodities, &enters);
            }
        }
    }

    /// The table of an input port: `enters` is whether a commodity arrives there.
    fn table_of_port(
        &mut self,
        switch: usize,
        input: Input,
        back: Option<usize>,
        place: usize,
        commodities: &[(usize, Sum)],
        enters: &dyn Fn(&Self, usize) -> Sum,
    ) {
        let shape = self.shape;
        let is_home = shape.places[place].switch == Some(switch);
        let outputs: Vec<Option<usize>> = match is_home {
            true => vec![None],
            false => {
                let on = shape.leaving[switch].iter().filter(|&&arc| Some(shape.arcs[arc].to) != back);
                on.map(|&arc| Some(arc)).collect()
            }
        };
        let mut one = Sum::default();
        for output in outputs {
            let mut follow = Vec::new();
            for (commodity, there) in commodities {
                let enters = enters(self, *commodity);
                let leaves = match output {
                    None => Sum::constant(1.0),
                    Some(arc) => self.taken(*commodity, &[arc]),
                };
                if !enters.is_nothing() && !leaves.is_nothing() {
                    follow.push(there.clone().plus(&enters, 1.0).plus(&leaves, 1.0));
                }
            }
            if follow.is_empty() {
                continue;
            }
            let entry = self.entry_variable(Meaning::Turn { input, output, destination: place });
            one = one.with(entry, 1.0);
            follow
                .into_iter()
                .for_each(|sum| self.constrain("turn", sum.with(entry, -1.0), Sense::AtMost, 2.0));
        }
        self.constrain("table2", one, Sense::AtMost, 1.0);
    }
}

impl Model<'_> {
    /// Cuts from distances and from capacities of switches.
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

    /// The distance of parties is at most the longest route.
    fn within_reach(&mut self) {
        let Some(most) = self.window.most else { return };
        let shape = self.shape;
        let reach = most.saturating_sub(2);
        for commodity in &shape.commodities {
            let [source, destination] = commodity.ends();
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

    /// Traffic to another switch uses an arc, and besides a given party a switch has room for one party less than it has hosts.
    fn within_switches(&mut self) {
        let shape = self.shape;
        let rooms = rooms(shape);
        let mut pairs: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (number, own) in shape.commodities.iter().enumerate() {
            let pair = (own.source.min(own.destination), own.source.max(own.destination));
            pairs.entry(pair).or_default().push(number);
        }
        let mut others: BTreeMap<(usize, usize), Sum> = BTreeMap::new();
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
                        let sum = others.entry((party, switch)).or_default();
                        *sum = std::mem::take(sum).with(variable, 1.0);
                    }
                }
                for &commodity in commodities {
                    let ends = shape.commodities[commodity].ends().into_iter();
                    for (party, arcs) in ends.zip([&shape.leaving[switch], &shape.entering[switch]]) {
                        let taken = self.taken(commodity, arcs);
                        let sum = self.at_switch(party, switch).plus(&both, -1.0).plus(&taken, -1.0);
                        self.constrain("apart", sum, Sense::AtMost, 0.0);
                    }
                }
            }
        }
        for ((party, switch), sum) in others {
            let room = rooms[switch].saturating_sub(1) as f64;
            if sum.terms.len() as f64 > room {
                let sum = sum.plus(&self.at_switch(party, switch), -room);
                self.constrain("neighbours", sum, Sense::AtMost, 0.0);
            }
        }
    }

    /// The sources of a party need a minimum number of other switches; routes arrive from at least that many, each with an entry
    /// for the party.
    fn trees(&mut self) {
        let shape = self.shape;
        if (0..shape.switches.len()).any(|switch| shape.is_two(switch)) {
            return;
        }
        for party in 0..shape.parties.len() {
            let entries = self.entries.iter().filter(|((_, destination), _)| *destination == party);
            let mut sum = Sum::each(entries.map(|(_, variable)| variable));
            for &place in &shape.parties[party].places {
                sum = sum.plus(&self.at(party, place), -(switches_needed(shape, party, place) as f64));
            }
            self.constrain("tree", sum, Sense::AtLeast, 0.0);
        }
    }

    /// The total length of the routes of a party is at least the sum with all partners as near as possible.
    fn stars(&mut self) {
        let shape = self.shape;
        let most = self.window.most.unwrap_or(UNREACHABLE);
        for party in 0..shape.parties.len() {
            let mut sum = Sum::default();
            for (number, own) in shape.commodities.iter().enumerate() {
                if own.partner(party).is_some() {
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

/// Number of hosts of each switch.
fn rooms(shape: &Shape<'_>) -> Vec<usize> {
    let mut rooms = vec![0; shape.switches.len()];
    for place in &shape.places {
        if let Some(switch) = place.switch {
            rooms[switch] += place.hosts.len();
        }
    }
    rooms
}

/// Minimum number of other switches that the sources of a party need, if the party is alone on its host.
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

/// Minimum total length of the routes of a party at a place, if none is longer than `most`; none if its partners do not fit
/// within that distance.
pub(super) fn star(shape: &Shape<'_>, party: usize, place: usize, most: usize) -> Option<usize> {
    let mut partners: BTreeMap<usize, usize> = BTreeMap::new();
    for partner in shape.commodities.iter().filter_map(|own| own.partner(party)) {
        *partners.entry(partner).or_default() += 1;
    }
    let mut partners: Vec<usize> = partners.into_values().collect();
    // Partners with the most routes are nearest.
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
            _ => UNREACHABLE,
        };
        if distance + 2 <= most && distance < UNREACHABLE {
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
    /// Forbids that routes use every pair of consecutive links of this cycle.
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

    /// A variable that is 1 if some route continues from one arc to another.
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
            // With one table per switch, an entry determines the next arc of all routes.
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
