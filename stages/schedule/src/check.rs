//! Schedules computed again: shares no code with the schedulers.
//!
//! Times are doubles in the units of the program, while schedulers count in ticks, a power of ten in each unit. Where every time of the
//! problem is whole, so is every tick, and nothing may differ at all. Elsewhere every number of a schedule may be off by one tick:
//! see [`Program::tolerance`](program::Program::tolerance).

mod claims;
mod order;
pub(crate) mod parus_order;
mod program;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use hopmap_model::{Context, Error, Schedule, TaskDag};
use hopmap_replay::Machine;

use crate::{CheckParams, MachineParams, Ranks};
use claims::Measures;
use program::Program;

pub use program::CheckError;

/// The schedule of the parameters' file or the one given with all times computed again, or what is wrong with it.
pub fn check(
    dag: &TaskDag,
    machine: &Machine,
    params: &CheckParams,
    given: Option<&Schedule>,
    cx: &Context<'_>,
) -> Result<Schedule, Error> {
    let program = Program::new(dag, machine, MachineParams::from(params).model);
    let schedule = match (given, &params.file) {
        (Some(_), Some(_)) => return Err(CheckError::two_schedules().into()),
        (None, None) => return Err(CheckError::no_schedule().into()),
        (None, Some(file)) => order::read_sch(&program, file.path())?,
        (Some(given), None) => {
            claims::check(&program, given)?;
            given.clone()
        }
    };
    let schedule = match params.parus_order {
        true => {
            let stays = params.ranks == Ranks::Together && dag.tasks.iter().any(|task| task.rank.is_some());
            parus_order::ordered(&program, schedule, stays, cx)
        }
        false => schedule,
    };
    if params.ranks == Ranks::Together {
        claims::check_ranks(&program, &schedule)?;
    }
    let measures = Measures::new(&program, &schedule)?;
    claims::check_metrics(&program, &schedule, &measures)?;
    for line in measures.lines() {
        cx.log(line);
    }
    Ok(measures.written_into(schedule))
}
