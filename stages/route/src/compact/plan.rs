//! Plans out of values of the compact program, and values out of plans.

use std::collections::BTreeMap;

use super::model::{Input, Meaning, Model};
use super::shape::Shape;
use crate::problem::Plan;

/// A plan in the terms of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// The place of every party.
    places: Vec<usize>,
    /// The arcs of every commodity, in order.
    ways: Vec<Vec<usize>>,
    /// Whether the ends of each commodity are on different hosts.
    outside: Vec<bool>,
    longest: usize,
}

impl Layout {
    /// The layout of a plan; nothing if it is none of this shape.
    pub(super) fn new(shape: &Shape<'_>, plan: &Plan) -> Option<Self> {
        let arc_of: BTreeMap<u32, usize> =
            shape.arcs.iter().zip(0..).map(|(arc, number)| (arc.link, number)).collect();
        let host = |party: usize| match shape.problem.mapped {
            Some(_) => Some(shape.parties[party].id),
            None => plan.hosts.get(party).copied(),
        };
        let place = |party: usize| {
            let host = host(party)?;
            shape.parties[party]
                .places
                .iter()
                .copied()
                .find(|&place| shape.places[place].hosts.contains(&host))
        };
        let places: Vec<usize> = (0..shape.parties.len()).map(place).collect::<Option<_>>()?;
        let way = |commodity: &super::shape::Commodity| -> Option<Vec<usize>> {
            let links = &plan.routes.get(*commodity.flows.first()?)?.links;
            Some(links.iter().filter_map(|link| arc_of.get(link).copied()).collect())
        };
        let ways = shape.commodities.iter().map(way).collect::<Option<_>>()?;
        let outside = shape.commodities.iter().map(|it| host(it.source) != host(it.destination)).collect();
        let longest = plan.routes.iter().map(|route| route.links.len()).max().unwrap_or_default();
        Some(Self { places, ways, outside, longest })
    }

    /// What a variable is.
    fn value(&self, shape: &Shape<'_>, meaning: Meaning) -> f64 {
        let takes = |commodity: usize, arc: usize| self.ways[commodity].contains(&arc);
        let ends = |commodity: usize| {
            let own = &shape.commodities[commodity];
            [own.source, own.destination].map(|party| self.places[party])
        };
        // Destinations are parties that are alone on their hosts, or else places.
        let is_for = |commodity: usize, destination: usize| match shape.exclusive {
            true => shape.commodities[commodity].destination == destination,
            false => ends(commodity)[1] == destination && self.outside[commodity],
        };
        let any = |holds: &dyn Fn(usize) -> bool| (0..shape.commodities.len()).any(holds);
        let goes_on = |commodity: usize, arc: usize, next: usize| {
            self.ways[commodity].windows(2).any(|pair| pair == [arc, next])
        };
        let is_so = match meaning {
            Meaning::Longest => return self.longest as f64,
            Meaning::At { party, place } => self.places[party] == place,
            Meaning::Takes { commodity, arc } => takes(commodity, arc),
            Meaning::OnHost { commodity, place } => ends(commodity) == [place; 2] && !self.outside[commodity],
            Meaning::AtSwitch { commodity, switch } => {
                ends(commodity).map(|place| shape.places[place].switch) == [Some(switch); 2]
            }
            Meaning::Entry { arc, destination } => any(&|it| is_for(it, destination) && takes(it, arc)),
            Meaning::Arrives { destination } => any(&|it| is_for(it, destination)),
            Meaning::GoesOn { arc, next } => any(&|it| goes_on(it, arc, next)),
            Meaning::Turn { input, output, destination } => any(&|it| {
                if !is_for(it, destination) {
                    return false;
                }
                let way = &self.ways[it];
                match (input, output) {
                    (Input::Arc(arc), Some(next)) => goes_on(it, arc, next),
                    (Input::Arc(arc), None) => way.last() == Some(&arc),
                    (Input::Host(place), next) => ends(it)[0] == place && way.first().copied() == next,
                }
            }),
        };
        f64::from(u8::from(is_so))
    }
}

impl Model<'_> {
    /// The values that a plan gives the variables.
    pub(super) fn values(&self, plan: &Plan) -> Option<Vec<f64>> {
        let layout = Layout::new(self.shape, plan)?;
        let least = self.window.least as f64;
        let value = |&meaning: &Meaning| match meaning {
            Meaning::Longest => layout.value(self.shape, meaning).max(least),
            _ => layout.value(self.shape, meaning),
        };
        Some(self.meanings.iter().map(value).collect())
    }

    /// The plan in a solution.
    pub(super) fn plan(&self, values: &[f64]) -> Plan {
        let (shape, problem) = (self.shape, self.shape.problem);
        let is_set = |variable: usize| values.get(variable).is_some_and(|&value| value > 0.5);
        let place = |party: usize| {
            let places = &shape.parties[party].places;
            let chosen =
                self.at[party].iter().find(|(_, variable)| is_set(**variable)).map(|(&place, _)| place);
            chosen.or(places.first().copied()).unwrap_or_default()
        };
        let places: Vec<usize> = (0..shape.parties.len()).map(place).collect();
        let hosts = problem.mapped.clone().unwrap_or_else(|| hosts(shape, &places));
        let mut routes: Vec<_> =
            problem.flows.iter().map(|flow| problem.route(flow, &hosts, Vec::new())).collect();
        for (number, commodity) in shape.commodities.iter().enumerate() {
            for &flow in &commodity.flows {
                let (source, destination) = (routes[flow].source, routes[flow].destination);
                routes[flow].links = self.way(number, source, destination, &is_set);
            }
        }
        Plan { hosts, routes }
    }

    /// The links of a commodity between two hosts.
    fn way(
        &self,
        commodity: usize,
        source: u32,
        destination: u32,
        is_set: &dyn Fn(usize) -> bool,
    ) -> Vec<u32> {
        let shape = self.shape;
        if source == destination {
            return Vec::new();
        }
        let network = &shape.problem.network;
        let links = &shape.problem.system.links;
        let mut way: Vec<u32> = network.leaving(source).first().copied().into_iter().collect();
        let Some(first) = way.first() else { return way };
        let mut node = links[*first as usize].destination;
        while way.len() <= shape.arcs.len() + 1 {
            let arcs = &self.takes[commodity];
            let next = arcs
                .iter()
                .find(|(arc, variable)| shape.switches[shape.arcs[**arc].from] == node && is_set(**variable));
            let Some((&arc, _)) = next else { break };
            way.push(shape.arcs[arc].link);
            node = shape.switches[shape.arcs[arc].to];
        }
        let last =
            network.leaving(node).iter().find(|&&link| links[link as usize].destination == destination);
        way.extend(last);
        way
    }
}

/// A host for every party: alike hosts are taken one after the other where each holds one.
fn hosts(shape: &Shape<'_>, places: &[usize]) -> Vec<u32> {
    let mut taken = vec![0; shape.places.len()];
    let host = |&place: &usize| {
        let Some(own) = shape.places.get(place) else { return 0 };
        let at = if shape.exclusive { taken[place] } else { 0 };
        taken[place] += 1;
        own.hosts.get(at).or(own.hosts.first()).copied().unwrap_or_default()
    };
    places.iter().map(host).collect()
}
