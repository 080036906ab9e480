//! `objective = "makespan"` of `map/auto`, `map/tabu` and `map/exact`: the time at which the last task of a traced program
//! finishes.
//!
//! F sums the costs of all messages; the makespan counts only those that delay a task. `hopmap-replay` computes
//! it, and its change by an exchange, in integer ticks.
//!
//! # Algorithm
//!
//! 1. The candidates are the linear and the round-robin mapping, and those of `map/auto`, `map/hierarchical` and
//!    single linkage (`clusters.rs`) for several sums F. They differ in the weight of two ranks: that of the
//!    stage; the delay of the end that distance can cause through each of their messages; its square; and its
//!    fourth power, for programs in which all ranks wait for the slowest one.
//! 2. `map/auto` anneals the makespan from the best candidates, along the critical path (`annealing.rs`);
//!    `map/tabu` makes the best exchanges there (`tabu.rs`).
//! 3. `map/exact` proves the optimum for few ranks by branch and bound (`branching.rs`).

mod annealing;
mod branching;
mod clusters;
mod neighbourhood;
mod tabu;

use hopmap_islands::{Budget, SearchResult as Found, TimePlan};
use hopmap_model::{
    Context, ConvergencePoint, CostModel, DelayModel, Edge, Error, Levels, NetworkSpeed, SystemGraph,
    TaskDag, TaskGraph, Weight, WeightChoice,
};
use hopmap_objective::{Metric, Objective, Problem, round_robin};
use hopmap_replay::{Distance, Linear, Machine, MakespanEvaluator, ReplayProblem};

use crate::auto::Auto;
use crate::error::ProgramError;
use crate::hierarchical::Hierarchical;
use crate::mapper::{Mapper, SearchResult};
use crate::params::{HierarchicalParams, ProblemParams};
use crate::plan::{CANDIDATE, MAKESPAN_PLAN};
use clusters::clusters;

/// Evaluations per rank of the search for each candidate, which take a microsecond or less.
const CANDIDATE_EVALUATIONS: u64 = 1 << 11;
/// Default nodes and messages of all passes together, and the least and largest number of evaluations.
const WORK: u64 = 4_000_000_000;
const EVALUATIONS: [u64; 2] = [4_000, 400_000];
/// Nodes and messages of the program between looks at the clock, about one or two milliseconds.
const LOOK: u64 = 1_000_000;
/// Largest weight of two ranks.
const MOST_WEIGHT: i128 = 1 << 32;

/// Makespan of a mapping by the objective `makespan`.
pub const MAKESPAN: Metric = Metric {
    name: "makespan",
    unit: "s",
    explanation: "Time at which the last task finishes, by the objective makespan.",
};
/// Lower bound of the makespan.
pub const MAKESPAN_BOUND: Metric = Metric {
    name: "lower_bound",
    unit: "s",
    explanation: "Lower bound of the makespan of all mappings, by the objective makespan.",
};

/// A traced program and a machine.
pub(crate) struct Makespan<'a> {
    params: ProblemParams<'a>,
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    weight: Weight,
    /// The sum F by the weight of the stage, with its constraints.
    problem: Problem,
    replay: ReplayProblem,
}

/// A mapping and its makespan in ticks.
struct Candidate {
    name: &'static str,
    slots: Vec<u32>,
    makespan: i64,
}

impl<'a> Makespan<'a> {
    pub(crate) fn new(
        params: ProblemParams<'a>,
        dag: &TaskDag,
        graph: &'a TaskGraph,
        system: &'a SystemGraph,
        weight: Weight,
    ) -> Result<Self, Error> {
        dag.check()?;
        let params = params.with_objective(Objective::F);
        let problem = params.problem(graph, system, weight)?;
        let replay = ReplayProblem::new(dag, &machine(params.weight, system)?, DelayModel::Overlap)?;
        let [program, graph_ranks] = [replay.ranks(), graph.ranks()];
        if program != graph_ranks {
            return Err(ProgramError::OtherProgram { program, graph: graph_ranks }.into());
        }
        Ok(Self { params, graph, system, weight, problem, replay })
    }

