//! The metrics of a mapping.

use std::collections::BTreeMap;

use hopmap_model::{Costs, Edge, Paths, SystemGraph, TaskGraph, Weight};

use crate::error::{ObjectiveError, check_length, no_route, no_such_slot};
use crate::scale::check_weight;

/// Description of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Key in the metrics of a mapping.
    pub name: &'static str,
    /// Unit; the unit of a weight is bytes, messages or seconds.
    pub unit: &'static str,
    /// Explanation in one sentence.
    pub explanation: &'static str,
}

pub(crate) const F: Metric = Metric {
    name: "F",
    unit: "weight × cost",
    explanation: "Communication cost: sum over ordered pairs of ranks of the message weight times the cost between their slots.",
};
pub(crate) const T: Metric = Metric {
    name: "T",
    unit: "weight × cost",
    explanation: "Bottleneck cost: the largest contribution of one rank to F, half of the sent and half of the received weight times the cost between the slots. Half of the T of the HierarchicalMap paper if the weight of a pair counts both directions.",
};
pub(crate) const HOP_BYTES: Metric = Metric {
    name: "hop_bytes",
    unit: "bytes × hops",
    explanation: "Sum of bytes times the number of links they pass; zero inside a host.",
};
pub(crate) const MAX_LINK_LOAD: Metric = Metric {
    name: "max_link_load_bytes",
    unit: "bytes",
    explanation: "Bytes over the busiest directed link.",
};
pub(crate) const MAX_LINK_TIME: Metric = Metric {
    name: "max_link_time_s",
    unit: "s",
    explanation: "Time of the busiest directed link: its bytes divided by its bandwidth; missing if a link has no bandwidth.",
};
const DILATION_MEAN: Metric = Metric {
    name: "dilation_mean",
    unit: "hops",
    explanation: "Mean number of links between different communicating ranks.",
};
const DILATION_MAX: Metric = Metric {
    name: "dilation_max",
    unit: "hops",
    explanation: "Largest number of links between different communicating ranks.",
};

/// The metrics of every mapping. Those of links are missing for a machine without them.
pub const METRICS: [Metric; 7] = [F, T, HOP_BYTES, MAX_LINK_LOAD, MAX_LINK_TIME, DILATION_MEAN, DILATION_MAX];

/// Additional metric of searches.
pub const EVALUATIONS: Metric = Metric {
    name: "evaluations",
    unit: "evaluations",
    explanation: "Number of exchanges evaluated by the search.",
};

/// Quality of a mapping, in the units of the trace and the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// F = `Σ_ij` `w_ij` · c(φ(i), φ(j)) over ordered pairs (GraphHunter, equation 1).
    pub f: f64,
    /// T = `max_i` ½ `Σ_j` (`w_ij` · c(φ(i), φ(j)) + `w_ji` · c(φ(j), φ(i))). Half of the T of Pavsky,
    /// Kurnosov and Polyakov, who sum both directions without the ½; here the T of all ranks add up to F.
    pub t: f64,
    /// Link metrics, if the machine has links.
    pub network: Option<NetworkQuality>,
}

/// Link metrics of a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkQuality {
    /// `Σ_ij` `bytes_ij` · hops between the hosts.
    pub hop_bytes: f64,
    /// Bytes over the busiest directed link.
    pub max_link_load_bytes: f64,
    /// The largest time of a directed link, bytes divided by bandwidth; missing if a link has no bandwidth.
    pub max_link_time_s: Option<f64>,
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
            values.extend(network.max_link_time_s.map(|seconds| (MAX_LINK_TIME, seconds)));
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
        let seconds = system.links.iter().zip(&loads).map(|(link, bytes)| {
            let bandwidth = link.bandwidth_bytes_per_s?;
            Some(*bytes as f64 / bandwidth)
        });
        let seconds: Option<Vec<f64>> = seconds.collect();
        Ok(Self {
            hop_bytes,
            max_link_time_s: seconds.map(|seconds| seconds.into_iter().fold(0.0, f64::max)),
            max_link_load_bytes: loads.into_iter().max().unwrap_or(0) as f64,
            dilation: (edges > 0).then(|| (hops_in_all as f64 / edges as f64, f64::from(most_hops))),
        })
    }
}

/// Bytes over every directed link, by index. Traffic without a path is not counted.
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

    /// Two switches under a root, two hosts each, two cores per host; costs 1, 10, 100.
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
            calibration: Vec::new(),
        }
    }

    /// The same with 100 bytes per second to and from hosts, and 25 between switches.
    fn rated_tree() -> SystemGraph {
        let mut system = small_tree();
        for link in &mut system.links {
            let is_of_host = link.source.min(link.destination) < 4;
            link.bandwidth_bytes_per_s = Some(if is_of_host { 100.0 } else { 25.0 });
        }
        system
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
    fn a_mapping_counted_by_hand() {
        let graph = graph(4, &[(0, 1, 8), (0, 2, 4), (1, 3, 2), (2, 2, 999), (3, 0, 6)]);
        let values = metrics(&rated_tree(), &graph, &[0, 1, 2, 4]);
        let expected = [
            ("F", 8.0 + 40.0 + 200.0 + 600.0),
            ("T", 0.5 * (200.0 + 600.0)),
            ("dilation_max", 4.0),
            ("dilation_mean", 10.0 / 4.0),
            ("hop_bytes", 4.0 * 2.0 + 2.0 * 4.0 + 6.0 * 4.0),
            ("max_link_load_bytes", 6.0),
            ("max_link_time_s", 6.0 / 25.0),
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
    fn a_narrow_link_is_slower_than_one_with_more_bytes() {
        // 60 bytes leave host 0, and 20 of them pass the link between switches at a quarter of the bandwidth.
        let graph = graph(3, &[(0, 1, 40), (0, 2, 20)]);
        let values = metrics(&rated_tree(), &graph, &[0, 2, 4]);
        assert!((values["max_link_load_bytes"] - 60.0).abs() < 1e-12);
        assert!((values["max_link_time_s"] - 20.0 / 25.0).abs() < 1e-12);
        let mut partly = rated_tree();
        partly.links[0].bandwidth_bytes_per_s = None;
        assert!(!metrics(&partly, &graph, &[0, 2, 4]).contains_key("max_link_time_s"));
    }

    #[test]
    fn without_edges_there_is_no_dilation() {
        let values = metrics(&small_tree(), &graph(2, &[(1, 1, 8)]), &[0, 7]);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["F", "T", "hop_bytes", "max_link_load_bytes"]);
        assert!(values.values().all(|value| value.abs() < f64::EPSILON));
    }

    #[test]
    fn every_metric_is_explained() {
        let values = metrics(&rated_tree(), &graph(2, &[(0, 1, 8)]), &[0, 7]);
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        assert_eq!(values.into_keys().collect::<Vec<_>>(), names);
        assert!(METRICS.iter().all(|metric| metric.explanation.ends_with('.') && !metric.unit.is_empty()));
    }
}
