//! When every node of a placement is done: one pass over the program.

use hopmap_model::DelayModel;

use super::problem::{Near, RankProblem, Work};
use super::program::{NOBODY, Program};

/// Fewest nodes between two looks at whether the pass can still be below its limit.
const BLOCK: usize = 4096;
/// Nodes of a block for every rank: a look costs as much as some nodes.
const BLOCK_SHARE: usize = 8;

/// Computes makespans of placements of one problem.
#[derive(Debug)]
pub struct RankEvaluator<'p> {
    problem: &'p RankProblem,
    pass: Pass,
    delays: Vec<i64>,
}

impl<'p> RankEvaluator<'p> {
    /// An evaluator with room for one placement.
    #[must_use]
    pub fn new(problem: &'p RankProblem) -> Self {
        Self { problem, pass: Pass::new(problem), delays: Vec::with_capacity(problem.program.links.len()) }
    }

    /// When the last task is done with every rank on its slot, in ticks.
    #[must_use]
    pub fn makespan(&mut self, slots: &[u32]) -> i64 {
        self.below(slots, i64::MAX).unwrap_or(i64::MAX)
    }

    /// The makespan if it is not above a limit.
    pub(super) fn below(&mut self, slots: &[u32], limit: i64) -> Option<i64> {
        let problem = self.problem;
        self.delays.clear();
        self.delays.extend(problem.program.links.all.iter().map(|&link| problem.delay(link, slots)));
        self.pass.run(problem, slots, &self.delays, limit).ok()
    }

    /// When every node of the last placement was done.
    pub(super) fn finish(&self) -> &[i64] {
        &self.pass.finish
    }

    /// What every link took in the last placement.
    pub(super) fn delays(&self) -> &[i64] {
        &self.delays
    }
}

/// A pass over the nodes.
#[derive(Debug)]
pub(super) struct Pass {
    /// When every node is done.
    pub(super) finish: Vec<i64>,
    /// When every rank is done with what it has done so far.
    free: Vec<i64>,
    /// When every rank can begin.
    begins: Vec<i64>,
}

/// Why a placement is above a limit: what a rank still has to do when it is done with what it did before a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) rank: u32,
    /// The first node that was not looked at.
    pub(super) end: u32,
    /// What there is still to do.
    pub(super) tail: i64,
}

impl Pass {
    pub(super) fn new(problem: &RankProblem) -> Self {
        Self {
            finish: vec![0; problem.program.len()],
            free: vec![0; problem.ranks],
            begins: vec![0; problem.ranks],
        }
    }

    /// The makespan, if it is not above a limit.
    pub(super) fn run(
        &mut self,
        problem: &RankProblem,
        slots: &[u32],
        delays: &[i64],
        limit: i64,
    ) -> Result<i64, Late> {
        let available = slots.iter().map(|&slot| problem.available[slot as usize]);
        self.begins.iter_mut().zip(available).for_each(|(begins, available)| *begins = available);
        self.free.copy_from_slice(&self.begins);
        match (problem.model, problem.work.speeds == 1) {
            (DelayModel::Overlap, true) => self.blocks::<false, true>(problem, slots, delays, limit),
            (DelayModel::Overlap, false) => self.blocks::<false, false>(problem, slots, delays, limit),
            (DelayModel::Receive, true) => self.blocks::<true, true>(problem, slots, delays, limit),
            (DelayModel::Receive, false) => self.blocks::<true, false>(problem, slots, delays, limit),
        }
    }

    /// When a rank could begin.
    pub(super) fn begin(&self, rank: u32) -> i64 {
        self.begins[rank as usize]
    }

    /// The rank that was done last.
    pub(super) fn last(&self) -> u32 {
        let last = (0..self.free.len() as u32).max_by_key(|&rank| self.free[rank as usize]);
        last.unwrap_or(0)
    }

    fn blocks<const RECEIVE: bool, const EVEN: bool>(
        &mut self,
        problem: &RankProblem,
        slots: &[u32],
        delays: &[i64],
        limit: i64,
    ) -> Result<i64, Late> {
        let (nodes, tails) = (problem.program.len(), &problem.tails);
        let mut begin = 0;
        while begin < nodes {
            let end = (begin + tails.block).min(nodes);
            self.nodes::<RECEIVE, EVEN>(problem, slots, delays, begin..end);
            if limit < i64::MAX {
                let left = &tails.left[(end.div_ceil(tails.block) - 1) * problem.ranks..][..problem.ranks];
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
        problem: &RankProblem,
        slots: &[u32],
        delays: &[i64],
        range: std::ops::Range<usize>,
    ) {
        let Program { rank, starts, messages, .. } = &problem.program;
        let Work { speeds, speed_of, ticks, .. } = &problem.work;
        let ends = &starts[range.start + 1..=range.end];
        let mut at = starts[range.start] as usize;
        for ((node, &rank), &end) in range.clone().zip(&rank[range]).zip(ends) {
            let mut start = self.free[rank as usize];
            let mut receives = 0;
            for message in &messages[at..end as usize] {
                let (sent, delay) = (self.finish[message.source as usize], delays[message.link as usize]);
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
pub(super) struct Tails {
    /// Nodes from one look to the next.
    block: usize,
    /// What every rank has to do after a block, block by block.
    left: Vec<i64>,
    /// What there is to do after every rank can begin.
    pub(super) whole: Vec<i64>,
}

impl Tails {
    pub(super) fn new(program: &Program, work: &Work, near: &Near, model: DelayModel) -> Self {
        let ranks = program.rank_starts.len() - 1;
        Self::with_block(program, work, near, model, BLOCK.max(BLOCK_SHARE * ranks))
    }

    /// With so many nodes from one look to the next.
    pub(super) fn with_block(
        program: &Program,
        work: &Work,
        near: &Near,
        model: DelayModel,
        block: usize,
    ) -> Self {
        let (nodes, ranks) = (program.len(), program.rank_starts.len() - 1);
        // What follows when a node is done, as far as was looked; the same of the first node of every rank at which was looked, itself
        // included; and how many nodes of every rank are before it.
        let (mut after, mut next) = (vec![0i64; nodes], vec![0i64; ranks]);
        let mut before: Vec<u32> = program.rank_starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut left = vec![0; nodes.div_ceil(block) * ranks];
        let least: Vec<i64> = program.links.all.iter().map(|&link| near.least(link)).collect();
        for node in (0..nodes).rev() {
            if (node + 1) % block == 0 || node + 1 == nodes {
                for (rank, left) in left[node / block * ranks..][..ranks].iter_mut().enumerate() {
                    *left = match before[rank].checked_sub(1) {
                        Some(done) => after[program.nodes_of(rank as u32)[done as usize] as usize],
                        None => next[rank],
                    };
                }
            }
            let incoming = program.incoming(node as u32);
            let receives = match model {
                DelayModel::Overlap => 0,
                DelayModel::Receive => {
                    incoming.iter().map(|message| least[message.link as usize]).max().unwrap_or(0)
                }
            };
            let own = receives + work.least[node] + after[node];
            for message in incoming {
                let delay = if model == DelayModel::Overlap { least[message.link as usize] } else { 0 };
                let sender = message.source as usize;
                after[sender] = after[sender].max(own + delay);
            }
            if program.previous[node] != NOBODY {
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
