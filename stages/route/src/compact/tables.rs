//! Entries of tables: (6) to (9), (16) and (17) without sums over all links.

use super::model::{Input, Meaning, Model, Sum};
use crate::linear::{Domain, Sense};

impl Model<'_> {
    /// Routes follow tables, and entries cost.
    pub(super) fn tables(&mut self) {
        match self.shape.exclusive {
            true => self.tables_of_parties(),
            false => self.tables_of_hosts(),
        }
    }

    /// Every destination is alone on its host: entries are those for the party.
    fn tables_of_parties(&mut self) {
        let shape = self.shape;
        let weight = shape.problem.rules.weights.table_entries;
        for destination in 0..shape.parties.len() {
            let commodities: Vec<usize> = self.for_party(destination);
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
                    let entries = arcs.filter_map(|&arc| self.entries.get(&(arc, destination)));
                    let entries = Sum::of(entries.map(|&variable| (variable, 1.0)).collect());
                    self.constrain("table", entries.plus(&here, 1.0), Sense::AtMost, 1.0);
                }
            }
            // The last entry, at the switch of the host; of type 2 it is that of the arc that comes in.
            let last = self
                .among(destination, |place| shape.places[place].switch.is_some_and(|it| !shape.is_two(it)));
            self.charge(&last, weight);
        }
        // The first entry, at a switch of type 2 that of the port of the host.
        for commodity in &shape.commodities {
            let first = self.among(commodity.source, |place| {
                shape.places[place].switch.is_some_and(|it| shape.is_two(it))
            });
            self.charge(&first, weight);
        }
    }

    fn for_party(&self, destination: usize) -> Vec<usize> {
        let all = self.shape.commodities.iter().enumerate();
        all.filter(|(_, commodity)| commodity.destination == destination).map(|(number, _)| number).collect()
    }

    /// What leaves a switch of type 1 by an arc needs an entry there, what enters one of type 2 by it needs one there.
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

    /// All that enters a switch of type 2 by an arc for the same destination leaves by the same.
    fn turns(&mut self, switch: usize, destination: usize, commodities: &[usize]) {
        let shape = self.shape;
        if commodities.len() < 2 {
            return;
        }
        for &input in &shape.entering[switch] {
            let mut one = Sum::default();
            for &output in &shape.leaving[switch] {
                let both: Vec<Sum> = commodities
                    .iter()
                    .filter_map(|&commodity| {
                        let takes = &self.takes[commodity];
                        Some(Sum::of(vec![(*takes.get(&input)?, 1.0), (*takes.get(&output)?, 1.0)]))
                    })
                    .collect();
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

    /// Hosts hold several destinations: entries are those for the host (16), (17).
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

    /// The entry for a host at its own switch, of type 1.
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

    /// A variable that costs an entry.
    fn entry_variable(&mut self, meaning: Meaning) -> usize {
        let variable = self.variable(meaning, Domain::Binary);
        self.charge(&Sum::of(vec![(variable, 1.0)]), self.shape.problem.rules.weights.table_entries);
        variable
    }

    /// The table of a switch of type 1 for a host elsewhere.
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

    /// The tables of the ports of a switch of type 2 for a host.
    fn tables_of_ports(&mut self, switch: usize, place: usize, commodities: &[(usize, Sum)]) {
        let shape = self.shape;
        for &input in &shape.entering[switch] {
            let enters = |own: &Self, commodity: usize| {
                own.takes[commodity].get(&input).map_or(Sum::default(), |&taken| Sum::of(vec![(taken, 1.0)]))
            };
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

    /// The table of a port: `enters` says whether a commodity comes in by it.
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
