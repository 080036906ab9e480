//! The predicted run time of a traced program, beside its schedule.
//!
//! A schedule has computation and delays of messages alone. The replay of `hopmap-prediction` also has the overheads of messages and
//! the links that they share, so their difference is what the schedule leaves out.

use hopmap_model::{Context, CostModel, Error, Mapping, Program, SystemGraph, WorkUnit};
use hopmap_prediction::{Options, PairRates, Rate, ReplayError, has_rates, replay};
use hopmap_replay::Linear;

use crate::params::MachineParams;

/// Largest machine for which a rate of every pair is stored, 16 MiB, if its costs have no levels.
const MOST_SLOTS: usize = 1024;

/// The predicted run time of a program as metrics, which divide its critical path; none if the machine cannot be predicted.
pub(crate) fn run_time(
    program: &Program,
    system: &SystemGraph,
    mapping: &Mapping,
    params: &MachineParams,
    cx: &Context<'_>,
) -> Result<Vec<(String, f64)>, Error> {
    if !params.speeds.is_empty() || !params.available.is_empty() {
        cx.log("not predicted: `speeds` and `available` are unknown to predictions");
        return Ok(Vec::new());
    }
    let pairs = pair_rates(system, params.linear(WorkUnit::Seconds)?);
    let options = Options { pairs, ..Options::of_machine(system) };
    let prediction = match replay(program, system, mapping, &options, &|| cx.should_stop()) {
        Ok(prediction) if prediction.complete => prediction,
        Ok(_) => return Ok(Vec::new()),
        Err(error @ ReplayError::OtherMapping { .. }) => return Err(error.into()),
        Err(error) => {
            cx.log(format_args!("not predicted: {error}"));
            return Ok(Vec::new());
        }
    };
    if !prediction.is_calibrated {
        cx.log("the prediction has no overheads: the machine is not calibrated (`calibrate = true` of topology/probe)");
    }
    let metric = |name: &str| prediction.metrics.get(name).copied().unwrap_or_default();
    let seconds = prediction.seconds();
    // What is left of the critical path; below this it is the rounding of the other parts.
    let waiting = Some(metric("critical_waiting_s")).filter(|waiting| *waiting > 1e-12 * seconds);
    let parts = [
        ("predicted_s", seconds),
        ("predicted_computation_s", metric("critical_computation_s")),
        ("predicted_messages_s", metric("critical_latency_s") + metric("critical_bandwidth_s")),
        ("predicted_overhead_s", metric("critical_overhead_s")),
        ("predicted_waiting_s", waiting.unwrap_or_default()),
    ];
    Ok(parts.map(|(name, part)| (name.to_owned(), part)).into())
}

/// Bytes per second of a message that takes no time: the most that a bandwidth may be.
const FASTEST: f64 = 1e30;

/// The rates of the parameters between the slots of a machine whose links have none.
fn pair_rates(system: &SystemGraph, base: Linear) -> Option<PairRates> {
    let rate = |cost: f64| Rate {
        latency_s: cost * base.latency,
        bandwidth_bytes_per_s: (cost * base.per_byte).recip().min(FASTEST),
    };
    match &system.cost {
        _ if has_rates(system) => None,
        CostModel::Levels(levels) => {
            Some(PairRates::Levels(levels.costs.iter().copied().map(rate).collect()))
        }
        _ if system.slots.len() <= MOST_SLOTS => {
            let (slots, costs) = (system.slots.len() as u32, system.costs());
            let row = |from| (0..slots).map(move |to| (from, to));
            let pairs = (0..slots).flat_map(row);
            Some(PairRates::Matrix(pairs.map(|(from, to)| rate(costs.between(from, to))).collect()))
        }
        _ => None,
    }
}
