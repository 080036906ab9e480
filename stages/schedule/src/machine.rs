//! The machine of a scheduler's parameters: a connected system, measurements of PARUS (`procs.vct` and `network.*`), or identical
//! processors.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use hopmap_formats::parus::{Kind, NetworkFile};
use hopmap_model::{Error, InputPath, OutOfRange, Processor, SystemGraph, WorkUnit};
use hopmap_replay::{
    Distances, Linear, MAX_PROCESSORS, Machine, MachineError as InvalidMachine, Measured, Network,
};

use crate::error::{InvalidInput, invalid};
use crate::formats::procs::Procs;
use crate::formats::read_file;
use crate::params::MachineParams;

/// Default bandwidth in bytes per second: 10 Gbit/s.
const DEFAULT_BANDWIDTH: f64 = 1.25e9;

impl MachineParams {
    /// The machine of the parameters, and of the connected system if there is one.
    pub fn machine(&self, system: Option<&SystemGraph>, unit: WorkUnit) -> Result<Machine, Error> {
        let given_files = self.procs.is_some() || self.network.is_some();
        let machine = match (system, given_files) {
            (Some(_), true) => {
                let problem = "a `system` cannot be combined with `procs` or `network`";
                return invalid(problem, "omit one of them: both define the processors");
            }
            (Some(system), false) => {
                Machine::of_system(system, self.processors, self.linear(unit)?, self.distance)?
            }
            (None, true) => of_files(self, unit)?,
            (None, false) => {
                let processors = self.processors.ok_or_else(|| {
                    let help = "set `processors = 4`, connect a `system`, or set `procs` and `network` to files of PARUS";
                    InvalidInput::new("the number of processors is not specified", help)
                })?;
                Machine::uniform(processors, self.linear(unit)?)?
            }
        };
        let machine = machine.with_first(self.processors)?.with_speeds(&self.speeds)?;
        Ok(machine.with_available(&self.available)?)
    }

    /// The files of PARUS under fixed names, so that renaming a file changes no key.
    pub(crate) fn files(&self) -> Vec<InputPath> {
        let named = |file: &Option<InputPath>, name: &str| {
            file.as_ref().map(|file| InputPath::named(file.path(), name))
        };
        [named(&self.procs, "procs"), named(&self.network, "network")].into_iter().flatten().collect()
    }

    /// The message times of the parameters.
    pub(crate) fn linear(&self, unit: WorkUnit) -> Result<Linear, InvalidMachine> {
        let default = match unit {
            WorkUnit::Seconds => DEFAULT_BANDWIDTH,
            WorkUnit::Time => 1.0,
        };
        Linear::new(self.latency.unwrap_or(0.0), self.bandwidth.unwrap_or(default))
    }
}

fn of_files(params: &MachineParams, unit: WorkUnit) -> Result<Machine, Error> {
    let procs = params.procs.as_ref().map(|file| read_file(file.path(), Procs::read)).transpose()?;
    let network = params.network.as_ref().map(|file| read_network(file.path())).transpose()?;
    let counts =
        (procs.as_ref().map(|procs| procs.durations.len()), network.as_ref().map(|one| one.processes));
    let count = match counts {
        (Some(procs), Some(network)) if procs != network => {
            let problem = format!("`procs` has {procs} processes, but `network` has {network}");
            return invalid(problem, "measure both with the same number of processes");
        }
        (procs, network) => procs.or(network).unwrap_or(0),
    };
    let used = used_processes(params, count)?;
    let hosts = procs.as_ref().map(|procs| &procs.hosts).or(network.as_ref().map(|network| &network.hosts));
    let names = processor_names(used.clone(), hosts.map_or(&[], Vec::as_slice));
    let pace = |process: usize| procs.as_ref().map_or(1.0, |procs| procs.durations[process] / procs.size);
    let pace = used.clone().map(pace).collect();
    let network = match (network, &params.network) {
        (Some(network), Some(file)) => {
            let given = [("latency", params.latency), ("bandwidth", params.bandwidth)];
            if let Some((name, _)) = given.into_iter().find(|(_, value)| value.is_some()) {
                let problem = format!("a `network` of measured times cannot be combined with `{name}`");
                return invalid(problem, "omit one of them: both define message times");
            }
            Network::Measured(measured_times(network, file.path(), used, params)?)
        }
        _ => {
            let classes = vec![Linear::FREE, params.linear(unit)?];
            Network::Linear { distances: Distances::Alike, classes }
        }
    };
    let processors = names.into_iter().map(|name| Processor { name, ..Processor::default() }).collect();
    Ok(Machine { processors, pace, network })
}

