//! `evaluate/groups`: which groups of ranks a mapping spreads over several switches.
//!
//! # Method
//!
//! The groups of a phase are the connected components of its messages ([`hopmap_model::Phase::groups`]): a phase of
//! `instance/parallel` has the messages of one kind of group. A group crosses a level of switches if its hosts are in
//! several areas of it ([`SystemGraph::areas`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use hopmap_formats::host_list;
use hopmap_model::{Error, Mapping, Metrics, SystemGraph, TaskGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::check;
use crate::error::EvaluateError;

/// Parameters of `evaluate/groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsParams {}

/// Groups and what they cross.
#[derive(Debug)]
pub struct GroupTables {
    /// Numbers of groups, and of those that cross a level.
    pub metrics: Metrics,
    /// A row per group as CSV.
    pub csv: String,
    /// A row per kind of group and level as Markdown.
    pub markdown: String,
}

/// Finds the groups of all phases of a program, and the levels that they cross under a mapping.
pub fn groups(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Result<GroupTables, Error> {
    check(graph, system, mapping)?;
    if graph.phases.iter().all(|phase| phase.edges.is_empty()) {
        let help =
            "connect a program with phases, such as one of instance/parallel or the trace of a training job";
        return Err(
            EvaluateError::new("the task graph has no phases, whose messages form the groups", help).into()
        );
    }
    let (areas, names) = (system.areas(), system.level_names());
    let nodes: Vec<u32> = system.hosts().map(|(node, ..)| node).collect();
    let mut summary = BTreeMap::new();
    let (mut csv, mut rows) =
        ("kind,group,ranks,first_rank,areas_by_level,hosts\n".to_owned(), String::new());
    for (index, phase) in graph.phases.iter().enumerate().filter(|(_, phase)| !phase.edges.is_empty()) {
        let kind = phase.name.clone().unwrap_or_else(|| format!("phase-{index}"));
        let found = phase.groups();
        let mut crossing = vec![0u32; areas.len()];
        for (number, ranks) in found.iter().enumerate() {
            let hosts: BTreeSet<u32> = ranks.iter().map(|&rank| mapping.ranks[rank as usize].host).collect();
            let spans = areas.iter().map(|level| {
                let areas: BTreeSet<u32> =
                    hosts.iter().map(|&host| level[nodes[host as usize] as usize]).collect();
                areas.len()
            });
            let spans: Vec<usize> = spans.collect();
            crossing.iter_mut().zip(&spans).for_each(|(count, &span)| *count += u32::from(span > 1));
            let hosts: Vec<&str> =
                hosts.iter().map(|&host| mapping.hosts[host as usize].host.as_str()).collect();
            let spans = spans.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            // Writing to a string does not fail.
            let _ = writeln!(
                csv,
                "{kind},{number},{},{},{spans},\"{}\"",
                ranks.len(),
                ranks[0],
                host_list::compress(&hosts)
            );
        }
        summary.insert(format!("groups_{kind}"), found.len() as f64);
        for ((level, &count), name) in (1..).zip(&crossing).zip(&names) {
            summary.insert(format!("crossing_{kind}_level_{level}"), f64::from(count));
            let _ = writeln!(rows, "| {kind} | {} | {name} | {count} |", found.len());
        }
    }
    let markdown = format!("| kind | groups | switches | crossing |\n|---|---|---|---|\n{rows}");
    Ok(GroupTables { metrics: Metrics { summary, placements: Vec::new() }, csv, markdown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{
        CostModel, Edge, Levels, Link, Node, Phase, Process, RouteCosts, RouteMetric, Slot, Weight,
    };

    /// Two spines of two leaves of two hosts of two slots, in a tree with a root.
    fn machine() -> SystemGraph {
        let mut nodes: Vec<Node> = (0..8).map(|host| Node::host(format!("n{host}"))).collect();
        nodes.extend(["l0", "l1", "l2", "l3", "s0", "s1", "root"].into_iter().map(Node::switch));
        let up =
            (0..8).map(|host| (host, 8 + host / 2)).chain((8..12).map(|leaf| (leaf, 12 + (leaf - 8) / 2)));
        let ends: Vec<(u32, u32)> = up.chain([(12, 14), (13, 14)]).collect();
        let slots: Vec<Slot> = (0..16).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect();
        let inside = Levels { costs: vec![0.0], groups: vec![slots.iter().map(|slot| slot.host).collect()] };
        SystemGraph {
            nodes,
            links: ends.into_iter().flat_map(|(a, b)| [Link::new(a, b), Link::new(b, a)]).collect(),
            slots,
            cost: CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
        }
    }

    fn program(groups: &[&[u32]]) -> TaskGraph {
        let ring = |group: &&[u32]| {
            let next = group.iter().cycle().skip(1).copied();
            group.iter().copied().zip(next).collect::<Vec<_>>()
        };
        let mut pairs: Vec<(u32, u32)> = groups.iter().flat_map(ring).collect();
        pairs.sort_unstable();
        let edge = |(source, destination)| Edge { source, destination, messages: 1, bytes: 8 };
        let edges: Vec<Edge> = pairs.into_iter().map(edge).collect();
        let phase = Phase {
            name: Some("ep".into()),
            compute_s: vec![None; 16],
            edges: edges.clone(),
            ..Phase::default()
        };
        TaskGraph {
            processes: vec![Process::default(); 16],
            edges,
            phases: vec![phase],
            ..TaskGraph::default()
        }
    }

    #[test]
    fn groups_that_cross_switches_are_counted_by_level() {
        let system = machine();
        let graph = program(&[&[0, 1], &[2, 3, 4, 5], &[6, 7, 8, 9]]);
        let linear = Mapping::new(&(0..16).collect::<Vec<_>>(), &system, Weight::Bytes).unwrap();
        let found = groups(&graph, &system, &linear).unwrap();
        // Host 1 and host 2 are below one spine; hosts 3 and 4 are not.
        let expected = [("crossing_ep_level_1", 2.0), ("crossing_ep_level_2", 1.0), ("groups_ep", 3.0)];
        let summary: Vec<(&str, f64)> =
            found.metrics.summary.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(summary, expected);
        let rows: Vec<&str> = found.csv.lines().skip(1).collect();
        assert_eq!(rows, ["ep,0,2,0,1 1,\"n0\"", "ep,1,4,2,2 1,\"n[1-2]\"", "ep,2,4,6,2 2,\"n[3-4]\""]);
        assert!(
            found.markdown.ends_with("| ep | 3 | level 1 (l0, …) | 2 |\n| ep | 3 | level 2 (s0, …) | 1 |\n"),
            "{}",
            found.markdown
        );
        // Exchanging hosts 1 and 3 leaves the second group below one leaf, and the third below two.
        let mut slots: Vec<u32> = (0..16).collect();
        (slots[2], slots[3], slots[6], slots[7]) = (6, 7, 2, 3);
        let moved = Mapping::new(&slots, &system, Weight::Bytes).unwrap();
        let summary = groups(&graph, &system, &moved).unwrap().metrics.summary;
        assert_eq!((summary["crossing_ep_level_1"], summary["crossing_ep_level_2"]), (1.0, 1.0));
    }

    #[test]
    fn a_program_without_phases_has_no_groups() {
        let (system, graph) = (machine(), TaskGraph { phases: Vec::new(), ..program(&[&[0, 1]]) });
        let linear = Mapping::new(&(0..16).collect::<Vec<_>>(), &system, Weight::Bytes).unwrap();
        let error = groups(&graph, &system, &linear).unwrap_err().to_string();
        assert_eq!(error, "the task graph has no phases, whose messages form the groups");
    }
}
