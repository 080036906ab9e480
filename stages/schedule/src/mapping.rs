//! The slots that the ranks of a schedule run on, as a mapping.

use hopmap_model::{Error, Mapping, Schedule, SystemGraph, Weight};
use miette::Diagnostic;

/// A schedule that says of no mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum ScheduleMappingError {
    /// Tasks belong to no process.
    #[error("task {task} of the schedule belongs to no process, so there is nothing to place")]
    #[diagnostic(help("a mapping follows from the schedule of a trace; that of a task graph has none"))]
    NoProcess {
        /// The task.
        task: u32,
    },
    /// Processors are no slots of the machine.
    #[error("process {process} runs on processor `{processor}`, which is no slot of the machine")]
    #[diagnostic(help("connect the system that the schedule was made for"))]
    OtherMachine {
        /// The process.
        process: u32,
        /// Name of its processor.
        processor: String,
    },
    /// A process runs in two places.
    #[error("process {process} runs on `{first}` and on `{second}`")]
    #[diagnostic(help("make the schedule with `ranks = \"together\"`"))]
    Apart {
        /// The process.
        process: u32,
        /// Name of one processor.
        first: String,
        /// Name of another.
        second: String,
    },
    /// A process does nothing, and no slot is left for it.
    #[error("process {process} has no task, and no slot is left for it")]
    NoSlot {
        /// The process.
        process: u32,
    },
}

/// The slots that the ranks of a schedule run on, with its metrics. A rank without tasks takes the first slot that is free.
pub fn mapping(schedule: &Schedule, system: &SystemGraph) -> Result<Mapping, Error> {
    let mut mapping = Mapping::new(&slots(schedule, system)?, system, Weight::default())?;
    mapping.metrics.clone_from(&schedule.metrics);
    mapping.metrics.entry("makespan".into()).or_insert_with(|| schedule.makespan());
    mapping.convergence.clone_from(&schedule.convergence);
    mapping.complete = schedule.complete;
    Ok(mapping)
}

/// The slot of every process.
fn slots(schedule: &Schedule, system: &SystemGraph) -> Result<Vec<u32>, ScheduleMappingError> {
    let name = |processor: u32| schedule.processors[processor as usize].name.clone();
    let mut processors: Vec<Option<u32>> = Vec::new();
    for (task, scheduled) in (0..).zip(&schedule.tasks) {
        let process = scheduled.process.ok_or(ScheduleMappingError::NoProcess { task })?;
        if process as usize >= processors.len() {
            if process as usize >= system.slots.len() {
                return Err(ScheduleMappingError::NoSlot { process });
            }
            processors.resize(process as usize + 1, None);
        }
        let own = *processors[process as usize].get_or_insert(scheduled.processor);
        if own != scheduled.processor {
            let [first, second] = [own, scheduled.processor].map(name);
            return Err(ScheduleMappingError::Apart { process, first, second });
        }
    }
    let mut is_free = vec![true; system.slots.len()];
    let mut slots = vec![None; processors.len()];
    for (process, &processor) in (0..).zip(&processors) {
        if let Some(processor) = processor {
            let slot = slot(schedule, system, processor);
            let other = || ScheduleMappingError::OtherMachine { process, processor: name(processor) };
            let slot = slot.ok_or_else(other)?;
            is_free[slot as usize] = false;
            slots[process as usize] = Some(slot);
        }
    }
    let mut free = (0u32..).zip(is_free).filter(|(_, is_free)| *is_free).map(|(slot, _)| slot);
    let taken = |(process, slot): (u32, Option<u32>)| {
        slot.or_else(|| free.next()).ok_or(ScheduleMappingError::NoSlot { process })
    };
    (0..).zip(slots).map(taken).collect()
}

/// The slot that a processor is, if the machine has it under the same name.
fn slot(schedule: &Schedule, system: &SystemGraph, processor: u32) -> Option<u32> {
    let processor = &schedule.processors[processor as usize];
    let slot = processor.slot?;
    let place = system.slots.get(slot as usize)?;
    let name = format!("{}:{}", system.nodes.get(place.host as usize)?.name, place.core);
    (name == processor.name).then_some(slot)
}
