//! What processes ask for that hosts do not have, whatever the streams.

use std::collections::BTreeMap;

use hopmap_model::{Cause, Node, Part, ProcessDemand};

use super::changed::Changed;
use super::{amount, cause, short};
use crate::problem::{Problem, TOLERANCE};

/// Capabilities, devices and hosts that are not there. They are no longer asked for in `changed`.
pub(super) fn lacking(problem: &Problem<'_>, changed: &mut Changed) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (process, demand) in changed.graph.demands.processes.iter_mut().enumerate() {
        let own = problem.mapped.as_ref().map(|hosts| &problem.system.nodes[hosts[process] as usize]);
        lacks(problem, demand, own, &mut causes);
    }
    devices_of_hosts(problem, changed, &mut causes);
    devices_of_all(problem, changed, &mut causes);
    causes
}

/// What no host has that a process could be on, or its own one where that is given.
fn lacks(problem: &Problem<'_>, demand: &mut ProcessDemand, own: Option<&Node>, causes: &mut Vec<Cause>) {
    let name = demand.name.clone();
    let mut tell = |words: String| causes.push(cause(Part::Process, &name, words));
    let hosts = || problem.hosts.iter().map(|&host| &problem.system.nodes[host as usize]);
    if let Some(wanted) = demand.host.clone() {
        let elsewhere = own.filter(|own| own.name != wanted);
        if let Some(own) = elsewhere {
            tell(format!("process {name} is on host {} and has to be on {wanted}", own.name));
            demand.host = None;
        } else if !hosts().any(|host| host.name == wanted) {
            tell(format!("process {name} has to be on {wanted}, which is no host"));
            demand.host = None;
        }
    }
    let fixed = demand.host.clone();
    let could: Vec<&Node> = match own {
        Some(own) => vec![own],
        None => hosts().filter(|host| fixed.as_ref().is_none_or(|fixed| host.name == *fixed)).collect(),
    };
    let who = match could.as_slice() {
        [only] => format!("host {} does not have", only.name),
        _ => "no host has".to_owned(),
    };
    demand.capabilities.retain(|wanted| {
        let is_there = could.iter().any(|host| host.traits.capabilities.contains(wanted));
        if !is_there {
            tell(format!("process {name} needs `{wanted}`, which {who}"));
        }
        is_there
    });
    demand.devices.retain(|device, count| {
        let is_there = could.iter().any(|host| has(host, device) >= u64::from(*count));
        if !is_there {
            tell(format!("process {name} needs {count} of `{device}`, which {who}"));
        }
        is_there
    });
    let has_all = |host: &&Node| {
        demand.capabilities.iter().all(|wanted| host.traits.capabilities.contains(wanted))
            && demand.devices.iter().all(|(device, &count)| has(host, device) >= u64::from(count))
    };
    if !could.iter().any(has_all) && !could.is_empty() {
        let devices = demand.devices.iter().map(|(device, count)| format!("{count} of `{device}`"));
        let all: Vec<String> =
            demand.capabilities.iter().map(|wanted| format!("`{wanted}`")).chain(devices).collect();
        tell(format!("no host has all that process {name} needs: {}", all.join(", ")));
        demand.capabilities.clear();
        demand.devices.clear();
    }
}

fn has(host: &Node, device: &str) -> u64 {
    u64::from(host.traits.devices.get(device).copied().unwrap_or_default())
}

/// Devices of a host of which the processes that are there, or have to be, need more than there are.
fn devices_of_hosts(problem: &Problem<'_>, changed: &mut Changed, causes: &mut Vec<Cause>) {
    let at: Vec<Option<u32>> = known_hosts(problem, changed);
    let mut wanted: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for (demand, host) in changed.graph.demands.processes.iter().zip(&at) {
        for (device, &count) in host.iter().flat_map(|_| &demand.devices) {
            let key = (host.unwrap_or_default(), device.clone());
            *wanted.entry(key).or_default() += u64::from(count);
        }
    }
    for ((host, device), count) in wanted {
        let node = &problem.system.nodes[host as usize];
        let there = has(node, &device);
        if count > there {
            let words =
                format!("the processes on host {} need {count} of `{device}`, and it has {there}", node.name);
            causes.push(cause(Part::Host, &node.name, words));
            let own = changed.graph.demands.processes.iter_mut().zip(&at);
            own.filter(|(_, at)| **at == Some(host)).for_each(|(demand, _)| {
                demand.devices.remove(&device);
            });
        }
    }
}

