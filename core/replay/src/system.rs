//! Machines from system graphs: a processor for every slot.

use std::collections::HashMap;

use hopmap_model::{CostModel, Levels, LinkState, Paths, Processor, SystemGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distances::{Distances, Hosts, Level, Tree};
use crate::error::{MachineError, Refusal};
use crate::machine::{Linear, MAX_PROCESSORS, Machine, Network};

/// Maximum number of processors or hosts whose pairs are stored.
const MAX_OF_PAIRS: usize = 1 << 13;
/// Maximum number of slots whose pairs are stored in a table, which is faster than a tree and takes at most
/// 16 MB.
const FEW: usize = 1 << 11;
/// Bytes per second between two slots of a host whose links are known.
const INSIDE_BANDWIDTH: f64 = 1e10;

/// Hint for machines that are too large.
const CHOOSE: &str =
    "select a part of it with `select/nodes` or `select/hosts`, or the first slots with `processors`";

/// Source of the message times of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Links: the sum of their latencies, and bytes divided by the minimum bandwidth.
    Links,
    /// Costs: `latency` and bytes / `bandwidth`, multiplied by the cost.
    Costs,
}

impl Machine {
    /// The first `processors` slots of a system, or all. A message takes `base` per unit of cost, or the
    /// time of the links, with the latency of `base` once and its bandwidth for links without one. The
    /// default is the links if all of them have a bandwidth.
    pub fn of_system(
        system: &SystemGraph,
        processors: Option<u32>,
        base: Linear,
        distance: Option<Distance>,
    ) -> Result<Self, MachineError> {
        let slots = processors.map_or(system.slots.len(), |most| system.slots.len().min(most as usize));
        if slots > MAX_PROCESSORS as usize {
            let problem = format!(
                "the machine has {slots} slots, but a schedule supports at most {MAX_PROCESSORS} processors"
            );
            return Err(Refusal::new(problem, CHOOSE).into());
        }
        let processor = |slot: usize| {
            let place = system.slots[slot];
            let name = format!("{}:{}", system.nodes[place.host as usize].name, place.core);
            Processor { name, slot: Some(slot as u32), ..Processor::default() }
        };
        let has_bandwidths = system.links.iter().all(|link| link.bandwidth_bytes_per_s.is_some());
        let default = match has_bandwidths && !system.links.is_empty() {
            true => Distance::Links,
            false => Distance::Costs,
        };
        let (distances, classes) = match distance.unwrap_or(default) {
            Distance::Links => by_routes(system, slots, base)?,
            Distance::Costs => by_costs(system, slots, base)?,
        };
        Ok(Self {
            processors: (0..slots).map(processor).collect(),
            pace: vec![1.0; slots],
            network: Network::Linear { distances, classes },
        })
    }
}

/// Classes of pairs with equal times, numbered in order of appearance.
#[derive(Default)]
struct Classes {
    known: HashMap<[u64; 2], u32>,
    classes: Vec<Linear>,
}

impl Classes {
    fn of(&mut self, linear: Linear) -> u32 {
        let key = [linear.latency.to_bits(), linear.per_byte.to_bits()];
        *self.known.entry(key).or_insert_with(|| {
            self.classes.push(linear);
            self.classes.len() as u32 - 1
        })
    }
}

fn by_costs(
    system: &SystemGraph,
    slots: usize,
    base: Linear,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let of_cost = |cost: f64| Linear { latency: cost * base.latency, per_byte: cost * base.per_byte };
    let costs = system.costs();
    let between = |a, b| Some(costs.between(a, b)).filter(|cost| cost.is_finite()).map(of_cost);
    match &system.cost {
        CostModel::Levels(levels) if slots > FEW => {
            let mut found = Classes::default();
            let tree = tree(levels, slots, &mut found, of_cost);
            Ok((Distances::Tree(tree), found.classes))
        }
        CostModel::Routes(routes) if slots > FEW => {
            let mut found = Classes::default();
            let inside = tree(&routes.inside, slots, &mut found, of_cost);
            hosts(system, slots, (inside, found), between)
        }
        _ => pairs(system, slots, between),
    }
}

/// The first slots of a tree whose costs are known.
fn tree(levels: &Levels, slots: usize, found: &mut Classes, of_cost: impl Fn(f64) -> Linear) -> Tree {
    let level = |(cost, groups): (&f64, &Vec<u32>)| Level {
        class: found.of(of_cost(*cost)),
        groups: groups[..slots].to_vec(),
    };
    let levels = levels.costs.iter().zip(&levels.groups).map(level).collect();
    Tree { own: found.of(of_cost(0.0)), levels }
}

