//! The machine that the parameters of a scheduler describe: a connected system, files that PARUS measured (`procs.vct` and `network.*`), or
//! processors that are all alike.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use hopmap_formats::parus::{Kind, NetworkFile};
use hopmap_model::{Error, InputPath, Processor, SystemGraph, WorkUnit};
use hopmap_replay::{
    Distances, Linear, MAX_PROCESSORS, Machine, MachineError as InvalidMachine, Measured, Network,
};

use crate::MachineParams;
use crate::error::{InvalidInput, invalid};
use crate::formats::procs::Procs;
use crate::formats::read_file;

/// Bytes per second where nobody says it: 10 Gbit/s.
const DEFAULT_BANDWIDTH: f64 = 1.25e9;

impl MachineParams {
    /// The machine that the parameters, and the connected system if there is one, describe.
    pub fn machine(&self, system: Option<&SystemGraph>, unit: WorkUnit) -> Result<Machine, Error> {
        let given_files = self.procs.is_some() || self.network.is_some();
        let machine = match (system, given_files) {
            (Some(_), true) => {
                let problem = "there is a `system`, and `procs` or `network` beside it";
                return invalid(problem, "leave one of them out: both say what the processors are");
            }
            (Some(system), false) => {
                Machine::of_system(system, self.processors, self.linear(unit)?, self.distance)?
            }
            (None, true) => of_files(self, unit)?,
            (None, false) => {
                let processors = self.processors.ok_or_else(|| {
                    let help = "give `processors = 4`, connect a `system`, or name the files of PARUS in `procs` and `network`";
                    InvalidInput::new("nothing says how many processors there are", help)
                })?;
                Machine::uniform(processors, self.linear(unit)?)?
            }
        };
        let machine = machine.with_first(self.processors)?.with_speeds(&self.speeds)?;
        Ok(machine.with_available(&self.available)?)
    }

    /// The files of PARUS, always under the same names, so that renaming a file changes no key.
    pub(crate) fn files(&self) -> Vec<InputPath> {
        let named = |file: &Option<InputPath>, name: &str| {
            file.as_ref().map(|file| InputPath::named(file.path(), name))
        };
        [named(&self.procs, "procs"), named(&self.network, "network")].into_iter().flatten().collect()
    }

    /// What the parameters say of messages.
    fn linear(&self, unit: WorkUnit) -> Result<Linear, InvalidMachine> {
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
            let problem = format!("`procs` is of {procs} processes and `network` of {network}");
            return invalid(problem, "both have to be measured by the same number of processes");
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
                let problem =
                    format!("there is a `network` of times that were measured, and `{name}` beside it");
                return invalid(problem, "leave one of them out: both say what messages take");
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
        return Err(InvalidMachine::Processors { processors: wanted as u32 });
    }
    Ok(first..first + wanted)
}

/// The names of processes: of their hosts, with a number behind where several share one.
fn processor_names(used: Range<usize>, hosts: &[String]) -> Vec<String> {
    let mut shared: HashMap<&str, (u32, u32)> = HashMap::new();
    hosts.iter().for_each(|host| shared.entry(host).or_default().0 += 1);
    // Those of the coordinator count, too, so that a number is the same with it and without.
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

/// What messages take between the processes that are used, if all of these could be measured.
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
                // Not every test sends to itself, and then anything stands there.
                if sender != receiver {
                    let problem = format!(
                        "`{}` says that a message of {length} bytes from process {sender} to {receiver} took {time} s",
                        path.display()
                    );
                    let help = "the network test failed there: run it again, or leave the process out";
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

/// A network file with times for all its lengths: PARUS takes a broken one without a word.
fn read_network(path: &Path) -> Result<NetworkFile, Error> {
    let network = read_file(path, NetworkFile::read)?;
    let file = path.display();
    if network.kind == Kind::Deviation {
        let problem = format!("`{file}` says how far times scatter, not how long messages take");
        return invalid(problem, "give the file of averages, medians or minima of the same test");
    }
    let (lengths, expected) = (network.lengths.len() as u64, network.expected_lengths);
    if lengths != expected {
        return invalid(
            format!(
                "`{file}` has times for {lengths} of the {expected} lengths of messages that its header promises"
            ),
            "the network test was broken off: run it again, or correct `end message length` in the header",
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
        // Nobody sent to itself at first.
        assert_eq!((times(1, 1), times(2, 2)), ([0.0, 20.0, 40.0], [0.0, 40.0, 80.0]));
        let steps = of(None, Some(NETWORK), |params| params.lookup = Lookup::Parus).unwrap();
        assert_eq!((steps.network.time(1, 0, 50), &steps.pace[..]), (10.0, &[1.0; 3][..]));
    }

    #[test]
    fn a_system_and_files_are_two_machines() {
        let params = MachineParams { procs: Some(InputPath::new("procs.vct")), ..MachineParams::default() };
        let cost = CostModel::Levels(Levels { costs: Vec::new(), groups: Vec::new() });
        let system = SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: Vec::new(),
            cost,
            routing: Routing::default(),
        };
        let both = params.machine(Some(&system), WorkUnit::Seconds);
        assert!(both.unwrap_err().to_string().starts_with("there is a `system`, and"));
    }

    #[test]
    fn the_coordinator_runs_no_task() {
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
    fn durations_alone_leave_messages_to_the_parameters() {
        let machine = of(Some(PROCS), None, |params| params.latency = Some(1.0)).unwrap();
        assert_eq!((machine.network.time(0, 0, 9), machine.network.time(0, 2, 1_250_000_000)), (0.0, 2.0));
    }

    #[test]
    fn a_broken_test_is_refused() {
        let network = |from: &str, to: &str| {
            assert!(NETWORK.contains(from));
            of(Some(PROCS), Some(&NETWORK.replacen(from, to, 1)), same).map(drop).unwrap_err()
        };
        assert_eq!(
            network("length 200", "length 300"),
            "`network` has times for 2 of the 3 lengths of messages that its header promises"
        );
        let cut = NETWORK.split("Message length 100").next().unwrap();
        assert!(of(None, Some(cut), same).unwrap_err().contains("times for 1 of the 2 lengths"));
        let failed = network("60 70", "60 -1");
        assert_eq!(failed, "`network` says that a message of 100 bytes from process 1 to 2 took -1 s");
        // What nobody uses may have failed.
        let without =
            of(None, Some(&NETWORK.replacen("0 1 2", "0 nan 2", 1)), |params| params.coordinator = true);
        assert_eq!(without.unwrap().processors.len(), 2);
        assert_eq!(
            network("median", "deviation"),
            "`network` says how far times scatter, not how long messages take"
        );
        assert!(network("step length", "step size").starts_with("network:6:"));
        let other = PROCS.replace("processors 3", "processors 2").replace("b\nb", "b").replace("\n3\n", "\n");
        let disagree = of(Some(&other), Some(NETWORK), same).unwrap_err();
        assert_eq!(disagree, "`procs` is of 2 processes and `network` of 3");
        assert_eq!(
            of(Some("x"), None, same).unwrap_err(),
            "procs:1:1: expected `processors`, found `x`"
        );
        let missing = of(None, None, |params| params.procs = Some(InputPath::new("/nowhere/procs.vct")));
        assert_eq!(
            missing.unwrap_err(),
            "/nowhere/procs.vct: cannot be read: No such file or directory (os error 2)"
        );
        let both = of(None, Some(NETWORK), |params| params.bandwidth = Some(1.0));
        assert_eq!(
            both.unwrap_err(),
            "there is a `network` of times that were measured, and `bandwidth` beside it"
        );
    }
}
