//! Orders that `check_schedule` of PARUS accepts.
//!
//! In each round every processor takes its next turn, in the order of processors. The check rejects a task if one of its
//! predecessors has not had its turn yet, although the processes of a real run would wait. If an order is rejected, first the
//! processors are renumbered, which costs nothing if they are identical. Otherwise tasks are dealt turn by turn as PARUS reads
//! them, which gives only accepted orders. Threshold accepting (Dueck and Scheuer 1990) over processors and priorities of the
//! dealing minimises the makespan.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use hopmap_model::{Context, Schedule, ScheduledTask, TaskDag, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_text::decimal;

use super::program::{Program, earliest_times};

/// The kind of the stage, from which the search derives its random stream.
pub(crate) const KIND: &str = "schedule/check";
/// Steps of the search, and total number of dealt tasks.
const MOST_STEPS: usize = 20_000;
const MOST_DEALT: usize = 4_000_000;
/// Initial threshold relative to the makespan.
const FIRST_THRESHOLD: f64 = 0.05;

/// Whether `check_schedule` accepts the order: a task comes in a later turn than its predecessors, or in the same turn of a later
/// processor.
pub(crate) fn accepts(dag: &TaskDag, turns: &[Vec<u32>]) -> bool {
    let place = places(dag, turns);
    dag.dependencies.iter().all(|edge| place[edge.source as usize] < place[edge.destination as usize])
}

/// The turn of every task, and its processor.
fn places(dag: &TaskDag, turns: &[Vec<u32>]) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 0); dag.tasks.len()];
    for (processor, tasks) in turns.iter().enumerate() {
        tasks.iter().enumerate().for_each(|(turn, &task)| places[task as usize] = (turn, processor));
    }
    places
}

/// The schedule itself if PARUS accepts its order, otherwise the best accepted one found. If ranks stay together on their
/// processors there may be none.
pub(super) fn ordered(program: &Program<'_>, schedule: Schedule, stays: bool, cx: &Context<'_>) -> Schedule {
    let turns = schedule.turns();
    if accepts(program.dag, &turns) {
        return schedule;
    }
    let given = schedule.makespan();
    let mut best: Option<(f64, Vec<ScheduledTask>)> = None;
    if let Some(turns) = renumbered(program.dag, &turns) {
        keep(&mut best, program, &turns);
    }
    if !stays && !is_enough(best.as_ref(), given) {
        search(program, &turns, given, &mut best);
    }
    let Some((makespan, tasks)) = best else {
        cx.log("`check_schedule` of PARUS rejects this order, and ranks that stay together allow no other");
        return schedule;
    };
    cx.log(format_args!(
        "`check_schedule` of PARUS rejects this order; the makespan of an accepted one is {} instead of {}",
        decimal(makespan),
        decimal(given)
    ));
    let mut metrics = schedule.metrics;
    metrics.retain(|name, _| matches!(name.as_str(), "lower_bound" | "evaluations"));
    // `available` in a schedule may be rounded up, but the new times are from the machine.
    Schedule {
        tasks,
        processors: program.machine.processors.clone(),
        metrics,
        convergence: Vec::new(),
        ..schedule
    }
}

/// Whether the original makespan is reached.
fn is_enough(best: Option<&(f64, Vec<ScheduledTask>)>, given: f64) -> bool {
    best.is_some_and(|(makespan, _)| *makespan <= given * (1.0 + 1e-12))
}

/// Keeps an order if it is better; returns its makespan.
fn keep(best: &mut Option<(f64, Vec<ScheduledTask>)>, program: &Program<'_>, turns: &[Vec<u32>]) -> f64 {
    let Ok(tasks) = earliest_times(program, turns) else { return f64::INFINITY };
    let makespan = tasks.iter().map(|task| task.finish).fold(0.0, f64::max);
    if best.as_ref().is_none_or(|(other, _)| makespan < *other) {
        *best = Some((makespan, tasks));
    }
    makespan
}

/// The same turns on renumbered processors: of tasks in the same turn, predecessors come first.
fn renumbered(dag: &TaskDag, turns: &[Vec<u32>]) -> Option<Vec<Vec<u32>>> {
    let place = places(dag, turns);
    let mut before = vec![BTreeSet::new(); turns.len()];
    for edge in &dag.dependencies {
        let [(source, from), (destination, to)] =
            [edge.source, edge.destination].map(|task| place[task as usize]);
        if source > destination {
            return None;
        }
        if source == destination {
            before[to].insert(from);
        }
    }
    let mut left: BTreeSet<usize> = (0..turns.len()).collect();
    let mut numbered = Vec::with_capacity(turns.len());
    while !left.is_empty() {
        let next = *left.iter().find(|&&one| before[one].is_disjoint(&left))?;
        left.remove(&next);
        numbered.push(turns[next].clone());
    }
    Some(numbered)
}

/// Settings of the dealing: the processor of each task, and the priorities.
#[derive(Clone)]
struct Hand {
    on: Vec<u32>,
    priority: Vec<u32>,
}

