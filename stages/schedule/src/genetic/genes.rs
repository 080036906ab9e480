//! Genes: random initialisation, mutation, crossover, and decoding to plans.

use hopmap_random::{Pcg64, Rng, index_below};

use super::rules::Rules;
use crate::costs::Costs;
use crate::problem::Problem;

/// No task.
const NONE: u32 = u32::MAX;

/// The genes of PARUS for every task: its processor, and its rank, a number that determines the order.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Genes {
    pub(super) processor: Vec<u32>,
    pub(super) rank: Vec<u32>,
}

/// Random processors and random ranks; decoded as priorities they are a random plan.
pub(super) fn draw_genes(tasks: usize, processors: usize, random: &mut Pcg64) -> Genes {
    let mut rank: Vec<u32> = (0..tasks as u32).collect();
    for last in (1..tasks).rev() {
        rank.swap(last, index_below(random.next_u32(), last + 1));
    }
    let processor = (0..tasks).map(|_| index_below(random.next_u32(), processors) as u32).collect();
    Genes { processor, rank }
}

/// A random number between half and one and a half times the mean.
pub(super) fn draw_around(mean: f64, random: &mut Pcg64) -> usize {
    let part = 0.5 + f64::from(random.next_u32()) / 4_294_967_296.0;
    (part * mean).round() as usize
}

/// Mutates some genes: another processor, another rank, or both.
pub(super) fn mutate(genes: &mut Genes, processors: usize, rules: &Rules, random: &mut Pcg64) {
    let tasks = genes.rank.len();
    for _ in 0..draw_around(rules.mutation_genes * tasks as f64, random).max(1) {
        let gene = index_below(random.next_u32(), tasks);
        if happens(random, rules.mutation_processor) {
            genes.processor[gene] = index_below(random.next_u32(), processors) as u32;
        }
        if happens(random, rules.mutation_priority) {
            genes.rank[gene] = index_below(random.next_u32(), tasks) as u32;
        }
    }
}

/// Two children of a multi-point crossover: one takes alternating segments of both parents, the other takes the complement.
pub(super) fn cross(one: &Genes, other: &Genes, rules: &Rules, random: &mut Pcg64) -> [Genes; 2] {
    let tasks = one.rank.len();
    let points = draw_around(f64::from(rules.crossover_points), random).max(1);
    let mut points: Vec<usize> = (0..points).map(|_| index_below(random.next_u32(), tasks)).collect();
    points.push(tasks);
    points.sort_unstable();
    let [mut first, mut second] = [one.clone(), other.clone()];
    for pair in points.chunks_exact(2) {
        let segment = pair[0]..pair[1];
        first.processor[segment.clone()].swap_with_slice(&mut second.processor[segment.clone()]);
        first.rank[segment.clone()].swap_with_slice(&mut second.rank[segment]);
    }
    [first, second]
}

/// A Bernoulli trial.
fn happens(random: &mut Pcg64, probability: f64) -> bool {
    f64::from(random.next_u32()) < probability * 4_294_967_296.0
}

/// Decodes genes to plans, with reusable buffers.
#[derive(Debug, Clone)]
pub(super) struct Reader<'c, C> {
    costs: &'c C,
    /// The tasks by rank, and the position of every task in that order.
    sorted: Vec<u32>,
    place: Vec<u32>,
    counts: Vec<u32>,
    /// Number of unscheduled predecessors of every task.
    waiting: Vec<u32>,
    /// The next task on the processor of every task.
    after: Vec<u32>,
    /// Bit set of positions of ready tasks.
    ready: Vec<u64>,
    order: Vec<u32>,
    finish: Vec<i64>,
    free: Vec<i64>,
}

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

    /// The last decoded order.
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

    /// Decodes ranks as priorities: the ready task with the lowest rank is next. The ranks become those of the resulting order.
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

    /// Decodes ranks as turns on the processors; `false` if the tasks then wait for each other in a cycle.
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

    /// The makespan of the last decoded order on these processors.
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

#[cfg(test)]
mod tests {
    use hopmap_random::SeedableRng;

    use super::*;
    use crate::formats::ini::SchIni;
    use crate::tests::diamond;

    #[test]
    fn children_have_complete_entries_of_both_parents() {
        let params = serde_json::from_value(serde_json::json!({ "crossover_points": 3 })).unwrap();
        let rules = Rules::new(&params, &SchIni::default(), &diamond());
        let mut numbers = Pcg64::from_seed([3; 32]);
        let [one, other] = [0, 1].map(|parent| Genes { processor: vec![parent; 20], rank: vec![parent; 20] });
        let mut seen = [false; 2];
        for _ in 0..50 {
            let [child, sibling] = cross(&one, &other, &rules, &mut numbers);
            assert_eq!(child.processor, child.rank);
            // The children are complementary.
            assert!(child.rank.iter().zip(&sibling.rank).all(|(one, other)| one + other == 1));
            assert_eq!(sibling.processor, sibling.rank);
            child.rank.iter().for_each(|&parent| seen[parent as usize] = true);
            let changes = child.rank.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 5, "{changes}");
        }
        assert_eq!(seen, [true; 2]);
    }

    #[test]
    fn mutants_change_only_the_allowed_genes() {
        let value =
            serde_json::json!({ "mutation_processor": 0.0, "mutation_priority": 1.0, "mutation_genes": 0.1 });
        let params = serde_json::from_value(value).unwrap();
        let rules = Rules::new(&params, &SchIni::default(), &diamond());
        let mut numbers = Pcg64::from_seed([4; 32]);
        let start = draw_genes(40, 3, &mut numbers);
        let mut mutant = start.clone();
        mutate(&mut mutant, 3, &rules, &mut numbers);
        assert_eq!(mutant.processor, start.processor);
        let changed = mutant.rank.iter().zip(&start.rank).filter(|(a, b)| a != b).count();
        assert!((1..=6).contains(&changed), "{changed}");
    }
}
