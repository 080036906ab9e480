//! Machines that look the same from several switches.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Meaning, Model};
use super::shape::Shape;

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