fn by_routes(
    system: &SystemGraph,
    slots: usize,
    base: Linear,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let paths = Paths::new(system).ok_or_else(|| {
        let problem = "the machine does not have links, which `distance = \"links\"` needs for message times";
        Refusal::new(problem, "use `distance = \"costs\"` with `latency` and `bandwidth`")
    })?;
    let on_host = Linear { latency: 0.0, per_byte: 1.0 / INSIDE_BANDWIDTH };
    let between = |a: u32, b: u32| {
        let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
        let mut linear = Linear { latency: base.latency, per_byte: 0.0 };
        let mut passes = true;
        let reached = paths.walk(from, to, |link| {
            let link = &system.links[link as usize];
            passes &= link.state == LinkState::Up;
            linear.latency += link.latency_s.unwrap_or(0.0);
            let per_byte = link.bandwidth_bytes_per_s.map_or(base.per_byte, |bandwidth| 1.0 / bandwidth);
            linear.per_byte = linear.per_byte.max(per_byte);
        });
        (reached && passes && linear.per_byte.is_finite()).then_some(linear)
    };
    if slots > FEW {
        let mut found = Classes::default();
        let groups = system.slots[..slots].iter().map(|slot| slot.host).collect();
        let level = Level { class: found.of(on_host), groups };
        let inside = Tree { own: found.of(Linear::FREE), levels: vec![level] };
        return hosts(system, slots, (inside, found), between);
    }
    let mut known: HashMap<(u32, u32), Option<Linear>> = HashMap::new();
    pairs(system, slots, |a, b| {
        if a == b {
            return Some(Linear::FREE);
        }
        let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
        if from == to {
            return Some(on_host);
        }
        *known.entry((from, to)).or_insert_with(|| between(a, b))
    })
}

/// Two hosts are not connected.
fn no_route(system: &SystemGraph, from: u32, to: u32) -> Refusal {
    let [from, to] = [from, to].map(|host| &system.nodes[host as usize].name);
    let problem = format!("host `{to}` is not reachable from host `{from}`");
    Refusal::new(problem, "select connected hosts with `select/hosts`")
}

/// A class for every pair of hosts of the first slots.
fn hosts(
    system: &SystemGraph,
    slots: usize,
    (inside, mut found): (Tree, Classes),
    linear: impl Fn(u32, u32) -> Option<Linear>,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let all: Vec<_> = system.hosts().take_while(|&(_, first, _)| (first as usize) < slots).collect();
    if all.len() > MAX_OF_PAIRS {
        let hosts = all.len();
        let problem = format!(
            "the machine has {hosts} hosts, but distances are supported between at most {MAX_OF_PAIRS}"
        );
        let help = "select a part of it with `select/nodes` or `select/hosts`, or use a tree with `distance = \"costs\"`";
        return Err(Refusal::new(problem, help).into());
    }
    let host = (0..).zip(&all).flat_map(|(host, one)| std::iter::repeat_n(host, one.2 as usize));
    let host = host.take(slots).collect();
    let mut between = Vec::with_capacity(all.len() * all.len());
    for &(from, first, _) in &all {
        for &(to, other, _) in &all {
            let class = match from == to {
                true => Some(inside.own),
                false => linear(first, other).map(|linear| found.of(linear)),
            };
            between.push(class.ok_or_else(|| no_route(system, from, to))?);
        }
    }
    let hosts = Hosts { host, hosts: all.len(), between: between.into(), inside };
    Ok((Distances::Hosts(hosts), found.classes))
}

fn pairs(
    system: &SystemGraph,
    slots: usize,
    mut linear: impl FnMut(u32, u32) -> Option<Linear>,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    if slots > MAX_OF_PAIRS {
        let problem = format!(
            "the machine is not a tree and has {slots} slots, but distances are supported between at most {MAX_OF_PAIRS}"
        );
        return Err(Refusal::new(problem, CHOOSE).into());
    }
    let mut found = Classes::default();
    let mut classes = Vec::with_capacity(slots * slots);
    for a in 0..slots as u32 {
        for b in 0..slots as u32 {
            let host = |slot: u32| system.slots[slot as usize].host;
            let linear = linear(a, b).ok_or_else(|| no_route(system, host(a), host(b)))?;
            classes.push(found.of(linear));
        }
    }
    Ok((Distances::Pairs { processors: slots, classes }, found.classes))
}

#[cfg(test)]
mod tests {
    use hopmap_model::{Link, Matrix, Node, Routing, Slot};

    use super::*;

