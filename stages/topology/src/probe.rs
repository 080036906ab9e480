//! Measuring the machine: who talks with whom when, and how long it takes.
//!
//! # Method
//!
//! `probe/tournament.rs` says who meets whom: a round-robin tournament by the circle method, first between the first endpoints of all hosts,
//! then inside every host, all hosts side by side. Large messages go in rounds of their own, with no more pairs at once than asked for.
//! `probe/sampling.rs` measures one pair over a `Wire`, from the side that begins: batches until the shortest time has not become shorter
//! three times in a row. What is sent is a message of D bytes and an answer of one byte, so that both directions of a pair have a
//! bandwidth of their own; clocks of two hosts are never compared, and only monotonic ones are read.
//!
//! MPI ranks (`probe/ranks.rs`) go through the same steps together and agree before each whether to stop; the loop that times is in
//! `hopmap-ranks`, in the thread that calls MPI. Agents (`probe/agents.rs`, `start.rs`) are told by the stage, pair by pair, so that one
//! that dies, lies or hangs costs no more than its own pairs (`hosts.rs`): a host that fails three partners, and more than half of those
//! it met, is given up, and what was measured with it does not count.

mod agents;
mod check;
mod hosts;
mod ranks;
mod sampling;
mod start;
pub mod tournament;

pub use sampling::{Sampling, Timing, Wire, sample};

use hopmap_model::{Context, Error, Measurements};

use crate::{LevelsParams, ProbeError, ProbeParams};

pub(crate) use check::check;

/// Measures the machine: between the processes that run the stage together where there are several, else by agents; `false` if
/// it was stopped early.
pub(crate) fn probe(params: &ProbeParams, cx: &Context<'_>) -> Result<(Measurements, bool), Error> {
    if let Some(communicator) = cx.communicator() {
        return ranks::probe_ranks(params, &hopmap_mpi_environment::host_name(), communicator, cx);
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
