//! Programs of many ranks, as in a trace, and tree machines.

use std::collections::BTreeMap;

use hopmap_model::{
    CostModel, Dependency, Edge, Levels, Node, Process, Routing, Slot, SystemGraph, Task, TaskDag, TaskGraph,
    WorkUnit,
};

use crate::damage::Random;

/// A program under construction: the last task of every rank.
#[derive(Debug)]
pub struct Program {
    dag: TaskDag,
    last: Vec<Option<u32>>,
    numbers: Vec<u32>,
}

impl Program {
    /// A program with the given number of ranks; `scramble` permutes them, so that neighbours have no consecutive numbers.
    #[must_use]
    pub fn new(ranks: u32, scramble: bool) -> Self {
        let mut numbers: Vec<u32> = (0..ranks).collect();
        let mut state = 1u64;
        for end in (1..ranks as usize).rev().filter(|_| scramble) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            numbers.swap(end, (state >> 33) as usize % (end + 1));
        }
        Self {
            dag: TaskDag { unit: WorkUnit::Seconds, ..TaskDag::default() },
            last: vec![None; ranks as usize],
            numbers,
        }
    }

    /// A task of a rank after its last one; `inputs` are the tasks that send to it, with bytes.
    pub fn task(&mut self, rank: u32, work: f64, inputs: &[(u32, u64)]) -> u32 {
        let task = self.dag.tasks.len() as u32;
        self.dag.tasks.push(Task { rank: Some(self.numbers[rank as usize]), work });
        let before = self.last[rank as usize].replace(task).map(|last| (last, 0));
        let edge = |&(source, bytes): &(u32, u64)| Dependency { source, destination: task, bytes };
        self.dag.dependencies.extend(before.iter().chain(inputs).map(edge));
        task
    }

    /// The last tasks of some ranks.
    pub fn last(&self, ranks: impl IntoIterator<Item = u32>, bytes: u64) -> Vec<(u32, u64)> {
        ranks.into_iter().filter_map(|rank| Some((self.last[rank as usize]?, bytes))).collect()
    }

    /// A barrier: a task without work, followed by one task of every rank.
    pub fn join(&mut self, bytes: u64) {
        let ranks = 0..self.last.len() as u32;
        let before = self.last(ranks.clone().skip(1), bytes);
        let join = self.task(0, 0.0, &before);
        for rank in ranks.skip(1) {
            self.task(rank, 0.0, &[(join, bytes)]);
        }
    }

    /// The finished program.
    #[must_use]
    pub fn finish(mut self) -> TaskDag {
        self.dag.dependencies.sort_unstable();
        self.dag
    }
}

/// A stencil: in every iteration each rank exchanges messages with its four neighbours in a grid.
#[derive(Debug, Clone)]
pub struct Stencil {
    /// Ranks in a row.
    pub width: u32,
    /// Ranks in a column.
    pub height: u32,
    /// Number of exchanges with the neighbours.
    pub iterations: u32,
    /// Bytes to horizontal and to vertical neighbours.
    pub bytes: [u64; 2],
    /// Iterations between two reductions over all ranks, if there are any.
    pub sums: Option<u32>,
    /// Additional work of the last rank relative to the first, as a fraction.
    pub imbalance: f64,
    /// Whether numbers of ranks are permuted.
    pub scramble: bool,
}

impl Stencil {
    /// The tasks of all iterations.
    #[must_use]
    pub fn dag(&self) -> TaskDag {
        let (width, height) = (self.width, self.height);
        let ranks = width * height;
        let mut program = Program::new(ranks, self.scramble);
        for iteration in 0..self.iterations {
            let inputs = |rank: u32| {
                let (x, y) = (rank % width, rank / width);
                let neighbours = [x.checked_sub(1).map(|_| rank - 1), (x + 1 < width).then_some(rank + 1)];
                let above =
                    [y.checked_sub(1).map(|_| rank - width), (y + 1 < height).then_some(rank + width)];
                let mut inputs = program.last(neighbours.into_iter().flatten(), self.bytes[0]);
                inputs.extend(program.last(above.into_iter().flatten(), self.bytes[1]));
                inputs
            };
            let all: Vec<_> = (0..ranks).map(inputs).collect();
            for (rank, inputs) in (0..).zip(&all) {
                let work = 100e-6 * (1.0 + self.imbalance * f64::from(rank) / f64::from(ranks));
                program.task(rank, work, inputs);
            }
            if self.sums.is_some_and(|every| (iteration + 1) % every == 0) {
                program.join(8);
            }
        }
        program.finish()
    }
}

/// Wavefronts over a grid from changing corners: a rank waits for its horizontal and its vertical predecessor.
#[must_use]
pub fn sweep(width: u32, height: u32, waves: u32, bytes: u64, scramble: bool) -> TaskDag {
    let mut program = Program::new(width * height, scramble);
    for wave in 0..waves {
        let turned = |at: u32, size: u32, flip: bool| if flip { size - 1 - at } else { at };
        let rank = |x: u32, y: u32| {
            turned(y, height, wave / 4 % 2 == 1) * width + turned(x, width, wave / 2 % 2 == 1)
        };
        for y in 0..height {
            for x in 0..width {
                let before = [x.checked_sub(1).map(|x| rank(x, y)), y.checked_sub(1).map(|y| rank(x, y))];
                let inputs = program.last(before.into_iter().flatten(), bytes);
                program.task(rank(x, y), 20e-6, &inputs);
            }
        }
    }
    program.finish()
}

