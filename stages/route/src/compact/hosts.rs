//! Several processes on a host: (13), and what stays within hosts.

use std::collections::BTreeMap;

use super::model::{Meaning, Model, Sum};
use crate::linear::{Domain, Sense};

impl Model<'_> {
    /// What hosts and their cables have room for, where several parties fit on one. Places are single hosts then.
    pub(super) fn hosts(&mut self) {
        if self.shape.exclusive {
            return;
        }
        self.stays_inside();
        for place in 0..self.shape.places.len() {
            self.fits(place);
            self.cable(place);
        }
        self.alike_in_order();
    }

    /// Commodities within hosts: both ends are there.
    fn stays_inside(&mut self) {
        let shape = self.shape;
        for (commodity, own) in shape.commodities.iter().enumerate() {
            for &place in &shape.parties[own.source].places {
                let ends = [own.source, own.destination].map(|party| self.at(party, place));
                if ends.iter().any(Sum::is_nothing) {
                    continue;
                }
                let variable = self.variable(Meaning::OnHost { commodity, place }, Domain::NotNegative);
                self.program.limit(variable, 0.0, 1.0);
                self.together.insert((place, commodity), variable);
                for end in ends {
                    let sum = Sum::of(vec![(variable, 1.0)]).plus(&end, -1.0);
                    self.constrain("inside", sum, Sense::AtMost, 0.0);
                }
            }
        }
    }

    /// (13) and the same for devices; and what a process has beside it has to fit with it.
    fn fits(&mut self, place: usize) {
        let problem = self.shape.problem;
        let host = self.shape.places[place].hosts[0] as usize;
        let processes = &problem.graph.demands.processes;
        let mut kinds: BTreeMap<Option<&String>, BTreeMap<usize, f64>> = BTreeMap::new();
        for (party, process) in processes.iter().enumerate() {
            if !self.shape.parties[party].places.contains(&place) {
                continue;
            }
            if process.performance > 0.0 {
                kinds.entry(None).or_default().insert(party, process.performance);
            }
            for (device, &count) in process.devices.iter().filter(|(_, count)| **count > 0) {
                kinds.entry(Some(device)).or_default().insert(party, f64::from(count));
            }
        }
        for (device, needs) in kinds {
            let there = match device {
                None => problem.performance[host],
                Some(device) => {
                    let devices = &problem.system.nodes[host].traits.devices;
                    f64::from(devices.get(device).copied().unwrap_or_default())
                }
            };
            if !there.is_finite() {
                continue;
            }
            let sum = needs
                .iter()
                .fold(Sum::default(), |sum, (&party, &need)| sum.plus(&self.at(party, place), need));
            self.carries("fits", sum, there);
            for party in (0..self.at.len()).filter(|&party| !self.at[party].is_empty()).collect::<Vec<_>>() {
                self.fits_beside(party, place, &needs, there);
            }
        }
    }

    /// What is on a host together with a process it has streams with needs no more than what the process leaves.
    fn fits_beside(&mut self, party: usize, place: usize, needs: &BTreeMap<usize, f64>, there: f64) {
        let mut beside: BTreeMap<usize, usize> = BTreeMap::new();
        for (commodity, own) in self.shape.commodities.iter().enumerate() {
            let other = match party {
                _ if own.source == party => own.destination,
                _ if own.destination == party => own.source,
                _ => continue,
            };
            if let Some(&variable) = self.together.get(&(place, commodity)) {
                beside.entry(other).or_insert(variable);
            }
        }
        let terms: Vec<(usize, f64)> =
            beside.iter().filter_map(|(other, &variable)| Some((variable, *needs.get(other)?))).collect();
        if terms.is_empty() {
            return;
        }
        let room = there - needs.get(&party).copied().unwrap_or_default() + there * crate::problem::TOLERANCE;
        // In parts of the room, so that factors are about one.
        let unit = there.abs().max(f64::MIN_POSITIVE);
        let terms = terms.into_iter().map(|(variable, need)| (variable, need / unit)).collect();
        let sum = Sum::of(terms).plus(&self.at(party, place), -room / unit);
        self.constrain("beside", sum, Sense::AtMost, 0.0);
    }

    /// (2) for the links of a host.
    fn cable(&mut self, place: usize) {
        let shape = self.shape;
        let own = &shape.places[place];
        for (capacity, sends) in [(own.sends, true), (own.receives, false)] {
            let mut load = Sum::default();
            for (number, commodity) in shape.commodities.iter().enumerate() {
                let end = if sends { commodity.source } else { commodity.destination };
                let mut outside = self.at(end, place);
                if let Some(&variable) = self.together.get(&(place, number)) {
                    outside = outside.with(variable, -1.0);
                }
                if capacity.is_none() && !outside.is_nothing() {
                    self.constrain("no_cable", outside.clone(), Sense::AtMost, 0.0);
                }
                load = load.plus(&outside, commodity.bandwidth);
            }
            if let Some(capacity) = capacity {
                self.carries("cable", load, capacity);
            }
        }
    }

    /// Of alike hosts each holds a process below all those of the next.
    fn alike_in_order(&mut self) {
        let shape = self.shape;
        let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, place) in shape.places.iter().enumerate() {
            classes.entry(place.class).or_default().push(number);
        }
        for pair in classes.values().flat_map(|class| class.windows(2)) {
            let mut below = Sum::default();
            for party in 0..shape.parties.len() {
                let sum = self.at(party, pair[1]).plus(&below, -1.0);
                if !self.at(party, pair[1]).is_nothing() {
                    self.constrain("order", sum, Sense::AtMost, 0.0);
                }
                below = below.plus(&self.at(party, pair[0]), 1.0);
            }
        }
    }
}
