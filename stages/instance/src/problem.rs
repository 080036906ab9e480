//! A quadratic assignment problem, and the program and the machine that it is.

use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph};

/// Up to here floats hold every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A quadratic assignment problem: what `n` ranks send to each other, and what the way between `n` slots costs.
///
/// Rank `i` on slot `p[i]` costs `Σ_ij flows[i][j] · costs[p[i]][p[j]]` over all ordered pairs, `i = j` among them
/// (Burkard, Karisch and Rendl 1997, QAPLIB).
#[derive(Debug, Clone, PartialEq)]
pub struct AssignmentProblem {
    pub(crate) size: usize,
    /// Row by row.
    pub(crate) flows: Vec<u64>,
    /// Row by row; finite and not negative.
    pub(crate) costs: Vec<f64>,
}

impl AssignmentProblem {
    /// Number of ranks, and of slots.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// What each rank sends to each other, row by row.
    #[must_use]
    pub fn flows(&self) -> &[u64] {
        &self.flows
    }

    /// What the way from each slot to each other costs, row by row.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Whether all costs are whole, so that the cost of a placement is exact where it is below 2⁵³.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.costs.iter().all(|cost| cost.fract() == 0.0 && *cost <= EXACT)
    }

    /// The cost of rank `i` on slot `placement[i]`, a permutation.
    #[must_use]
    pub fn cost(&self, placement: &[usize]) -> f64 {
        let rows = self.flows.chunks_exact(self.size.max(1));
        if self.is_whole() {
            let row = |(flows, &slot): (&[u64], &usize)| -> u128 {
                let costs = &self.costs[slot * self.size..][..self.size];
                let products = flows
                    .iter()
                    .zip(placement)
                    .map(|(&flow, &other)| u128::from(flow) * costs[other] as u128);
                products.fold(0, u128::saturating_add)
            };
            rows.zip(placement).map(row).fold(0, u128::saturating_add) as f64
        } else {
            let row = |(flows, &slot): (&[u64], &usize)| -> f64 {
                let costs = &self.costs[slot * self.size..][..self.size];
                flows.iter().zip(placement).map(|(&flow, &other)| flow as f64 * costs[other]).sum()
            };
            rows.zip(placement).map(row).sum()
        }
    }

    /// The program: a process per rank, and an edge of one message for every flow that is not zero.
    #[must_use]
    pub fn task_graph(&self) -> TaskGraph {
        let flows = self.flows.iter().enumerate().filter(|(_, flow)| **flow > 0);
        let edge = |(index, &bytes): (usize, &u64)| Edge {
            source: (index / self.size) as u32,
            destination: (index % self.size) as u32,
            messages: 1,
            bytes,
        };
        TaskGraph {
            processes: vec![Process::default(); self.size],
            edges: flows.map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    /// The machine: a host with one slot for every location, and a cost for every pair of them.
    #[must_use]
    pub fn system_graph(&self) -> SystemGraph {
        let width = self.size.saturating_sub(1).to_string().len();
        let node = |slot| Node::host(format!("node{slot:0width$}"));
        SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: (0..self.size).map(node).collect(),
            links: Vec::new(),
            slots: (0..self.size as u32).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Matrix(Matrix { costs: self.costs.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(flows: &[u64], costs: &[f64]) -> AssignmentProblem {
        AssignmentProblem { size: flows.len().isqrt(), flows: flows.to_vec(), costs: costs.to_vec() }
    }

    #[test]
    fn directions_and_the_diagonal_count() {
        let problem = problem(&[1, 2, 3, 0], &[10.0, 100.0, 1000.0, 7.0]);
        assert_eq!(problem.cost(&[0, 1]).to_string(), "3210");
        assert_eq!(problem.cost(&[1, 0]).to_string(), (7 + 2000 + 300).to_string());
        let halves = AssignmentProblem { costs: vec![0.5, 0.25, 0.0, 0.0], ..problem };
        assert!(!halves.is_whole());
        assert_eq!(halves.cost(&[0, 1]).to_string(), "1");
    }

    #[test]
    fn program_and_machine_have_the_same_cost_as_the_problem() {
        let problem = problem(&[1, 2, 0, 4, 5, 6, 7, 8, 9], &[0.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5]);
        let (graph, system) = (problem.task_graph(), problem.system_graph());
        graph.check().unwrap();
        system.check().unwrap();
        assert_eq!((graph.ranks(), system.slots.len(), graph.edges.len()), (3, 3, 8));
        for placement in [[0, 1, 2], [2, 0, 1], [1, 0, 2]] {
            let slot = |rank: u32| placement[rank as usize] as u32;
            let cost = |edge: &Edge| {
                edge.bytes as f64 * system.costs().between(slot(edge.source), slot(edge.destination))
            };
            let sum: f64 = graph.edges.iter().map(cost).sum();
            assert!((sum - problem.cost(&placement)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let problem = problem(&[u64::MAX; 4], &[EXACT; 4]);
        assert!(problem.cost(&[0, 1]) > 6.6e35);
    }
}