/// Teams of 16 computing ranks in a ring, which wait for small messages of both neighbours, and 16 writers that receive large
/// messages for which no task waits. The quadratic assignment problem counts the bytes, the makespan the waiting.
#[must_use]
pub fn writers(teams: u32, iterations: u32, scramble: bool) -> TaskDag {
    let mut program = Program::new(32 * teams, scramble);
    for _ in 0..iterations {
        let neighbours =
            |rank: u32| [(rank % 32 + 1) % 16, (rank % 32 + 15) % 16].map(|other| rank / 32 * 32 + other);
        let computing: Vec<u32> = (0..32 * teams).filter(|rank| rank % 32 < 16).collect();
        let inputs: Vec<_> = computing.iter().map(|&rank| program.last(neighbours(rank), 64)).collect();
        for (&rank, inputs) in computing.iter().zip(&inputs) {
            let task = program.task(rank, 5e-6, inputs);
            program.task(rank + 16, 1e-6, &[(task, 10_000)]);
        }
    }
    program.finish()
}

/// A torus in which every rank receives one message before every segment, in turns from one of its four neighbours.
#[must_use]
pub fn exchanges(width: u32, height: u32, segments: u32) -> TaskDag {
    let mut program = Program::new(width * height, false);
    for segment in 0..segments {
        let from = |rank: u32| {
            let (x, y) = (rank % width, rank / width);
            match segment % 4 {
                0 => y * width + (x + 1) % width,
                1 => (y + 1) % height * width + x,
                2 => y * width + (x + width - 1) % width,
                _ => (y + height - 1) % height * width + x,
            }
        };
        let inputs: Vec<_> = (0..width * height).map(|rank| program.last([from(rank)], 4096)).collect();
        for (rank, inputs) in (0..).zip(&inputs) {
            program.task(rank, 10e-6 + f64::from((rank * 7 + segment * 3) % 11) * 1e-7, inputs);
        }
    }
    program.finish()
}

/// Ranks that compute for unequal times and wait for messages of unequal sizes from `degree` fixed partners each.
#[must_use]
pub fn scattered(ranks: u32, degree: u32, iterations: u32, seed: u64) -> TaskDag {
    let mut random = Random(seed);
    let mut below = |bound: u32| random.below(bound as usize) as u32;
    let mut partners = |rank: u32| -> Vec<(u32, u64)> {
        (0..degree).map(|_| ((rank + 1 + below(ranks - 1)) % ranks, 1000 << below(8))).collect()
    };
    let partners: Vec<_> = (0..ranks).map(&mut partners).collect();
    let mut program = Program::new(ranks, false);
    for iteration in 0..iterations {
        let inputs = |of: &Vec<(u32, u64)>| {
            of.iter().flat_map(|&(from, bytes)| program.last([from], bytes)).collect::<Vec<_>>()
        };
        let inputs: Vec<_> = partners.iter().map(inputs).collect();
        for (rank, inputs) in (0..ranks).zip(&inputs) {
            program.task(rank, 1e-6 * f64::from(5 + (rank * 7 + iteration * 3) % 11), inputs);
        }
    }
    program.finish()
}

/// A tree: numbers of subgroups per level, innermost first; the last number is that of the largest groups. A slot is named after
/// its host, a group of the first level.
#[must_use]
pub fn tree(sizes: &[u32], costs: &[f64]) -> SystemGraph {
    let slots: u32 = sizes.iter().product();
    let mut size = 1;
    let groups = sizes.iter().map(|one| {
        size *= one;
        (0..slots).map(|slot| slot / size).collect()
    });
    let cores = sizes.first().copied().unwrap_or(1);
    SystemGraph {
        nodes: (0..slots / cores).map(|host| Node::host(format!("n{host}"))).collect(),
        links: Vec::new(),
        slots: (0..slots).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Levels(Levels { costs: costs.to_vec(), groups: groups.collect() }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// The communication matrix of a program: the messages between its ranks.
#[must_use]
pub fn messages(dag: &TaskDag) -> TaskGraph {
    let rank = |task: u32| dag.tasks[task as usize].rank.unwrap_or_default();
    let mut edges = BTreeMap::new();
    for message in &dag.dependencies {
        let ends = (rank(message.source), rank(message.destination));
        let (messages, bytes) = edges.entry(ends).or_insert((0, 0));
        *messages += 1;
        *bytes += message.bytes;
    }
    let edge = |((source, destination), (messages, bytes))| Edge { source, destination, messages, bytes };
    let edges = edges.into_iter().filter(|((from, to), _)| from != to).map(edge).collect();
    TaskGraph { processes: vec![Process::default(); dag.ranks() as usize], edges, ..TaskGraph::default() }
}
