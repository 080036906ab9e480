//! The program of all ranks on a machine, in integer ticks, and the makespan of a placement.
//!
//! A placement is the slot of every rank, without duplicates. Evaluating one takes a pass over the
//! contracted [`Program`]; for exchanges see [`ExchangeEvaluator`](crate::ExchangeEvaluator).

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{DelayModel, Mapping, Processor, Schedule, ScheduledTask, TaskDag};

use crate::costs::{Costs, MessageTimes, Slots, Work};
use crate::delays::{Delays, SizedMessages, TickScale};
use crate::error::{ProblemError, Refusal};
use crate::machine::Machine;
use crate::pass::{Criticality, Pass, Tails};
use crate::program::{Channel, NONE, Program, Uncontracted};

/// Maximum size of the table of node times by speed.
const MAX_WORK: usize = 1 << 26;

/// The program of all ranks on a machine.
#[derive(Debug)]
pub struct ReplayProblem {
    pub(crate) program: Program,
    pub(crate) costs: Costs,
    pub(crate) criticality: Criticality,
    tails: Tails,
    scale: TickScale,
}

impl ReplayProblem {
    /// The problem of a valid program in which every task belongs to a rank.
    pub fn new(dag: &TaskDag, machine: &Machine, model: DelayModel) -> Result<Self, ProblemError> {
        let rank = rank_of_tasks(dag)?;
        let (ranks, slots) = (dag.ranks(), machine.processors.len());
        if ranks as usize > slots {
            let problem = format!("{ranks} ranks do not fit on {slots} processors: every rank needs its own");
            let help = "connect a larger machine; `schedule/auto` with `ranks = \"free\"` places every task independently";
            return Err(Refusal::new(problem, help).into());
        }
        let messages = SizedMessages::new(dag, machine);
        let scale = TickScale::new(dag, &messages, machine)?;
        let times = Delays::new(machine, &messages.sizes, model, scale);
        let times = MessageTimes::new(times, messages.sizes.len(), model, slots as u32);
        let slots = Slots::new(machine, scale);
        let (tasks, speeds) = (dag.tasks.len(), slots.speeds());
        if tasks.saturating_mul(speeds) > MAX_WORK {
            let problem = format!("{tasks} tasks at {speeds} different speeds exceed the memory limit");
            return Err(Refusal::new(problem, "use fewer different `speeds`").into());
        }
        let program = Program::contract(&Uncontracted {
            dag,
            rank: &rank,
            ranks: ranks as usize,
            messages: &messages,
            silent: &times.silent(),
            is_monotone: machine.network.is_monotone(),
            work: &slots.least_work(dag, scale),
        });
        let work = Work::new(&program, dag, &slots, scale);
        let costs = Costs { slots, work, messages: times };
        let tails = Tails::new(&program, &costs);
        let criticality = Criticality::new(&program, &costs, &tails);
        Ok(Self { program, costs, criticality, tails, scale })
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.program.ranks()
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.costs.slots.len()
    }

    /// The contracted program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The delay model.
    #[must_use]
    pub fn model(&self) -> DelayModel {
        self.costs.messages.model
    }

    /// Message times between slots.
    #[must_use]
    pub fn delays(&self) -> &Delays {
        &self.costs.messages.delays
    }

    /// Influence of messages on the makespan.
    #[must_use]
    pub fn criticality(&self) -> &Criticality {
        &self.criticality
    }

