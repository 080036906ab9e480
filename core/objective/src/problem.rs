//! A mapping problem with integer weights and costs.

use std::sync::Arc;

use hopmap_model::{NodeState, Paths, SystemGraph, TaskGraph, Weight};

use crate::adjacency::{Adjacency, Directed, Neighbour};
use crate::baseline::{linear, random};
use crate::constraints::{Admission, Constraints};
use crate::dense::Compact;
use crate::distance::Distance;
use crate::error::{ObjectiveError, check_size};
use crate::forms::{Form, Sides, both_ways, neighbours, with_hops};
use crate::objective::{HOPS, LOADS, Objective, OnlyMaximum, Terms};
use crate::scale::{Room, Scales, check_weight};
use crate::traffic::{LinkCosts, Traffic};

/// Programs are sparse if a rank exchanges messages with at most one in this number of the ranks that exchange
/// any.
const SPARSE: usize = 8;

/// A process mapping problem: communicating ranks, slots with costs, and an objective to minimise over all
/// mappings.
///
/// F(φ) = `Σ_ij` `w_ij` · c(φ(i), φ(j)) over ordered pairs (GraphHunter, equation 1: a quadratic assignment
/// problem). Weights and costs are integers; their products are [`scale`](Self::scale) times the real ones.
/// Tree costs are symmetric, so the weights of both directions are added. For a cost matrix, the costs of
/// both directions are added if the weights are symmetric. If neither is symmetric, or ranks pay to send to
/// themselves, every ordered pair is kept. Copies share what does not depend on constraints and objective.
#[derive(Debug, Clone)]
pub struct Problem {
    neighbours: Arc<Adjacency>,
    distance: Arc<Distance>,
    /// Weights and costs of both directions, if neither is symmetric.
    pub(crate) directed: Option<Arc<Directed>>,
    /// The same in small integers, if that is faster.
    pub(crate) compact: Option<Arc<Compact>>,
    /// Ranks whose slot affects the cost.
    movable: Vec<u32>,
    /// Constraints, if any.
    pub(crate) admission: Option<Admission>,
    /// Terms in addition to or instead of the quadratic form.
    pub(crate) terms: Option<Box<Terms>>,
    /// Problems whose costs are the additional sums of hops.
    pub(crate) hops: [Option<Arc<Self>>; HOPS],
    /// Upper bound of the quadratic form.
    bound: f64,
    slots: usize,
    scale: f64,
}

/// Weights and costs of ordered pairs, those of a rank or a slot with itself included.
#[derive(Debug)]
pub struct OrderedPairs<'p> {
    /// Source, destination and weight.
    pub weights: Vec<(u32, u32, i64)>,
    /// Costs between all slots, row by row.
    pub costs: &'p [i64],
}

impl Problem {
    /// Creates a problem with objective F from a program and a machine, scaled to integers.
    ///
    /// Integers are unchanged. Other values are multiplied by a power of ten that keeps nine digits, or as
    /// many as fit 64 bits.
    pub fn new(graph: &TaskGraph, system: &SystemGraph, weight: Weight) -> Result<Self, ObjectiveError> {
        Self::quadratic(graph, system, weight, Room::All)
    }

