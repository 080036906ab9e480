//! Measures the machine: the schedule of pairs and their message times.
//!
//! # Method
//!
//! `probe/tournament.rs` schedules the pairs: a round-robin tournament by the circle method, first between
//! the first endpoints of all hosts, then inside every host, all hosts concurrently. Large messages have
//! their own rounds, with a limited number of concurrent pairs. `probe/sampling.rs` measures one pair over a
//! `Wire`, from the sending side: batches until the shortest time has not decreased three times in a row.
//! Each message of D bytes has a reply of one byte, so that both directions of a pair have their own
//! bandwidth. Clocks of two hosts are never compared; all clocks are monotonic.
//!
//! MPI ranks execute the same steps together: the C program `probe/prober.c`, which `probe/ranks.rs` compiles and
//! directs, with its own copy of the timing loops and of the stopping rule. Agents (`probe/agents.rs`, `start.rs`) are
//! directed by the stage, pair by pair, so that an agent that dies, sends invalid data or hangs affects only
//! its own pairs (`hosts.rs`). A host that fails with three partners, and with more than half of those it
//! met, is given up and its measurements are discarded.

mod agents;
mod calibrate;
mod hosts;
mod ranks;
mod sampling;
mod start;
pub mod tournament;

pub use crate::params::{BandwidthPhase, ProbeParams};
pub use sampling::{Sampling, Timing, Wire, sample};

use hopmap_model::{
    Context, Error, Inputs, Measurements, OutOfRange, Outcome, Outputs, Port, Stage, SystemGraph,
};

use crate::levels::levels_of_measurements;
use agents::host_names;
use hopmap_machines::params::MachineError;
use start::Template;

/// Largest message in bytes; also the limit of agents.
const LARGEST: u64 = 1 << 26;
/// Largest number of sizes.
const MOST_SIZES: usize = 64;

/// `topology/probe`: measures a machine by messages.
#[derive(Debug)]
pub struct Probe;

impl Stage for Probe {
    type Params = ProbeParams;
    const KIND: &'static str = "topology/probe";
    const SUMMARY: &'static str = "Measure a machine by messages between MPI ranks or agents";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] =
        &[Port::output::<Measurements>("measurements"), Port::output::<SystemGraph>("system")];

    fn check(params: &Self::Params) -> Result<(), Error> {
        check(params)
    }

    fn observes(_: &Self::Params) -> bool {
        true
    }

    fn commands(params: &Self::Params) -> Vec<String> {
        std::iter::once(&params.start).chain(&params.mpicc).cloned().collect()
    }

    fn programs(params: &Self::Params) -> Vec<String> {
        params.mpicc.iter().cloned().collect()
    }

    fn distributed() -> bool {
        true
    }

    fn directs_ranks() -> bool {
        true
    }

    fn run(params: Self::Params, _inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (measured, complete) = probe(&params, cx)?;
        let found = levels_of_measurements(&measured, &params.levels())?;
        found.notes.iter().for_each(|note| cx.log(note));
        let outputs = Outputs::new().with("measurements", measured).with("system", found.system);
        Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

/// Measures the machine: between the ranks of the launcher, or by agents; `false` if it was stopped early.
fn probe(params: &ProbeParams, cx: &Context<'_>) -> Result<(Measurements, bool), Error> {
    if let Some(launcher) = cx.launcher() {
        return ranks::probe_ranks(params, launcher, cx);
    }
    let (measured, complete) = agents::probe_by_agents(params, cx)?;
    if measured.samples.is_empty() && complete {
        let problem = "no messages could be exchanged between the hosts that answered";
        let help = "each agent listens on one address, which the other hosts must be able to reach; set it with `hopmap agent --bind`";
        return Err(MachineError::new(problem, help).into());
    }
    Ok((measured, complete))
}

/// Checks the parameters.
fn check(params: &ProbeParams) -> Result<(), Error> {
    params.levels().check()?;
    let wrong = |name, value: &dyn std::fmt::Debug, allowed| {
        Err(OutOfRange::new(name, format!("{value:?}"), allowed).into())
    };
    let is_time = |seconds: f64| seconds > 0.0 && seconds <= 86_400.0;
    Template::parse(&params.start)?;
    if let Some(list) = params.hosts.as_deref().filter(|list| !list.trim().is_empty()) {
        host_names(list)?;
    }
    if params.sizes.is_empty() || params.sizes.len() > MOST_SIZES {
        return wrong("sizes", &params.sizes, "1 to 64 sizes");
    }
    if params.sizes.iter().any(|&bytes| bytes == 0 || bytes > LARGEST) {
        return wrong("sizes", &params.sizes, "sizes from 1 byte to 64 MiB (67108864)");
    }
    if params.parallel == 0 {
        return wrong("parallel", &params.parallel, "1 or more");
    }
    if params.messages == 0 || params.messages > 1_000_000 {
        return wrong("messages", &params.messages, "1 to 1000000");
    }
    if !(0.0..1.0).contains(&params.tolerance) {
        return wrong("tolerance", &params.tolerance, "0 or more and below 1, such as 0.02");
    }
    if !is_time(params.size_time_limit_s) {
        return wrong(
            "size_time_limit_s",
            &params.size_time_limit_s,
            "above 0 s, at most 86400 s, such as 0.1",
        );
    }
    if !is_time(params.start_timeout_s) {
        return wrong("start_timeout_s", &params.start_timeout_s, "above 0 s, at most 86400 s, such as 60");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_invalid_values_are_reported() {
        let message = |text: &str| {
            let params: ProbeParams = serde_json::from_str(text).unwrap();
            check(&params).map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(message("{}"), "");
        assert_eq!(message(r#"{"hosts": "n[1-4],n2"}"#), "host `n2` is listed twice");
        assert!(message(r#"{"hosts": "n[1-"}"#).starts_with("`hosts` is not a host list"));
        assert_eq!(message(r#"{"sizes": []}"#), "`sizes` = [] is out of range");
        assert_eq!(message(r#"{"sizes": [0, 1]}"#), "`sizes` = [0, 1] is out of range");
        assert_eq!(message(r#"{"sizes": [1000000000]}"#), "`sizes` = [1000000000] is out of range");
        assert_eq!(message(r#"{"parallel": 0}"#), "`parallel` = 0 is out of range");
        assert_eq!(message(r#"{"messages": 0}"#), "`messages` = 0 is out of range");
        assert_eq!(message(r#"{"tolerance": 1.5}"#), "`tolerance` = 1.5 is out of range");
        assert_eq!(message(r#"{"size_time_limit_s": 0}"#), "`size_time_limit_s` = 0.0 is out of range");
        assert_eq!(message(r#"{"start_timeout_s": -1}"#), "`start_timeout_s` = -1.0 is out of range");
        assert_eq!(message(r#"{"level_ratio": 0.5}"#), "level_ratio is 0.5, less than 1.01");
        assert_eq!(message(r#"{"start": "ssh '"}"#), "`start` is `ssh '`, which is not a command");
    }
}
