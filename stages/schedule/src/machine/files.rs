//! Machines that PARUS measured: `procs.vct` and `network.*`.

use std::path::Path;

use hopmap_formats::parus::NetworkFile;
use hopmap_model::Processor;

use super::{Distances, Linear, Machine, Measured, Network};
use crate::formats::procs::Procs;
use crate::{MachineError, MachineParams};

pub(super) fn machine(params: &MachineParams) -> Result<Machine, MachineError> {
    let procs = params.procs.as_ref().map(|file| read_procs(file.path())).transpose()?;
    let network = params.network.as_ref().map(|file| read_network(file.path())).transpose()?;
    let count = match (&procs, &network) {
        (Some(procs), Some(network)) if procs.durations.len() != network.processes => {
            return Err(MachineError::Disagree { procs: procs.durations.len(), network: network.processes });
        }
        (Some(procs), _) => procs.durations.len(),
        (None, Some(network)) => network.processes,
        (None, None) => return Err(MachineError::NoProcessors),
    };
    let first = usize::from(params.coordinator);
    if count <= first {
        return Err(MachineError::TooFew { wanted: 1, there: 0 });
    }
    let hosts = procs.as_ref().map(|procs| &procs.hosts).or(network.as_ref().map(|network| &network.hosts));
    let name = |process: usize| match hosts.and_then(|hosts| hosts.get(process)) {
        Some(host) => host.clone(),
        None => format!("p{process}"),
    };
    let pace = |process: usize| procs.as_ref().map_or(1.0, |procs| procs.durations[process] / procs.size);
    Ok(Machine {
        processors: (first..count)
            .map(|process| Processor { name: name(process), ..Processor::default() })
            .collect(),
        pace: (first..count).map(pace).collect(),
        network: match network {
            Some(network) => {
                let mut measured =
                    Measured::new(network.processes, network.lengths, network.seconds, params.lookup);
                measured.keep(first..count);
                Network::Measured(measured)
            }
            None => {
                let silent = Linear { latency: 0.0, per_byte: 0.0 };
                let classes = vec![silent, super::linear(params, hopmap_model::WorkUnit::Time)?];
                Network::Linear { distances: Distances::Alike, classes }
            }
        },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, MachineError> {
    std::fs::read(path)
        .map_err(|source| MachineError::Unreadable { file: path.display().to_string(), source })
}

fn read_procs(path: &Path) -> Result<Procs, MachineError> {
    let file = || path.display().to_string();
    Procs::read(&read(path)?).map_err(|error| MachineError::Procs { file: file(), error })
}

/// A network file with all its lengths and no failed measurement: PARUS takes a broken one without a word.
fn read_network(path: &Path) -> Result<NetworkFile, MachineError> {
    let file = || path.display().to_string();
    let network =
        NetworkFile::read(&read(path)?).map_err(|error| MachineError::Network { file: file(), error })?;
    let lengths = network.lengths.len() as u64;
    if lengths != network.expected_lengths || lengths == 0 {
        return Err(MachineError::Incomplete { file: file(), lengths, expected: network.expected_lengths });
    }
    let processes = network.processes;
    for (times, &length) in network.seconds.iter().zip(&network.lengths) {
        if let Some(at) = times.iter().position(|time| !(time.is_finite() && *time >= 0.0)) {
            let (receiver, sender) = (at / processes, at % processes);
            return Err(MachineError::Failed { file: file(), length, sender, receiver, time: times[at] });
        }
    }
    Ok(network)
}