    /// Creates a problem with any objective. Hop-bytes and link loads need a machine with links.
    ///
    /// F and T use the weights and costs of [`new`](Self::new). If the objective is a maximum (T, the load of
    /// the busiest link, or both), ties are broken by the related sum, F or hop-bytes.
    pub fn with_objective(
        graph: &TaskGraph,
        system: &SystemGraph,
        weight: Weight,
        objective: &Objective,
    ) -> Result<Self, ObjectiveError> {
        objective.check()?;
        let hops = objective.hops();
        if let Some(factor) = objective.only_sum() {
            let mut problem = match hops.iter().find(|sum| sum.0 > 0.0) {
                None => Self::new(graph, system, weight)?,
                Some(&(_, weight)) => Self::of_hops(graph, system, weight)?,
            };
            problem.scale /= factor;
            return Ok(problem);
        }
        // If no costs count, the quadratic form is the first sum of hops that does, or any with factor zero.
        let first = hops.iter().position(|sum| sum.0 > 0.0).unwrap_or(0);
        let (factor, own) = match objective.counts_costs() {
            true => (objective.f, None),
            false => (hops[first].0, Some(first)),
        };
        let mut problem = match own {
            None => Self::quadratic(graph, system, weight, Room::Shared)?,
            Some(own) => Self::of_hops(graph, system, hops[own].1)?,
        };
        for (index, &(factor, weight)) in hops.iter().enumerate() {
            if factor > 0.0 && own != Some(index) {
                problem.hops[index] = Some(Arc::new(Self::of_hops(graph, system, weight)?));
            }
        }
        let (mut traffic, mut loads) = (None, [const { None }; LOADS]);
        if objective.loads().iter().any(|(weight, _)| *weight > 0.0) {
            let paths = Paths::new(system).ok_or_else(ObjectiveError::no_links)?;
            let found = Traffic::new(graph, system, paths)?;
            let room = if objective.is_single() { Room::Links } else { Room::Shared };
            for (costs, (weight, unit)) in loads.iter_mut().zip(objective.loads()) {
                *costs =
                    (weight > 0.0).then(|| LinkCosts::new(unit, system, found.total, room)).transpose()?;
            }
            traffic = Some(Arc::new(found));
        }
        let size = |problem: &Self| [problem.scale, problem.bound];
        let sizes = problem.hops.each_ref().map(|hops| hops.as_deref().map(size));
        let terms = Terms::new(objective, factor, size(&problem), sizes, traffic, loads)?;
        let follows_from_costs = !problem.counts_hops_beside() && terms.traffic.as_ref().is_none();
        if !follows_from_costs && !problem.groups_are_inside_hosts(system) {
            problem.distance = Arc::new(problem.distance.with_single_slots());
        }
        // Weights differ between terms: a rank may have weight in one of them only.
        let concerned = |rank: &u32| {
            problem.matters(*rank)
                || problem.hops.iter().flatten().any(|hops| hops.matters(*rank))
                || terms.traffic.as_ref().is_some_and(|traffic| traffic.concerns(*rank))
        };
        problem.movable =
            (0..problem.ranks() as u32).filter(|_| problem.slots > 1).filter(concerned).collect();
        problem.terms = Some(Box::new(terms));
        Ok(problem)
    }

    /// The problem whose cost is a sum of hops: hop-bytes if weights are bytes.
    fn of_hops(graph: &TaskGraph, system: &SystemGraph, weight: Weight) -> Result<Self, ObjectiveError> {
        system.check()?;
        let paths = Paths::new(system).ok_or_else(ObjectiveError::no_links)?;
        Self::quadratic(graph, &with_hops(system, &paths), weight, Room::Shared)
    }

    /// Whether there are additional sums of hops.
    fn counts_hops_beside(&self) -> bool {
        self.hops.iter().any(Option::is_some)
    }

    /// Whether all slots of an innermost group are on one host.
    fn groups_are_inside_hosts(&self, system: &SystemGraph) -> bool {
        let host = |slot: u32| system.slots[slot as usize].host;
        let order = self.distance.order();
        let is_inside =
            |slot: u32| order[self.distance.group(0, slot)].iter().all(|&other| host(other) == host(slot));
        // It suffices to compare adjacent slots of every group in slot order.
        self.distance.levels() > 1
            && order
                .iter()
                .all(|&slot| order[self.distance.group(0, slot)].first() != Some(&slot) || is_inside(slot))
    }

