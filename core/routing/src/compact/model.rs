//! Variables and capacity constraints of the compact program: positions of parties, arcs of commodities, and capacity of hosts
//! (13).

use std::collections::BTreeMap;

use super::shape::Shape;
use crate::linear::{Domain, LinearProgram, Sense};
use crate::problem::{TOLERANCE, devices_of, gcd};

/// The window of the longest route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) least: usize,
    pub(super) most: Option<usize>,
}

/// The program of a shape.
#[derive(Debug, Clone)]
pub(super) struct Model<'a> {
    pub(super) shape: &'a Shape<'a>,
    pub(super) program: LinearProgram,
    /// The meaning of each variable.
    pub(super) meanings: Vec<Meaning>,
    /// Constant cost.
    pub(super) constant: f64,
    pub(super) window: Window,
    /// The variable of each place of a party; none for parties with only one place.
    pub(super) at: Vec<BTreeMap<usize, usize>>,
    /// The variable of each arc of a commodity.
    pub(super) takes: Vec<BTreeMap<usize, usize>>,
    /// Commodities within a host, by place and commodity; for parties alone on their hosts those within a switch, by switch.
    pub(super) together: BTreeMap<(usize, usize), usize>,
    /// The entry of an arc for a destination, if the switch has one table.
    pub(super) entries: BTreeMap<(usize, usize), usize>,
    /// Pairs of arcs that some route uses in sequence.
    pub(super) goes_on: BTreeMap<(usize, usize), usize>,
}

/// The meaning of a variable. Destinations are parties that are alone on their hosts, otherwise places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The length of the longest route.
    Longest,
    /// Whether a party is at a place.
    At { party: usize, place: usize },
    /// Whether a commodity uses an arc.
    Takes { commodity: usize, arc: usize },
    /// Whether both ends of a commodity are on a host.
    OnHost { commodity: usize, place: usize },
    /// Whether both ends of a commodity are at a switch.
    AtSwitch { commodity: usize, switch: usize },
    /// Whether traffic for a destination uses an arc.
    Entry { arc: usize, destination: usize },
    /// Whether traffic for a destination enters a switch at a given input and leaves on an arc, or to its host.
    Turn { input: Input, output: Option<usize>, destination: usize },
    /// Whether traffic arrives at a destination.
    Arrives { destination: usize },
    /// Whether some route uses two arcs in sequence.
    GoesOn { arc: usize, next: usize },
}

/// The input of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// An arc.
    Arc(usize),
    /// The cable of the host of a place.
    Host(usize),
}

/// A linear expression: variables with coefficients, and a constant.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) terms: Vec<(usize, f64)>,
    pub(super) constant: f64,
}

impl Sum {
    pub(super) fn of(terms: Vec<(usize, f64)>) -> Self {
        Self { terms, constant: 0.0 }
    }

    /// Some variables.
    pub(super) fn each<'v>(variables: impl IntoIterator<Item = &'v usize>) -> Self {
        Self::of(variables.into_iter().map(|&variable| (variable, 1.0)).collect())
    }

    pub(super) fn constant(constant: f64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn plus(mut self, other: &Self, factor: f64) -> Self {
        self.terms.extend(other.terms.iter().map(|&(variable, own)| (variable, own * factor)));
        self.constant += other.constant * factor;
        self
    }

    pub(super) fn with(mut self, variable: usize, factor: f64) -> Self {
        self.terms.push((variable, factor));
        self
    }

    /// Whether the expression is 0 for all values of the variables.
    pub(super) fn is_nothing(&self) -> bool {
        self.terms.is_empty() && self.constant == 0.0
    }
}

impl<'a> Model<'a> {
    /// The program of a shape whose longest route is in a window.
    pub(super) fn new(shape: &'a Shape<'a>, window: Window) -> Self {
        let mut own = Self {
            shape,
            program: LinearProgram::default(),
            meanings: Vec::new(),
            constant: 0.0,
            window,
            at: vec![BTreeMap::new(); shape.parties.len()],
            takes: vec![BTreeMap::new(); shape.commodities.len()],
            together: BTreeMap::new(),
            entries: BTreeMap::new(),
            goes_on: BTreeMap::new(),
        };
        own.parties();
        own.hosts();
        own.routes();
        own.lengths();
        own.capacity();
        own.tables();
        own.cuts();
        own
    }

