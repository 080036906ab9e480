//! SimGrid platforms, version 4.1, for its MPI simulations (SMPI): hosts, links and the route of every pair.

use hopmap_model::{CostModel, Link, NodeKind, Paths, SystemGraph};

use super::ExportError;
use super::logical_tree::{Group, groups};
use crate::params::Written;

/// Largest number of hosts with all routes.
const MOST_HOSTS: usize = 1000;
const FORMAT: &str = "a platform of SimGrid";

pub(super) fn write(system: &SystemGraph) -> Written {
    let hosts: Vec<(u32, u32)> = system.hosts().map(|(host, _, slots)| (host, slots)).collect();
    if hosts.is_empty() {
        return Err(ExportError::impossible(FORMAT, "it has no slots", "a platform needs hosts"));
    }
    if hosts.len() > MOST_HOSTS {
        let problem = format!("the routes between {} hosts are too many to write", hosts.len());
        let help = "choose the hosts of the job with select/hosts or select/nodes first";
        return Err(ExportError::impossible(FORMAT, problem, help));
    }
    let mut lost = Vec::new();
    let idle = system.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() - hosts.len();
    if idle > 0 {
        lost.push(format!("{idle} hosts without slots"));
    }
    lost.push("compute speeds: each core has 1 Gf".into());
    let mut text = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n".to_owned();
    match (&system.cost, system.links.is_empty()) {
        (CostModel::Levels(_), true) => tree(system, &hosts, &mut text, &mut lost)?,
        (_, false) => routed(system, &hosts, &mut text, &mut lost)?,
        _ => {
            let problem = "it has costs for pairs of hosts, but no links";
            let help = "find levels with topology/levels first";
            return Err(ExportError::impossible(FORMAT, problem, help));
        }
    }
    text.push_str("</platform>\n");
    Ok((text, lost))
}

/// Escapes an attribute value.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace(['\n', '\t', '\r'], " ")
}

fn host(system: &SystemGraph, host: u32, cores: u32) -> String {
    let name = escaped(&system.nodes[host as usize].name);
    format!("    <host id=\"{name}\" speed=\"1Gf\" core=\"{cores}\"/>\n")
}

/// Each direction of each used link, and the explicit route of each pair.
fn routed(
    system: &SystemGraph,
    hosts: &[(u32, u32)],
    text: &mut String,
    lost: &mut Vec<String>,
) -> Result<(), ExportError> {
    let Some(paths) = Paths::new(system) else {
        return Err(ExportError::impossible(FORMAT, "it has no links", "use a machine topology with links"));
    };
    let mut used = vec![false; system.links.len()];
    let mut routes = String::new();
    let mut unreached = 0_usize;
    for &(a, _) in hosts {
        for &(b, _) in hosts.iter().filter(|(b, _)| *b != a) {
            let Some(path) = paths.path(a, b) else {
                unreached += 1;
                continue;
            };
            let [source, destination] = [a, b].map(|node| escaped(&system.nodes[node as usize].name));
            routes
                .push_str(&format!("    <route src=\"{source}\" dst=\"{destination}\" symmetrical=\"NO\">"));
            for link in path {
                used[link as usize] = true;
                routes.push_str(&format!("<link_ctn id=\"l{link}\"/>"));
            }
            routes.push_str("</route>\n");
        }
    }
    if unreached > 0 {
        lost.push(format!("{unreached} unreachable pairs of hosts: a simulation that needs them fails"));
    }
    text.push_str("  <zone id=\"machine\" routing=\"Full\">\n");
    hosts.iter().for_each(|&(node, cores)| text.push_str(&host(system, node, cores)));
    let (mut unknown, mut unused) = ([0_usize; 2], 0_usize);
    for (index, link) in system.links.iter().enumerate() {
        if !used[index] {
            unused += 1;
            continue;
        }
        unknown[0] += usize::from(link.bandwidth_bytes_per_s.is_none());
        unknown[1] += usize::from(link.latency_s.is_none());
        text.push_str(&link_text(index, link));
    }
    text.push_str(&routes);
    text.push_str("  </zone>\n");
    for (count, what) in unknown
        .into_iter()
        .zip(["the bandwidth of links (12.5GBps is written)", "the latency of links (1us is written)"])
    {
        if count > 0 {
            lost.push(format!("{what}, unknown for {count}"));
        }
    }
    if unused > 0 {
        lost.push(format!("{unused} link directions that no route uses"));
    }
    lost.push("switches: in SimGrid, routes are lists of links".into());
    Ok(())
}

