//! Reduces a problem with hosts as parts of their switches: equivalent hosts are merged, and of several symmetric switches one
//! suffices.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_graph::UNREACHED;
use hopmap_model::{LinkState, NodeKind};

use crate::problem::{Problem, TOLERANCE, devices_of};

/// Distance between switches that are not connected.
pub(super) const UNREACHABLE: usize = usize::MAX / 4;

/// A problem in which every relevant host has one cable, to a switch.
#[derive(Debug, Clone)]
pub(super) struct Shape<'a> {
    pub(super) problem: &'a Problem<'a>,
    /// Node ids of the switches.
    pub(super) switches: Vec<u32>,
    /// Links between switches.
    pub(super) arcs: Vec<Arc>,
    /// Outgoing arcs of each switch.
    pub(super) leaving: Vec<Vec<usize>>,
    /// Incoming arcs of each switch.
    pub(super) entering: Vec<Vec<usize>>,
    /// Distances between switches in arcs.
    pub(super) distances: Vec<Vec<usize>>,
    /// Candidate places of parties.
    pub(super) places: Vec<HostGroup>,
    /// Senders and receivers: processes, or hosts if the mapping is given.
    pub(super) parties: Vec<Party>,
    /// The traffic between parties.
    pub(super) commodities: Vec<Commodity>,
    /// Whether no two parties fit on the same host. Then a place is a group of alike hosts of a switch, otherwise a single host.
    pub(super) exclusive: bool,
    /// Upper bound, by performance, on the number of parties that fit on a host of each place.
    pub(super) seats: Vec<usize>,
}

/// A link between two switches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arc {
    pub(super) link: u32,
    /// Index of the switch.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Usable bandwidth.
    pub(super) capacity: f64,
}

/// Hosts that are equivalent for all parties.
#[derive(Debug, Clone)]
pub(super) struct HostGroup {
    /// Index of their switch; hosts without a cable have none.
    pub(super) switch: Option<usize>,
    /// Node ids.
    pub(super) hosts: Vec<u32>,
    /// The outgoing link of each host, and its usable bandwidth.
    pub(super) sends: Option<f64>,
    /// The same for the incoming link.
    pub(super) receives: Option<f64>,
    /// Places with the same number are equivalent.
    pub(super) class: usize,
}

/// A process, or a host if the mapping is given.
#[derive(Debug, Clone)]
pub(super) struct Party {
    /// The rank, or the node id of the host.
    pub(super) id: u32,
    /// Its candidate places.
    pub(super) places: Vec<usize>,
}

/// All traffic from one party to another. It uses one route, because it enters the same switch for the same destination.
#[derive(Debug, Clone)]
pub(super) struct Commodity {
    pub(super) source: usize,
    pub(super) destination: usize,
    pub(super) bandwidth: f64,
    /// Indexes of flows.
    pub(super) flows: Vec<usize>,
}

impl Commodity {
    /// The sending and the receiving party.
    pub(super) fn ends(&self) -> [usize; 2] {
        [self.source, self.destination]
    }

    /// The party at the other end, if the given one is at an end.
    pub(super) fn partner(&self, party: usize) -> Option<usize> {
        match party {
            _ if self.source == party => Some(self.destination),
            _ if self.destination == party => Some(self.source),
            _ => None,
        }
    }
}

/// The cable of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cable {
    switch: Option<u32>,
    sends: Option<u32>,
    receives: Option<u32>,
}

