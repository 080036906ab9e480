//! A pass over the nodes of a program in topological order: finish times in a placement, and the criticality
//! of messages.
//!
//! A quadratic assignment problem adds up the costs of all messages. Here a message counts less the more
//! slack it has when all messages take their minimum time ([`Criticality`]; compare the total float of the
//! critical path method).

use std::ops::Range;

use hopmap_model::DelayModel;

use crate::costs::Costs;
use crate::program::{Incoming, NONE, Program};

/// Minimum number of nodes between two checks of the limit.
const BLOCK: usize = 4096;
/// Nodes of a block per rank: a check costs as much as some nodes.
const BLOCK_SHARE: usize = 8;

/// A pass over the nodes, with its memory.
#[derive(Debug)]
pub(crate) struct Pass<'p> {
    program: &'p Program,
    costs: &'p Costs,
    tails: &'p Tails,
    /// Finish time of every node.
    pub(crate) finish: Vec<i64>,
    /// Finish time of every rank so far.
    free: Vec<i64>,
    /// Start time of every rank.
    begins: Vec<i64>,
}

/// Reason why a placement exceeds a limit: the remaining time of a rank before a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) rank: u32,
    /// The first node that was not computed.
    pub(crate) end: u32,
    /// Remaining time.
    pub(crate) tail: i64,
}

impl<'p> Pass<'p> {
    pub(crate) fn new(program: &'p Program, costs: &'p Costs, tails: &'p Tails) -> Self {
        let (nodes, ranks) = (program.nodes(), program.ranks());
        let [free, begins] = [0, 1].map(|_| vec![0; ranks]);
        Self { program, costs, tails, finish: vec![0; nodes], free, begins }
    }

    /// The makespan with every rank on its slot and a time per channel, unless it exceeds a limit.
    pub(crate) fn run(&mut self, slots: &[u32], delays: &[i64], limit: i64) -> Result<i64, Late> {
        let available = slots.iter().map(|&slot| self.costs.slots.available[slot as usize]);
        self.begins.iter_mut().zip(available).for_each(|(begins, available)| *begins = available);
        self.free.copy_from_slice(&self.begins);
        match (self.costs.messages.model, self.costs.slots.speeds() == 1) {
            (DelayModel::Overlap, true) => self.blocks::<false, true>(slots, delays, limit),
            (DelayModel::Overlap, false) => self.blocks::<false, false>(slots, delays, limit),
            (DelayModel::Receive, true) => self.blocks::<true, true>(slots, delays, limit),
            (DelayModel::Receive, false) => self.blocks::<true, false>(slots, delays, limit),
        }
    }

    /// Start time of a rank.
    pub(crate) fn begin(&self, rank: u32) -> i64 {
        self.begins[rank as usize]
    }

    /// The rank that finishes last.
    pub(crate) fn last(&self) -> u32 {
        let last = (0..self.free.len() as u32).max_by_key(|&rank| self.free[rank as usize]);
        last.unwrap_or(0)
    }

    fn blocks<const RECEIVE: bool, const EVEN: bool>(
        &mut self,
        slots: &[u32],
        delays: &[i64],
        limit: i64,
    ) -> Result<i64, Late> {
        let (nodes, ranks, tails) = (self.program.nodes(), self.program.ranks(), self.tails);
        let mut begin = 0;
        while begin < nodes {
            let end = (begin + tails.block).min(nodes);
            self.nodes::<RECEIVE, EVEN>(slots, delays, begin..end);
            if limit < i64::MAX {
                let left = &tails.left[(end.div_ceil(tails.block) - 1) * ranks..][..ranks];
                let late = self.free.iter().zip(left).position(|(free, left)| free + left > limit);
                if let Some(rank) = late {
                    return Err(Late { rank: rank as u32, end: end as u32, tail: left[rank] });
                }
            }
            begin = end;
        }
        Ok(self.free.iter().copied().max().unwrap_or(0))
    }

    fn nodes<const RECEIVE: bool, const EVEN: bool>(
        &mut self,
        slots: &[u32],
        delays: &[i64],
        range: Range<usize>,
    ) {
        let Program { rank, starts, messages, .. } = self.program;
        let (ticks, slot_costs) = (&self.costs.work.ticks, &self.costs.slots);
        let (speeds, speed_of) = (slot_costs.speeds(), &slot_costs.speed_of);
        let ends = &starts[range.start + 1..=range.end];
        let mut at = starts[range.start] as usize;
        for ((node, &rank), &end) in range.clone().zip(&rank[range]).zip(ends) {
            let mut start = self.free[rank as usize];
            let mut receives = 0;
            for message in &messages[at..end as usize] {
                let (sent, delay) = (self.finish[message.source as usize], delays[message.channel as usize]);
                if RECEIVE {
                    start = start.max(sent);
                    receives = delay.max(receives);
                } else {
                    start = start.max(sent + delay);
                }
            }
            at = end as usize;
            let work = match EVEN {
                true => ticks[node],
                false => ticks[node * speeds + speed_of[slots[rank as usize] as usize] as usize],
            };
            let finish = start + receives + work;
            self.finish[node] = finish;
            self.free[rank as usize] = finish;
        }
    }
}

/// Lower bounds on the remaining time of ranks at certain points, for all placements: the longest chain of
/// work and minimum message times.
#[derive(Debug)]
pub(crate) struct Tails {
    /// Nodes between two checks.
    block: usize,
    /// Remaining time of every rank after a block, block by block.
    left: Vec<i64>,
    /// Total time of every rank after its start.
    total: Vec<i64>,
}

