//! What the nodes and messages of a program take on the slots of a machine, in ticks, and between which bounds that is for a placement
//! that is not known.

use hopmap_model::{DelayModel, TaskDag};

use crate::delays::{Delays, TickScale};
use crate::machine::Machine;
use crate::program::{Channel, Program};

/// What everything takes.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) slots: Slots,
    pub(crate) work: Work,
    pub(crate) messages: MessageTimes,
}

/// When slots can begin and how fast they are. Behind those of the machine is an ideal one, for ranks that are on none yet: as fast as the
/// fastest, and available as early as the first.
#[derive(Debug)]
pub(crate) struct Slots {
    /// When every slot can begin.
    pub(crate) available: Vec<i64>,
    /// When the first slot can begin.
    pub(crate) earliest: i64,
    /// The different times of a unit of work, rising.
    paces: Vec<f64>,
    /// Index of the pace of every slot.
    pub(crate) speed_of: Vec<u32>,
}

/// What every node takes.
#[derive(Debug)]
pub(crate) struct Work {
    /// What node `v` takes at pace `k`, at `v * paces + k`.
    pub(crate) ticks: Vec<i64>,
    /// What every node takes on the fastest slot.
    pub(crate) least: Vec<i64>,
}

/// What messages of every size take.
#[derive(Debug)]
pub(crate) struct MessageTimes {
    pub(crate) model: DelayModel,
    pub(crate) delays: Delays,
    /// The least and the most that a message of every size takes between two slots.
    between: Vec<(i64, i64)>,
    /// The same within a slot.
    within: Vec<(i64, i64)>,
}

impl Slots {
    pub(crate) fn new(machine: &Machine, scale: TickScale) -> Self {
        let mut available: Vec<i64> =
            machine.processors.iter().map(|one| scale.ticks(one.available)).collect();
        let earliest = available.iter().copied().min().unwrap_or(0);
        available.push(earliest);
        let mut paces = machine.pace.clone();
        paces.sort_unstable_by(f64::total_cmp);
        paces.dedup();
        let speed = |pace: &f64| paces.partition_point(|one| one < pace) as u32;
        let speed_of = machine.pace.iter().map(speed).chain([0]).collect();
        Self { available, earliest, paces, speed_of }
    }

    /// Number of slots without the ideal one.
    pub(crate) fn len(&self) -> usize {
        self.available.len() - 1
    }

    /// Number of different speeds.
    #[inline]
    pub(crate) fn speeds(&self) -> usize {
        self.paces.len()
    }

    /// What a unit of work takes on a slot.
    pub(crate) fn pace(&self, slot: u32) -> f64 {
        self.paces[self.speed_of[slot as usize] as usize]
    }

    /// What every task takes on the fastest slot.
    pub(crate) fn least_work(&self, dag: &TaskDag, scale: TickScale) -> Vec<i64> {
        let fastest = self.paces.first().copied().unwrap_or(1.0);
        dag.tasks.iter().map(|task| scale.ticks(task.work * fastest)).collect()
    }
}

impl Work {
    pub(crate) fn new(program: &Program, dag: &TaskDag, slots: &Slots, scale: TickScale) -> Self {
        let of_node = |node: u32, pace: f64| -> i64 {
            program.tasks(node).iter().map(|&task| scale.ticks(dag.tasks[task as usize].work * pace)).sum()
        };
        let nodes = 0..program.nodes() as u32;
        let ticks: Vec<i64> =
            nodes.flat_map(|node| slots.paces.iter().map(move |&pace| of_node(node, pace))).collect();
        let least = ticks.iter().copied().step_by(slots.speeds().max(1)).collect();
        Self { ticks, least }
    }
}

impl MessageTimes {
    pub(crate) fn new(delays: Delays, sizes: usize, model: DelayModel, slots: u32) -> Self {
        let pairs = delays.distances().examples(slots);
        let alone: Vec<_> =
            delays.distances().own_examples(slots).into_iter().map(|slot| (slot, slot)).collect();
        let bounds = |pairs: &[(u32, u32)], size: u32| {
            let mut times = pairs.iter().map(|&(from, to)| delays.ticks(size, from, to));
            let first = times.next().unwrap_or(0);
            times.fold((first, first), |(least, most), time| (least.min(time), most.max(time)))
        };
        let sizes = 0..sizes as u32;
        Self {
            between: sizes.clone().map(|size| bounds(&pairs, size)).collect(),
            within: sizes.map(|size| bounds(&alone, size)).collect(),
            model,
            delays,
        }
    }

    /// Whether messages of every size take no time within a slot.
    pub(crate) fn silent(&self) -> Vec<bool> {
        self.within.iter().map(|&within| self.model == DelayModel::Overlap || within == (0, 0)).collect()
    }

    /// What the messages of a channel take at least, wherever its ranks are: every rank has a slot of its own.
    #[inline]
    pub(crate) fn least(&self, channel: Channel) -> i64 {
        let times = if channel.from == channel.to { &self.within } else { &self.between };
        times[channel.size as usize].0
    }

    /// By how much distance makes a message of a channel longer at most.
    pub(crate) fn spread(&self, channel: Channel) -> i64 {
        let (least, most) = self.between[channel.size as usize];
        if channel.from == channel.to { 0 } else { most - least }
    }
}
