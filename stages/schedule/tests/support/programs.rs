//! Programs of many ranks, as in a trace, and tree machines.
#![allow(dead_code, reason = "each user needs only some of it")]

use hopmap_model::{CostModel, Dependency, Levels, Node, Routing, Slot, SystemGraph, Task, TaskDag};

/// A program under construction: the last task of every rank.
pub(crate) struct Program {
    dag: TaskDag,
    last: Vec<Option<u32>>,
    numbers: Vec<u32>,
}

impl Program {
    /// A program with the given number of ranks; `scramble` permutes them, so that neighbours have no consecutive numbers.
    pub(crate) fn new(ranks: u32, scramble: bool) -> Self {
        let mut numbers: Vec<u32> = (0..ranks).collect();
        let mut state = 1u64;
        for end in (1..ranks as usize).rev().filter(|_| scramble) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            numbers.swap(end, (state >> 33) as usize % (end + 1));
        }
        Self { dag: TaskDag::default(), last: vec![None; ranks as usize], numbers }
    }

    /// A task of a rank after its last one; `inputs` are the tasks that send to it, with bytes.
    pub(crate) fn task(&mut self, rank: u32, work: f64, inputs: &[(u32, u64)]) -> u32 {
        let task = self.dag.tasks.len() as u32;
        self.dag.tasks.push(Task { rank: Some(self.numbers[rank as usize]), work });
        let before = self.last[rank as usize].replace(task).map(|last| (last, 0));
        let edge = |&(source, bytes): &(u32, u64)| Dependency { source, destination: task, bytes };
        self.dag.dependencies.extend(before.iter().chain(inputs).map(edge));
        task
    }

    /// The last tasks of some ranks.
    pub(crate) fn last(&self, ranks: impl IntoIterator<Item = u32>, bytes: u64) -> Vec<(u32, u64)> {
        ranks.into_iter().filter_map(|rank| Some((self.last[rank as usize]?, bytes))).collect()
    }

    /// A barrier: a task without work, followed by one task of every rank.
    pub(crate) fn join(&mut self, bytes: u64) {
        let ranks = 0..self.last.len() as u32;
        let before = self.last(ranks.clone().skip(1), bytes);
        let join = self.task(0, 0.0, &before);
        for rank in ranks.skip(1) {
            self.task(rank, 0.0, &[(join, bytes)]);
        }
    }

    /// The finished program.
    pub(crate) fn finish(mut self) -> TaskDag {
        self.dag.dependencies.sort_unstable();
        self.dag
    }
}

/// A stencil: in every iteration each rank exchanges messages with its four neighbours in a grid.
pub(crate) struct Stencil {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) iterations: u32,
    /// Bytes to horizontal and to vertical neighbours.
    pub(crate) bytes: [u64; 2],
    /// Iterations between two reductions over all ranks, if there are any.
    pub(crate) sums: Option<u32>,
    /// Additional work of the last rank relative to the first, as a fraction.
    pub(crate) imbalance: f64,
    pub(crate) scramble: bool,
}

impl Stencil {
    pub(crate) fn dag(&self) -> TaskDag {
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
pub(crate) fn sweep(width: u32, height: u32, waves: u32, bytes: u64, scramble: bool) -> TaskDag {
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
pub(crate) fn writers(teams: u32, iterations: u32, scramble: bool) -> TaskDag {
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
pub(crate) fn exchanges(width: u32, height: u32, segments: u32) -> TaskDag {
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

/// A tree: numbers of subgroups per level, innermost first; the last number is that of the largest groups. A slot is named after
/// its host, a group of the first level.
pub(crate) fn tree(sizes: &[u32], costs: &[f64]) -> SystemGraph {
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
