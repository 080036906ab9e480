//! Machines whose network has a regular shape.

mod network;
#[cfg(test)]
mod tests;
mod tree;

use hopmap_model::{Node, SystemGraph};

use crate::{SyntheticError, SyntheticParams};
use network::Network;
pub(crate) use tree::{MAX_LEVELS, MAX_SLOTS};

/// The machine that the parameters describe.
///
/// Of a tree slots lie host by host; every group of a level above the hosts has a switch, `switch-LEVEL-INDEX` with level 1 next to the
/// hosts, and one link each way to every child; the root is the last node. A single host has no switch and no link. Of the other
/// shapes messages take the links that the network has, and cost what `cost` counts.
pub fn synthetic(params: &SyntheticParams) -> Result<SystemGraph, SyntheticError> {
    match Network::of(params)? {
        Some(network) => network.machine(params),
        None => tree::synthetic(params),
    }
}

/// Checks the parameters without building the machine.
pub(crate) fn check(params: &SyntheticParams) -> Result<(), SyntheticError> {
    match Network::of(params)? {
        Some(network) => network.check(params),
        None => tree::check(params),
    }
}

/// The hosts, as they are named or numbered with one width.
fn host_nodes(params: &SyntheticParams, hosts: usize) -> Result<Vec<Node>, SyntheticError> {
    let names = if params.hosts.is_empty() {
        let width = hosts.saturating_sub(1).to_string().len();
        (0..hosts).map(|host| format!("{}{host:0width$}", params.host_prefix)).collect()
    } else if params.hosts.len() == hosts {
        params.hosts.clone()
    } else {
        return Err(SyntheticError::HostCount {
            names: params.hosts.len(),
            shape: params.shape.clone(),
            hosts,
        });
    };
    let senseless =
        |name: &String| name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control());
    match names.iter().position(senseless) {
        Some(index) => Err(SyntheticError::HostName { index, name: names[index].clone() }),
        None => Ok(names.into_iter().map(Node::host).collect()),
    }
}

fn check_names(nodes: &[Node]) -> Result<(), SyntheticError> {
    let mut names = std::collections::HashSet::with_capacity(nodes.len());
    match nodes.iter().find(|node| !names.insert(&node.name)) {
        Some(node) => Err(SyntheticError::RepeatedName { name: node.name.clone() }),
        None => Ok(()),
    }
}