impl<'a> Shape<'a> {
    /// The shape of a problem; none if a relevant host has several cables, or one to another host.
    pub(super) fn new(problem: &'a Problem<'a>) -> Option<Self> {
        let switches = problem.switches();
        let index: BTreeMap<u32, usize> = switches.iter().copied().zip(0..).collect();
        let arcs = arcs(problem, &index);
        let count = switches.len();
        let side = |end: fn(&Arc) -> usize| {
            let of = |switch| (0..arcs.len()).filter(|&arc| end(&arcs[arc]) == switch).collect();
            (0..count).map(of).collect::<Vec<Vec<usize>>>()
        };
        let (leaving, entering) = (side(|arc| arc.from), side(|arc| arc.to));
        let distances = distances(count, &arcs, &leaving);
        let (ids, hosts) = wanted(problem);
        let exclusive = problem.mapped.is_some() || is_exclusive(problem);
        let places = places(problem, &index, &ids, &hosts, exclusive)?;
        let mut place_of = BTreeMap::new();
        for (number, place) in places.iter().enumerate() {
            place_of.extend(place.hosts.iter().map(|&host| (host, number)));
        }
        let party = |(&id, hosts): (&u32, &Vec<u32>)| {
            let mut places: Vec<usize> =
                hosts.iter().filter_map(|host| place_of.get(host).copied()).collect();
            places.sort_unstable();
            places.dedup();
            Party { id, places }
        };
        let parties: Vec<Party> = ids.iter().zip(&hosts).map(party).collect();
        let commodities = commodities(problem, &ids);
        let mut own = Self {
            problem,
            switches,
            arcs,
            leaving,
            entering,
            distances,
            places,
            parties,
            commodities,
            exclusive,
            seats: Vec::new(),
        };
        own.seats = (0..own.places.len()).map(|place| own.seats_of(place)).collect();
        if exclusive {
            own.forget_narrow_places();
        }
        Some(own)
    }

    /// Whether a switch has a table per input port.
    pub(super) fn is_two(&self, switch: usize) -> bool {
        self.problem.is_type_two(self.switches[switch])
    }

    /// Outgoing commodities of a party.
    pub(super) fn sent(&self, party: usize) -> impl Iterator<Item = &Commodity> {
        self.commodities.iter().filter(move |commodity| commodity.source == party)
    }

    /// Incoming commodities of a party.
    pub(super) fn received(&self, party: usize) -> impl Iterator<Item = &Commodity> {
        self.commodities.iter().filter(move |commodity| commodity.destination == party)
    }

    fn seats_of(&self, place: usize) -> usize {
        if self.exclusive {
            return 1;
        }
        let host = self.places[place].hosts.first().map_or(0, |&host| host as usize);
        let processes = self.problem.graph.demands.processes.iter().zip(&self.parties);
        let here = processes.filter(|(_, party)| party.places.contains(&place));
        let mut needs: Vec<f64> = here.map(|(process, _)| process.performance).collect();
        needs.sort_by(f64::total_cmp);
        let mut left = self.problem.performance[host] * (1.0 + TOLERANCE);
        let fits = needs.into_iter().take_while(|need| {
            left -= need;
            left >= 0.0
        });
        fits.count()
    }

    /// Approximate number of constraints of the program of this shape, and the work to generate them.
    pub(super) fn size(&self) -> usize {
        let (arcs, commodities) = (self.arcs.len(), self.commodities.len());
        let turns = |switch: usize| self.entering[switch].len() * self.leaving[switch].len();
        let two = || (0..self.switches.len()).filter(|&switch| self.is_two(switch));
        let routes = commodities.saturating_mul(2 * arcs + 4 * self.switches.len());
        let entries = match self.exclusive {
            true => commodities.saturating_mul(two().map(turns).sum()),
            false => {
                let inputs = |switch: usize| {
                    let hosts = self.places.iter().filter(|place| place.switch == Some(switch)).count();
                    turns(switch) + hosts * self.leaving[switch].len()
                };
                let steps = arcs + two().map(inputs).sum::<usize>();
                // Every destination can be on every host.
                commodities.saturating_mul(self.places.len()).saturating_mul(steps)
            }
        };
        // Not constraints, but the work to generate cuts.
        let pairs = self.parties.len().saturating_mul(self.places.len()).saturating_mul(self.places.len());
        routes.saturating_add(entries).saturating_add(pairs / 64)
    }

