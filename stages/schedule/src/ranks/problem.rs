//! The tasks of ranks on the slots of a machine.

use hopmap_model::{DelayModel, Mapping, Processor, TaskDag};

use super::criticality::{Criticality, criticality};
use super::evaluate::Tails;
use super::places::Places;
use super::program::{Link, Program, Source};
use crate::ProblemError;
use crate::machine::{Machine, Network};
use crate::problem::{Delays, Scale, needed, sizes};

/// Entries of a table of what every node takes at every speed.
const MOST_WORK: usize = 1 << 26;

/// Nodes and messages from one look at the clock to the next.
const LOOK: u64 = 1_000_000;

/// The tasks of ranks on a machine, in whole ticks. A placement is the slot of every rank; no two ranks are on one.
#[derive(Debug)]
pub struct RankProblem {
    pub(super) ranks: usize,
    pub(super) slots: usize,
    pub(super) model: DelayModel,
    scale: Scale,
    pub(super) delays: Delays,
    pub(super) program: Program,
    pub(super) work: Work,
    /// When every slot can begin, and the best slot that there could be.
    pub(super) available: Vec<i64>,
    /// When the first slot can begin.
    pub(super) earliest: i64,
    pub(super) near: Near,
    pub(super) places: Places,
    /// The host of every slot.
    pub(super) hosts: Vec<u32>,
    /// Where the search begins, if that is given.
    pub(super) begin: Option<Vec<u32>>,
    pub(super) tails: Tails,
    pub(super) critical: Criticality,
}

/// What every node takes.
#[derive(Debug)]
pub(super) struct Work {
    /// Number of different speeds.
    pub(super) speeds: usize,
    /// What a unit of work takes at every speed, rising.
    paces: Vec<f64>,
    /// The speed of every slot, and of the best slot that there could be.
    pub(super) speed_of: Vec<u32>,
    /// What node `v` takes at speed `k`, at `v * speeds + k`.
    pub(super) ticks: Vec<i64>,
    /// What every node takes where it is fastest.
    pub(super) least: Vec<i64>,
}

/// What messages take between slots that are near and far.
#[derive(Debug)]
pub(super) struct Near {
    /// The least that a message of every size takes between two slots.
    pub(super) nearest: Vec<i64>,
    /// The most.
    pub(super) farthest: Vec<i64>,
    /// The least that a message of every size takes that stays on a slot.
    own: Vec<i64>,
}

impl RankProblem {
    /// The problem of a program that was checked on a machine, every rank on a processor of its own; the search begins with a
    /// mapping, if there is one.
    pub fn new(
        dag: &TaskDag,
        machine: &Machine,
        model: DelayModel,
        begin: Option<&Mapping>,
    ) -> Result<Self, ProblemError> {
        let rank = ranks(dag)?;
        let (ranks, slots) = (dag.ranks(), machine.processors.len());
        if ranks as usize > slots {
            return Err(ProblemError::TooFewSlots { ranks, slots });
        }
        let ranks = ranks as usize;
        let begin = begin.map(|mapping| begins(mapping, machine, ranks)).transpose()?;
        let dependencies = needed(dag, machine);
        let (sizes, size_of) = sizes(&dependencies);
        let scale = Scale::new(dag, &dependencies, machine)?;
        let delays = Delays::new(machine, &sizes, model, scale);
        let (speeds, speed_of) = speeds(&machine.pace);
        if dag.tasks.len().saturating_mul(speeds.len()) > MOST_WORK {
            return Err(ProblemError::TooManySpeeds { tasks: dag.tasks.len(), speeds: speeds.len() });
        }
        let of_task = |task: usize, pace: f64| scale.ticks(dag.tasks[task].work * pace);
        let fastest = speeds.first().copied().unwrap_or(1.0);
        let least: Vec<i64> = (0..dag.tasks.len()).map(|task| of_task(task, fastest)).collect();
        let program = Program::new(&Source {
            dag,
            rank: &rank,
            ranks,
            dependencies: &dependencies,
            size_of: &size_of,
            silent: &silent(&delays, model, sizes.len(), slots as u32),
            is_monotone: matches!(machine.network, Network::Linear { .. }),
            work: &least,
        });
        let of_node = |node: u32, pace: f64| -> i64 {
            program.tasks(node).iter().map(|&task| of_task(task as usize, pace)).sum()
        };
        let nodes = 0..program.len() as u32;
        let work = Work {
            speeds: speeds.len(),
            paces: speeds.clone(),
            speed_of,
            ticks: nodes
                .clone()
                .flat_map(|node| speeds.iter().map(move |&pace| (node, pace)))
                .map(|(node, pace)| of_node(node, pace))
                .collect(),
            least: nodes.map(|node| of_node(node, fastest)).collect(),
        };
        let mut available: Vec<i64> =
            machine.processors.iter().map(|one| scale.ticks(one.available)).collect();
        // Behind all slots a slot that is as good as the best.
        let earliest = available.iter().copied().min().unwrap_or(0);
        available.push(earliest);
        let near = Near::new(&delays, sizes.len(), slots as u32);
        let tails = Tails::new(&program, &work, &near, model);
        let mut problem = Self {
            ranks,
            slots,
            model,
            scale,
            places: Places::new(&delays, sizes.len() as u32, slots as u32),
            delays,
            program,
            work,
            earliest,
            available,
            near,
            hosts: hosts(&machine.processors),
            begin,
            tails,
            critical: Criticality::default(),
        };
        problem.critical = criticality(&problem);
        Ok(problem)
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Number of nodes after contraction: tasks of a rank in a row are one where nothing comes in or goes out in between.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.program.len()
    }