/// The processes that run tasks.
fn used_processes(params: &MachineParams, count: usize) -> Result<Range<usize>, InvalidMachine> {
    let first = usize::from(params.coordinator);
    if count <= first {
        return Err(InvalidMachine::TooFew { wanted: 1, there: 0 });
    }
    let wanted = params.processors.map_or(count - first, |processors| processors as usize);
    if wanted == 0 || wanted > count - first {
        return Err(InvalidMachine::TooFew { wanted, there: count - first });
    }
    if wanted > MAX_PROCESSORS as usize {
        return Err(OutOfRange::new("processors", wanted, "1 to 65536").into());
    }
    Ok(first..first + wanted)
}

/// The names of processes: their hosts, followed by a number if several share one.
fn processor_names(used: Range<usize>, hosts: &[String]) -> Vec<String> {
    let mut shared: HashMap<&str, (u32, u32)> = HashMap::new();
    hosts.iter().for_each(|host| shared.entry(host).or_default().0 += 1);
    // The coordinator counts, too, so that numbers are the same with it and without.
    let mut names: Vec<String> = Vec::with_capacity(used.end);
    for process in 0..used.end {
        names.push(match hosts.get(process) {
            None => format!("p{process}"),
            Some(host) => match shared.get_mut(host.as_str()) {
                Some((count, next)) if *count > 1 => {
                    *next += 1;
                    format!("{host}:{}", *next - 1)
                }
                _ => host.clone(),
            },
        });
    }
    names.split_off(used.start)
}

/// Message times between the processes in use, if all of these were measured.
fn measured_times(
    network: NetworkFile,
    path: &Path,
    used: Range<usize>,
    params: &MachineParams,
) -> Result<Measured, InvalidInput> {
    let NetworkFile { processes, lengths, mut seconds, .. } = network;
    for (times, &length) in seconds.iter_mut().zip(&lengths) {
        for receiver in used.clone() {
            for sender in used.clone() {
                let time = &mut times[receiver * processes + sender];
                if time.is_finite() && *time >= 0.0 {
                    continue;
                }
                // Not every test measures self-messages; then the value is arbitrary.
                if sender != receiver {
                    let problem = format!(
                        "`{}` has the invalid time {time} s for a message of {length} bytes from process {sender} to {receiver}",
                        path.display()
                    );
                    let help = "the network test failed there: repeat it, or exclude the process";
                    return invalid(problem, help);
                }
                *time = 0.0;
            }
        }
    }
    let mut measured = Measured::new(processes, lengths, seconds, params.lookup);
    measured.keep(used);
    Ok(measured)
}

