//! The levels of a machine: a tree over its slots, found in what was measured between them.
//!
//! Hosts are clustered by the latencies between them, and the slots of every host by theirs; the heights at which clusters join
//! are divided into levels together (`cluster.rs` has the rules).
//!
//! # Method
//!
//! Hosts are clustered by the latencies between them, the slots of every host by theirs: average linkage of logarithms. The height of a join is
//! the lower median of its pairs, since noise only adds, and that of two hosts is no less than inside either. All joins together are then
//! divided into levels (`levels/cluster.rs`): nearest heights become one until every level is `level_ratio` times the one before. That is 1.15 unless
//! both directions of a tenth of all pairs differ by more: minima that are up to 10 % too long spread a level over a factor of 1.1, and
//! levels 1.3 apart are then 1.18 apart at least, so no `level_ratio` between these divides wrongly.
//!
//! What one pair says is not much. A level of single pairs is none, and goes to the nearest one, unless these are a tenth of all pairs, or
//! several and a tenth of those that fit side by side, or both directions agree on one, and nothing of its kind is further in: a pair that is
//! too fast by chance is so in one direction, and one that is too slow has others below it. Two hosts on a switch of their own among such
//! switches are on the level of these. Before that, pairs that contradict all others are put right (`levels/cluster.rs`): one that two others
//! join faster, by two gaps, and one whose directions differ and that most of its neighbours contradict; in a tree two of three distances are
//! equal and the largest. Where many pairs do so, the machine is no tree, and all are left alone. Levels that overlap become one: what is
//! spread evenly, as on a mesh of cores, has no levels.
//!
//! Pairs that were not measured are as far apart as the worst step on the best way over others. Links take half of what their level takes
//! more than what they join, so that the latencies on a path add up to those found; a host that is down hangs on the last switch.

mod cluster;
mod graph;
mod machine;
#[cfg(test)]
mod tests;

use hopmap_model::{Context, Error, Inputs, Measurements, Outcome, Outputs, Port, Stage, SystemGraph};

use crate::MachineError;
pub use crate::params::{LevelCost, LevelsError, LevelsParams};
use machine::Machine;

/// A machine with its levels, and what is to be said of how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The machine: its costs are levels.
    pub system: SystemGraph,
    /// Lines for the log: what was estimated, what was not believed.
    pub notes: Vec<String>,
}

/// The machine that was measured, with the levels of its latencies.
///
/// Hosts stand in the order of their endpoints; those that did not answer are nodes that are down, without slots. Slots are the
/// endpoints that answered. Costs are medians in microseconds, of three significant digits.
pub fn levels(measured: &Measurements, params: &LevelsParams) -> Result<SystemGraph, LevelsError> {
    Ok(levels_of_measurements(measured, params)?.system)
}

/// The same, with what is to be said of it.
pub fn levels_of_measurements(measured: &Measurements, params: &LevelsParams) -> Result<Found, LevelsError> {
    params.check()?;
    measured.check().map_err(LevelsError::Measurements)?;
    find(Machine::measured(measured, params)?, params)
}

/// A machine with a cost for every pair of slots as one with levels; costs keep their unit.
pub fn levels_of_matrix(system: &SystemGraph, params: &LevelsParams) -> Result<Found, LevelsError> {
    params.check()?;
    if params.cost == LevelCost::Time {
        let problem = "cost is \"time\", but a machine with a cost matrix says nothing of sizes";
        let help = "leave `cost` and `bytes` out, or connect `measurements`";
        return Err(MachineError::new(problem, help).into());
    }
    find(Machine::of_matrix(system)?, params)
}

fn find(mut machine: Machine, params: &LevelsParams) -> Result<Found, LevelsError> {
    let mut notes = Vec::new();
    let ratio = params.level_ratio.max(machine.noise());
    if ratio > params.level_ratio {
        notes.push(format!(
            "both directions of a pair differ by up to {:.1} %: levels are at least that far apart, not {}",
            (ratio - 1.0) * 100.0,
            params.level_ratio
        ));
    }
    let (estimated, all) = machine.complete()?;
    if estimated > 0 {
        notes.push(format!("{estimated} of {all} pairs were not measured: estimated from the others"));
    }
    let log_gap = libm::log(ratio);
    let clustered = cluster::machine(&machine, log_gap, &mut notes);
    let level_of_join =
        cluster::levels(&clustered, machine.host_count(), &machine.slot_counts(), log_gap, &mut notes);
    Ok(Found { system: graph::system(&machine, &clustered, &level_of_join), notes })
}

/// `topology/levels`: the tree that is in what was measured.
#[derive(Debug)]
pub struct LevelsStage;

impl Stage for LevelsStage {
    type Params = LevelsParams;
    const KIND: &'static str = "topology/levels";
    const SUMMARY: &'static str = "The levels of a machine, from what was measured between its slots";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::optional::<Measurements>("measurements"),
                Port::optional::<SystemGraph>("system-graph"),
                Port::output::<SystemGraph>("system-graph"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(params.check()?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let measured = inputs.optional::<Measurements>("measurements")?;
        let system = inputs.optional::<SystemGraph>("system-graph")?;
        let found = match (measured, system) {
            (Some(measured), None) => levels_of_measurements(&measured.value, &params)?,
            (None, Some(system)) => levels_of_matrix(&system.value, &params)?,
            (measured, _) => {
                let problem = match measured.is_some() {
                    true => "`measurements` and `system-graph` are both connected",
                    false => "neither `measurements` nor `system-graph` is connected",
                };
                let help = "connect one of them: what probing measured, or a machine with a cost for every pair of slots";
                return Err(MachineError::new(problem, help).into());
            }
        };
        found.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("system-graph", found.system)))
    }
}