    /// A party alone on its host sends all its traffic through one cable: drops places with narrower cables.
    fn forget_narrow_places(&mut self) {
        for party in 0..self.parties.len() {
            let [sends, receives] = [0, 1].map(|end| {
                let own = self.commodities.iter().filter(|commodity| commodity.ends()[end] == party);
                own.map(|commodity| commodity.bandwidth).reduce(|sum, bandwidth| sum + bandwidth)
            });
            let carries = |cable: Option<f64>, load: Option<f64>| match (cable, load) {
                (_, None) => true,
                (Some(cable), Some(load)) => load <= cable * (1.0 + TOLERANCE),
                (None, Some(_)) => false,
            };
            let places = &self.places;
            self.parties[party].places.retain(|&place| {
                carries(places[place].sends, sends) && carries(places[place].receives, receives)
            });
        }
    }
}

/// Parties and their candidate hosts.
fn wanted(problem: &Problem<'_>) -> (Vec<u32>, Vec<Vec<u32>>) {
    if problem.mapped.is_none() {
        return ((0..problem.allowed.len() as u32).collect(), problem.allowed.clone());
    }
    let between = problem.flows.iter().filter(|flow| flow.source != flow.destination);
    let mut hosts: Vec<u32> = between.flat_map(|flow| [flow.source, flow.destination]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let places = hosts.iter().map(|&host| vec![host]).collect();
    (hosts, places)
}

fn arcs(problem: &Problem<'_>, index: &BTreeMap<u32, usize>) -> Vec<Arc> {
    let links = (0..).zip(&problem.system.links).zip(&problem.capacity);
    let arc = |((link, ends), &capacity): ((u32, &hopmap_model::Link), &f64)| {
        let (from, to) = (*index.get(&ends.source)?, *index.get(&ends.destination)?);
        (ends.state == LinkState::Up && from != to).then_some(Arc { link, from, to, capacity })
    };
    links.filter_map(arc).collect()
}

fn distances(switches: usize, arcs: &[Arc], leaving: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let from = |first| {
        let next = |switch: usize| leaving[switch].iter().map(|&arc| arcs[arc].to);
        let far = |far| if far == UNREACHED { UNREACHABLE } else { far as usize };
        hopmap_graph::distances(switches, [first], next).into_iter().map(far).collect()
    };
    (0..switches).map(from).collect()
}

/// The cables of all hosts; none if a host has several.
fn cables(problem: &Problem<'_>) -> Vec<Option<Cable>> {
    let nodes = &problem.system.nodes;
    let mut cables = vec![Some(Cable { switch: None, sends: None, receives: None }); nodes.len()];
    for (link, ends) in (0..).zip(&problem.system.links).filter(|(_, link)| link.state == LinkState::Up) {
        for (host, other, sends) in
            [(ends.source, ends.destination, true), (ends.destination, ends.source, false)]
        {
            let Some(cable) = &mut cables[host as usize] else { continue };
            let side = if sends { &mut cable.sends } else { &mut cable.receives };
            let is_second = side.is_some() || cable.switch.is_some_and(|switch| switch != other);
            *side = Some(link);
            cable.switch = Some(other);
            if is_second || nodes[other as usize].kind == NodeKind::Host {
                cables[host as usize] = None;
            }
        }
    }
    cables
}

/// The properties that make hosts equivalent.
type Key = (Option<usize>, Option<u64>, Option<u64>, Vec<bool>, Vec<u64>, Option<u32>);

fn places(
    problem: &Problem<'_>,
    index: &BTreeMap<u32, usize>,
    ids: &[u32],
    hosts: &[Vec<u32>],
    exclusive: bool,
) -> Option<Vec<HostGroup>> {
    let mut holds: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for (party, &host) in
        hosts.iter().enumerate().flat_map(|(party, hosts)| hosts.iter().map(move |h| (party, h)))
    {
        holds.entry(host).or_insert_with(|| vec![false; ids.len()])[party] = true;
    }
    let cables = cables(problem);
    let capacity = |link: Option<u32>| link.map(|link| problem.capacity[link as usize]);
    let homes = problem.home.as_ref().filter(|home| home.cost > 0.0);
    let devices = device_kinds(problem);
    let mut classes: BTreeMap<Key, usize> = BTreeMap::new();
    let mut places: Vec<HostGroup> = Vec::new();
    for (host, held) in holds {
        let cable = cables[host as usize]?;
        let (sends, receives) = (capacity(cable.sends), capacity(cable.receives));
        let switch = cable.switch.and_then(|switch| index.get(&switch).copied());
        let node = &problem.system.nodes[host as usize];
        let mut room = Vec::new();
        if !exclusive {
            room.push(problem.performance[host as usize].to_bits());
            room.extend(devices.iter().map(|device| devices_of(node, device)));
        }
        let home = homes.filter(|home| home.hosts.contains(&host)).map(|_| host);
        let key = (switch, sends.map(f64::to_bits), receives.map(f64::to_bits), held, room, home);
        let next = classes.len();
        let class = *classes.entry(key).or_insert(next);
        match places.iter_mut().find(|place| place.class == class && exclusive) {
            Some(place) => place.hosts.push(host),
            None => places.push(HostGroup { switch, hosts: vec![host], sends, receives, class }),
        }
    }
    Some(places)
}

/// Devices that some process needs.
fn device_kinds<'p>(problem: &Problem<'p>) -> BTreeSet<&'p String> {
    problem.graph.demands.processes.iter().flat_map(|process| process.devices.keys()).collect()
}