    /// Converts ticks to the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.scale.real(ticks)
    }

    /// A lower bound of the makespan of all placements: the longest chain of work, each at the fastest
    /// speed, and of messages, each between the nearest two slots. The work of every rank is such a chain.
    #[must_use]
    pub fn lower_bound(&self) -> i64 {
        self.costs.slots.earliest + self.tails.longest()
    }

    /// Time of the messages of a channel in a placement.
    #[inline]
    #[must_use]
    pub fn delay(&self, channel: Channel, slots: &[u32]) -> i64 {
        self.delays().ticks(channel.size, slots[channel.from as usize], slots[channel.to as usize])
    }

    /// Minimum time of the messages of a channel over all placements.
    #[inline]
    #[must_use]
    pub fn least_delay(&self, channel: Channel) -> i64 {
        self.costs.messages.least(channel)
    }

    /// Maximum increase of the time of a channel's messages due to distance.
    #[must_use]
    pub fn spread(&self, channel: Channel) -> i64 {
        self.costs.messages.spread(channel)
    }

    /// A slot as fast as the fastest and available as early as the first, for ranks that a partial placement
    /// does not place yet.
    #[must_use]
    pub fn ideal_slot(&self) -> u32 {
        self.slots() as u32
    }

    /// Start time of a slot in ticks.
    #[must_use]
    pub fn available(&self, slot: u32) -> i64 {
        self.costs.slots.available[slot as usize]
    }

    /// Index of the speed of a slot, the fastest first.
    #[must_use]
    pub fn speed(&self, slot: u32) -> u32 {
        self.costs.slots.speed_of[slot as usize]
    }

    /// Whether all slots are equally fast and available at the same time.
    #[must_use]
    pub fn has_equal_slots(&self) -> bool {
        let slots = &self.costs.slots;
        slots.speeds() == 1 && slots.available.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Time of a task on a slot.
    pub(crate) fn task_ticks(&self, work: f64, slot: u32) -> i64 {
        self.scale.ticks(work * self.costs.slots.pace(slot))
    }

    /// The surrogate objective of a channel in a placement: the squared delays of its messages that can
    /// delay the end.
    #[inline]
    #[must_use]
    pub fn surrogate_of(&self, number: u32, slots: &[u32]) -> i64 {
        let channel = self.program.channels.all[number as usize];
        self.criticality.surrogate(number as usize, self.delay(channel, slots) - self.least_delay(channel))
    }

    /// The surrogate objective of a placement. Exchanges update it through the channels of the moved ranks,
    /// without a pass over the program. It distinguishes placements of equal makespan.
    #[must_use]
    pub fn surrogate(&self, slots: &[u32]) -> i64 {
        (0..self.program.channels.all.len() as u32).map(|number| self.surrogate_of(number, slots)).sum()
    }

    pub(crate) fn pass(&self) -> Pass<'_> {
        Pass::new(&self.program, &self.costs, &self.tails)
    }

    /// Sets the number of nodes between two checks of the limit.
    #[cfg(test)]
    pub(crate) fn check_every(&mut self, nodes: usize) {
        self.tails = Tails::with_block(&self.program, &self.costs, nodes);
    }
}

/// Computes makespans of placements.
#[derive(Debug)]
pub struct MakespanEvaluator<'p> {
    problem: &'p ReplayProblem,
    pass: Pass<'p>,
    delays: Vec<i64>,
}

impl<'p> MakespanEvaluator<'p> {
    /// An evaluator with memory for one placement.
    #[must_use]
    pub fn new(problem: &'p ReplayProblem) -> Self {
        Self { problem, pass: problem.pass(), delays: Vec::with_capacity(problem.program.channels.all.len()) }
    }

    /// The makespan in ticks, with every rank on its slot.
    #[must_use]
    pub fn makespan(&mut self, slots: &[u32]) -> i64 {
        let problem = self.problem;
        self.makespan_within(slots, i64::MAX, |channel| problem.delay(channel, slots)).unwrap_or(i64::MAX)
    }

    /// The makespan unless it exceeds a limit. `delay` gives the message time of every channel, such as the
    /// minimum for ranks on the [ideal slot](ReplayProblem::ideal_slot).
    pub fn makespan_within(
        &mut self,
        slots: &[u32],
        limit: i64,
        delay: impl FnMut(Channel) -> i64,
    ) -> Option<i64> {
        self.delays.clear();
        self.delays.extend(self.problem.program.channels.all.iter().copied().map(delay));
        self.pass.run(slots, &self.delays, limit).ok()
    }

    /// Finish time of every node in the last placement.
    pub(crate) fn finish(&self) -> &[i64] {
        &self.pass.finish
    }

    /// Time of every channel in the last placement.
    pub(crate) fn delays(&self) -> &[i64] {
        &self.delays
    }
}

