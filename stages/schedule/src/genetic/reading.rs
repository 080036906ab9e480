//! From genes to plans.

use crate::Problem;
use crate::search::Costs;

/// What of a plan PARUS keeps for every task: its processor, and its rank, a number that says whose turn is first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Genes {
    pub(super) processor: Vec<u32>,
    pub(super) rank: Vec<u32>,
}

/// Reads genes as plans; keeps the room that this takes.
#[derive(Debug, Clone)]
pub(super) struct Reader<'c, C> {
    costs: &'c C,
    /// The tasks by their ranks, and where every task stands among them.
    sorted: Vec<u32>,
    place: Vec<u32>,
    counts: Vec<u32>,
    /// How many others every task still waits for.
    waiting: Vec<u32>,
    /// The task whose turn is next after every task.
    after: Vec<u32>,
    /// Places of tasks that wait for nothing, a bit for each.
    ready: Vec<u64>,
    order: Vec<u32>,
    finish: Vec<i64>,
    free: Vec<i64>,
}

const NONE: u32 = u32::MAX;

impl<'c, C: Costs> Reader<'c, C> {
    pub(super) fn new(costs: &'c C) -> Self {
        let tasks = costs.problem().tasks();
        Self {
            costs,
            sorted: vec![0; tasks],
            place: vec![0; tasks],
            counts: vec![0; tasks + 1],
            waiting: vec![0; tasks],
            after: vec![NONE; tasks],
            ready: vec![0; tasks.div_ceil(64)],
            order: Vec::with_capacity(tasks),
            finish: vec![0; tasks],
            free: costs.problem().available().to_vec(),
        }
    }

    pub(super) fn problem(&self) -> &'c Problem {
        self.costs.problem()
    }

    /// The order that was read last.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The tasks by rank, then by number. Ranks are below the number of tasks.
    fn sort(&mut self, rank: &[u32]) {
        self.counts.fill(0);
        for &rank in rank {
            self.counts[rank as usize + 1] += 1;
        }
        for at in 1..self.counts.len() {
            self.counts[at] += self.counts[at - 1];
        }
        for (task, &rank) in (0..).zip(rank) {
            let place = &mut self.counts[rank as usize];
            self.sorted[*place as usize] = task;
            self.place[task as usize] = *place;
            *place += 1;
        }
    }

    /// Ranks as priorities: of all tasks that wait for nothing the one with the lowest rank comes next. The ranks become those of
    /// the order that comes of it.
    pub(super) fn repair(&mut self, genes: &mut Genes) {
        self.sort(&genes.rank);
        let graph = self.costs.graph();
        self.order.clear();
        self.ready.fill(0);
        for task in 0..self.waiting.len() {
            self.waiting[task] = graph.parents(task as u32).len() as u32;
            if self.waiting[task] == 0 {
                let place = self.place[task] as usize;
                self.ready[place / 64] |= 1 << (place % 64);
            }
        }
        let mut word = 0;
        while word < self.ready.len() {
            let bits = self.ready[word];
            if bits == 0 {
                word += 1;
                continue;
            }
            self.ready[word] = bits & (bits - 1);
            let task = self.sorted[word * 64 + bits.trailing_zeros() as usize];
            genes.rank[task as usize] = self.order.len() as u32;
            self.order.push(task);
            for &child in graph.children(task) {
                let left = &mut self.waiting[child as usize];
                *left -= 1;
                if *left == 0 {
                    let place = self.place[child as usize] as usize;
                    self.ready[place / 64] |= 1 << (place % 64);
                    word = word.min(place / 64);
                }
            }
        }
    }

    /// Ranks as turns on the processors; `false` if the tasks then wait for each other in a circle.
    pub(super) fn accept(&mut self, genes: &Genes) -> bool {
        self.sort(&genes.rank);
        let graph = self.costs.graph();
        let mut last = vec![NONE; self.free.len()];
        self.after.fill(NONE);
        self.order.clear();
        for &task in &self.sorted {
            let before = std::mem::replace(&mut last[genes.processor[task as usize] as usize], task);
            if before != NONE {
                self.after[before as usize] = task;
            }
            let waits = graph.parents(task).len() as u32 + u32::from(before != NONE);
            self.waiting[task as usize] = waits;
            if waits == 0 {
                self.order.push(task);
            }
        }
        let mut next = 0;
        while let Some(&task) = self.order.get(next) {
            next += 1;
            let after = Some(self.after[task as usize]).filter(|&after| after != NONE);
            for &child in graph.children(task).iter().chain(&after) {
                let left = &mut self.waiting[child as usize];
                *left -= 1;
                if *left == 0 {
                    self.order.push(child);
                }
            }
        }
        self.order.len() == self.waiting.len()
    }

    /// The makespan of the order that was read last on these processors.
    pub(super) fn makespan(&mut self, processor: &[u32]) -> i64 {
        self.free.copy_from_slice(self.costs.problem().available());
        let mut makespan = 0;
        for &task in &self.order {
            let on = processor[task as usize];
            let free = &mut self.free[on as usize];
            *free = self.costs.finish(task, on, *free, &self.finish, processor);
            self.finish[task as usize] = *free;
            makespan = makespan.max(*free);
        }
        makespan
    }
}