    /// The candidates, the best first.
    fn candidates(&self, seed: u64, budget: &Budget, cx: &Context<'_>) -> Result<Vec<Candidate>, Error> {
        let in_turn = self.problem.in_order(&round_robin(self.system));
        let mut found = vec![("rank order", self.problem.linear()), ("turns of hosts", in_turn)];
        let most = CANDIDATE_EVALUATIONS * self.replay.ranks() as u64;
        TimePlan::begin(MAKESPAN_PLAN).words(budget.time()).iter().for_each(|line| cx.log(line));
        let time_limit_s = budget.part(&CANDIDATE).time().map(|time| time.as_secs_f64());
        let auto = Auto::with_budget(seed, Budget::new(Some(most), time_limit_s, 1)?);
        let partition_only = Some(true);
        let params =
            HierarchicalParams { seed, partition_only, time_limit_s, ..HierarchicalParams::default() };
        let partition = Hierarchical::new(&params)?;
        for problem in self.sums()? {
            found.push(("clusters", clusters(&problem)));
            if problem.distance().is_tree() {
                found.push(("partition", partition.map(&problem, cx)?.slots));
            }
            found.push(("search", auto.map(&problem, &cx.without_state())?.slots));
        }
        let mut evaluator = MakespanEvaluator::new(&self.replay);
        let judged = found.into_iter().map(|(name, slots)| (name, evaluator.makespan(&slots), slots));
        let judged = judged.map(|(name, makespan, slots)| Candidate { name, slots, makespan });
        let mut candidates: Vec<_> = judged.collect();
        let linear = candidates[0].makespan;
        candidates.sort_by_key(|candidate| candidate.makespan);
        let best = &candidates[0];
        cx.log(format_args!(
            "makespan {:.6} s in rank order, {:.6} s of the best of {} candidates, by {}",
            self.replay.real(linear),
            self.replay.real(best.makespan),
            candidates.len(),
            best.name
        ));
        Ok(candidates)
    }

    /// The sums F whose mappings are candidates, on the whole machine and on its first hosts.
    fn sums(&self) -> Result<Vec<Problem>, Error> {
        let critical = self.replay.criticality();
        let spreads = self.replay.program().channels().all.iter().map(|&channel| self.replay.spread(channel));
        let products = critical.delays.iter().zip(spreads);
        let squares: Vec<i64> = products.map(|(delay, spread)| delay.saturating_mul(spread)).collect();
        let mut sums = Vec::new();
        for system in [Some(self.system), self.packed().as_ref()].into_iter().flatten() {
            sums.push(self.params.problem(self.graph, system, self.weight)?);
            for weights in [&critical.delays, &critical.longest] {
                sums.push(self.sum(weights, system)?);
            }
            if let Some(squared) = squared(system) {
                sums.push(self.sum(&squares, &squared)?);
            }
        }
        Ok(sums)
    }

    /// The sum F with a weight for every channel, and the same constraints.
    fn sum(&self, weights: &[i64], system: &SystemGraph) -> Result<Problem, Error> {
        let channels = self.replay.program().channels().all.iter().zip(weights);
        let largest = weights.iter().copied().max().map_or(1, i128::from).max(1);
        // Rounded up, so that none is lost.
        let scaled = |weight: i64| (i128::from(weight) * MOST_WEIGHT + largest - 1) / largest;
        let mut edges: Vec<Edge> = channels
            .filter(|(channel, weight)| channel.from != channel.to && **weight > 0)
            .map(|(channel, &weight)| Edge {
                source: channel.from,
                destination: channel.to,
                messages: 1,
                bytes: scaled(weight) as u64,
            })
            .collect();
        edges.sort_unstable_by_key(|edge| (edge.source, edge.destination));
        edges.dedup_by(|next, kept| {
            let is_same = (next.source, next.destination) == (kept.source, kept.destination);
            if is_same {
                kept.bytes += next.bytes;
            }
            is_same
        });
        let graph = TaskGraph { processes: self.graph.processes.clone(), edges, ..TaskGraph::default() };
        self.params.problem(&graph, system, Weight::Bytes)
    }

