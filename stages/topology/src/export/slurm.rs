//! `topology.conf` and `topology.yaml` of Slurm, for its plugin topology/tree.

use std::collections::{BTreeSet, HashMap};

use hopmap_formats::host_list::compress;
use hopmap_model::{NodeKind, SystemGraph};

use super::ExportError;
use super::logical_tree::{Group, groups};
use crate::params::Written;

/// Largest length of a switch name, in bytes.
const MOST_NAME: usize = 64;

pub(super) fn conf(system: &SystemGraph) -> Written {
    let mut text = "# Switches of the network, for TopologyPlugin=topology/tree\n".to_owned();
    let (all, lost) = switches(system, "topology.conf")?;
    for Switch { name, below } in all {
        text.push_str(&match below {
            Below::Hosts(hosts) => format!("SwitchName={name} Nodes={hosts}\n"),
            Below::Switches(others) => format!("SwitchName={name} Switches={others}\n"),
        });
    }
    Ok((text, lost))
}

pub(super) fn yaml(system: &SystemGraph) -> Written {
    let mut text = "# Switches of the network\n---\n- topology: default\n  cluster_default: true\n  tree:\n    switches:\n".to_owned();
    let (all, lost) = switches(system, "topology.yaml")?;
    for Switch { name, below } in all {
        let (key, names) = match &below {
            Below::Hosts(hosts) => ("nodes", hosts),
            Below::Switches(others) => ("children", others),
        };
        text.push_str(&format!("    - switch: \"{name}\"\n      {key}: \"{names}\"\n"));
    }
    Ok((text, lost))
}

/// A switch with the host list of what is below it.
struct Switch {
    name: String,
    below: Below,
}

enum Below {
    Hosts(String),
    Switches(String),
}

/// All switches, those above hosts first.
fn switches(system: &SystemGraph, format: &'static str) -> Result<(Vec<Switch>, Vec<String>), ExportError> {
    if !system.nodes.iter().any(|node| node.kind == NodeKind::Host) {
        return Err(ExportError::impossible(format, "it has no hosts", "use a machine topology with hosts"));
    }
    check_hosts(system, format)?;
    let (groups, mut lost) = groups(system, format)?;
    let names = names(system, &groups, &mut lost);
    let host = |&host: &u32| system.nodes[host as usize].name.as_str();
    let switch = |(group, name): (&Group, &String)| Switch {
        name: name.clone(),
        below: match group.children.is_empty() {
            true => Below::Hosts(compress(group.hosts.iter().map(host))),
            false => Below::Switches(compress(group.children.iter().map(|&child| &names[child]))),
        },
    };
    let switches = groups.iter().zip(&names).map(switch).collect();
    let rates = system.links.iter().any(|link| link.bandwidth_bytes_per_s.or(link.latency_s).is_some());
    if rates {
        lost.push("bandwidths and latencies of links".into());
    }
    if system.slots.len() > system.hosts().count() {
        lost.push("slots of hosts".into());
    }
    Ok((switches, lost))
}

/// Host names must be those of the cluster, so they cannot be changed.
fn check_hosts(system: &SystemGraph, format: &'static str) -> Result<(), ExportError> {
    let is_wrong = |c: char| c.is_whitespace() || c.is_control() || "[],=#\"'\\".contains(c);
    let hosts = || system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    match hosts().find(|node| node.name.is_empty() || node.name.contains(is_wrong)) {
        None => Ok(()),
        Some(node) => {
            let help = "host names consist of letters, digits, `-`, `_` and `.`";
            let problem = format!("Slurm does not accept the host name `{}`", node.name);
            Err(ExportError::impossible(format, problem, help))
        }
    }
}

/// Unique switch names that Slurm accepts.
fn names(system: &SystemGraph, groups: &[Group], lost: &mut Vec<String>) -> Vec<String> {
    // Slurm allows a switch with the name of a host, but that would confuse users.
    let hosts = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    let mut taken: BTreeSet<String> = hosts.map(|node| node.name.clone()).collect();
    let mut repeated: HashMap<String, usize> = HashMap::new();
    let mut renamed = 0;
    let mut name = |group: &Group| {
        let clean: String =
            group.name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MOST_NAME).collect();
        let clean = if clean.is_empty() { "switch".to_owned() } else { clean };
        let mut name = clean.clone();
        let next = repeated.entry(clean.clone()).or_insert(1);
        while !taken.insert(name.clone()) {
            *next += 1;
            let ending = format!("-{next}");
            name =
                format!("{}{ending}", clean.get(..clean.len().min(MOST_NAME - ending.len())).unwrap_or(""));
        }
        renamed += usize::from(name != group.name && !group.is_made_up);
        name
    };
    let names: Vec<String> = groups.iter().map(&mut name).collect();
    if renamed > 0 {
        lost.push(format!(
            "the names of {renamed} switches: Slurm accepts at most 64 letters, digits, `-`, `_` and `.`"
        ));
    }
    names
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}
