//! Training programs: the communication of tensor, context, expert, data and pipeline parallelism.
//!
//! # Method
//!
//! `groups.rs` numbers ranks as Megatron-LM does, `model.rs` computes the bytes of every group from the size of
//! the model, and `messages.rs` expands collective operations. A step is a sequence of phases, one per kind of
//! group: `tp`, `cp`, `ep`, `pp`, `dp`, `edp`. NCCL splits the vector of a ring or tree into chunks and
//! pipelines them, so in the program every pair of neighbours has one message per phase with all bytes of the
//! step, and all of them share the network at once. What is predicted is the time of a step's communication
//! without overlap by computation, and without the latency of single chunks. The communication matrix counts
//! the real messages.

mod groups;
mod messages;
mod model;
mod params;

pub use groups::RankOrder;
pub use params::{GroupAlgorithm, GroupAlgorithms, GroupBytes, GroupSizes, ModelSize, ParallelParams};

use std::collections::BTreeMap;

use hopmap_model::{Edge, Envelope, Phase, Process, Program, ProgramBuilder, TaskGraph};

use crate::error::{MAX_NEIGHBOURS, TrainingError};
use messages::{GroupOperation, Transfer};

/// The operations of all groups of a kind in one step.
#[derive(Debug, Clone, PartialEq)]
struct GroupPhase {
    /// Kind of the groups.
    name: &'static str,
    /// Ranks of each group, in the order of their ranks in it.
    groups: Vec<Vec<u32>>,
    operations: Vec<GroupOperation>,
}

/// Communication matrix and program of one training step.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingStep {
    /// The matrix, with a phase per kind of group.
    pub graph: TaskGraph,
    /// The program.
    pub program: Program,
}

/// One step of the training job of the parameters.
pub fn training_step(params: &ParallelParams) -> Result<TrainingStep, TrainingError> {
    let (order, phases) = check(params)?;
    let ranks = order.ranks();
    let mut builder = ProgramBuilder::new(ranks);
    let mut all = BTreeMap::new();
    let mut phases_of_graph = Vec::new();
    for (tag, phase) in (0..).zip(&phases) {
        let mut edges = BTreeMap::new();
        for operation in &phase.operations {
            phase.add(operation, tag, &mut edges, &mut builder)?;
        }
        for edge in edges.values() {
            add(&mut all, *edge)?;
        }
        phases_of_graph.push(Phase {
            name: Some(phase.name.to_owned()),
            compute_s: vec![None; ranks as usize],
            edges: edges.into_values().collect(),
            ..Phase::default()
        });
    }
    let total = |amount: fn(&Edge) -> u64| all.values().map(|edge| u128::from(amount(edge))).sum::<u128>();
    if total(|edge| edge.bytes).max(total(|edge| edge.messages)) > u128::from(u64::MAX) {
        return Err(TrainingError::too_many_bytes());
    }
    let process =
        |rank| Process { host: Some(format!("node{}", rank / params.gpus_per_host)), ..Process::default() };
    let graph = TaskGraph {
        processes: (0..ranks).map(process).collect(),
        edges: all.into_values().collect(),
        phases: phases_of_graph,
        ..TaskGraph::default()
    };
    let program = builder.finish().map_err(|error| {
        TrainingError::new(format!("the program is inconsistent: {error}"), "report this as a defect")
    })?;
    Ok(TrainingStep { graph, program })
}

/// Checks the parameters; the numbering of ranks and the phases of a step.
fn check(params: &ParallelParams) -> Result<(RankOrder, Vec<GroupPhase>), TrainingError> {
    let order = RankOrder::new(&params.sizes, &params.order)?;
    let ranks = order.ranks();
    if params.gpus_per_host == 0
        || (ranks > params.gpus_per_host && !ranks.is_multiple_of(params.gpus_per_host))
    {
        let problem = format!("{ranks} ranks do not fill hosts of {} GPUs", params.gpus_per_host);
        return Err(TrainingError::new(problem, "set `gpus_per_host`, or another size of a group"));
    }
    let bytes = match (&params.bytes, &params.model) {
        (Some(bytes), None) => bytes.operations(params.algorithms),
        (None, Some(model)) => model.operations(params)?,
        _ => {
            let problem = "the bytes of groups are given by either `bytes` or `model`";
            return Err(TrainingError::new(problem, "set one: `bytes = { dp = 1000000000 }`"));
        }
    };
    let mut phases = Vec::new();
    let mut pairs = 0u64;
    for (name, mut operations) in bytes {
        let groups = order.groups(name);
        let members = groups.first().map_or(0, Vec::len);
        operations.retain(|operation| operation.bytes > 0 && operation.calls > 0);
        if members < 2 || operations.is_empty() {
            continue;
        }
        for operation in &operations {
            pairs = pairs.saturating_add(u64::from(ranks) * operation.pattern.neighbours(members as u64));
        }
        phases.push(GroupPhase { name, groups, operations });
    }
    if pairs > MAX_NEIGHBOURS {
        let problem = format!("the groups have {pairs} pairs of neighbours, more than {MAX_NEIGHBOURS}");
        return Err(TrainingError::new(problem, "reduce `ep`, whose members all send to each other"));
    }
    Ok((order, phases))
}

/// Checks the parameters.
pub(crate) fn check_params(params: &ParallelParams) -> Result<(), TrainingError> {
    check(params).map(drop)
}

impl GroupPhase {
    /// Adds the messages of an operation to the matrix and to the program, round by round.
    fn add(
        &self,
        operation: &GroupOperation,
        tag: u32,
        edges: &mut BTreeMap<(u32, u32), Edge>,
        builder: &mut ProgramBuilder,
    ) -> Result<(), TrainingError> {
        let members = self.groups.first().map_or(0, Vec::len) as u32;
        for round in operation.pattern.rounds(members, operation.bytes)? {
            for group in &self.groups {
                for &Transfer { source, destination, messages, bytes } in &round {
                    let [source, destination] = [source, destination].map(|member| group[member as usize]);
                    let edge = scaled(Edge { source, destination, messages, bytes }, operation.calls)?;
                    add(edges, edge)?;
                    let to = |peer| Envelope { peer, tag, communicator: 0 };
                    builder.irecv(destination, to(source), edge.bytes);
                    builder.isend(source, to(destination), edge.bytes);
                }
                group.iter().for_each(|&rank| builder.waitall(rank));
            }
        }
        Ok(())
    }
}

fn scaled(edge: Edge, calls: u64) -> Result<Edge, TrainingError> {
    let products = edge.messages.checked_mul(calls).zip(edge.bytes.checked_mul(calls));
    let (messages, bytes) = products.ok_or_else(TrainingError::too_many_bytes)?;
    Ok(Edge { messages, bytes, ..edge })
}

fn add(edges: &mut BTreeMap<(u32, u32), Edge>, edge: Edge) -> Result<(), TrainingError> {
    let sum = edges.entry(edge.pair()).or_insert(Edge { messages: 0, bytes: 0, ..edge });
    let sums = sum.messages.checked_add(edge.messages).zip(sum.bytes.checked_add(edge.bytes));
    (sum.messages, sum.bytes) = sums.ok_or_else(TrainingError::too_many_bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests;
