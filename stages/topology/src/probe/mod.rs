//! Measuring the machine: who talks with whom when, and how long it takes.

mod agents;
mod check;
mod hosts;
mod plan;
mod progress;
mod ranks;
mod record;
mod sampling;
mod start;
pub mod tournament;

pub use sampling::{Sampling, Timing, Wire, sample};

use hopmap_model::{Context, Error, Measurements};

use crate::agent::host_name;
use crate::{LevelsParams, ProbeError, ProbeParams};

pub(crate) use check::check;

/// Measures the machine: between the processes that run the stage together where there are several, else by agents; `false` if
/// it was stopped early.
pub(crate) fn probe(params: &ProbeParams, cx: &Context<'_>) -> Result<(Measurements, bool), Error> {
    if let Some(communicator) = cx.communicator() {
        return ranks::probe_ranks(params, &host_name(), communicator, cx);
    }
    let (measured, complete) = agents::probe_by_agents(params, cx)?;
    if measured.samples.is_empty() && complete {
        return Err(ProbeError::NothingMeasured.into());
    }
    Ok((measured, complete))
}

/// How the levels of the machine are found.
pub(crate) fn levels(params: &ProbeParams) -> LevelsParams {
    let defaults = LevelsParams::default();
    LevelsParams { gap: params.gap.unwrap_or(defaults.gap), ..defaults }
}
