//! Search for the slots of ranks whose tasks stay together and in order, as in a trace.
//!
//! Every rank takes its own slot, so a placement is the slot of every rank; the objective is the makespan. A quadratic
//! assignment problem sums the costs of all messages; the makespan counts only those that delay a task.

mod auto;
mod exact;
mod genetic;
mod search;
mod starts;
#[cfg(test)]
mod tests;

use hopmap_model::{Error, Mapping, Schedule, SystemGraph, Weight};

use crate::error::{InvalidInput, invalid};
pub use auto::auto;
pub use exact::exact;
pub use genetic::genetic;
pub use search::RankSearch;
pub use starts::{Start, list, starts};

/// The slots of the ranks of a schedule, with its metrics. A rank without tasks takes the first free slot.
pub fn mapping(schedule: &Schedule, system: &SystemGraph) -> Result<Mapping, Error> {
    let mut mapping = Mapping::new(&slots(schedule, system)?, system, Weight::default())?;
    mapping.metrics.clone_from(&schedule.metrics);
    mapping.metrics.entry("makespan".into()).or_insert_with(|| schedule.makespan());
    mapping.convergence.clone_from(&schedule.convergence);
    mapping.complete = schedule.complete;
    Ok(mapping)
}

/// The slot of every process.
fn slots(schedule: &Schedule, system: &SystemGraph) -> Result<Vec<u32>, InvalidInput> {
    let name = |processor: u32| &schedule.processors[processor as usize].name;
    let no_slot = |process: u32| {
        InvalidInput::new(format!("process {process} has no task, and no slot is free for it"), "")
    };
    let mut processors: Vec<Option<u32>> = Vec::new();
    for (task, scheduled) in schedule.tasks.iter().enumerate() {
        let Some(process) = scheduled.process else {
            let problem =
                format!("task {task} of the schedule has no process, so the schedule defines no mapping");
            let help = "use the schedule of a trace; that of a task graph has no processes";
            return invalid(problem, help);
        };
        if process as usize >= processors.len() {
            if process as usize >= system.slots.len() {
                return Err(no_slot(process));
            }
            processors.resize(process as usize + 1, None);
        }
        let own = *processors[process as usize].get_or_insert(scheduled.processor);
        if own != scheduled.processor {
            let [first, second] = [own, scheduled.processor].map(name);
            let problem = format!("process {process} runs on `{first}` and on `{second}`");
            return invalid(problem, "compute the schedule with `ranks = \"together\"`");
        }
    }
    let mut is_free = vec![true; system.slots.len()];
    let mut slots = vec![None; processors.len()];
    for (process, &processor) in processors.iter().enumerate() {
        let Some(processor) = processor else { continue };
        let Some(slot) = slot(schedule, system, processor) else {
            let name = name(processor);
            let problem =
                format!("process {process} runs on processor `{name}`, which is not a slot of the machine");
            return invalid(problem, "connect the `system` of the schedule");
        };
        is_free[slot as usize] = false;
        slots[process] = Some(slot);
    }
    let mut free = (0u32..).zip(is_free).filter(|(_, is_free)| *is_free).map(|(slot, _)| slot);
    let slots = (0..).zip(slots);
    slots.map(|(process, slot)| slot.or_else(|| free.next()).ok_or_else(|| no_slot(process))).collect()
}

/// The slot of a processor, if the machine has one of the same name.
fn slot(schedule: &Schedule, system: &SystemGraph, processor: u32) -> Option<u32> {
    let processor = &schedule.processors[processor as usize];
    let slot = processor.slot?;
    let place = system.slots.get(slot as usize)?;
    let name = format!("{}:{}", system.nodes.get(place.host as usize)?.name, place.core);
    (name == processor.name).then_some(slot)
}