    fn quadratic(
        graph: &TaskGraph,
        system: &SystemGraph,
        weight: Weight,
        room: Room,
    ) -> Result<Self, ObjectiveError> {
        graph.check()?;
        system.check()?;
        check_weight(weight)?;
        check_hosts(system)?;
        let (ranks, slots) = (graph.ranks(), system.slots.len());
        check_size(ranks, slots)?;
        // Seconds as the bytes that pass in them: integers if the latency is that of whole bytes, so that dense
        // problems fit the vector kernels.
        let unit = match weight {
            Weight::Time { bandwidth_bytes_per_s, .. } => bandwidth_bytes_per_s,
            Weight::Bytes | Weight::Messages => 1.0,
        };
        let weights: Vec<f64> = graph.edges.iter().map(|edge| unit * weight.of(edge)).collect();
        let form = Form::new(system)?;
        let (sides, costs) = form.costs(graph, &weights, slots);
        let scales = Scales::new(&weights, &costs, room)?;
        let largest = costs.iter().copied().fold(0.0, f64::max) * scales.cost;
        let costs: Vec<i64> = costs.iter().map(|cost| (cost * scales.cost).round() as i64).collect();
        let edges: Vec<_> = graph
            .edges
            .iter()
            .zip(&weights)
            .map(|(edge, weight)| (edge.source, edge.destination, (weight * scales.weight).round() as i64))
            .filter(|edge| edge.2 > 0)
            .collect();
        let bound = edges.iter().map(|edge| edge.2 as f64).sum::<f64>() * (largest + 1.0);
        let (directed, costs) = match sides {
            Sides::Neither => {
                let sums = both_ways(&costs, slots);
                (Some(Directed::new(ranks, &edges, costs, slots)), sums)
            }
            _ => (None, costs),
        };
        let neighbours = neighbours(ranks, &edges, sides);
        let mut distance = form.distance(costs, slots)?;
        let talking = (0..ranks as u32).filter(|&rank| !neighbours.of(rank).is_empty()).count();
        if neighbours.neighbours.len() * SPARSE <= talking * talking {
            distance.find_near();
        }
        let compact = match &directed {
            Some(directed) => Compact::directed(directed),
            None => Compact::new(&neighbours, &distance),
        };
        let mut problem = Self {
            neighbours: Arc::new(neighbours),
            distance: Arc::new(distance),
            directed: directed.map(Arc::new),
            compact: compact.map(Arc::new),
            movable: Vec::new(),
            admission: None,
            terms: None,
            hops: Default::default(),
            bound,
            slots,
            scale: unit * scales.weight * scales.cost,
        };
        problem.movable = (0..ranks as u32).filter(|&rank| problem.matters(rank)).collect();
        Ok(problem)
    }

    /// Whether the slot of a rank affects the cost.
    fn matters(&self, rank: u32) -> bool {
        let pays_itself = self.directed.as_ref().is_some_and(|directed| directed.own(rank) > 0);
        self.slots > 1 && (!self.neighbours(rank).is_empty() || pays_itself)
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.neighbours.ranks()
    }

    /// Number of slots, at least the number of ranks.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The ranks with which a rank exchanges messages, sorted, without itself.
    #[must_use]
    #[inline]
    pub fn neighbours(&self, rank: u32) -> &[Neighbour] {
        self.neighbours.of(rank)
    }

    /// The ranks whose slot affects the cost, sorted: those with neighbours, and those that pay to send to
    /// themselves.
    #[must_use]
    pub fn movable(&self) -> &[u32] {
        &self.movable
    }

    /// The cost between slots.
    #[must_use]
    pub fn distance(&self) -> &Distance {
        &self.distance
    }

    /// Whether a rank may use a slot.
    #[inline]
    #[must_use]
    pub fn admits(&self, rank: u32, slot: u32) -> bool {
        self.admission.as_ref().is_none_or(|admission| admission.admits(rank, slot))
    }

    /// Whether the cost is F or another sum over pairs of ranks, so that deltas are sums as well.
    #[must_use]
    pub fn is_quadratic(&self) -> bool {
        self.terms.is_none()
    }

    /// The problem with a norm of exponent 2^`doublings` in place of every maximum: it changes with every rank
    /// or link, where the maximum is flat. `None` if the objective has no maximum.
    #[must_use]
    pub fn smoothed(&self, doublings: u32) -> Option<Self> {
        let terms = self.terms.as_ref()?.smoothed(doublings)?;
        Some(Self { terms: Some(Box::new(terms)), ..self.clone() })
    }