fn commodities(problem: &Problem<'_>, ids: &[u32]) -> Vec<Commodity> {
    let index: BTreeMap<u32, usize> = ids.iter().copied().zip(0..).collect();
    let mut commodities: Vec<Commodity> = Vec::new();
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (number, flow) in problem.flows.iter().enumerate() {
        let ends = (index.get(&flow.source).copied(), index.get(&flow.destination).copied());
        let (Some(source), Some(destination)) = ends else { continue };
        if source == destination {
            continue;
        }
        let at = *pairs.entry((source, destination)).or_insert(commodities.len());
        if at == commodities.len() {
            commodities.push(Commodity { source, destination, bandwidth: 0.0, flows: Vec::new() });
        }
        commodities[at].bandwidth += flow.bandwidth;
        commodities[at].flows.push(number);
    }
    commodities
}

/// Whether no two processes fit on the same host.
fn is_exclusive(problem: &Problem<'_>) -> bool {
    let processes = &problem.graph.demands.processes;
    let mut on: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (process, hosts) in problem.allowed.iter().enumerate() {
        hosts.iter().for_each(|&host| on.entry(host).or_default().push(process));
    }
    on.iter().all(|(&host, own)| {
        let node = &problem.system.nodes[host as usize];
        let room = problem.performance[host as usize] * (1.0 + TOLERANCE);
        let fit = |a: usize, b: usize| {
            let (a, b) = (&processes[a], &processes[b]);
            let asks = |device: &String| {
                [a, b].map(|process| u64::from(process.devices.get(device).copied().unwrap_or_default()))
            };
            a.performance + b.performance <= room
                && a.devices.keys().all(|device| asks(device).iter().sum::<u64>() <= devices_of(node, device))
        };
        // If any two fit together by performance, the two with the smallest demands do.
        let mut least: Vec<f64> = own.iter().map(|&process| processes[process].performance).collect();
        least.sort_by(f64::total_cmp);
        let may = least.len() > 1 && least[0] + least[1] <= room;
        !may || !own.iter().enumerate().any(|(at, &a)| own[..at].iter().any(|&b| fit(a, b)))
    })
}

/// Maximum number of switches that are tried in the search for symmetries of one switch.
const MOST_TRIES: usize = 100_000;
/// Maximum number of switches of a machine for which symmetries are sought.
const MOST_SWITCHES: usize = 256;

/// A party that can be excluded from switches that are symmetric to another one.
#[derive(Debug, Clone, Default)]
pub(super) struct Symmetry {
    /// The party.
    pub(super) party: usize,
    /// Excluded places.
    pub(super) left_out: Vec<usize>,
}

