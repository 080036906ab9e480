//! Machines of which all is known by a number for every pair of endpoints.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{CostModel, Matrix, Node, Routing, Slot, SystemGraph};

use super::{ImportError, ImportParams};

/// Most rows of a matrix.
pub(super) const MOST_ROWS: usize = 1 << 14;

/// A cost for every ordered pair of endpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Measured {
    /// The host of every endpoint, and its core there where that is known.
    pub(super) endpoints: Vec<(String, Option<u32>)>,
    /// From endpoint `a` to endpoint `b` of `n` at `a * n + b`.
    pub(super) costs: Vec<f64>,
}

impl Measured {
    /// Endpoints without known cores.
    pub(super) fn new(hosts: impl IntoIterator<Item = String>, costs: Vec<f64>) -> Self {
        Self { endpoints: hosts.into_iter().map(|host| (host, None)).collect(), costs }
    }

    /// The machine: hosts in the order in which they first come, the endpoints of a host one behind the other. Cores that are not
    /// known are counted on every host. Where endpoints change places, so do the rows and columns of the matrix.
    pub(super) fn machine(self, path: &Path, notes: &mut Vec<String>) -> Result<SystemGraph, ImportError> {
        let count = self.endpoints.len();
        let mut hosts: HashMap<&str, u32> = HashMap::new();
        let mut known: Vec<Node> = Vec::new();
        let host_of: Vec<u32> = self
            .endpoints
            .iter()
            .map(|(host, _)| {
                *hosts.entry(host).or_insert_with(|| {
                    known.push(Node::host(host.clone()));
                    known.len() as u32 - 1
                })
            })
            .collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&endpoint| host_of[endpoint]);
        let is_in_order = order.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_in_order {
            notes
                .push("endpoints of one host did not stand together: slots are in the order of hosts".into());
        }
        let mut next = vec![0; known.len()];
        let slots = order
            .iter()
            .map(|&endpoint| {
                let host = host_of[endpoint];
                let counted = next[host as usize];
                next[host as usize] += 1;
                Slot { host, core: self.endpoints[endpoint].1.unwrap_or(counted) }
            })
            .collect();
        let costs = match is_in_order {
            true => self.costs,
            false => {
                let row = |&a: &usize| self.costs.get(a * count..(a + 1) * count).unwrap_or_default();
                order.iter().flat_map(|a| order.iter().filter_map(move |&b| row(a).get(b).copied())).collect()
            }
        };
        let cost = CostModel::Matrix(Matrix { costs });
        let system =
            SystemGraph { nodes: known, links: Vec::new(), slots, cost, routing: Routing::default() };
        system.check().map_err(|source| ImportError::Machine { path: path.to_owned(), source })?;
        Ok(system)
    }
}

/// Refuses parameters that mean nothing where the file says what every pair costs.
pub(super) fn refuse(params: &ImportParams, meaningful: &[&str]) -> Result<(), ImportError> {
    let given = [
        ("cost", params.cost.is_some()),
        ("link_latency", params.link_latency.is_some()),
        ("slots", params.slots.is_some()),
        ("hwloc", params.hwloc.is_some()),
        ("threads", params.threads),
        ("inside", !params.inside.is_empty()),
        ("costs", !params.costs.is_empty()),
    ];
    match given.into_iter().find(|(name, is_given)| *is_given && !meaningful.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(ImportError::Parameter {
            name,
            problem: "means nothing here: the file says what every pair costs".into(),
            help: "leave it out".into(),
        }),
    }
}

/// A name that hosts can have: not empty, without blanks and control characters, and not longer than names are.
pub(super) fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_a_host_are_put_together() {
        let hosts = ["a", "b", "a", "b"].map(str::to_owned);
        let measured = Measured::new(hosts, (0..16).map(f64::from).collect());
        let mut notes = Vec::new();
        let system = measured.machine(Path::new("x"), &mut notes).unwrap();
        let slots: Vec<_> = system.slots.iter().map(|slot| (slot.host, slot.core)).collect();
        assert_eq!(slots, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(system.costs().block(&[0, 1, 2, 3])[..8], [0.0, 2.0, 1.0, 3.0, 8.0, 10.0, 9.0, 11.0]);
        assert_eq!(notes.len(), 1);
    }
}
