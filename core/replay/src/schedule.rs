//! A placement written down as a schedule of all tasks.

use std::collections::BTreeMap;

use hopmap_model::{DelayModel, Processor, Schedule, ScheduledTask, TaskDag};

use crate::problem::{MakespanEvaluator, ReplayProblem};
use crate::program::NONE;

/// When a node begins, and the node that it waits for.
struct Begin {
    start: i64,
    waits_for: Option<u32>,
}

impl ReplayProblem {
    /// When and where every task of the program runs in a placement, those in the middle of a node included, without metrics. `dag` and
    /// `processors` are those that the problem was made of.
    #[must_use]
    pub fn schedule(&self, dag: &TaskDag, processors: &[Processor], slots: &[u32]) -> Schedule {
        let program = &self.program;
        let mut evaluator = MakespanEvaluator::new(self);
        let _ = evaluator.makespan(slots);
        let idle =
            ScheduledTask { processor: 0, turn: 0, start: 0.0, finish: 0.0, waits_for: None, process: None };
        let mut tasks = vec![idle; dag.tasks.len()];
        let mut turns = vec![0; self.ranks()];
        for node in 0..program.nodes() as u32 {
            let rank = program.rank[node as usize];
            let slot = slots[rank as usize];
            let Begin { start, waits_for } = begin(&evaluator, self, node, slot);
            let finish = evaluator.finish()[node as usize];
            let mut waits_for = waits_for.and_then(|other| program.tasks(other).last().copied());
            // Of the first task the time also counts in which messages come in: whatever is not the work of the others.
            let own = program.tasks(node);
            let rest: i64 =
                own[1..].iter().map(|&task| self.task_ticks(dag.tasks[task as usize].work, slot)).sum();
            let (mut begins, mut done) = (start, finish - rest);
            for (place, &task) in own.iter().enumerate() {
                if place > 0 {
                    begins = done;
                    done += self.task_ticks(dag.tasks[task as usize].work, slot);
                }
                let turn = &mut turns[rank as usize];
                tasks[task as usize] = ScheduledTask {
                    processor: slot,
                    turn: *turn,
                    start: self.real(begins),
                    finish: self.real(done),
                    waits_for,
                    process: dag.tasks[task as usize].rank,
                };
                *turn += 1;
                waits_for = Some(task);
            }
        }
        // In whole ticks, as tasks begin; else one could begin a rounding before its processor.
        let processor = |(one, &available): (&Processor, &i64)| Processor {
            available: self.real(available),
            ..one.clone()
        };
        Schedule {
            tasks,
            processors: processors.iter().zip(&self.costs.slots.available).map(processor).collect(),
            names: dag.names.clone(),
            model: self.model(),
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }
}

/// When a node begins, and why not earlier: because of a message rather than of its turn, where both are as late.
fn begin(evaluator: &MakespanEvaluator<'_>, problem: &ReplayProblem, node: u32, slot: u32) -> Begin {
    let mut begin = Begin { start: problem.available(slot), waits_for: None };
    let mut wait = |time: i64, node: u32| {
        if time > begin.start || (time == begin.start && begin.waits_for.is_none()) {
            begin = Begin { start: time, waits_for: Some(node) };
        }
    };
    for message in problem.program.incoming(node) {
        let delay = match problem.model() {
            DelayModel::Overlap => evaluator.delays()[message.channel as usize],
            DelayModel::Receive => 0,
        };
        wait(evaluator.finish()[message.source as usize] + delay, message.source);
    }
    let previous = problem.program.previous[node as usize];
    if previous != NONE {
        wait(evaluator.finish()[previous as usize], previous);
    }
    begin
}
