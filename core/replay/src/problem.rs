//! The program of all ranks on a machine, in whole ticks, and the makespan of a placement.
//!
//! A placement is the slot of every rank; no two ranks are on one. Evaluating one takes a pass over the contracted [`Program`]; for changes
//! by exchanges see [`ExchangeEvaluator`](crate::ExchangeEvaluator).

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{DelayModel, Mapping, Processor, Schedule, ScheduledTask, TaskDag};

use crate::costs::{Costs, MessageTimes, Slots, Work};
use crate::delays::{Delays, SizedMessages, TickScale};
use crate::error::{ProblemError, Refusal};
use crate::machine::Machine;
use crate::pass::{Criticality, Pass, Tails};
use crate::program::{Channel, NONE, Program, Uncontracted};

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
            let problem = format!(
                "there are {ranks} ranks and only {slots} processors: every rank needs one of its own"
            );
            let help = "connect a larger machine; `schedule/…` with `ranks = \"free\"` lets every task run where it likes";
            return Err(Refusal::new(problem, help).into());
        }
        let messages = SizedMessages::new(dag, machine);
        let scale = TickScale::new(dag, &messages, machine)?;
        let times = Delays::new(machine, &messages.sizes, model, scale);
        let times = MessageTimes::new(times, messages.sizes.len(), model, slots as u32);
        let slots = Slots::new(machine, scale);
        let (tasks, speeds) = (dag.tasks.len(), slots.speeds());
        if tasks.saturating_mul(speeds) > MAX_WORK {
            let problem = format!(
                "{tasks} tasks on processors of {speeds} different speeds are too many times to keep"
            );
            return Err(Refusal::new(problem, "give fewer different `speeds`").into());
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
        let slots = &self.costs.slots;
        slots.speeds() == 1 && slots.available.windows(2).all(|pair| pair[0] == pair[1])
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
        let found = mapping.ranks.len();
        let problem = format!("the mapping places {found} ranks, and the program has {ranks}");
        return Err(Refusal::new(problem, "connect a mapping of this program, or none").into());
    }
    let slots = machine.processors.len();
    let of_slot: HashMap<u32, u32> = (0..)
        .zip(&machine.processors)
        .map(|(number, processor)| (processor.slot.unwrap_or(number), number))
        .collect();
    let processor = |(rank, slot): (usize, u32)| {
        of_slot.get(&slot).copied().ok_or_else(|| {
            let problem = format!(
                "the mapping puts rank {rank} on slot {slot}, which is none of the {slots} processors"
            );
            Refusal::new(problem, "connect a mapping onto this machine, or none").into()
        })
    };
    mapping.slots().into_iter().enumerate().map(processor).collect()
}

fn rank_of_tasks(dag: &TaskDag) -> Result<Vec<u32>, ProblemError> {
    if dag.tasks.is_empty() {
        return Err(ProblemError::Empty);
    }
    let of_task = |(task, one): (u32, &hopmap_model::Task)| {
        let help = "a placement needs the rank of every task; `schedule/…` with `ranks = \"free\"` lets every task run where it likes";
        let problem = || format!("task {task} belongs to no rank, while others do");
        one.rank.ok_or_else(|| Refusal::new(problem(), help).into())
    };
    (0..).zip(&dag.tasks).map(of_task).collect()
}

impl ReplayProblem {
    /// When and where every task of the program runs in a placement, those in the middle of a node included, without metrics. `dag` and
    /// `processors` are those that the problem was made of.
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
            // Of the first task the time also counts in which messages come in: whatever is not the work of the others.
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
        // In whole ticks, as tasks begin; else one could begin a rounding before its processor.
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

/// When a node begins, and why not earlier: because of a message rather than of its turn, where both are as late.
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
