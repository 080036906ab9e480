//! The program of all ranks on a machine, in whole ticks, and the makespan of a placement.
//!
//! A placement is the slot of every rank; no two ranks are on one. Evaluating one takes a pass over the contracted [`Program`]; for changes
//! by exchanges see [`ExchangeEvaluator`](crate::ExchangeEvaluator).

use std::collections::HashMap;

use hopmap_model::{DelayModel, Mapping, TaskDag};

use crate::ProblemError;
use crate::costs::{Costs, MessageTimes, Slots, Work};
use crate::criticality::Criticality;
use crate::delays::{Delays, SizedMessages, TickScale};
use crate::machine::Machine;
use crate::pass::{Pass, Tails};
use crate::program::{Channel, Program, Uncontracted};

/// Entries of a table of what every node takes at every speed.
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
    /// The problem of a program that was checked; every task belongs to a rank.
    pub fn new(dag: &TaskDag, machine: &Machine, model: DelayModel) -> Result<Self, ProblemError> {
        let rank = rank_of_tasks(dag)?;
        let (ranks, slots) = (dag.ranks(), machine.processors.len());
        if ranks as usize > slots {
            return Err(ProblemError::TooFewSlots { ranks, slots });
        }
        let messages = SizedMessages::new(dag, machine);
        let scale = TickScale::new(dag, &messages, machine)?;
        let times = Delays::new(machine, &messages.sizes, model, scale);
        let times = MessageTimes::new(times, messages.sizes.len(), model, slots as u32);
        let slots = Slots::new(machine, scale);
        let (tasks, speeds) = (dag.tasks.len(), slots.speeds());
        if tasks.saturating_mul(speeds) > MAX_WORK {
            return Err(ProblemError::TooManySpeeds { tasks, speeds });
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

    /// What a message costs.
    #[must_use]
    pub fn model(&self) -> DelayModel {
        self.costs.messages.model
    }

    /// What messages take between slots.
    #[must_use]
    pub fn delays(&self) -> &Delays {
        &self.costs.messages.delays
    }

    /// Which messages the makespan depends on.
    #[must_use]
    pub fn criticality(&self) -> &Criticality {
        &self.criticality
    }

    /// A time in the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.scale.real(ticks)
    }

    /// A makespan that no placement is below: the longest chain of work, each where it is fastest, and of messages, each between the
    /// nearest two slots. The work of every rank is such a chain.
    #[must_use]
    pub fn lower_bound(&self) -> i64 {
        self.costs.slots.earliest + self.tails.longest()
    }

    /// What the messages of a channel take in a placement.
    #[inline]
    #[must_use]
    pub fn delay(&self, channel: Channel, slots: &[u32]) -> i64 {
        self.delays().ticks(channel.size, slots[channel.from as usize], slots[channel.to as usize])
    }

    /// What the messages of a channel take at least in any placement.
    #[inline]
    #[must_use]
    pub fn least_delay(&self, channel: Channel) -> i64 {
        self.costs.messages.least(channel)
    }

    /// By how much distance makes a message of a channel longer at most.
    #[must_use]
    pub fn spread(&self, channel: Channel) -> i64 {
        self.costs.messages.spread(channel)
    }

    /// A slot as fast as the fastest and available as early as the first, for ranks of a partial placement that are on none yet.
    #[must_use]
    pub fn ideal_slot(&self) -> u32 {
        self.slots() as u32
    }

    /// When a slot can begin, in ticks.
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
        self.costs.slots.are_equal()
    }

    /// What a task of so much work takes on a slot.
    pub(crate) fn task_ticks(&self, work: f64, slot: u32) -> i64 {
        self.scale.ticks(work * self.costs.slots.pace(slot))
    }

    /// The surrogate objective of one channel in a placement: the squares of the delays of its messages that can delay the end.
    #[inline]
    #[must_use]
    pub fn surrogate_of(&self, number: u32, slots: &[u32]) -> i64 {
        let channel = self.program.channels.all[number as usize];
        self.criticality.surrogate(number as usize, self.delay(channel, slots) - self.least_delay(channel))
    }

    /// The surrogate objective of a placement. It changes by the channels of the ranks that move, without a pass over the program, and
    /// tells placements of one makespan apart.
    #[must_use]
    pub fn surrogate(&self, slots: &[u32]) -> i64 {
        (0..self.program.channels.all.len() as u32).map(|number| self.surrogate_of(number, slots)).sum()
    }

    pub(crate) fn pass(&self) -> Pass<'_> {
        Pass::new(&self.program, &self.costs, &self.tails)
    }

    /// Checks after so many nodes whether a pass can still stay within its limit.
    #[cfg(test)]
    pub(crate) fn check_every(&mut self, nodes: usize) {
        self.tails = Tails::with_block(&self.program, &self.costs, nodes);
    }
}

/// Computes makespans of placements of one problem.
#[derive(Debug)]
pub struct MakespanEvaluator<'p> {
    problem: &'p ReplayProblem,
    pass: Pass<'p>,
    delays: Vec<i64>,
}

impl<'p> MakespanEvaluator<'p> {
    /// An evaluator with room for one placement.
    #[must_use]
    pub fn new(problem: &'p ReplayProblem) -> Self {
        Self { problem, pass: problem.pass(), delays: Vec::with_capacity(problem.program.channels.all.len()) }
    }

    /// When the last task is done with every rank on its slot, in ticks.
    #[must_use]
    pub fn makespan(&mut self, slots: &[u32]) -> i64 {
        let problem = self.problem;
        self.makespan_within(slots, i64::MAX, |channel| problem.delay(channel, slots)).unwrap_or(i64::MAX)
    }

    /// The makespan if it is not above a limit, where `delay` says what the messages of every channel take, such as the least that they
    /// can where a rank is on the [ideal slot](ReplayProblem::ideal_slot).
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

    /// When every node of the last placement was done.
    pub(crate) fn finish(&self) -> &[i64] {
        &self.pass.finish
    }

    /// What every channel took in the last placement.
    pub(crate) fn delays(&self) -> &[i64] {
        &self.delays
    }
}

/// The processor of every rank in a mapping.
pub fn placement(mapping: &Mapping, machine: &Machine, ranks: usize) -> Result<Vec<u32>, ProblemError> {
    if mapping.ranks.len() != ranks {
        return Err(ProblemError::OtherProgram { found: mapping.ranks.len(), ranks });
    }
    let slots = machine.processors.len();
    let of_slot: HashMap<u32, u32> = (0..)
        .zip(&machine.processors)
        .map(|(number, processor)| (processor.slot.unwrap_or(number), number))
        .collect();
    let processor = |(rank, slot): (usize, u32)| {
        of_slot.get(&slot).copied().ok_or(ProblemError::OtherMachine { rank, slot, slots })
    };
    mapping.slots().into_iter().enumerate().map(processor).collect()
}

fn rank_of_tasks(dag: &TaskDag) -> Result<Vec<u32>, ProblemError> {
    if dag.tasks.is_empty() {
        return Err(ProblemError::Empty);
    }
    let of_task = |(task, one): (u32, &hopmap_model::Task)| one.rank.ok_or(ProblemError::NoRank { task });
    (0..).zip(&dag.tasks).map(of_task).collect()
}