    /// The maximum that the cost consists of, apart from ties; `None` if there is a sum or another maximum.
    #[must_use]
    pub fn only_maximum(&self) -> Option<OnlyMaximum<'_>> {
        self.terms.as_ref()?.only_maximum()
    }

    /// Whether ranks are pinned, hosts forbidden or slots closed.
    #[must_use]
    pub fn is_constrained(&self) -> bool {
        self.admission.is_some()
    }

    /// Whether the cost is the sum over [`neighbours`](Self::neighbours) of weight times
    /// [`distance`](Self::distance) without constraints, which external solvers support.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_sum() && self.directed.is_none()
    }

    /// Whether the cost is a sum over pairs of ranks without constraints.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.is_quadratic() && !self.is_constrained()
    }

    /// The weights and costs of ordered pairs, if neither weights nor costs are symmetric, or if ranks pay to
    /// send to themselves.
    #[must_use]
    pub fn ordered_pairs(&self) -> Option<OrderedPairs<'_>> {
        let directed = self.directed.as_ref()?;
        Some(OrderedPairs { weights: directed.entries().collect(), costs: &directed.costs })
    }

    /// Whether every exchange that lowers the cost moves one of its ranks closer to a neighbour.
    #[must_use]
    pub fn is_about_closeness(&self) -> bool {
        self.distance.is_tree()
            && !self.counts_hops_beside()
            && self.terms.as_ref().is_none_or(|terms| terms.traffic.as_ref().is_none())
    }

    /// The same problem without dense evaluation, for comparison; costs are equal.
    #[must_use]
    pub fn neighbour_by_neighbour(mut self) -> Self {
        self.compact = None;
        self
    }

    /// Whether exchanges are evaluated by dense rows.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        self.compact.is_some()
    }

    /// Approximate memory of an [`Assignment`](crate::Assignment) in bytes, without the state of links.
    #[must_use]
    pub fn mapping_bytes(&self) -> u64 {
        let lists = 32 * self.slots() as u64;
        lists + self.compact.as_ref().map_or(0, |compact| compact.mapping_bytes())
    }

    /// Scale of integer costs: one unit of F is this many units here. For objectives that are not sums, see
    /// [`real`](Self::real).
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Objective value of an integer cost.
    #[must_use]
    pub fn real(&self, cost: i64) -> f64 {
        match &self.terms {
            None => cost as f64 / self.scale,
            Some(terms) => terms.real(cost),
        }
    }

    /// The same problem with constraints, which must refer to ranks, slots and hosts of the program and
    /// `system` and be satisfiable.
    pub fn with_constraints(
        mut self,
        constraints: &Constraints,
        system: &SystemGraph,
    ) -> Result<Self, ObjectiveError> {
        self.admission = match constraints.is_empty() {
            true => None,
            false => Some(Admission::new(constraints, system, self.ranks())?),
        };
        Ok(self)
    }

    /// Repairs a mapping so that it satisfies the constraints and changes little: ranks pinned to a slot come
    /// first, then those pinned to a host, then all others. Ranks on allowed slots stay; others take the next
    /// free slot, cyclically, or the first free one of their host.
    #[must_use]
    pub fn admit(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.admission {
            None => slots,
            Some(admission) => admission.admit(&slots),
        }
    }

    /// Linear mapping under constraints: pinned ranks first, the others in order on the remaining slots.
    #[must_use]
    pub fn linear(&self) -> Vec<u32> {
        self.in_order(&linear(self.slots))
    }

    /// Maps ranks in order to an order of all slots, without those of pinned ranks and forbidden hosts.
    #[must_use]
    pub fn in_order(&self, order: &[u32]) -> Vec<u32> {
        let Some(admission) = &self.admission else { return order[..self.ranks()].to_vec() };
        let open = admission.open(order);
        admission.deal(&open, &open)
    }

    /// Random mapping: all mappings that satisfy the constraints are equally likely; seeded by
    /// [`hopmap_model::seed_stream`].
    #[must_use]
    pub fn random(&self, seed: [u8; 32]) -> Vec<u32> {
        let Some(admission) = &self.admission else { return random(self.ranks(), self.slots, seed) };
        let open = admission.open(&linear(self.slots));
        let shuffled = |seed| -> Vec<u32> {
            random(open.len(), open.len(), seed).into_iter().map(|at| open[at as usize]).collect()
        };
        // The slots left by pinned ranks are drawn again.
        let mut other = seed;
        other[0] ^= 1;
        admission.deal(&shuffled(seed), &shuffled(other))
    }

    /// Whether a rank is pinned to a slot, so that its exchanges are never admitted.
    #[must_use]
    pub fn is_fixed(&self, rank: u32) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.is_fixed(rank))
    }
}

