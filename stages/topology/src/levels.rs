//! The levels of a machine: a tree over its slots, inferred from measurements between them.
//!
//! Hosts are clustered by the latencies between them, and the slots of every host by theirs. The heights of
//! all joins are then divided into levels (`cluster.rs` has the rules).
//!
//! # Method
//!
//! Hosts are clustered by the latencies between them, the slots of every host by theirs: average linkage of
//! logarithms. The height of a join is the lower median of its pairs, since noise is one-sided; the height
//! between two hosts is at least that inside either. All joins together are then divided into levels
//! (`levels/cluster.rs`): nearest heights are merged until every level is `level_ratio` times the previous
//! one. That is 1.15, or larger if both directions of a tenth of all pairs differ by more. Minima that are up
//! to 10 % too long spread a level over a factor of 1.1; levels that are 1.3 apart are then at least 1.18
//! apart, so any `level_ratio` between these values divides correctly.
//!
//! A single pair is weak evidence. A level of single pairs is merged into the nearest one, unless these are a
//! tenth of all pairs, or several and a tenth of those that fit side by side, or both directions agree on one
//! and no level of its kind is further in: a pair that is accidentally too fast is so in one direction, and
//! one that is too slow has others below it. Two hosts on their own switch among such switches are on the
//! level of these. Before that, pairs that contradict all others are repaired (`levels/cluster.rs`): one that
//! two others connect faster, by two gaps, and one whose directions differ and that most of its neighbours
//! contradict; in a tree, two of three distances are equal and the largest. If many pairs do so, the machine
//! is not a tree and nothing is repaired. Levels that overlap are merged: an even spread, as on a mesh of
//! cores, has no levels.
//!
//! The distance of an unmeasured pair is the bottleneck of the best path over other pairs. The latency of a
//! link is half of the difference between its level and the level below, so that latencies on a path add up
//! to the measured ones. A host that is down is attached to the last switch.
//!
//! If pairs were measured alone, the links get capacities and the machine a calibration (`levels/calibration.rs`).

mod calibration;
mod cluster;
mod graph;
mod machine;
#[cfg(test)]
mod tests;

use hopmap_model::{Context, Error, Inputs, Measurements, Outcome, Outputs, Port, Stage, SystemGraph};

pub use crate::params::{LevelCost, LevelsError, LevelsParams};
use hopmap_machines::params::MachineError;
use machine::Machine;

/// A machine with levels, and notes on how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The machine with its costs as levels.
    pub system: SystemGraph,
    /// Lines for the log: estimated pairs and rejected values.
    pub notes: Vec<String>,
}

/// The measured machine, with the levels of its latencies.
///
/// Hosts are in endpoint order; those that did not answer are nodes that are down, without slots. Slots are
/// the endpoints that answered. Costs are medians in microseconds, rounded to three significant digits.
pub fn levels(measured: &Measurements, params: &LevelsParams) -> Result<SystemGraph, LevelsError> {
    Ok(levels_of_measurements(measured, params)?.system)
}

/// The same, with notes.
pub fn levels_of_measurements(measured: &Measurements, params: &LevelsParams) -> Result<Found, LevelsError> {
    params.check()?;
    measured.check().map_err(LevelsError::Measurements)?;
    let mut found = find(Machine::measured(measured, params)?, params)?;
    calibration::calibrate(&mut found.system, measured);
    Ok(found)
}

/// Replaces a cost matrix by levels, which keep its unit.
pub fn levels_of_matrix(system: &SystemGraph, params: &LevelsParams) -> Result<Found, LevelsError> {
    params.check()?;
    if params.cost == LevelCost::Time {
        let problem = "cost is \"time\", but a cost matrix does not depend on message sizes";
        let help = "omit `cost` and `bytes`, or connect `measurements`";
        return Err(MachineError::new(problem, help).into());
    }
    find(Machine::of_matrix(system)?, params)
}

fn find(mut machine: Machine, params: &LevelsParams) -> Result<Found, LevelsError> {
    let mut notes = Vec::new();
    let ratio = params.level_ratio.max(machine.noise());
    if ratio > params.level_ratio {
        notes.push(format!(
            "both directions of a pair differ by up to {:.1} %: using that as the minimum distance of levels instead of {}",
            (ratio - 1.0) * 100.0,
            params.level_ratio
        ));
    }
    let (estimated, all) = machine.complete()?;
    if estimated > 0 {
        notes.push(format!("{estimated} of {all} pairs were not measured and are estimated from the others"));
    }
    let log_gap = libm::log(ratio);
    let clustered = cluster::machine(&machine, log_gap, &mut notes);
    let level_of_join =
        cluster::levels(&clustered, machine.host_count(), &machine.slot_counts(), log_gap, &mut notes);
    Ok(Found { system: graph::system(&machine, &clustered, &level_of_join), notes })
}

/// `topology/levels`: infers a tree of levels from measurements or a cost matrix.
#[derive(Debug)]
pub struct LevelsStage;

impl Stage for LevelsStage {
    type Params = LevelsParams;
    const KIND: &'static str = "topology/levels";
    const SUMMARY: &'static str = "Infer the levels of a machine from measurements between its slots";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::optional::<Measurements>("measurements"),
        Port::optional::<SystemGraph>("system-graph"),
        Port::output::<SystemGraph>("system-graph"),
    ];

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
                let help = "connect one of them: the measurements of topology/probe, or a machine topology with a cost matrix";
                return Err(MachineError::new(problem, help).into());
            }
        };
        found.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("system-graph", found.system)))
    }
}
