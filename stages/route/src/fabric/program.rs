//! The streams of a program whose ranks have hosts: its links get as little as possible, and all other traffic what is left.

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{Mapping, TaskGraph};
use hopmap_routing::error::{Result, fail};

use super::network::FabricNetwork;
use super::trees::Trees;

/// Weight of all streams together, where that of all pairs of hosts is 1.
const SHARE: f64 = 2.0;

/// Bytes between hosts.
#[derive(Debug)]
pub(super) struct ProgramTraffic {
    /// By source and destination, positions of hosts.
    bytes: BTreeMap<(u32, u32), u64>,
}

impl ProgramTraffic {
    /// The traffic between the hosts of a mapping.
    pub(super) fn new(graph: &TaskGraph, mapping: &Mapping, network: &FabricNetwork<'_>) -> Result<Self> {
        if mapping.ranks.len() != graph.ranks() {
            return fail(
                format!("the mapping has {} ranks, and the program {}", mapping.ranks.len(), graph.ranks()),
                "connect the mapping of this program",
            );
        }
        let name = |host: &u32| network.system.nodes[*host as usize].name.as_str();
        let places: HashMap<&str, u32> = network.hosts.iter().map(name).zip(0..).collect();
        let mut hosts = Vec::with_capacity(mapping.hosts.len());
        for host in &mapping.hosts {
            hosts.push(places.get(host.host.as_str()).copied());
        }
        let mut bytes = BTreeMap::new();
        for edge in &graph.edges {
            let host = |rank: u32| hosts[mapping.ranks[rank as usize].host as usize];
            let (Some(from), Some(to)) = (host(edge.source), host(edge.destination)) else {
                return fail(
                    "a rank is on a host that this fabric does not have, or that is down",
                    "connect a mapping to this machine",
                );
            };
            if from != to {
                *bytes.entry((from, to)).or_default() += edge.bytes;
            }
        }
        Ok(Self { bytes })
    }

    /// By destination, the switches that send to it and their weights.
    pub(super) fn weights(&self, network: &FabricNetwork<'_>) -> Vec<Vec<(u32, u64)>> {
        let hosts = network.hosts.len();
        let all: f64 = self.bytes.values().map(|&bytes| bytes as f64).sum();
        let scale = SHARE * (hosts * hosts) as f64 / all.max(1.0);
        let mut weights = vec![Vec::new(); hosts];
        for (&(from, to), &bytes) in &self.bytes {
            let weight = (bytes as f64 * scale).ceil() as u64;
            weights[to as usize].push((network.switch_of[from as usize], weight));
        }
        weights
    }

    /// Bytes over the busiest link between switches.
    pub(super) fn busiest(&self, network: &FabricNetwork<'_>, trees: &Trees<'_>) -> f64 {
        let mut loads = vec![0_u64; network.channels.len()];
        for (&(from, to), &bytes) in &self.bytes {
            let mut at = network.switch_of[from as usize];
            loop {
                let channel = trees.channel(to as usize, at as usize) as usize;
                let Some(ends) = network.channels.get(channel) else { break };
                loads[channel] += bytes;
                at = ends.to;
            }
        }
        loads.into_iter().max().unwrap_or_default() as f64
    }
}
