//! Whether processes are on hosts that have what they ask for.

use std::collections::BTreeMap;

use hopmap_model::{Mapping, NodeState, SystemGraph, TaskGraph};

use super::TOLERANCE;
use crate::CheckError;

/// The host of every process, as a node of the machine, and the least part of a host's performance that stays free: at least `slack`, and
/// 1 where nobody said how much there is.
pub(super) fn check(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    slack: f64,
) -> Result<(Vec<u32>, f64), CheckError> {
    let processes = graph.ranks();
    if mapping.ranks.len() != processes {
        return Err(CheckError::new(
            format!("the mapping is of {} processes, and the program has {processes}", mapping.ranks.len()),
            "is it the mapping of another program?",
        ));
    }
    let mut host_of = Vec::with_capacity(processes);
    for rank in 0..processes {
        let name = mapping.host_of(rank);
        match system.slots.get(mapping.ranks[rank].slot as usize).map(|slot| slot.host) {
            Some(host) if system.nodes[host as usize].name == name => {
                if system.nodes[host as usize].state == NodeState::Down {
                    return Err(CheckError::new(
                        format!("process {rank} is on host `{name}`, which is down"),
                        "map the program again, to what is up",
                    ));
                }
                host_of.push(host);
            }
            _ => {
                return Err(CheckError::new(
                    format!("process {rank} is on host `{name}`, which this machine does not have there"),
                    "is it the mapping of another machine?",
                ));
            }
        }
    }
    let performance = demands(graph, system, &host_of)?;
    let share = performances(system, &performance, slack)?;
    Ok((host_of, share))
}

/// What is needed of the performance of every host. Fails where a process lacks something else.
fn demands(
    graph: &TaskGraph,
    system: &SystemGraph,
    host_of: &[u32],
) -> Result<BTreeMap<u32, f64>, CheckError> {
    let mut performance: BTreeMap<u32, f64> = BTreeMap::new();
    let mut devices: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for (demand, &host) in graph.demands.processes.iter().zip(host_of) {
        let node = &system.nodes[host as usize];
        let (process, on) = (&demand.name, &node.name);
        if let Some(other) = demand.host.as_ref().filter(|other| *other != on) {
            return Err(CheckError::new(
                format!("process `{process}` is on host `{on}` and has to be on `{other}`"),
                "the instance settles that in `mapping`",
            ));
        }
        if let Some(lacking) =
            demand.capabilities.iter().find(|wanted| !node.traits.capabilities.contains(wanted))
        {
            return Err(CheckError::new(
                format!("process `{process}` needs `{lacking}`, which host `{on}` does not have"),
                "put it on a host that has it",
            ));
        }
        *performance.entry(host).or_default() += demand.performance;
        for (device, &count) in &demand.devices {
            *devices.entry((host, device)).or_default() += u64::from(count);
        }
    }
    for ((host, device), wanted) in devices {
        let node = &system.nodes[host as usize];
        let there = node.traits.devices.get(device).copied().unwrap_or_default();
        if wanted > u64::from(there) {
            return Err(CheckError::new(
                format!(
                    "the processes on host `{}` need {wanted} of `{device}`, and it has {there}",
                    node.name
                ),
                "move some to other hosts",
            ));
        }
    }
    Ok(performance)
}

/// The least part of a host's performance that stays free.
fn performances(
    system: &SystemGraph,
    performance: &BTreeMap<u32, f64>,
    slack: f64,
) -> Result<f64, CheckError> {
    let mut least = 1.0_f64;
    for (&host, &wanted) in performance {
        let node = &system.nodes[host as usize];
        let Some(there) = node.traits.performance else { continue };
        if wanted > there * (1.0 - slack) * (1.0 + TOLERANCE) {
            let free = if slack > 0.0 { format!(", of which {slack} stays free") } else { String::new() };
            return Err(CheckError::new(
                format!(
                    "the processes on host `{}` need a performance of {wanted}, and it has {there}{free}",
                    node.name
                ),
                "move some to other hosts",
            ));
        }
        if wanted > 0.0 {
            least = least.min(1.0 - wanted / there);
        }
    }
    Ok(least)
}