/// Refuses slots on hosts that are down.
fn check_hosts(system: &SystemGraph) -> Result<(), ObjectiveError> {
    let nodes = system.hosts().map(|(node, ..)| &system.nodes[node as usize]);
    let mut down = nodes.filter(|node| node.state == NodeState::Down);
    let Some(first) = down.next() else { return Ok(()) };
    let problem = match down.count() {
        0 => format!("host `{}` is down and has slots", first.name),
        more => format!("host `{}` and {more} more are down and have slots", first.name),
    };
    let help = "exclude hosts that are down: put `select/nodes` between the machine and the mapper";
    Err(ObjectiveError::new(problem, help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Edge, Levels, Node, Process, Slot};

    fn graph(ranks: usize, edges: &[(u32, u32, u64)]) -> TaskGraph {
        let edge = |&(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        TaskGraph {
            processes: vec![Process::default(); ranks],
            edges: edges.iter().map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    fn pairs_of_cores(hosts: u32, costs: [f64; 2]) -> SystemGraph {
        let slots = 2 * hosts;
        let host = |host| Node::host(format!("h{host}"));
        SystemGraph {
            nodes: (0..hosts).map(host).collect(),
            routing: hopmap_model::Routing::default(),
            links: Vec::new(),
            slots: (0..slots).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: costs.to_vec(),
                groups: vec![(0..slots).map(|slot| slot / 2).collect(), vec![0; slots as usize]],
            }),
            calibration: Vec::new(),
        }
    }

    #[test]
    fn both_directions_count_and_self_messages_do_not() {
        let graph = graph(3, &[(0, 1, 5), (1, 0, 7), (1, 1, 1000), (2, 0, 1)]);
        let problem = Problem::new(&graph, &pairs_of_cores(2, [1.0, 10.0]), Weight::Bytes).unwrap();
        assert_eq!(
            problem.neighbours(0),
            [Neighbour { rank: 1, weight: 12 }, Neighbour { rank: 2, weight: 1 }]
        );
        assert_eq!(problem.cost(&[0, 1, 2]), 12 + 10);
        assert!((problem.scale() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn real_costs_follow_from_scaled_ones() {
        let graph = graph(2, &[(0, 1, 4)]);
        let weight = Weight::Time { latency_s: 2.5e-6, bandwidth_bytes_per_s: 1e9 };
        let problem = Problem::new(&graph, &pairs_of_cores(1, [0.5, 1.0]), weight).unwrap();
        assert!((problem.real(problem.cost(&[0, 1])) - 0.5 * 2.504e-6).abs() < 1e-18);
        // 2504 bytes pass in the time of the message.
        assert_eq!(problem.neighbours(0), [Neighbour { rank: 1, weight: 2504 }]);
    }

    #[test]
    fn infeasible_problems_are_refused() {
        let machine = pairs_of_cores(1, [1.0, 10.0]);
        let message = |graph: &TaskGraph, machine: &SystemGraph| {
            Problem::new(graph, machine, Weight::Bytes).unwrap_err().to_string()
        };
        assert_eq!(message(&graph(0, &[]), &machine), "the task graph has no processes");
        assert_eq!(message(&graph(3, &[]), &machine), "3 ranks do not fit on 2 slots");
        assert!(message(&graph(2, &[(0, 1, u64::MAX)]), &machine).contains("does not fit"));
        assert!(message(&graph(2, &[(0, 5, 1)]), &machine).contains("refers to rank 5"));
        let mut down = pairs_of_cores(3, [1.0, 10.0]);
        down.nodes[1].state = NodeState::Down;
        assert_eq!(message(&graph(2, &[]), &down), "host `h1` is down and has slots");
        down.nodes[2].state = NodeState::Down;
        assert_eq!(message(&graph(2, &[]), &down), "host `h1` and 1 more are down and have slots");
    }
}