/// The properties of a switch apart from its arcs: its type and its hosts.
type Signature = (bool, Vec<(Option<u64>, Option<u64>, usize, Vec<usize>, Vec<u64>)>);

impl Symmetry {
    /// The symmetries of a shape.
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
            if !kept.iter().any(|&other| machine.is_like(other, switch, &mut tries)) {
                kept.push(switch);
            }
        }
        let is_left_out =
            |place: &usize| shape.places[*place].switch.is_some_and(|switch| !kept.contains(&switch));
        let left_out = shape.parties[party].places.iter().copied().filter(is_left_out).collect();
        Self { party, left_out }
    }
}

/// The switches of a machine and the arcs between them.
struct Machine {
    signatures: Vec<Signature>,
    /// Capacities of the arcs between two switches, sorted.
    arcs: BTreeMap<(usize, usize), Vec<u64>>,
    /// Switches in an order in which each is adjacent to an earlier one if possible.
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
            signatures: (0..shape.switches.len()).map(|switch| signature(shape, switch)).collect(),
            arcs,
            neighbours,
        }
    }

    /// Whether an automorphism maps one switch to another. False if the search takes too long.
    fn is_like(&self, first: usize, second: usize, tries: &mut usize) -> bool {
        let order = self.order(first);
        let mut image = vec![None; self.signatures.len()];
        self.extends(&order, 0, Some(second), &mut image, tries)
    }

    /// All switches in breadth-first order from one of them, then the remaining ones.
    fn order(&self, first: usize) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.signatures.len());
        let mut is_in = vec![false; self.signatures.len()];
        for start in std::iter::once(first).chain(0..self.signatures.len()) {
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
            None => (0..self.signatures.len()).filter(|other| !image.contains(&Some(*other))).collect(),
        };
        for other in candidates {
            if *tries == 0 {
                return false;
            }
            *tries -= 1;
            if self.signatures[switch] == self.signatures[other]
                && self.fits(&order[..at], switch, other, image)
            {
                image[switch] = Some(other);
                if self.extends(order, at + 1, None, image, tries) {
                    return true;
                }
                image[switch] = None;
            }
        }
        false
    }

    /// Whether the arcs between a switch and the earlier ones match those between their images.
    fn fits(&self, before: &[usize], switch: usize, other: usize, image: &[Option<usize>]) -> bool {
        before.iter().all(|&earlier| {
            image[earlier].is_some_and(|there| {
                self.arcs.get(&(switch, earlier)) == self.arcs.get(&(other, there))
                    && self.arcs.get(&(earlier, switch)) == self.arcs.get(&(there, other))
            })
        })
    }
}

fn signature(shape: &Shape<'_>, switch: usize) -> Signature {
    let problem = shape.problem;
    let homes = problem.home.as_ref().filter(|home| home.cost > 0.0);
    let hosts = |(number, place): (usize, &HostGroup)| {
        let held =
            (0..shape.parties.len()).filter(|&party| shape.parties[party].places.contains(&number)).collect();
        let mut room = Vec::new();
        if !shape.exclusive {
            let host = place.hosts[0] as usize;
            room.push(problem.performance[host].to_bits());
            let kinds = device_kinds(problem);
            room.extend(kinds.into_iter().map(|kind| devices_of(&problem.system.nodes[host], kind)));
        }
        // A preferred host is equivalent to no other.
        let is_home = |host: &&u32| homes.is_some_and(|home| home.hosts.contains(host));
        room.extend(place.hosts.iter().filter(is_home).map(|&host| u64::from(host)));
        let bits = |capacity: Option<f64>| capacity.map(f64::to_bits);
        (bits(place.sends), bits(place.receives), place.hosts.len(), held, room)
    };
    let here = shape.places.iter().enumerate().filter(|(_, place)| place.switch == Some(switch));
    let mut signatures: Vec<_> = here.map(hosts).collect();
    signatures.sort_unstable();
    (shape.is_two(switch), signatures)
}
