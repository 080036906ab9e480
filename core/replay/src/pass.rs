//! One pass over the nodes of a program in topological order: when each of them is done in a placement.

use std::ops::Range;

use hopmap_model::DelayModel;

use crate::costs::Costs;
use crate::program::{NONE, Program};

/// Fewest nodes between two checks whether the pass can still stay within its limit.
const BLOCK: usize = 4096;
/// Nodes of a block for every rank: a check costs as much as some nodes.
const BLOCK_SHARE: usize = 8;

/// A pass over the nodes, with the memory that it needs.
#[derive(Debug)]
pub(crate) struct Pass<'p> {
    program: &'p Program,
    costs: &'p Costs,
    tails: &'p Tails,
    /// When every node is done.
    pub(crate) finish: Vec<i64>,
    /// When every rank is done with what it has done so far.
    free: Vec<i64>,
    /// When every rank can begin.
    begins: Vec<i64>,
}

/// Why a placement is above a limit: what a rank still has to do when it is done with what it did before a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) rank: u32,
    /// The first node that was not computed.
    pub(crate) end: u32,
    /// What there is still to do.
    pub(crate) tail: i64,
}

impl<'p> Pass<'p> {
    pub(crate) fn new(program: &'p Program, costs: &'p Costs, tails: &'p Tails) -> Self {
        let (nodes, ranks) = (program.nodes(), program.ranks());
        let [free, begins] = [0, 1].map(|_| vec![0; ranks]);
        Self { program, costs, tails, finish: vec![0; nodes], free, begins }
    }

    /// The makespan with every rank on its slot and a time for the messages of every channel, if it is not above a limit.
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

    /// When a rank could begin.
    pub(crate) fn begin(&self, rank: u32) -> i64 {
        self.begins[rank as usize]
    }

    /// The rank that was done last.
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

/// What ranks still have to do at certain moments, wherever they are: the longest chain of work and of messages that take the least.
#[derive(Debug)]
pub(crate) struct Tails {
    /// Nodes from one look to the next.
    block: usize,
    /// What every rank has to do after a block, block by block.
    left: Vec<i64>,
    /// What there is to do after every rank can begin.
    whole: Vec<i64>,
}

impl Tails {
    pub(crate) fn new(program: &Program, costs: &Costs) -> Self {
        Self::with_block(program, costs, BLOCK.max(BLOCK_SHARE * program.ranks()))
    }

    /// The longest of all: no placement is done earlier after the first slot can begin.
    pub(crate) fn longest(&self) -> i64 {
        self.whole.iter().copied().max().unwrap_or(0)
    }

    /// With so many nodes from one look to the next.
    pub(crate) fn with_block(program: &Program, costs: &Costs, block: usize) -> Self {
        let (nodes, ranks) = (program.nodes(), program.ranks());
        // What follows when a node is done, as far as was looked; the same of the first node of every rank at which was looked, itself
        // included; and how many nodes of every rank are before it.
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
            let receives = match costs.messages.model {
                DelayModel::Overlap => 0,
                DelayModel::Receive => {
                    incoming.iter().map(|message| least[message.channel as usize]).max().unwrap_or(0)
                }
            };
            let own = receives + costs.work.least[node] + after[node];
            for message in incoming {
                let delay = if costs.messages.model == DelayModel::Overlap {
                    least[message.channel as usize]
                } else {
                    0
                };
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
        Self { block, left, whole: next }
    }
}