/// One direction of a link, with all digits of its numbers.
fn link_text(index: usize, link: &Link) -> String {
    let bandwidth = link
        .bandwidth_bytes_per_s
        .filter(|bandwidth| bandwidth.is_finite() && *bandwidth > 0.0)
        .unwrap_or(12.5e9);
    let latency = link.latency_s.filter(|latency| latency.is_finite()).unwrap_or(1e-6);
    format!("    <link id=\"l{index}\" bandwidth=\"{bandwidth:e}Bps\" latency=\"{latency:e}s\"/>\n")
}

/// A tree of links, each between a group and its parent, whose latencies add up to the costs in microseconds.
fn tree(
    system: &SystemGraph,
    hosts: &[(u32, u32)],
    text: &mut String,
    lost: &mut Vec<String>,
) -> Result<(), ExportError> {
    let (groups, _) = groups(system, FORMAT)?;
    let costs = system.costs();
    let mut first_slot = vec![None; system.nodes.len()];
    system.hosts().for_each(|(host, slot, _)| first_slot[host as usize] = Some(slot));
    let mut chains: Vec<Vec<usize>> = vec![Vec::new(); system.nodes.len()];
    let above = above(&groups);
    for (index, group) in groups.iter().enumerate() {
        let chain: Vec<usize> = std::iter::successors(Some(index), |&group| above[group]).collect();
        group.hosts.iter().for_each(|&host| chains[host as usize].clone_from(&chain));
    }
    // Cost between hosts whose first common group is this one.
    let mut meeting = vec![0.0_f64; groups.len()];
    for (index, group) in groups.iter().enumerate() {
        let members = members(&groups, group);
        if let [a, b, ..] = members.as_slice()
            && let (Some(a), Some(b)) = (first_slot[*a as usize], first_slot[*b as usize])
        {
            meeting[index] = costs.between(a, b);
        }
    }
    text.push_str("  <zone id=\"machine\" routing=\"Full\">\n");
    hosts.iter().for_each(|&(node, cores)| text.push_str(&host(system, node, cores)));
    let half = |cost: f64| cost * 1e-6 / 2.0;
    let link = |name: &str, seconds: f64| {
        format!(
            "    <link id=\"{name}\" bandwidth=\"12.5GBps\" latency=\"{:e}s\" sharing_policy=\"SPLITDUPLEX\"/>\n",
            seconds.max(0.0)
        )
    };
    for &(node, _) in hosts {
        let own = chains[node as usize].first().map_or(0.0, |&group| meeting[group]);
        text.push_str(&link(&format!("host{node}"), half(own)));
    }
    for (index, outer) in above.iter().enumerate() {
        if let Some(outer) = outer {
            text.push_str(&link(&format!("group{index}"), half(meeting[*outer]) - half(meeting[index])));
        }
    }
    for (place, &(a, _)) in hosts.iter().enumerate() {
        for &(b, _) in &hosts[place + 1..] {
            let (up, down) = (&chains[a as usize], &chains[b as usize]);
            let Some(common) = up.iter().find(|group| down.contains(group)) else { continue };
            let [source, destination] = [a, b].map(|node| escaped(&system.nodes[node as usize].name));
            text.push_str(&format!("    <route src=\"{source}\" dst=\"{destination}\"><link_ctn id=\"host{a}\" direction=\"UP\"/>"));
            up.iter().take_while(|group| *group != common).for_each(|group| {
                text.push_str(&format!("<link_ctn id=\"group{group}\" direction=\"UP\"/>"));
            });
            let below: Vec<&usize> = down.iter().take_while(|group| *group != common).collect();
            below.into_iter().rev().for_each(|group| {
                text.push_str(&format!("<link_ctn id=\"group{group}\" direction=\"DOWN\"/>"));
            });
            text.push_str(&format!("<link_ctn id=\"host{b}\" direction=\"DOWN\"/></route>\n"));
        }
    }
    text.push_str("  </zone>\n");
    lost.push(
        "bandwidths: links have 12.5GBps; their latencies add up to the costs, interpreted as microseconds"
            .into(),
    );
    if system.slots.len() > hosts.len() {
        lost.push("message costs within hosts".into());
    }
    Ok(())
}

/// The parent of each group.
fn above(groups: &[Group]) -> Vec<Option<usize>> {
    let mut above = vec![None; groups.len()];
    for (index, group) in groups.iter().enumerate() {
        group.children.iter().for_each(|&child| above[child] = Some(index));
    }
    above
}

/// One host of each child group, or the hosts of the group itself.
fn members(groups: &[Group], group: &Group) -> Vec<u32> {
    let first = |&child: &usize| {
        let mut group = groups.get(child)?;
        while let Some(&child) = group.children.first() {
            group = groups.get(child)?;
        }
        group.hosts.first().copied()
    };
    match group.children.is_empty() {
        true => group.hosts.clone(),
        false => group.children.iter().filter_map(first).collect(),
    }
}
