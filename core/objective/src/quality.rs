//! The metrics of a placement.

use std::collections::BTreeMap;

use hopmap_model::{Costs, Edge, Paths, SystemGraph, TaskGraph, Weight};

use crate::ObjectiveError;
use crate::error::{check_length, no_route, no_such_slot};
use crate::scale::check_weight;

/// A metric as reports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Key in the metrics of a mapping.
    pub name: &'static str,
    /// Unit; the unit of a weight is bytes, messages or seconds.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub explanation: &'static str,
}

pub(crate) const F: Metric = Metric {
    name: "F",
    unit: "weight × cost",
    explanation: "Sum over all ordered pairs of ranks of the weight of what one sends to the other times the cost between their slots.",
};
pub(crate) const T: Metric = Metric {
    name: "T",
    unit: "weight × cost",
    explanation: "The largest share that one rank has in F: half of what it sends and half of what it receives, times the cost between the slots. Half of the T of the paper on HierarchicalMap where the weight of a pair is what goes both ways.",
};
pub(crate) const HOP_BYTES: Metric = Metric {
    name: "hop_bytes",
    unit: "bytes × hops",
    explanation: "Bytes times the number of links they pass; nothing inside a host.",
};
pub(crate) const MAX_LINK_LOAD: Metric = Metric {
    name: "max_link_load_bytes",
    unit: "bytes",
    explanation: "Bytes over the busiest directed link.",
};
const DILATION_MEAN: Metric = Metric {
    name: "dilation_mean",
    unit: "hops",
    explanation: "Mean number of links between two different ranks of which one sends to the other.",
};
const DILATION_MAX: Metric = Metric {
    name: "dilation_max",
    unit: "hops",
    explanation: "Largest number of links between two different ranks of which one sends to the other.",
};

/// The metrics of every placement. Those in bytes or hops are missing for a machine without links.
pub const METRICS: [Metric; 6] = [F, T, HOP_BYTES, MAX_LINK_LOAD, DILATION_MEAN, DILATION_MAX];

/// The metric that searches add.
pub const EVALUATIONS: Metric = Metric {
    name: "evaluations",
    unit: "evaluations",
    explanation: "Number of changes to a placement that the search computed the cost of.",
};

/// How good a placement is, in the units of the trace and the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// F = `Σ_ij` `w_ij` · c(φ(i), φ(j)) over ordered pairs (GraphHunter, equation 1).
    pub f: f64,
    /// T = `max_i` ½ `Σ_j` (`w_ij` · c(φ(i), φ(j)) + `w_ji` · c(φ(j), φ(i))). Pavsky, Kurnosov and Polyakov sum the weight of the pair, which
    /// is that of both directions, without the ½; so that the T of all ranks add up to F here, it is half of theirs.
    pub t: f64,
    /// What the traffic does to the links of the machine, if it has any.
    pub network: Option<NetworkQuality>,
}

/// What a placement does to the links of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkQuality {
    /// `Σ_ij` `bytes_ij` · hops between the hosts.
    pub hop_bytes: f64,
    /// Bytes over the busiest directed link.
    pub max_link_load_bytes: f64,
    /// Mean and largest number of hops per edge between different ranks; missing if there is no such edge.
    pub dilation: Option<(f64, f64)>,
}

impl Quality {
    /// Measures rank `i` on `slots[i]`. `paths` are those of `system`, if it has links.
    pub fn new(
        graph: &TaskGraph,
        system: &SystemGraph,
        paths: Option<&Paths>,
        slots: &[u32],
        weight: Weight,
    ) -> Result<Self, ObjectiveError> {
        check_weight(weight)?;
        check_length(slots.len(), graph.ranks())?;
        let count = system.slots.len();
        if let Some((rank, &slot)) = slots.iter().enumerate().find(|&(_, &slot)| slot as usize >= count) {
            return Err(no_such_slot(rank, slot, count));
        }
        let (f, t) = costs(graph, system, paths, slots, weight)?;
        let network = paths.map(|paths| NetworkQuality::new(graph, system, paths, slots)).transpose()?;
        Ok(Self { f, t, network })
    }

    /// The values by the names in [`METRICS`].
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let mut values = vec![(F, self.f), (T, self.t)];
        if let Some(network) = &self.network {
            values.push((HOP_BYTES, network.hop_bytes));
            values.push((MAX_LINK_LOAD, network.max_link_load_bytes));
            if let Some((mean, max)) = network.dilation {
                values.extend([(DILATION_MEAN, mean), (DILATION_MAX, max)]);
            }
        }
        values.into_iter().map(|(metric, value)| (metric.name.to_owned(), value)).collect()
    }
}

/// F and T.
fn costs(
    graph: &TaskGraph,
    system: &SystemGraph,
    paths: Option<&Paths>,
    slots: &[u32],
    weight: Weight,
) -> Result<(f64, f64), ObjectiveError> {
    let costs = Costs::with_paths(system, paths);
    let mut total = 0.0;
    let mut shares = vec![0.0; slots.len()];
    for edge in &graph.edges {
        let (source, destination) = (edge.source as usize, edge.destination as usize);
        let between = costs.between(slots[source], slots[destination]);
        if between.is_infinite() {
            return Err(no_route(system, hosts(system, slots, edge)));
        }
        let cost = weight.of(edge) * between;
        total += cost;
        shares[source] += 0.5 * cost;
        shares[destination] += 0.5 * cost;
    }
    Ok((total, shares.into_iter().fold(0.0, f64::max)))
}