/// A network file with times for all its lengths; PARUS silently accepts an incomplete one.
fn read_network(path: &Path) -> Result<NetworkFile, Error> {
    let network = read_file(path, NetworkFile::read)?;
    let file = path.display();
    if network.kind == Kind::Deviation {
        let problem = format!("`{file}` contains deviations of message times, not message times");
        return invalid(problem, "use the file of averages, medians or minima of the same test");
    }
    let (lengths, expected) = (network.lengths.len() as u64, network.expected_lengths);
    if lengths != expected {
        return invalid(
            format!("`{file}` has times for {lengths} message lengths, but its header announces {expected}"),
            "the network test was interrupted: repeat it, or correct `end message length` in the header",
        );
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hopmap_model::{CostModel, Levels, Routing};
    use hopmap_replay::Lookup;
    use tempfile::TempDir;

    use super::*;

    const PROCS: &str =
        "processors 3\ntest type \"x\"\ntest data size 2\nhosts:\na\nb\nb\ndurations:\n1\n4\n3\n";
    const NETWORK: &str = "processors 3\ntest type \"one_to_one\"\ndata type \"median\"\nbegin message length 0\nend message length 200\n\
        step length 100\nnoise message length 0\nnumber of noise messages 0\nnumber of noise processes 0\nnumber of repeates 1\nhosts:\na\nb\nb\n\
        Message length 0\n0 1 2\n3 -1 5\n6 7 nan\nMessage length 100\n0 10 20\n30 40 50\n60 70 80\n";

    /// A machine of these files, with changed parameters.
    fn of(
        procs: Option<&str>,
        network: Option<&str>,
        change: impl Fn(&mut MachineParams),
    ) -> Result<Machine, String> {
        let folder = TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            InputPath::new(path)
        };
        let mut params = MachineParams {
            procs: procs.map(|text| file("procs", text)),
            network: network.map(|text| file("network", text)),
            ..MachineParams::default()
        };
        change(&mut params);
        let machine = params.machine(None, WorkUnit::Seconds);
        machine.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    fn same(_: &mut MachineParams) {}

    fn names(machine: &Machine) -> Vec<&str> {
        machine.processors.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn both_files_are_a_machine() {
        let machine = of(Some(PROCS), Some(NETWORK), same).unwrap();
        assert_eq!((names(&machine), &machine.pace[..]), (vec!["a", "b:0", "b:1"], &[0.5, 2.0, 1.5][..]));
        // Rows are receivers.
        let times = |from, to| [0, 50, 100].map(|bytes| machine.network.time(from, to, bytes));
        assert_eq!((times(1, 0), times(0, 1)), ([1.0, 5.5, 10.0], [3.0, 16.5, 30.0]));
        // Self-messages of the first process were not measured.
        assert_eq!((times(1, 1), times(2, 2)), ([0.0, 20.0, 40.0], [0.0, 40.0, 80.0]));
        let steps = of(None, Some(NETWORK), |params| params.lookup = Lookup::Parus).unwrap();
        assert_eq!((steps.network.time(1, 0, 50), &steps.pace[..]), (10.0, &[1.0; 3][..]));
    }

    #[test]
    fn a_system_cannot_be_combined_with_files() {
        let params = MachineParams { procs: Some(InputPath::new("procs.vct")), ..MachineParams::default() };
        let cost = CostModel::Levels(Levels { costs: Vec::new(), groups: Vec::new() });
        let system = SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: Vec::new(),
            cost,
            routing: Routing::default(),
            calibration: Vec::new(),
        };
        let both = params.machine(Some(&system), WorkUnit::Seconds);
        assert!(both.unwrap_err().to_string().starts_with("a `system` cannot be combined"));
    }

    #[test]
    fn the_coordinator_runs_no_tasks() {
        let machine = of(Some(PROCS), Some(NETWORK), |params| params.coordinator = true).unwrap();
        assert_eq!((names(&machine), &machine.pace[..]), (vec!["b:0", "b:1"], &[2.0, 1.5][..]));
        assert_eq!((machine.network.time(0, 1, 0), machine.network.time(1, 0, 0)), (7.0, 5.0));
        let first = of(Some(PROCS), Some(NETWORK), |params| {
            params.coordinator = true;
            params.processors = Some(1);
        });
        assert_eq!((names(&first.unwrap()), machine.processors.len()), (vec!["b:0"], 2));
        let many = |params: &mut MachineParams| {
            params.coordinator = true;
            params.processors = Some(3);
        };
        assert_eq!(of(Some(PROCS), None, many).unwrap_err(), "3 processors requested, but only 2 exist");
        let alone = "processors 1\ntest type \"x\"\ntest data size 2\nhosts:\na\ndurations:\n1\n";
        let error = of(Some(alone), None, |params| params.coordinator = true).unwrap_err();
        assert_eq!(error, "1 processors requested, but only 0 exist");
    }

    #[test]
    fn without_a_network_parameters_define_message_times() {
        let machine = of(Some(PROCS), None, |params| params.latency = Some(1.0)).unwrap();
        assert_eq!((machine.network.time(0, 0, 9), machine.network.time(0, 2, 1_250_000_000)), (0.0, 2.0));
    }

    #[test]
    fn incomplete_measurements_are_rejected() {
        let network = |from: &str, to: &str| {
            assert!(NETWORK.contains(from));
            of(Some(PROCS), Some(&NETWORK.replacen(from, to, 1)), same).map(drop).unwrap_err()
        };
        assert_eq!(
            network("length 200", "length 300"),
            "`network` has times for 2 message lengths, but its header announces 3"
        );
        let cut = NETWORK.split("Message length 100").next().unwrap();
        assert!(of(None, Some(cut), same).unwrap_err().contains("times for 1 message lengths"));
        let failed = network("60 70", "60 -1");
        assert_eq!(
            failed,
            "`network` has the invalid time -1 s for a message of 100 bytes from process 1 to 2"
        );
        // Measurements of unused processes may be invalid.
        let without =
            of(None, Some(&NETWORK.replacen("0 1 2", "0 nan 2", 1)), |params| params.coordinator = true);
        assert_eq!(without.unwrap().processors.len(), 2);
        assert_eq!(
            network("median", "deviation"),
            "`network` contains deviations of message times, not message times"
        );
        assert!(network("step length", "step size").starts_with("network:6:"));
        let other = PROCS.replace("processors 3", "processors 2").replace("b\nb", "b").replace("\n3\n", "\n");
        let disagree = of(Some(&other), Some(NETWORK), same).unwrap_err();
        assert_eq!(disagree, "`procs` has 2 processes, but `network` has 3");
        assert_eq!(of(Some("x"), None, same).unwrap_err(), "procs:1:1: expected `processors`, found `x`");
        let missing = of(None, None, |params| params.procs = Some(InputPath::new("/nowhere/procs.vct")));
        assert_eq!(
            missing.unwrap_err(),
            "/nowhere/procs.vct: cannot be read: No such file or directory (os error 2)"
        );
        let both = of(None, Some(NETWORK), |params| params.bandwidth = Some(1.0));
        assert_eq!(both.unwrap_err(), "a `network` of measured times cannot be combined with `bandwidth`");
    }
}
