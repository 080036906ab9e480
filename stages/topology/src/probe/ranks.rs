//! Probing between the processes that run the stage together, such as MPI ranks.
//!
//! All processes execute the same steps. In a step two partners measure each other one after the other.

use std::collections::HashMap;

use hopmap_model::{
    Communicator, Context, Endpoint, Error, Measurements, NodeState, Pair, ProbePhase, TimedCall,
};
use serde::{Deserialize, Serialize};

use super::calibrate::{Plan, alone_sampling, stream_sampling};
use super::calls::{CALLS, RankWire, What, answer, measure_alone, nonsense};
use super::sampling::{Record, Sampling, Timing, sample};
use super::tournament::{Part, Steps, parts};
use crate::MachineError;
use crate::params::ProbeParams;

/// Results of one endpoint with another.
#[derive(Serialize, Deserialize)]
struct Measured {
    pair: Pair,
    what: What,
    timings: Vec<Timing>,
}

/// Assignment of processes to endpoints.
struct Placed {
    endpoints: Vec<Endpoint>,
    /// Process of each endpoint.
    processes: Vec<u32>,
    /// Endpoint of this process.
    own: u32,
}

/// Measures between the processes that run the stage together, each of which knows its host name. Only the
/// first process gets all results; `false` if it was stopped early.
pub(crate) fn probe_ranks(
    params: &ProbeParams,
    own: &str,
    communicator: &dyn Communicator,
    cx: &Context<'_>,
) -> Result<(Measurements, bool), Error> {
    let placed = place(communicator, own, params.measure_intra_node)?;
    let groups = groups(&placed.endpoints);
    let [hosts, cores] = [groups.0, groups.1].map(|groups| parts(params, &groups));
    let all: Vec<Part> = hosts.into_iter().chain(cores).collect();
    if all.is_empty() {
        return Err(alone(&placed.endpoints[0].host).into());
    }
    let mut steps = Steps::new(&all, cx);
    let mut probing = Probing { placed, communicator, cx, measured: Vec::new() };
    let mut complete = true;
    'all: for (part, plan) in all.iter().enumerate() {
        for pairs in plan.steps() {
            if any_stops(communicator, cx)? {
                complete = false;
                break 'all;
            }
            probing.meet(&pairs, What::Part(part), &plan.sampling)?;
            steps.done();
        }
    }
    let phases: Vec<ProbePhase> = all.iter().map(|part| part.phase).collect();
    let mut record = Record::new(probing.placed.endpoints.clone());
    probing.gather(&mut record, &phases)?;
    if params.calibrate && complete {
        complete = probing.calibrate(params, &record)?;
        probing.gather(&mut record, &phases)?;
    }
    // Only the first process has a record of all.
    let is_first = communicator.process() == 0;
    Ok((if is_first { record.finish() } else { Measurements::default() }, complete))
}

/// There is no partner.
pub(super) fn alone(name: &str) -> MachineError {
    let help = "give at least two hosts, or start at least two processes";
    MachineError::new(format!("`{name}` has no partner: a measurement needs two hosts or cores"), help)
}

/// Assigns endpoints host by host, with hosts ordered by their first processes.
fn place(communicator: &dyn Communicator, own: &str, inside: bool) -> Result<Placed, Error> {
    let names: Vec<String> = communicator
        .all_gather(own.as_bytes().to_vec())?
        .into_iter()
        .map(|name| String::from_utf8_lossy(&name).into_owned())
        .collect();
    let mut hosts: Vec<(&String, Vec<u32>)> = Vec::new();
    let mut index: HashMap<&String, usize> = HashMap::new();
    for (process, name) in (0..).zip(&names) {
        let host = *index.entry(name).or_insert_with(|| {
            hosts.push((name, Vec::new()));
            hosts.len() - 1
        });
        hosts[host].1.push(process);
    }
    let width = if inside { usize::MAX } else { 1 };
    let mut placed = Placed { endpoints: Vec::new(), processes: Vec::new(), own: u32::MAX };
    for (name, processes) in hosts {
        for (core, process) in (0..).zip(processes).take(width) {
            if process == communicator.process() {
                placed.own = placed.endpoints.len() as u32;
            }
            placed.endpoints.push(Endpoint { host: name.clone(), core, state: NodeState::Up });
            placed.processes.push(process);
        }
    }
    Ok(placed)
}

/// The first endpoints of all hosts, and the endpoints of each host.
pub(crate) fn groups(endpoints: &[Endpoint]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut inside: Vec<Vec<u32>> = Vec::new();
    let mut first = 0;
    for host in endpoints.chunk_by(|a, b| a.host == b.host) {
        inside.push((first..first + host.len() as u32).collect());
        first += host.len() as u32;
    }
    (vec![inside.iter().map(|host| host[0]).collect()], inside)
}

/// Whether any process was requested to stop. All processes get the same answer, and no process starts a step
/// before the others.
fn any_stops(communicator: &dyn Communicator, cx: &Context<'_>) -> Result<bool, Error> {
    let all = communicator.all_gather(vec![u8::from(cx.should_stop())])?;
    Ok(all.iter().any(|stops| stops.contains(&1)))
}