impl NetworkQuality {
    fn new(
        graph: &TaskGraph,
        system: &SystemGraph,
        paths: &Paths,
        slots: &[u32],
    ) -> Result<Self, ObjectiveError> {
        let mut hop_bytes = 0.0;
        let (mut edges, mut hops_in_all, mut most_hops) = (0u64, 0u64, 0u32);
        for edge in between_ranks(graph) {
            let [source, destination] = hosts(system, slots, edge);
            let hops = paths.hops(source, destination);
            let hops = hops.ok_or_else(|| no_route(system, [source, destination]))?;
            hop_bytes += edge.bytes as f64 * f64::from(hops);
            edges += 1;
            hops_in_all += u64::from(hops);
            most_hops = most_hops.max(hops);
        }
        let loads = link_loads(graph, system, paths, slots);
        Ok(Self {
            hop_bytes,
            max_link_load_bytes: loads.into_iter().max().unwrap_or(0) as f64,
            dilation: (edges > 0).then(|| (hops_in_all as f64 / edges as f64, f64::from(most_hops))),
        })
    }
}

/// Bytes over every directed link of the machine, by the index of the link. What has no way passes none.
#[must_use]
pub fn link_loads(graph: &TaskGraph, system: &SystemGraph, paths: &Paths, slots: &[u32]) -> Vec<u64> {
    let mut loads = vec![0; system.links.len()];
    for edge in between_ranks(graph) {
        let [source, destination] = hosts(system, slots, edge);
        paths.walk(source, destination, |link| loads[link as usize] += edge.bytes);
    }
    loads
}

fn between_ranks(graph: &TaskGraph) -> impl Iterator<Item = &Edge> {
    graph.edges.iter().filter(|edge| edge.source != edge.destination)
}

fn hosts(system: &SystemGraph, slots: &[u32], edge: &Edge) -> [u32; 2] {
    [edge.source, edge.destination].map(|rank| system.slots[slots[rank as usize] as usize].host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Levels, Link, Node, NodeKind, Process, Slot};

    /// Two switches under a root, two hosts each, two cores a host; costs 1, 10, 100.
    fn small_tree() -> SystemGraph {
        let kind = |index| if index < 4 { NodeKind::Host } else { NodeKind::Switch };
        let node = |(index, name): (usize, &str)| Node::new(name, kind(index));
        let ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)];
        let both = ends.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        let link = |(source, destination)| Link::new(source, destination);
        let groups = |size: u32| (0..8).map(|slot| slot / size).collect();
        SystemGraph {
            nodes: ["h0", "h1", "h2", "h3", "s0", "s1", "root"].into_iter().enumerate().map(node).collect(),
            routing: hopmap_model::Routing::default(),
            links: both.map(link).collect(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 10.0, 100.0],
                groups: [2, 4, 8].map(groups).to_vec(),
            }),
        }
    }

    fn graph(ranks: usize, edges: &[(u32, u32, u64)]) -> TaskGraph {
        let edge = |&(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        TaskGraph {
            processes: vec![Process::default(); ranks],
            edges: edges.iter().map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    fn metrics(system: &SystemGraph, graph: &TaskGraph, slots: &[u32]) -> BTreeMap<String, f64> {
        let paths = Paths::new(system);
        Quality::new(graph, system, paths.as_ref(), slots, Weight::Bytes).unwrap().metrics()
    }

    #[test]
    fn a_placement_counted_by_hand() {
        let graph = graph(4, &[(0, 1, 8), (0, 2, 4), (1, 3, 2), (2, 2, 999), (3, 0, 6)]);
        let values = metrics(&small_tree(), &graph, &[0, 1, 2, 4]);
        let expected = [
            ("F", 8.0 + 40.0 + 200.0 + 600.0),
            ("T", 0.5 * (200.0 + 600.0)),
            ("dilation_max", 4.0),
            ("dilation_mean", 10.0 / 4.0),
            ("hop_bytes", 4.0 * 2.0 + 2.0 * 4.0 + 6.0 * 4.0),
            ("max_link_load_bytes", 6.0),
        ];
        for (name, value) in expected {
            assert!((values[name] - value).abs() < 1e-12, "{name} is {}, not {value}", values[name]);
        }
        assert_eq!(values.len(), expected.len());
    }

    #[test]
    fn without_links_hops_are_missing() {
        let mut system = small_tree();
        system.links.clear();
        let values = metrics(&system, &graph(2, &[(0, 1, 8)]), &[0, 7]);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["F", "T"]);
    }

    #[test]
    fn without_edges_there_is_no_dilation() {
        let values = metrics(&small_tree(), &graph(2, &[(1, 1, 8)]), &[0, 7]);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["F", "T", "hop_bytes", "max_link_load_bytes"]);
        assert!(values.values().all(|value| value.abs() < f64::EPSILON));
    }

    #[test]
    fn every_metric_is_explained() {
        let values = metrics(&small_tree(), &graph(2, &[(0, 1, 8)]), &[0, 7]);
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        assert_eq!(values.into_keys().collect::<Vec<_>>(), names);
        assert!(METRICS.iter().all(|metric| metric.explanation.ends_with('.') && !metric.unit.is_empty()));
    }
}
