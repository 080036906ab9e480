//! What a run would do, and what it would need.

use std::time::Instant;

use miette::Diagnostic;

use super::outcome::RunReport;
use super::save::save_outputs;
use super::settled::{Settled, State};
use super::store::Store;
use super::walk::{Decision, Walk};
use crate::pipeline::{Pipeline, show_bytes};

/// Says what a run would do. Writes nothing.
pub fn plan(pipeline: &Pipeline, store: &mut Store) -> RunReport {
    let started = Instant::now();
    let mut walk = Walk::new(pipeline, store);
    for index in 0..pipeline.cells.len() {
        let mut settled = match walk.decide(index, store) {
            Decision::Settle(settled) => *settled,
            Decision::Execute(task) => {
                Settled { reasons: task.reasons, key: Some(task.key), ..Settled::new(State::WouldRun) }
            }
        };
        let cell = &pipeline.cells[index];
        save_outputs(cell, &mut settled, &walk.id, store, None);
        walk.settled[index] = Some(settled.located(pipeline, cell));
    }
    RunReport {
        cells: walk.settled.into_iter().flatten().collect(),
        folder: None,
        interrupted: false,
        seconds: started.elapsed().as_secs_f64(),
        tables: Vec::new(),
        gates: Vec::new(),
        held: Vec::new(),
    }
}

/// A cell that this machine has too little memory for.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("stage `{cell}` ({place}) needs {needed} of memory, and there are {there}")]
#[diagnostic(help(
    "run it where there is more, with a `launcher` such as \"sbatch -n 1\" for example; --memory says how much may be used here"
))]
pub struct TooLarge {
    cell: String,
    place: String,
    needed: String,
    there: String,
}

/// Refuses a pipeline with a cell that would run and is larger than the memory there is.
pub fn check_memory(pipeline: &Pipeline, store: &mut Store, memory: Option<u64>) -> Result<(), TooLarge> {
    let Some(there) = memory else { return Ok(()) };
    if pipeline.cells.iter().all(|cell| cell.memory_here() <= there) {
        return Ok(());
    }
    let cells = plan(pipeline, store).cells;
    let would_run = |state: State| matches!(state, State::WouldRun | State::Waits);
    let mut pairs = pipeline.cells.iter().zip(&cells);
    match pairs.find(|(cell, settled)| cell.memory_here() > there && would_run(settled.state)) {
        None => Ok(()),
        Some((cell, _)) => Err(TooLarge {
            cell: cell.id.clone(),
            place: pipeline.place(cell),
            needed: show_bytes(cell.memory_here()),
            there: show_bytes(there),
        }),
    }
}
