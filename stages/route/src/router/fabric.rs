//! The links of a machine in flat arrays.

use hopmap_model::LinkState;

use crate::problem::Problem;

/// No way: farther than anything.
pub(super) const FAR: u32 = u32::MAX;

/// The links of a machine in flat arrays, and what they may carry.
#[derive(Debug, Clone)]
pub(super) struct Fabric {
    /// Node id of the end of every link.
    pub head: Vec<u32>,
    /// Node id of the beginning of every link.
    pub tail: Vec<u32>,
    /// Whether a node is a host.
    pub is_host: Vec<bool>,
    /// Whether a switch has a table for every port.
    pub is_two: Vec<bool>,
    /// What every link may carry.
    pub capacity: Vec<f64>,
    /// What may arrive at a node.
    pub switch_load: f64,
    leaving: Rows,
    arriving: Rows,
}

/// Rows of numbers, one after the other.
#[derive(Debug, Clone)]
struct Rows {
    begin: Vec<u32>,
    values: Vec<u32>,
}

impl Rows {
    fn new(rows: &[Vec<u32>]) -> Self {
        let mut begin = vec![0];
        let mut values = Vec::new();
        for row in rows {
            values.extend_from_slice(row);
            begin.push(values.len() as u32);
        }
        Self { begin, values }
    }

    fn row(&self, row: u32) -> &[u32] {
        &self.values[self.begin[row as usize] as usize..self.begin[row as usize + 1] as usize]
    }
}

impl Fabric {
    /// The links of a machine that are up.
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let (nodes, links) = (&problem.system.nodes, &problem.system.links);
        let mut leaving = vec![Vec::new(); nodes.len()];
        let mut arriving = vec![Vec::new(); nodes.len()];
        for (index, link) in (0..).zip(links).filter(|(_, link)| link.state == LinkState::Up) {
            leaving[link.source as usize].push(index);
            arriving[link.destination as usize].push(index);
        }
        Self {
            head: links.iter().map(|link| link.destination).collect(),
            tail: links.iter().map(|link| link.source).collect(),
            is_host: (0..nodes.len() as u32).map(|node| problem.network.is_host(node)).collect(),
            is_two: (0..nodes.len() as u32).map(|node| problem.is_type_two(node)).collect(),
            capacity: problem.capacity.clone(),
            switch_load: problem.rules.switch_load.unwrap_or(f64::INFINITY),
            leaving: Rows::new(&leaving),
            arriving: Rows::new(&arriving),
        }
    }

    /// The links that leave a node.
    pub(super) fn leaving(&self, node: u32) -> &[u32] {
        self.leaving.row(node)
    }

    /// The links that arrive at a node.
    pub(super) fn arriving(&self, node: u32) -> &[u32] {
        self.arriving.row(node)
    }

    /// Hops from every node to a host through switches, over links that pass a test.
    pub(super) fn hops_to(&self, host: u32, passes: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut hops = vec![FAR; self.is_host.len()];
        hops[host as usize] = 0;
        let mut queue = std::collections::VecDeque::from([host]);
        while let Some(node) = queue.pop_front() {
            for &link in self.arriving(node) {
                let from = self.tail[link as usize];
                if hops[from as usize] == FAR && passes(link) {
                    hops[from as usize] = hops[node as usize] + 1;
                    if !self.is_host[from as usize] {
                        queue.push_back(from);
                    }
                }
            }
        }
        hops
    }
}
