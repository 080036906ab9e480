//! Machines whose network has a regular shape: trees, fat trees, tori, meshes, rings and dragonflies.

pub mod named;
mod network;
pub mod params;
mod rates;
#[cfg(test)]
mod tests;
mod tree;

use hopmap_model::SystemGraph;

use crate::named::Named;
use crate::params::{MachineError, SyntheticParams};

/// The machine topology for the parameters.
///
/// The slots of a tree are numbered host by host. Every group of a level above the hosts has a switch,
/// `switch-LEVEL-INDEX` with level 1 next to the hosts, and a link in each direction to every child; the root
/// is the last node. A single host has no switch and no link. In other shapes messages use the links of the
/// network, and `cost` defines their cost.
pub fn synthetic(params: &SyntheticParams) -> Result<SystemGraph, MachineError> {
    built(&named::resolved(params)?)
}

/// The same for parameters with a shape and names.
pub fn built(named: &Named) -> Result<SystemGraph, MachineError> {
    let params = &named.params;
    Ok(named.limited(match network::of(params)? {
        Some(network) => network::machine(&*network, params)?,
        None => tree::synthetic(params)?,
    }))
}

/// Checks the parameters without building the machine. What is in a host file is not known before.
pub fn check(params: &SyntheticParams) -> Result<(), MachineError> {
    if params.hosts_file.is_some() {
        return named::check(params);
    }
    let params = &named::resolved(params)?.params;
    match network::of(params)? {
        Some(network) => network::check(&*network, params),
        None => tree::check(params),
    }
}