    pub(super) fn variable(&mut self, meaning: Meaning, domain: Domain) -> usize {
        let name = match meaning {
            Meaning::Longest => "Rmax".to_owned(),
            Meaning::At { party, place } => format!("M_{place}_{party}"),
            Meaning::Takes { commodity, arc } => format!("R_{arc}_{commodity}"),
            Meaning::OnHost { commodity, place } => format!("H_{place}_{commodity}"),
            Meaning::AtSwitch { commodity, switch } => format!("S_{switch}_{commodity}"),
            Meaning::Entry { arc, destination } => format!("T_{arc}_{destination}"),
            Meaning::Turn { .. } => format!("U_{}", self.meanings.len()),
            Meaning::Arrives { destination } => format!("A_{destination}"),
            Meaning::GoesOn { arc, next } => format!("D_{arc}_{next}"),
        };
        self.meanings.push(meaning);
        self.program.variable(name, domain, 0.0)
    }

    pub(super) fn constrain(&mut self, what: &str, mut sum: Sum, sense: Sense, bound: f64) {
        let name = format!("{what}_{}", self.program.constraints.len());
        // Merges terms of the same variable.
        sum.terms.sort_unstable_by_key(|term| term.0);
        let mut terms: Vec<(usize, f64)> = Vec::with_capacity(sum.terms.len());
        for (variable, factor) in sum.terms {
            match terms.last_mut().filter(|last| last.0 == variable) {
                Some(last) => last.1 += factor,
                None => terms.push((variable, factor)),
            }
        }
        terms.retain(|term| term.1 != 0.0);
        self.program.constrain(name, terms, sense, bound - sum.constant);
    }

    /// Adds an expression to the cost.
    pub(super) fn charge(&mut self, sum: &Sum, weight: f64) {
        for &(variable, factor) in &sum.terms {
            self.program.variables[variable].cost += factor * weight;
        }
        self.constant += sum.constant * weight;
    }

    /// Whether a party is at a place.
    pub(super) fn at(&self, party: usize, place: usize) -> Sum {
        match (self.shape.parties[party].places.as_slice(), self.at[party].get(&place)) {
            ([only], _) if *only == place => Sum::constant(1.0),
            (_, Some(variable)) => Sum::each([variable]),
            _ => Sum::default(),
        }
    }

    /// Whether a party is at one of the places.
    pub(super) fn among(&self, party: usize, is_one: impl Fn(usize) -> bool) -> Sum {
        let places = self.shape.parties[party].places.iter().filter(|&&place| is_one(place));
        places.fold(Sum::default(), |sum, &place| sum.plus(&self.at(party, place), 1.0))
    }

    /// Whether a party is at a switch.
    pub(super) fn at_switch(&self, party: usize, switch: usize) -> Sum {
        self.among(party, |place| self.shape.places[place].switch == Some(switch))
    }

    /// The arcs of a commodity within a set.
    pub(super) fn taken(&self, commodity: usize, arcs: &[usize]) -> Sum {
        Sum::each(arcs.iter().filter_map(|arc| self.takes[commodity].get(arc)))
    }

    /// Whether a commodity stays within a host.
    pub(super) fn inside(&self, commodity: usize) -> Sum {
        if self.shape.exclusive {
            return Sum::default();
        }
        let places = &self.shape.parties[self.shape.commodities[commodity].source].places;
        Sum::each(places.iter().filter_map(|&place| self.together.get(&(place, commodity))))
    }

    /// The length of the route of a commodity.
    pub(super) fn length(&self, commodity: usize) -> Sum {
        let arcs = Sum::each(self.takes[commodity].values());
        arcs.plus(&Sum::constant(2.0), 1.0).plus(&self.inside(commodity), -2.0)
    }