/// Devices of which all processes need more than all hosts have.
fn devices_of_all(problem: &Problem<'_>, changed: &mut Changed, causes: &mut Vec<Cause>) {
    let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
    for (device, &count) in changed.graph.demands.processes.iter().flat_map(|demand| &demand.devices) {
        *wanted.entry(device.clone()).or_default() += u64::from(count);
    }
    for (device, count) in wanted {
        let hosts = problem.hosts.iter().map(|&host| &problem.system.nodes[host as usize]);
        let there: u64 = hosts.map(|host| has(host, &device)).sum();
        if count > there {
            let words =
                format!("all processes need {count} of `{device}`, and all hosts together have {there}");
            causes.push(cause(Part::Host, "all hosts", words));
            changed.graph.demands.processes.iter_mut().for_each(|demand| {
                demand.devices.remove(&device);
            });
        }
    }
}

/// The host of every process that can only be on one.
fn known_hosts(problem: &Problem<'_>, changed: &Changed) -> Vec<Option<u32>> {
    let names: BTreeMap<&str, u32> =
        problem.hosts.iter().map(|&host| (problem.system.nodes[host as usize].name.as_str(), host)).collect();
    let of_name = |demand: &ProcessDemand| names.get(demand.host.as_deref()?).copied();
    match &problem.mapped {
        Some(hosts) => hosts.iter().copied().map(Some).collect(),
        None => changed.graph.demands.processes.iter().map(of_name).collect(),
    }
}

/// Performance of which there is too little, whatever the streams and wherever processes are that may choose.
pub(super) fn too_weak(problem: &Problem<'_>) -> Vec<Cause> {
    if problem.mapped.is_some() {
        return Vec::new();
    }
    let demands = &problem.graph.demands.processes;
    let unlimited = vec![f64::INFINITY; problem.performance.len()];
    let could = crate::problem::allowed(problem.graph, problem.system, &problem.hosts, &unlimited);
    let mut causes = Vec::new();
    let mut only: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for (demand, could) in demands.iter().zip(&could) {
        let most = could.iter().map(|&host| problem.performance[host as usize]).fold(0.0, f64::max);
        if is_more(demand.performance, most) {
            let words = format!(
                "process {} needs a performance of {}, and no host that it may be on can give more than {}",
                demand.name,
                amount(demand.performance),
                amount(most)
            );
            causes.push(short(Part::Process, &demand.name, most, demand.performance, words));
        }
        if let [host] = could.as_slice() {
            let (sum, count) = only.entry(*host).or_default();
            *sum += demand.performance;
            *count += 1;
        }
    }
    for (host, (needed, count)) in only {
        let there = problem.performance[host as usize];
        if count > 1 && is_more(needed, there) {
            let name = &problem.system.nodes[host as usize].name;
            let words = format!(
                "the processes that can only be on host {name} need a performance of {}, and it can give {}",
                amount(needed),
                amount(there)
            );
            causes.push(short(Part::Host, name, there, needed, words));
        }
    }
    let needed: f64 = demands.iter().map(|demand| demand.performance).sum();
    let there: f64 = problem.hosts.iter().map(|&host| problem.performance[host as usize]).sum();
    if is_more(needed, there) {
        let words = format!(
            "all processes need a performance of {}, and all hosts together can give {}",
            amount(needed),
            amount(there)
        );
        causes.push(short(Part::Host, "all hosts", there, needed, words));
    }
    causes
}

fn is_more(needed: f64, there: f64) -> bool {
    needed > there * (1.0 + TOLERANCE)
}
