//! Times of the nodes and messages of a program on the slots of a machine, in ticks, and bounds on them for
//! unknown placements.

use hopmap_model::{DelayModel, TaskDag};

use crate::delays::{Delays, TickScale};
use crate::machine::Machine;
use crate::program::{Channel, Program};

/// Times of nodes and messages.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) slots: Slots,
    pub(crate) work: Work,
    pub(crate) messages: MessageTimes,
}

/// Start times and speeds of slots. After those of the machine there is an ideal slot for ranks that are not
/// placed yet: as fast as the fastest, and available as early as the first.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Start time of every slot.
    pub(crate) available: Vec<i64>,
    /// Earliest start time.
    pub(crate) earliest: i64,
    /// The distinct times of a unit of work, ascending.
    paces: Vec<f64>,
    /// Index of the pace of every slot.
    pub(crate) speed_of: Vec<u32>,
}

/// Times of nodes.
#[derive(Debug)]
pub(crate) struct Work {
    /// Time of node `v` at pace `k`, at `v * paces + k`.
    pub(crate) ticks: Vec<i64>,
    /// Time of every node on the fastest slot.
    pub(crate) least: Vec<i64>,
}

/// Times of messages by size.
#[derive(Debug)]
pub(crate) struct MessageTimes {
    pub(crate) model: DelayModel,
    pub(crate) delays: Delays,
    /// Minimum and maximum time of a message of every size between two slots.
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

    /// Number of slots, without the ideal one.
    pub(crate) fn len(&self) -> usize {
        self.available.len() - 1
    }

    /// Number of distinct speeds.
    #[inline]
    pub(crate) fn speeds(&self) -> usize {
        self.paces.len()
    }

    /// Time of a unit of work on a slot.
    pub(crate) fn pace(&self, slot: u32) -> f64 {
        self.paces[self.speed_of[slot as usize] as usize]
    }

    /// Time of every task on the fastest slot.
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

    /// Minimum time of the messages of a channel over all placements, in which every rank has its own slot.
    #[inline]
    pub(crate) fn least(&self, channel: Channel) -> i64 {
        let times = if channel.from == channel.to { &self.within } else { &self.between };
        times[channel.size as usize].0
    }

    /// Maximum increase of the time of a channel's messages due to distance.
    pub(crate) fn spread(&self, channel: Channel) -> i64 {
        let (least, most) = self.between[channel.size as usize];
        if channel.from == channel.to { 0 } else { most - least }
    }
}
