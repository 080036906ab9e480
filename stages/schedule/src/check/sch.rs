//! Schedules of PARUS, which say who runs what and in which order, and no times.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use hopmap_model::{Error, Schedule};

use super::program::Program;
use super::{CheckError, order};
use crate::export::sch::node_numbers;
use crate::formats::MOST_BYTES;
use crate::formats::sch::Sch;

const ANOTHER_GRAPH: &str = "the `.sch` is for another graph: import the `.grf` that it was made from";

/// The schedule in a file, with the earliest times.
pub(super) fn schedule(program: &Program<'_>, path: &Path) -> Result<Schedule, Error> {
    let bytes = hopmap_text::read(path, MOST_BYTES)?;
    let sch = Sch::read(&bytes).map_err(|error| error.in_file(path))?;
    Ok(of_sch(program, &sch)?)
}

/// The schedule with the earliest times.
pub(super) fn of_sch(program: &Program<'_>, sch: &Sch) -> Result<Schedule, CheckError> {
    let turns = turns(program, sch)?;
    Ok(Schedule {
        tasks: order::earliest(program, &turns)?,
        processors: program.machine.processors.clone(),
        names: program.dag.names.clone(),
        model: program.model,
        metrics: BTreeMap::new(),
        convergence: Vec::new(),
        complete: true,
    })
}

/// The tasks of every processor in their order.
fn turns(program: &Program<'_>, sch: &Sch) -> Result<Vec<Vec<u32>>, CheckError> {
    let processors = program.machine.processors.len();
    let numbers = node_numbers(&program.dag.names, program.dag.tasks.len());
    let mut task_of: HashMap<u64, u32> = numbers.iter().copied().zip(0..).collect();
    let mut turns = vec![None; processors];
    for processor in &sch.processors {
        let index = processor.name.checked_sub(1).filter(|&index| index < processors as u64);
        let Some(turns) = index.and_then(|index| turns.get_mut(index as usize)) else {
            return Err(CheckError::new(
                format!(
                    "there is no processor {}: the machine has {processors}, counted from 1",
                    processor.name
                ),
                "describe the machine that the `.sch` was made for with `processors`, `procs`, `network` or a `system`; \
                 process 0 of PARUS is its coordinator and runs no task (`coordinator = true`)",
            ));
        };
        let mut tasks = Vec::with_capacity(processor.nodes.len());
        for node in &processor.nodes {
            let task = task_of.remove(node).ok_or_else(|| match numbers.contains(node) {
                true => CheckError::new(format!("node {node} stands twice in the schedule"), ANOTHER_GRAPH),
                false => CheckError::new(
                    format!("node {node} of the schedule is no task of the program"),
                    ANOTHER_GRAPH,
                ),
            })?;
            tasks.push(task);
        }
        if turns.replace(tasks).is_some() {
            return Err(CheckError::new(
                format!("processor {} stands twice in the schedule", processor.name),
                "leave one of them out, or give it another name",
            ));
        }
    }
    match task_of.values().min() {
        Some(&task) => Err(CheckError::new(
            format!("{} is not in the schedule{}", program.name(task), others(task_of.len() - 1)),
            ANOTHER_GRAPH,
        )),
        None => Ok(turns.into_iter().map(Option::unwrap_or_default).collect()),
    }
}

fn others(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", nor are {count} others") }
}
