//! Probing between the processes that run the stage together, such as MPI ranks.
//!
//! All processes execute the same steps. In a step two partners measure each other one after the other; the
//! replying side receives a header before every batch.

use std::collections::HashMap;

use hopmap_model::{Communicator, Context, Endpoint, Error, Measurements, NodeState, Pair, ProbePhase};
use serde::{Deserialize, Serialize};

use super::sampling::{Record, Sampling, Timing, Wire, sample};
use super::tournament::{Part, Steps, parts};
use crate::MachineError;
use crate::params::ProbeParams;

/// A connection to another process.
struct RankWire<'a> {
    communicator: &'a dyn Communicator,
    process: u32,
}

impl Wire for RankWire<'_> {
    type Error = Error;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Error> {
        self.communicator.send(self.process, header(bytes, messages))?;
        times.extend(self.communicator.time(self.process, bytes, messages)?);
        Ok(())
    }
}

/// Bytes per message and number of messages of a batch; zero messages end the measurement of a pair.
fn header(bytes: u64, messages: u32) -> Vec<u8> {
    [&bytes.to_le_bytes()[..], &messages.to_le_bytes()[..]].concat()
}

fn read_header(header: &[u8]) -> Option<(u64, u32)> {
    let (bytes, messages) = header.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*bytes), u32::from_le_bytes(messages.try_into().ok()?)))
}

/// Results of one endpoint with another.
#[derive(Serialize, Deserialize)]
struct Measured {
    pair: Pair,
    part: usize,
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
    let mut measured = Vec::new();
    let mut complete = true;
    'all: for (part, plan) in all.iter().enumerate() {
        for pairs in plan.steps() {
            if any_stops(communicator, cx)? {
                complete = false;
                break 'all;
            }
            if let Some(timings) = meet(&placed, communicator, &pairs, &plan.sampling)? {
                measured.push(Measured { pair: timings.0, part, timings: timings.1 });
            }
            steps.done();
        }
    }
    let phases: Vec<ProbePhase> = all.iter().map(|part| part.phase).collect();
    Ok((gather(placed, communicator, measured, &phases)?, complete))
}

/// There is no partner.
pub(super) fn alone(name: &str) -> MachineError {
    let help = "give at least two hosts, or start at least two processes";
    MachineError::new(format!("`{name}` has no partner: a measurement needs two hosts or cores"), help)
}

/// A process sent invalid data.
fn nonsense(process: u32) -> MachineError {
    let help = "build or install hopmap-ranks from the same sources on every host";
    MachineError::new(format!("process {process} sent invalid measurements"), help)
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

/// Measures with the partner of a step, if there is one.
fn meet(
    placed: &Placed,
    communicator: &dyn Communicator,
    pairs: &[Pair],
    sampling: &Sampling,
) -> Result<Option<(Pair, Vec<Timing>)>, Error> {
    let own = placed.own;
    let Some(&(first, second)) = pairs.iter().find(|pair| pair.0 == own || pair.1 == own) else {
        return Ok(None);
    };
    let other = if own == first { second } else { first };
    let process = placed.processes[other as usize];
    let mut wire = RankWire { communicator, process };
    if own == second {
        answer(communicator, process)?;
    }
    let timings = sample(&mut wire, sampling)?;
    communicator.send(process, header(0, 0))?;
    if own == first {
        answer(communicator, process)?;
    }
    Ok(Some(((own, other), timings)))
}

/// Replies to the batches of a partner until it is done.
fn answer(communicator: &dyn Communicator, process: u32) -> Result<(), Error> {
    loop {
        let header = communicator.receive(process)?;
        let Some((bytes, messages)) = read_header(&header) else {
            return Err(nonsense(process).into());
        };
        if messages == 0 {
            return Ok(());
        }
        communicator.answer(process, bytes, messages)?;
    }
}

/// Gathers all results on the first process, one process after the other to limit memory.
fn gather(
    placed: Placed,
    communicator: &dyn Communicator,
    measured: Vec<Measured>,
    phases: &[ProbePhase],
) -> Result<Measurements, Error> {
    if communicator.process() > 0 {
        let text = serde_json::to_vec(&measured).map_err(|error| Error::msg(error.to_string()))?;
        communicator.send(0, text)?;
        return Ok(Measurements::default());
    }
    let mut record = Record::new(placed.endpoints);
    let mut add = |process: u32, all: Vec<Measured>| {
        for one in all {
            let phase = *phases.get(one.part).ok_or_else(|| nonsense(process))?;
            record.add(one.pair, phase, &one.timings).map_err(|_| nonsense(process))?;
        }
        Ok::<_, MachineError>(())
    };
    add(0, measured)?;
    for process in 1..communicator.processes() {
        let text = communicator.receive(process)?;
        add(process, serde_json::from_slice(&text).map_err(|_| nonsense(process))?)?;
    }
    Ok(record.finish())
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
