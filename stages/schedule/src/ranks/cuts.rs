//! Paths through the program that were critical once. The makespan of no placement is below the length of any path in it, and the length
//! after an exchange takes a few additions: most exchanges that are of no use need no pass over the program.

use super::evaluate::{Late, Pass};
use super::problem::RankProblem;
use super::program::NOBODY;
use hopmap_model::DelayModel;

/// Most paths that are kept.
const MOST: usize = 32;
/// Entries of the table of all links and paths.
const MOST_ENTRIES: usize = 1 << 24;

/// Paths, and their lengths in the placement that the search is at.
#[derive(Debug)]
pub(super) struct Cuts {
    width: usize,
    /// How often path `c` takes link `l`, at `l * width + c`.
    counts: Vec<u32>,
    /// The links of every path.
    links: Vec<Vec<u32>>,
    lengths: Vec<i64>,
    /// When every path last ruled something out.
    used: Vec<u64>,
    clock: u64,
    /// What an exchange changes of every length.
    deltas: Vec<i64>,
}

/// A link that takes more or less time after an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) link: u32,
    pub(super) delta: i64,
}

/// A path from the end of a program back to its beginning.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// What it takes beside messages, at least.
    fixed: i64,
    /// The link of every message on it.
    pub(super) links: Vec<u32>,
}

impl Cuts {
    pub(super) fn new(problem: &RankProblem) -> Self {
        let links = problem.program.links.len();
        Self {
            width: (MOST_ENTRIES / links.max(1)).clamp(4, MOST),
            counts: Vec::new(),
            links: Vec::new(),
            lengths: Vec::new(),
            used: Vec::new(),
            clock: 0,
            deltas: Vec::new(),
        }
    }

    /// Whether some path is longer than a limit after an exchange.
    pub(super) fn rule_out(&mut self, changes: &[Change], limit: i64) -> bool {
        self.clock += 1;
        self.deltas.clear();
        self.deltas.resize(self.lengths.len(), 0);
        for change in changes {
            let row = &self.counts[change.link as usize * self.width..][..self.width];
            for (delta, &count) in self.deltas.iter_mut().zip(row) {
                *delta += i64::from(count) * change.delta;
            }
        }
        let mut lengths = self.lengths.iter().zip(&self.deltas);
        match lengths.position(|(length, delta)| length + delta > limit) {
            Some(path) => {
                self.used[path] = self.clock;
                true
            }
            None => false,
        }
    }

    /// Makes the exchange that was looked at last.
    pub(super) fn accept(&mut self) {
        self.lengths.iter_mut().zip(&self.deltas).for_each(|(length, delta)| *length += delta);
    }

    /// The length of the longest path.
    pub(super) fn longest(&self) -> i64 {
        self.lengths.iter().copied().max().unwrap_or(i64::MIN)
    }

    /// Adds a path in the placement that the search is at; the one that was of no use for longest goes.
    pub(super) fn add(&mut self, path: &Path, delays: &[i64]) {
        if self.counts.is_empty() {
            self.counts = vec![0; delays.len() * self.width];
        }
        let place = match self.lengths.len() < self.width {
            true => {
                self.links.push(Vec::new());
                self.lengths.push(0);
                self.used.push(0);
                self.lengths.len() - 1
            }
            false => (0..self.width).min_by_key(|&path| self.used[path]).unwrap_or(0),
        };
        for &link in &self.links[place] {
            self.counts[link as usize * self.width + place] = 0;
        }
        let (mut links, mut length) = (std::mem::take(&mut self.links[place]), path.fixed);
        links.clear();
        for &link in &path.links {
            length += delays[link as usize];
            let count = &mut self.counts[link as usize * self.width + place];
            *count += 1;
            if *count == 1 {
                links.push(link);
            }
        }
        self.links[place] = links;
        self.lengths[place] = length;
        self.used[place] = self.clock;
    }
}

impl Path {
    /// The path that a pass ended with: back from the last node of the rank that is late, always to what was waited for.
    pub(super) fn back(&mut self, problem: &RankProblem, pass: &Pass, delays: &[i64], late: Late) {
        let program = &problem.program;
        self.links.clear();
        self.fixed = late.tail;
        let nodes = program.nodes_of(late.rank);
        let mut at =
            nodes.partition_point(|&node| node < late.end).checked_sub(1).map_or(NOBODY, |last| nodes[last]);
        while at != NOBODY {
            self.fixed += problem.work.least[at as usize];
            let previous = program.previous[at as usize];
            let mut best = (
                if previous == NOBODY { i64::MIN } else { pass.finish[previous as usize] },
                previous,
                NOBODY,
            );
            let mut receives = (0, NOBODY);
            for message in program.incoming(at) {
                let (sent, delay) = (pass.finish[message.source as usize], delays[message.link as usize]);
                let arrives = match problem.model {
                    DelayModel::Overlap => (sent + delay, message.source, message.link),
                    DelayModel::Receive => (sent, message.source, NOBODY),
                };
                if delay > receives.0 {
                    receives = (delay, message.link);
                }
                if arrives.0 > best.0 {
                    best = arrives;
                }
            }
            let (time, before, mut link) = best;
            if problem.model == DelayModel::Receive {
                link = receives.1;
            }
            // A slot that can begin late outdoes whatever is before.
            let begins = before == NOBODY || time < pass.begin(program.rank[at as usize]);
            if link != NOBODY && (problem.model == DelayModel::Receive || !begins) {
                self.links.push(link);
            }
            at = if begins { NOBODY } else { before };
        }
        self.fixed += problem.earliest;
    }
}