/// A probing of one process.
struct Probing<'a> {
    placed: Placed,
    communicator: &'a dyn Communicator,
    cx: &'a Context<'a>,
    /// Results that were not gathered yet.
    measured: Vec<Measured>,
}

impl Probing<'_> {
    /// Measures with the partner of a step, if there is one: first in one direction, then in the other.
    fn meet(&mut self, pairs: &[Pair], what: What, sampling: &Sampling) -> Result<(), Error> {
        let own = self.placed.own;
        let Some(&(first, second)) = pairs.iter().find(|pair| pair.0 == own || pair.1 == own) else {
            return Ok(());
        };
        for (source, destination) in [(first, second), (second, first)] {
            self.direct((source, destination), TimedCall::RoundTrip, |wire| {
                Ok(vec![(what, sample(wire, sampling)?)])
            })?;
        }
        Ok(())
    }

    /// Measures from one endpoint to another if this process is one of them.
    fn direct(
        &mut self,
        (source, destination): Pair,
        what: TimedCall,
        measure: impl FnOnce(&mut RankWire<'_>) -> Result<Vec<(What, Vec<Timing>)>, Error>,
    ) -> Result<(), Error> {
        let (own, communicator) = (self.placed.own, self.communicator);
        if own == source {
            let process = self.placed.processes[destination as usize];
            let mut wire = RankWire { communicator, process, what };
            let results = measure(&mut wire)?;
            wire.end()?;
            let pair = (source, destination);
            self.measured.extend(results.into_iter().map(|(what, timings)| Measured { pair, what, timings }));
        } else if own == destination {
            answer(communicator, self.placed.processes[source as usize])?;
        }
        Ok(())
    }

    /// Measures what predictions need; `false` if it was stopped early.
    fn calibrate(&mut self, params: &ProbeParams, record: &Record) -> Result<bool, Error> {
        let plan = self.share_plan(params, record)?;
        let sampling = alone_sampling(params);
        for (index, &pair) in plan.alone.iter().enumerate() {
            if any_stops(self.communicator, self.cx)? {
                return Ok(false);
            }
            let is_last = index + 1 == plan.alone.len();
            self.direct(pair, TimedCall::RoundTrip, |wire| measure_alone(wire, &sampling, is_last))?;
        }
        for (step, streams) in (0..).zip(&plan.steps) {
            if any_stops(self.communicator, self.cx)? {
                return Ok(false);
            }
            let own = self.placed.own;
            if let Some(stream) =
                streams.iter().find(|stream| [stream.source, stream.destination].contains(&own))
            {
                let sampling = stream_sampling(params, stream);
                let measure =
                    |wire: &mut RankWire<'_>| Ok(vec![(What::Stream(step), sample(wire, &sampling)?)]);
                self.direct((stream.source, stream.destination), TimedCall::Stream, measure)?;
            }
        }
        Ok(true)
    }

    /// The plan of the first process, which has the measurements.
    fn share_plan(&self, params: &ProbeParams, record: &Record) -> Result<Plan, Error> {
        let plan = match self.communicator.process() {
            0 => {
                let plan = Plan::new(&record.clone().finish(), params);
                serde_json::to_vec(&plan).map_err(|error| Error::msg(error.to_string()))?
            }
            _ => Vec::new(),
        };
        let all = self.communicator.all_gather(plan)?;
        Ok(all.first().and_then(|plan| serde_json::from_slice(plan).ok()).ok_or_else(|| nonsense(0))?)
    }

    /// Moves all results to the record of the first process, one process after the other to limit memory.
    fn gather(&mut self, record: &mut Record, phases: &[ProbePhase]) -> Result<(), Error> {
        let measured = std::mem::take(&mut self.measured);
        if self.communicator.process() > 0 {
            let text = serde_json::to_vec(&measured).map_err(|error| Error::msg(error.to_string()))?;
            return self.communicator.send(0, text);
        }
        add(record, phases, measured).ok_or_else(|| nonsense(0))?;
        for process in 1..self.communicator.processes() {
            let text = self.communicator.receive(process)?;
            let measured = serde_json::from_slice(&text).map_err(|_| nonsense(process))?;
            add(record, phases, measured).ok_or_else(|| nonsense(process))?;
        }
        Ok(())
    }
}

/// Adds results to a record; none if they are invalid.
fn add(record: &mut Record, phases: &[ProbePhase], measured: Vec<Measured>) -> Option<()> {
    for Measured { pair, what, timings } in measured {
        let added = match what {
            What::Part(part) => record.add(pair, *phases.get(part)?, &timings),
            What::Alone => record.add(pair, ProbePhase::Alone, &timings),
            What::Call(call) => record.add_calls(pair, CALLS.get(call)?.0, &timings),
            What::Stream(step) => record.add_stream(pair, step, &timings),
            What::EagerLimit => {
                record.eager_limit = Some(timings.first()?.bytes);
                Ok(())
            }
        };
        added.ok()?;
    }
    Some(())
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