/// The processor of every rank in a mapping.
pub fn placement(mapping: &Mapping, machine: &Machine, ranks: usize) -> Result<Vec<u32>, ProblemError> {
    if mapping.ranks.len() != ranks {
        let found = mapping.ranks.len();
        let problem = format!("the mapping has {found} ranks, but the program has {ranks}");
        return Err(Refusal::new(problem, "connect a mapping of this program, or omit it").into());
    }
    let slots = machine.processors.len();
    let of_slot: HashMap<u32, u32> = (0..)
        .zip(&machine.processors)
        .map(|(number, processor)| (processor.slot.unwrap_or(number), number))
        .collect();
    let processor = |(rank, slot): (usize, u32)| {
        of_slot.get(&slot).copied().ok_or_else(|| {
            let problem = format!(
                "the mapping places rank {rank} on slot {slot}, but there are only {slots} processors"
            );
            Refusal::new(problem, "connect a mapping to this machine, or omit it").into()
        })
    };
    mapping.slots().into_iter().enumerate().map(processor).collect()
}

fn rank_of_tasks(dag: &TaskDag) -> Result<Vec<u32>, ProblemError> {
    if dag.tasks.is_empty() {
        return Err(ProblemError::Empty);
    }
    let of_task = |(task, one): (u32, &hopmap_model::Task)| {
        let help = "a mapping needs the rank of every task; `schedule/auto` with `ranks = \"free\"` places every task independently";
        let problem = || format!("task {task} does not belong to a rank, but others do");
        one.rank.ok_or_else(|| Refusal::new(problem(), help).into())
    };
    (0..).zip(&dag.tasks).map(of_task).collect()
}

impl ReplayProblem {
    /// Start time and processor of every task in a placement, including tasks inside nodes, without metrics.
    /// `dag` and `processors` must be those of the problem.
    #[must_use]
    pub fn schedule(&self, dag: &TaskDag, processors: &[Processor], slots: &[u32]) -> Schedule {
        let program = &self.program;
        let mut evaluator = MakespanEvaluator::new(self);
        let _ = evaluator.makespan(slots);
        let idle =
            ScheduledTask { processor: 0, turn: 0, start: 0.0, finish: 0.0, waits_for: None, process: None };
        let mut tasks = vec![idle; dag.tasks.len()];
        let mut turns = vec![0; self.ranks()];
        for node in 0..program.nodes() as u32 {
            let rank = program.rank[node as usize];
            let slot = slots[rank as usize];
            let (start, waits_for) = begin(&evaluator, self, node, slot);
            let finish = evaluator.finish()[node as usize];
            let mut waits_for = waits_for.and_then(|other| program.tasks(other).last().copied());
            // The first task also takes the time in which messages arrive: the time of the node minus the
            // work of the other tasks.
            let own = program.tasks(node);
            let rest: i64 =
                own[1..].iter().map(|&task| self.task_ticks(dag.tasks[task as usize].work, slot)).sum();
            let (mut begins, mut done) = (start, finish - rest);
            for (place, &task) in own.iter().enumerate() {
                if place > 0 {
                    begins = done;
                    done += self.task_ticks(dag.tasks[task as usize].work, slot);
                }
                let turn = &mut turns[rank as usize];
                tasks[task as usize] = ScheduledTask {
                    processor: slot,
                    turn: *turn,
                    start: self.real(begins),
                    finish: self.real(done),
                    waits_for,
                    process: dag.tasks[task as usize].rank,
                };
                *turn += 1;
                waits_for = Some(task);
            }
        }
        // Rounded to ticks like the tasks, or a task could start before its processor is available.
        let processor = |(one, &available): (&Processor, &i64)| Processor {
            available: self.real(available),
            ..one.clone()
        };
        Schedule {
            tasks,
            processors: processors.iter().zip(&self.costs.slots.available).map(processor).collect(),
            names: dag.names.clone(),
            model: self.model(),
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }
}

/// Start of a node and its reason; on ties, a message takes precedence over the previous node.
fn begin(
    evaluator: &MakespanEvaluator<'_>,
    problem: &ReplayProblem,
    node: u32,
    slot: u32,
) -> (i64, Option<u32>) {
    let mut begin = (problem.available(slot), None);
    let mut wait = |time: i64, node: u32| {
        if time > begin.0 || (time == begin.0 && begin.1.is_none()) {
            begin = (time, Some(node));
        }
    };
    for message in problem.program.incoming(node) {
        let delay = match problem.model() {
            DelayModel::Overlap => evaluator.delays()[message.channel as usize],
            DelayModel::Receive => 0,
        };
        wait(evaluator.finish()[message.source as usize] + delay, message.source);
    }
    let previous = problem.program.previous[node as usize];
    if previous != NONE {
        wait(evaluator.finish()[previous as usize], previous);
    }
    begin
}