    /// Two slots on host `a` and one on each of `b` and `c`; `a` and `b` share a switch, which a slow link
    /// connects to that of `c`.
    fn tree() -> SystemGraph {
        let nodes =
            vec![Node::host("a"), Node::host("b"), Node::host("c"), Node::switch("s"), Node::switch("t")];
        let link = |source, destination, latency: f64, bandwidth: f64| Link {
            latency_s: Some(latency),
            bandwidth_bytes_per_s: Some(bandwidth),
            ..Link::new(source, destination)
        };
        let links =
            [link(0, 3, 0.25, 8.0), link(1, 3, 0.25, 8.0), link(2, 4, 0.5, 4.0), link(3, 4, 1.0, 2.0)];
        let slot = |host, core| Slot { host, core };
        SystemGraph {
            nodes,
            links: links.into_iter().flat_map(|link| [link, link.reversed()]).collect(),
            slots: vec![slot(0, 0), slot(0, 5), slot(1, 0), slot(2, 0)],
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 2.0, 4.0],
                groups: vec![vec![0, 0, 1, 2], vec![0, 0, 0, 1], vec![0; 4]],
            }),
            routing: Routing::default(),
            calibration: Vec::new(),
        }
    }

    fn linear(latency: f64, bandwidth: f64) -> Linear {
        Linear::new(latency, bandwidth).unwrap()
    }

    /// Times of a message of 16 bytes from one slot to the others.
    fn times(machine: &Machine, from: u32) -> Vec<f64> {
        (0..machine.processors.len() as u32).map(|to| machine.network.time(from, to, 16)).collect()
    }

    #[test]
    fn message_times_follow_links() {
        let machine = Machine::of_system(&tree(), None, linear(2.0, 1.0), None).unwrap();
        let names: Vec<_> = machine.processors.iter().map(|one| (one.name.as_str(), one.slot)).collect();
        assert_eq!(names, [("a:0", Some(0)), ("a:5", Some(1)), ("b:0", Some(2)), ("c:0", Some(3))]);
        let inside = 16.0 / INSIDE_BANDWIDTH;
        assert_eq!(times(&machine, 0), [0.0, inside, 2.5 + 2.0, 3.75 + 8.0]);
        assert_eq!(times(&machine, 3), [3.75 + 8.0, 3.75 + 8.0, 3.75 + 8.0, 0.0]);
        assert_eq!(machine.pace, [1.0; 4]);
    }

    #[test]
    fn costs_scale_the_parameters() {
        let costs = Some(Distance::Costs);
        let machine = Machine::of_system(&tree(), None, linear(0.5, 8.0), costs).unwrap();
        assert_eq!(times(&machine, 1), [2.5, 0.0, 5.0, 10.0]);
        // Links without bandwidth select the costs.
        let mut silent = tree();
        silent.links[0].bandwidth_bytes_per_s = None;
        let machine = Machine::of_system(&silent, None, linear(0.0, 8.0), None).unwrap();
        assert_eq!(times(&machine, 1), [2.0, 0.0, 4.0, 8.0]);
        // Unless links are requested: then they use the bandwidth of the parameters.
        let by_links =
            |system: &SystemGraph| Machine::of_system(system, None, linear(0.0, 1.0), Some(Distance::Links));
        assert_eq!(times(&by_links(&silent).unwrap(), 1)[2..], [0.5 + 16.0, 1.75 + 16.0]);
        let no_links = SystemGraph { links: Vec::new(), ..tree() };
        let error = by_links(&no_links).unwrap_err();
        assert!(error.to_string().contains("does not have links"), "{error}");
        let machine = Machine::of_system(&no_links, None, linear(0.0, 16.0), None).unwrap();
        assert_eq!(times(&machine, 3), [4.0, 4.0, 4.0, 0.0]);
    }

    #[test]
    fn the_two_directions_between_slots_may_differ() {
        let costs = vec![0.0, 1.0, 2.0, 4.0];
        let system = SystemGraph {
            nodes: vec![Node::host("a"), Node::host("b")],
            links: Vec::new(),
            slots: vec![Slot { host: 0, core: 0 }, Slot { host: 1, core: 0 }],
            cost: CostModel::Matrix(Matrix { costs }),
            routing: Routing::default(),
            calibration: Vec::new(),
        };
        let machine = Machine::of_system(&system, None, linear(0.0, 16.0), None).unwrap();
        assert_eq!((times(&machine, 0), times(&machine, 1)), (vec![0.0, 1.0], vec![2.0, 4.0]));
    }

    #[test]
    fn hosts_must_be_connected() {
        let mut cut = tree();
        for link in cut.links.iter_mut().filter(|link| link.source == 2 || link.destination == 2) {
            link.state = LinkState::Down;
        }
        let error = Machine::of_system(&cut, None, Linear::FREE, None).unwrap_err();
        assert_eq!(error.to_string(), "host `c` is not reachable from host `a`");
        // The first slots alone are connected.
        assert_eq!(Machine::of_system(&cut, Some(3), Linear::FREE, None).unwrap().processors.len(), 3);
    }

    #[test]
    fn processors_are_slots() {
        let of = |processors| Machine::of_system(&tree(), processors, Linear::FREE, None).unwrap();
        let some = of(Some(2));
        assert_eq!((some.processors.len(), times(&some, 0).len()), (2, 2));
        let error = |machine: Result<Machine, MachineError>| machine.unwrap_err().to_string();
        assert_eq!(error(of(Some(5)).with_first(Some(5))), "5 processors requested, but only 4 exist");
        assert_eq!(error(of(None).with_speeds(&[1.0; 3])), "speeds has 3 values for 4 processors");
        assert_eq!(error(of(None).with_available(&[-1.0; 4])), "`available` = -1 is out of range");
        assert_eq!(Linear::new(f64::NAN, 1.0).unwrap_err().to_string(), "`latency` = NaN is out of range");
        assert_eq!(Linear::new(0.0, 0.0).unwrap_err().to_string(), "`bandwidth` = 0 is out of range");
    }
}