    /// Number of messages that can take time.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.program.messages.len()
    }

    /// Passes over the program that take about a millisecond or two: so many from one look at the clock to the next.
    pub(super) fn passes_a_look(&self) -> u64 {
        (LOOK / (self.nodes() + self.messages()).max(1) as u64).max(1)
    }

    /// A time in the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.scale.real(ticks)
    }

    /// What the messages of a link take in a placement.
    #[inline]
    pub(super) fn delay(&self, link: Link, slots: &[u32]) -> i64 {
        self.delays.ticks(link.size, slots[link.from as usize], slots[link.to as usize])
    }

    /// Looks after so many nodes whether a pass can still be below its limit.
    #[cfg(test)]
    pub(super) fn look_every(&mut self, nodes: usize) {
        self.tails = Tails::with_block(&self.program, &self.work, &self.near, self.model, nodes);
    }

    /// A slot that is as fast as the fastest and can begin as early as the first, for ranks that have none.
    pub(super) fn ideal(&self) -> u32 {
        self.slots as u32
    }

    /// By how much distance makes a message of a link longer at most.
    pub(super) fn spread(&self, link: Link) -> i64 {
        match link.from == link.to {
            true => 0,
            false => self.near.farthest[link.size as usize] - self.near.nearest[link.size as usize],
        }
    }

    /// What a task of so much work takes on a slot.
    pub(super) fn work_of(&self, work: f64, slot: u32) -> i64 {
        self.scale.ticks(work * self.work.paces[self.work.speed_of[slot as usize] as usize])
    }

    /// Whether all slots are equally fast and can begin at the same time.
    pub(super) fn is_even(&self) -> bool {
        self.work.speeds == 1 && self.available.windows(2).all(|pair| pair[0] == pair[1])
    }
}

impl Near {
    fn new(delays: &Delays, sizes: usize, slots: u32) -> Self {
        let examples = delays.distances().examples(slots);
        let all = |size: u32| examples.iter().map(move |&(from, to)| delays.ticks(size, from, to));
        let alone = delays.distances().own_examples(slots);
        let own = |size: u32| alone.iter().map(move |&slot| delays.ticks(size, slot, slot));
        let sizes = 0..sizes as u32;
        Self {
            nearest: sizes.clone().map(|size| all(size).min().unwrap_or(0)).collect(),
            farthest: sizes.clone().map(|size| all(size).max().unwrap_or(0)).collect(),
            own: sizes.map(|size| own(size).min().unwrap_or(0)).collect(),
        }
    }

    /// What a link takes at least, wherever its ranks are.
    pub(super) fn least(&self, link: Link) -> i64 {
        if link.from == link.to { self.own[link.size as usize] } else { self.nearest[link.size as usize] }
    }
}

/// The rank of every task.
fn ranks(dag: &TaskDag) -> Result<Vec<u32>, ProblemError> {
    if dag.tasks.is_empty() {
        return Err(ProblemError::Empty);
    }
    let of_task = |(task, one): (u32, &hopmap_model::Task)| one.rank.ok_or(ProblemError::NoRank { task });
    (0..).zip(&dag.tasks).map(of_task).collect()
}

/// The processor of every rank in a mapping.
fn begins(mapping: &Mapping, machine: &Machine, ranks: usize) -> Result<Vec<u32>, ProblemError> {
    if mapping.ranks.len() != ranks {
        return Err(ProblemError::OtherProgram { found: mapping.ranks.len(), ranks });
    }
    let slots = machine.processors.len();
    let of_slot: std::collections::HashMap<u32, u32> = (0..)
        .zip(&machine.processors)
        .map(|(number, processor)| (processor.slot.unwrap_or(number), number))
        .collect();
    let processor = |(rank, slot): (usize, u32)| {
        of_slot.get(&slot).copied().ok_or(ProblemError::OtherMachine { rank, slot, slots })
    };
    mapping.slots().into_iter().enumerate().map(processor).collect()
}

/// The different times of a unit of work, rising, and which of them every slot takes.
fn speeds(pace: &[f64]) -> (Vec<f64>, Vec<u32>) {
    let mut paces = pace.to_vec();
    paces.sort_unstable_by(f64::total_cmp);
    paces.dedup();
    let speed_of =
        pace.iter().map(|pace| paces.partition_point(|one| one < pace) as u32).chain([0]).collect();
    (paces, speed_of)
}

/// Whether messages of every size take no time where they stay on a slot.
fn silent(delays: &Delays, model: DelayModel, sizes: usize, slots: u32) -> Vec<bool> {
    let alone = delays.distances().own_examples(slots);
    let is_silent = |size: u32| {
        model == DelayModel::Overlap || alone.iter().all(|&slot| delays.ticks(size, slot, slot) == 0)
    };
    (0..sizes as u32).map(is_silent).collect()
}

/// The host of every slot: what its name has before the core. A processor that is no slot is a host of its own.
fn hosts(processors: &[Processor]) -> Vec<u32> {
    let host = |processor: &Processor| {
        let name = processor.slot.and_then(|_| processor.name.rsplit_once(':'));
        name.map(|(host, _)| host.to_owned())
    };
    let mut next = 0;
    let mut before: Option<Option<String>> = None;
    let number = |processor| {
        let own = host(processor);
        if before.is_some() && (own.is_none() || before.as_ref() != Some(&own)) {
            next += 1;
        }
        before = Some(own);
        next
    };
    processors.iter().map(number).collect()
}
