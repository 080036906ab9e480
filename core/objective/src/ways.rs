//! The links between hosts, looked up fast.

use hopmap_model::{CostsError, Paths, SystemGraph};

use crate::ObjectiveError;

/// Most hosts between which all ways are stored.
const MOST_HOSTS: usize = 2048;

/// The links between the hosts of the slots of a machine.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// By slot: its node, or where ways are stored its number among the hosts.
    host_of: Vec<u32>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// In a tree ways are short to find.
    Tree(Paths),
    /// The links from host a to host b of n are those from `first[a * n + b]`.
    Stored { hosts: usize, first: Vec<u32>, links: Vec<u32> },
}

impl Ways {
    /// Fails where there is no way from one host to another.
    pub(crate) fn new(system: &SystemGraph, paths: Paths) -> Result<Self, ObjectiveError> {
        if paths.tree().is_some() {
            let host_of = system.slots.iter().map(|slot| slot.host).collect();
            return Ok(Self { host_of, kind: Kind::Tree(paths) });
        }
        let nodes: Vec<(u32, u32)> = system.hosts().map(|(node, _, slots)| (node, slots)).collect();
        let hosts = nodes.len();
        if hosts > MOST_HOSTS {
            return Err(ObjectiveError::TooManyWays { hosts, most: MOST_HOSTS });
        }
        let (mut first, mut links) = (vec![0], Vec::new());
        for &(from, _) in &nodes {
            for &(to, _) in &nodes {
                if !paths.walk(from, to, |link| links.push(link)) {
                    let name = |node: u32| system.nodes[node as usize].name.clone();
                    return Err(CostsError::NoRoute { from: name(from), to: name(to) }.into());
                }
                first.push(links.len() as u32);
            }
        }
        let of_host = |(host, &(_, slots)): (u32, &(u32, u32))| (0..slots).map(move |_| host);
        let host_of = (0..).zip(&nodes).flat_map(of_host).collect();
        Ok(Self { host_of, kind: Kind::Stored { hosts, first, links } })
    }

    /// The host of a slot; only good for [`walk`](Self::walk).
    pub(crate) fn host(&self, slot: u32) -> u32 {
        self.host_of[slot as usize]
    }

    /// Visits the links from one host to another, in any order.
    pub(crate) fn walk(&self, from: u32, to: u32, mut visit: impl FnMut(u32)) {
        match &self.kind {
            Kind::Tree(paths) => {
                paths.walk(from, to, visit);
            }
            Kind::Stored { hosts, first, links } => {
                let pair = from as usize * hosts + to as usize;
                links[first[pair] as usize..first[pair + 1] as usize].iter().for_each(|&link| visit(link));
            }
        }
    }
}