impl Tails {
    pub(crate) fn new(program: &Program, costs: &Costs) -> Self {
        Self::with_block(program, costs, BLOCK.max(BLOCK_SHARE * program.ranks()))
    }

    /// The longest of all: a lower bound of the makespan after the first slot is available.
    pub(crate) fn longest(&self) -> i64 {
        self.total.iter().copied().max().unwrap_or(0)
    }

    /// With a given number of nodes between two checks.
    pub(crate) fn with_block(program: &Program, costs: &Costs, block: usize) -> Self {
        let (nodes, ranks) = (program.nodes(), program.ranks());
        // The time after each node so far; the same for the first node of every rank so far, itself
        // included; and the number of preceding nodes per rank.
        let (mut after, mut next) = (vec![0i64; nodes], vec![0i64; ranks]);
        let mut before: Vec<usize> = (0..ranks as u32).map(|rank| program.nodes_of(rank).len()).collect();
        let mut left = vec![0; nodes.div_ceil(block) * ranks];
        let least: Vec<i64> =
            program.channels.all.iter().map(|&channel| costs.messages.least(channel)).collect();
        for node in (0..nodes).rev() {
            if (node + 1) % block == 0 || node + 1 == nodes {
                for (rank, left) in left[node / block * ranks..][..ranks].iter_mut().enumerate() {
                    *left = match before[rank].checked_sub(1) {
                        Some(done) => after[program.nodes_of(rank as u32)[done] as usize],
                        None => next[rank],
                    };
                }
            }
            let incoming = program.incoming(node as u32);
            let overlaps = costs.messages.model == DelayModel::Overlap;
            let own = least_time(node, incoming, costs, &least) + after[node];
            for message in incoming {
                let delay = if overlaps { least[message.channel as usize] } else { 0 };
                let sender = message.source as usize;
                after[sender] = after[sender].max(own + delay);
            }
            if program.previous[node] != NONE {
                let previous = program.previous[node] as usize;
                after[previous] = after[previous].max(own);
            }
            let rank = program.rank[node] as usize;
            next[rank] = own;
            before[rank] -= 1;
        }
        Self { block, left, total: next }
    }
}

/// Time of a node and the messages it receives, with minimum times of channels.
fn least_time(node: usize, incoming: &[Incoming], costs: &Costs, least: &[i64]) -> i64 {
    let receives = match costs.messages.model {
        DelayModel::Overlap => None,
        DelayModel::Receive => incoming.iter().map(|message| least[message.channel as usize]).max(),
    };
    receives.unwrap_or(0) + costs.work.least[node]
}

/// Number of steps between the minimum and maximum time of the longest message.
const STEPS: i64 = 64;

/// Maximum slack beyond its own delay with which a message still counts, as a fraction of the makespan: many
/// small delays add up.
const TOLERANCE: i64 = 50;

/// Influence of the messages of every channel.
#[derive(Debug)]
pub struct Criticality {
    /// Sum over the messages of every channel of the delay of the end that distance can cause through each,
    /// with all others at their minimum.
    pub delays: Vec<i64>,
    /// The same with the fourth power of every delay: if all ranks wait for the slowest, one long delay is
    /// worse than many short ones.
    pub longest: Vec<i64>,
    /// Number of messages of every channel that can delay the end.
    exposed: Vec<u32>,
    /// Ticks per step, the unit of powers of delays.
    step: i64,
}

impl Criticality {
    /// Contribution of a channel to the surrogate objective, if its messages exceed their minimum by
    /// `delay`: the square of the delay for every message that can delay the end.
    #[inline]
    pub(crate) fn surrogate(&self, channel: usize, delay: i64) -> i64 {
        let steps = delay / self.step;
        i64::from(self.exposed[channel]) * steps * steps
    }

    pub(crate) fn new(program: &Program, costs: &Costs, tails: &Tails) -> Self {
        let all = &program.channels.all;
        let least: Vec<i64> = all.iter().map(|&channel| costs.messages.least(channel)).collect();
        let slots: Vec<u32> = (0..program.ranks() as u32).collect();
        let mut pass = Pass::new(program, costs, tails);
        let makespan = pass.run(&slots, &least, i64::MAX).unwrap_or(0);
        let channels = all.len();
        let longest = all.iter().map(|&channel| costs.messages.spread(channel)).max().unwrap_or(0);
        let step = (longest / STEPS).max(1);
        let mut critical =
            Self { delays: vec![0; channels], longest: vec![0; channels], exposed: vec![0; channels], step };
        let mut after = vec![0i64; program.nodes()];
        for node in (0..program.nodes()).rev() {
            let incoming = program.incoming(node as u32);
            let overlaps = costs.messages.model == DelayModel::Overlap;
            let own = least_time(node, incoming, costs, &least) + after[node];
            for message in incoming {
                let (sender, channel) = (message.source as usize, message.channel as usize);
                let arrives = if overlaps { own + least[channel] } else { own };
                after[sender] = after[sender].max(arrives);
                let slack = (makespan - pass.finish[sender] - arrives).max(0);
                let spread = costs.messages.spread(all[channel]);
                let tolerance = spread + makespan / TOLERANCE;
                let left = i128::from((tolerance - slack).max(0));
                let delay = (i128::from(spread) * left / i128::from(tolerance.max(1))) as i64;
                let steps = delay / step;
                critical.delays[channel] = critical.delays[channel].saturating_add(delay);
                critical.longest[channel] = critical.longest[channel].saturating_add(steps.pow(4));
                critical.exposed[channel] += u32::from(delay > 0);
            }
            let previous = program.previous[node];
            if previous != NONE {
                after[previous as usize] = after[previous as usize].max(own);
            }
        }
        critical
    }
}