    /// The first hosts of a tree, with room for all ranks: a partition for the whole machine would spread them. None
    /// without free hosts, and with constraints, which may name any host.
    fn packed(&self) -> Option<SystemGraph> {
        let CostModel::Levels(levels) = &self.system.cost else { return None };
        let ends = self.system.hosts().map(|(_, first, slots)| (first + slots) as usize);
        let slots = ends.filter(|&end| end >= self.replay.ranks()).min()?;
        if slots == self.system.slots.len() || self.problem.is_constrained() {
            return None;
        }
        let groups = levels.groups.iter().map(|groups| groups[..slots].to_vec()).collect();
        let cost = CostModel::Levels(Levels { costs: levels.costs.clone(), groups });
        let slots = self.system.slots[..slots].to_vec();
        Some(SystemGraph { slots, cost, ..self.system.clone() })
    }

    /// Whether a rank may move from one slot to another, on which there may be a rank that takes its place.
    fn admits(&self, other: Option<u32>, rank: u32, slot: u32, here: u32) -> bool {
        slot != here
            && self.problem.admits(rank, slot)
            && other.is_none_or(|other| self.problem.admits(other, here))
    }

    /// Nodes and messages of a pass over the program.
    fn size(&self) -> u64 {
        ((self.replay.program().nodes() + self.replay.program().message_count()) as u64).max(1)
    }

    /// Evaluations of an island without limits.
    fn default_evaluations(&self) -> u64 {
        (WORK / self.size()).clamp(EVALUATIONS[0], EVALUATIONS[1])
    }

    /// Passes over the program between looks at the clock.
    fn passes_between_looks(&self) -> u64 {
        (LOOK / self.size()).max(1)
    }

    /// The result of a search, with a lower bound in ticks.
    fn result(&self, found: Found<Vec<u32>>, bound: i64) -> SearchResult {
        let bound = bound.min(found.best.cost);
        let metrics = [(MAKESPAN, found.best.cost), (MAKESPAN_BOUND, bound)];
        let metrics = metrics.map(|(metric, ticks)| (metric.name.to_owned(), self.replay.real(ticks)));
        let point = |point: &hopmap_islands::Point| ConvergencePoint {
            island: point.island,
            evaluations: point.evaluations,
            cost: self.replay.real(point.cost),
        };
        SearchResult {
            convergence: found.convergence.iter().map(point).collect(),
            evaluations: found.evaluations,
            complete: found.complete,
            metrics: metrics.into(),
            slots: found.best.solution,
            phases: None,
        }
    }
}

/// The machine with squared costs, beyond the least one.
fn squared(system: &SystemGraph) -> Option<SystemGraph> {
    let CostModel::Levels(levels) = &system.cost else { return None };
    let least = levels.costs.first()?;
    let costs = levels.costs.iter().map(|cost| (cost - least) * (cost - least)).collect();
    let cost = CostModel::Levels(Levels { costs, groups: levels.groups.clone() });
    Some(SystemGraph { cost, ..system.clone() })
}

/// The times of messages: latency and bandwidth of the weight `time` per unit of cost if they are given, otherwise
/// those of the links.
fn machine(weight: WeightChoice, system: &SystemGraph) -> Result<Machine, Error> {
    if let WeightChoice::Time { time: NetworkSpeed { latency_s, bandwidth_bytes_per_s: Some(bandwidth) } } =
        weight
    {
        let linear = Linear::new(latency_s.unwrap_or(0.0), bandwidth)?;
        return Ok(Machine::of_system(system, None, linear, Some(Distance::Costs))?);
    }
    let has_rates = system.links.iter().all(|link| link.bandwidth_bytes_per_s.is_some());
    if system.links.is_empty() || !has_rates {
        return Err(ProgramError::NoRates.into());
    }
    Ok(Machine::of_system(system, None, Linear::FREE, Some(Distance::Links))?)
}