    /// (12), the capacity of places, and the cost of moved processes.
    fn parties(&mut self) {
        let shape = self.shape;
        for (party, own) in shape.parties.iter().enumerate() {
            if own.places.len() > 1 {
                for &place in &own.places {
                    let variable = self.variable(Meaning::At { party, place }, Domain::Binary);
                    self.at[party].insert(place, variable);
                }
            }
            let one = self.among(party, |_| true);
            self.constrain("somewhere", one, Sense::Equal, 1.0);
        }
        if let Some(home) = &shape.problem.home {
            let hosts = shape.problem.mapped.as_ref();
            for (process, &host) in home.hosts.iter().enumerate() {
                let there = match hosts {
                    Some(hosts) => Sum::constant(f64::from(u8::from(hosts[process] == host))),
                    None => self.among(process, |place| shape.places[place].hosts.contains(&host)),
                };
                self.charge(&Sum::constant(1.0).plus(&there, -1.0), home.cost);
            }
        }
        if shape.exclusive {
            for (place, own) in shape.places.iter().enumerate() {
                let sum = (0..shape.parties.len())
                    .fold(Sum::default(), |sum, party| sum.plus(&self.at(party, place), 1.0));
                self.constrain("room", sum, Sense::AtMost, own.hosts.len() as f64);
            }
        }
    }

    /// Arcs of commodities: (15), (4) and (5).
    fn routes(&mut self) {
        let shape = self.shape;
        let most = self.window.most.map_or(super::shape::UNREACHABLE, |most| most.saturating_sub(2));
        for (commodity, own) in shape.commodities.iter().enumerate() {
            let [before, after] = own.ends().map(|party| switches_of(shape, party));
            for (arc, ends) in shape.arcs.iter().enumerate() {
                let there = before.iter().map(|&from| shape.distances[from][ends.from]).min();
                let on = after.iter().map(|&to| shape.distances[ends.to][to]).min();
                let length =
                    there.unwrap_or(super::shape::UNREACHABLE) + 1 + on.unwrap_or(super::shape::UNREACHABLE);
                let is_wide = own.bandwidth <= ends.capacity * (1.0 + TOLERANCE);
                if is_wide && length <= most && length < super::shape::UNREACHABLE {
                    let variable = self.variable(Meaning::Takes { commodity, arc }, Domain::Binary);
                    self.takes[commodity].insert(arc, variable);
                }
            }
            for switch in 0..shape.switches.len() {
                let [leaves, enters] =
                    [&shape.leaving, &shape.entering].map(|arcs| self.taken(commodity, &arcs[switch]));
                let [begins, ends] = own.ends().map(|party| self.at_switch(party, switch));
                let balance = leaves.clone().plus(&enters, -1.0).plus(&begins, -1.0).plus(&ends, 1.0);
                self.constrain("flow", balance, Sense::Equal, 0.0);
                if !leaves.is_nothing() {
                    self.constrain("out", leaves.plus(&ends, 1.0), Sense::AtMost, 1.0);
                }
                if !enters.is_nothing() {
                    self.constrain("in", enters.plus(&begins, 1.0), Sense::AtMost, 1.0);
                }
            }
        }
    }

    /// The objective without tables, and (10).
    fn lengths(&mut self) {
        let shape = self.shape;
        let weights = shape.problem.rules.weights;
        let longest = self.variable(Meaning::Longest, Domain::Whole);
        let most = self.window.most.map_or(f64::INFINITY, |most| most as f64);
        self.program.limit(longest, self.window.least as f64, most);
        self.charge(&Sum::each([&longest]), weights.longest_route);
        for (commodity, own) in shape.commodities.iter().enumerate() {
            let length = self.length(commodity);
            self.charge(&length, weights.total_hops * own.flows.len() as f64);
            self.constrain("length", length.with(longest, -1.0), Sense::AtMost, 0.0);
        }
    }

    /// (2), and the limit on the incoming load of switches.
    fn capacity(&mut self) {
        let shape = self.shape;
        let load = |own: &Self, arcs: &[usize]| {
            let commodities = shape.commodities.iter().enumerate();
            commodities.fold(Sum::default(), |sum, (number, commodity)| {
                sum.plus(&own.taken(number, arcs), commodity.bandwidth)
            })
        };
        for (arc, own) in shape.arcs.iter().enumerate() {
            let sum = load(self, &[arc]);
            self.carries("capacity", sum, own.capacity);
        }
        let Some(most) = shape.problem.rules.switch_load else { return };
        for switch in 0..shape.switches.len() {
            let mut sum = load(self, &shape.entering[switch]);
            for (number, commodity) in shape.commodities.iter().enumerate() {
                sum = sum.plus(&self.at_switch(commodity.source, switch), commodity.bandwidth);
                if !shape.exclusive {
                    sum = sum.plus(&self.inside_at(number, switch), -commodity.bandwidth);
                }
            }
            self.carries("load", sum, most);
        }
    }