impl Hand {
    /// Tasks in the order in which they were dealt.
    fn of(turns: &[Vec<u32>], tasks: usize) -> Self {
        let mut hand = Self { on: vec![0; tasks], priority: vec![0; tasks] };
        let longest = turns.iter().map(Vec::len).max().unwrap_or_default();
        let mut next = 0;
        for turn in 0..longest {
            for (processor, tasks) in (0..).zip(turns) {
                let Some(&task) = tasks.get(turn) else { continue };
                (hand.on[task as usize], hand.priority[task as usize]) = (processor, next);
                next += 1;
            }
        }
        hand
    }

    /// Moves a task, or swaps two tasks or two processors.
    fn change(&mut self, processors: usize, random: &mut Pcg64) {
        let tasks = self.on.len();
        match random.below(3) {
            0 => self.on[random.below(tasks)] = random.below(processors) as u32,
            1 => self.priority.swap(random.below(tasks), random.below(tasks)),
            _ => {
                let [one, other] = [0; 2].map(|_| random.below(processors) as u32);
                for on in &mut self.on {
                    *on = match *on {
                        on if on == one => other,
                        on if on == other => one,
                        on => on,
                    };
                }
            }
        }
    }

    /// Deals turn by turn: every processor gets the first of its ready tasks. One without a ready task gets no more turns,
    /// because PARUS has no empty ones; its remaining tasks go to processors that run out of their own.
    fn deal(&self, program: &Program<'_>, starts: &[usize], processors: usize) -> Vec<Vec<u32>> {
        let dag = program.dag;
        let mut waiting: Vec<usize> =
            (0..self.on.len() as u32).map(|task| program.messages(task).len()).collect();
        // The last heap contains tasks of processors that get no more turns.
        let mut ready = vec![BinaryHeap::new(); processors + 1];
        let mut is_open = vec![true; processors];
        let entry = |task: u32| Reverse((self.priority[task as usize], task));
        for task in (0..self.on.len() as u32).filter(|&task| waiting[task as usize] == 0) {
            ready[self.on[task as usize] as usize].push(entry(task));
        }
        let mut turns = vec![Vec::new(); processors];
        let mut left = self.on.len();
        while left > 0 {
            for (processor, turns) in turns.iter_mut().enumerate() {
                if !is_open[processor] {
                    continue;
                }
                let Some(Reverse((_, task))) = ready[processor].pop().or_else(|| ready[processors].pop())
                else {
                    is_open[processor] = false;
                    continue;
                };
                turns.push(task);
                left -= 1;
                for edge in &dag.dependencies[starts[task as usize]..starts[task as usize + 1]] {
                    let next = edge.destination as usize;
                    waiting[next] -= 1;
                    if waiting[next] == 0 {
                        let own = self.on[next] as usize;
                        ready[if is_open[own] { own } else { processors }].push(entry(edge.destination));
                    }
                }
            }
        }
        turns
    }
}

/// Searches for orders, starting from those nearest to the given one and from all tasks on one processor.
fn search(
    program: &Program<'_>,
    turns: &[Vec<u32>],
    given: f64,
    best: &mut Option<(f64, Vec<ScheduledTask>)>,
) {
    let (tasks, processors, starts) = (program.dag.tasks.len(), turns.len(), program.dag.starts());
    let steps = (MOST_DEALT / (tasks + processors)).clamp(1, MOST_STEPS);
    let first = by_start(program, turns, tasks);
    let mut hands: Vec<Hand> = vec![first.clone()];
    hands.extend((0..processors.min(steps)).map(|one| Hand { on: vec![one as u32; tasks], ..first.clone() }));
    let dealt: Vec<Vec<Vec<u32>>> =
        hands.iter().map(|hand| hand.deal(program, &starts, processors)).collect();
    let times: Vec<f64> = dealt.iter().map(|turns| keep(best, program, turns)).collect();
    let Some(at) = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])) else { return };
    let (mut hand, mut time) = (Hand::of(&dealt[at], tasks), times[at]);
    let mut random = Pcg64::from_seed(seed_stream(KIND, 0, 0));
    for step in 0..steps {
        if is_enough(best.as_ref(), given) {
            return;
        }
        let threshold = FIRST_THRESHOLD * (1.0 - step as f64 / steps as f64);
        let mut next = hand.clone();
        next.change(processors, &mut random);
        let turns = next.deal(program, &starts, processors);
        let found = keep(best, program, &turns);
        if found <= time * (1.0 + threshold) {
            (hand, time) = (Hand::of(&turns, tasks), found);
        }
    }
}

/// The processors of an order, and the tasks by earliest start.
fn by_start(program: &Program<'_>, turns: &[Vec<u32>], tasks: usize) -> Hand {
    let mut hand = Hand::of(turns, tasks);
    if let Ok(times) = earliest_times(program, turns) {
        let mut sorted: Vec<u32> = (0..tasks as u32).collect();
        sorted.sort_by(|&a, &b| {
            let [a, b] = [a, b].map(|task| &times[task as usize]);
            a.start.total_cmp(&b.start).then(a.turn.cmp(&b.turn))
        });
        (0..).zip(sorted).for_each(|(place, task)| hand.priority[task as usize] = place);
    }
    hand
}