    /// Whether a commodity stays within a host of a switch.
    fn inside_at(&self, commodity: usize, switch: usize) -> Sum {
        let places = &self.shape.parties[self.shape.commodities[commodity].source].places;
        let here = places.iter().filter(|&&place| self.shape.places[place].switch == Some(switch));
        Sum::each(here.filter_map(|&place| self.together.get(&(place, commodity))))
    }

    /// Limits a load to `most`, scaled to small coefficients: bandwidths are in the billions, and solvers round.
    pub(super) fn carries(&mut self, what: &str, mut sum: Sum, most: f64) {
        sum.terms.retain(|term| term.1 != 0.0);
        if !most.is_finite() || sum.terms.is_empty() && sum.constant <= most * (1.0 + TOLERANCE) {
            return;
        }
        let is_whole = |value: f64| value.fract() == 0.0 && value.abs() < 1e15;
        let all_whole = is_whole(sum.constant) && sum.terms.iter().all(|term| is_whole(term.1));
        let most = (most - sum.constant) + most * TOLERANCE;
        let unit = match all_whole {
            true => sum.terms.iter().fold(0, |unit, term| gcd(unit, term.1.abs() as u64)) as f64,
            false => sum.terms.iter().map(|term| term.1.abs()).fold(0.0, f64::max),
        };
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let most = if all_whole { (most / unit).floor() } else { most / unit };
        let terms = sum.terms.into_iter().map(|(variable, factor)| (variable, factor / unit)).collect();
        self.constrain(what, Sum::of(terms), Sense::AtMost, most);
    }
}

/// The switches at which a party can be.
pub(super) fn switches_of(shape: &Shape<'_>, party: usize) -> Vec<usize> {
    let mut switches: Vec<usize> =
        shape.parties[party].places.iter().filter_map(|&place| shape.places[place].switch).collect();
    switches.sort_unstable();
    switches.dedup();
    switches
}

impl Model<'_> {
    /// The capacity of hosts and their cables if several parties fit on one host. Places are then single hosts.
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
                let ends = own.ends().map(|party| self.at(party, place));
                if ends.iter().any(Sum::is_nothing) {
                    continue;
                }
                let variable = self.variable(Meaning::OnHost { commodity, place }, Domain::NotNegative);
                self.program.limit(variable, 0.0, 1.0);
                self.together.insert((place, commodity), variable);
                for end in ends {
                    let sum = Sum::each([&variable]).plus(&end, -1.0);
                    self.constrain("inside", sum, Sense::AtMost, 0.0);
                }
            }
        }
    }

    /// (13) and the same for devices; partners on the host of a process must fit with it.
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
                Some(device) => devices_of(&problem.system.nodes[host], device) as f64,
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

    /// The partners on the host of a process need no more than the process leaves.
    fn fits_beside(&mut self, party: usize, place: usize, needs: &BTreeMap<usize, f64>, there: f64) {
        let mut partners: BTreeMap<usize, usize> = BTreeMap::new();
        for (commodity, own) in self.shape.commodities.iter().enumerate() {
            if let Some(other) = own.partner(party)
                && let Some(&variable) = self.together.get(&(place, commodity))
            {
                partners.entry(other).or_insert(variable);
            }
        }
        let terms: Vec<(usize, f64)> =
            partners.iter().filter_map(|(other, &variable)| Some((variable, *needs.get(other)?))).collect();
        if terms.is_empty() {
            return;
        }
        let room = there - needs.get(&party).copied().unwrap_or_default() + there * TOLERANCE;
        // Relative to the capacity, so that coefficients are about one.
        let unit = there.abs().max(f64::MIN_POSITIVE);
        let terms = terms.into_iter().map(|(variable, need)| (variable, need / unit)).collect();
        let sum = Sum::of(terms).plus(&self.at(party, place), -room / unit);
        self.constrain("beside", sum, Sense::AtMost, 0.0);
    }

    /// (2) for the links of a host.
    fn cable(&mut self, place: usize) {
        let shape = self.shape;
        let own = &shape.places[place];
        for (end, capacity) in [own.sends, own.receives].into_iter().enumerate() {
            let mut load = Sum::default();
            for (number, commodity) in shape.commodities.iter().enumerate() {
                let mut outside = self.at(commodity.ends()[end], place);
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

    /// Symmetry breaking: each host holds a process with a lower number than those of the next alike host.
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
