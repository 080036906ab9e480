//! The configuration of the fabric management daemon of `RapidIO` (`RapidIO/rapidio_sw`, `fabric_management/libcfg`): the one format that
//! knows both types of switches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use hopmap_model::{Link, LinkState, NodeKind, SwitchType, SystemGraph, TableEntry, Tables};

use super::DeviceIds;
use crate::ExportError;

/// Device ids of 8 bits; the last one means everybody.
const MOST_IDS: u32 = 0xfe;
/// What the daemon is told of every port; it trains its links itself.
const LANES: &str = "4x 4x 5p0 IDLE1 EM_ON";
/// The hop count of the host that manages the fabric.
const MASTER_HOPS: u32 = 255;

pub(super) fn write(system: &SystemGraph, tables: &Tables) -> Result<String, ExportError> {
    let ids = DeviceIds::new(system, MOST_IDS)?;
    for node in &system.nodes {
        check_name(&node.name)?;
    }
    let master =
        (0..).zip(&system.nodes).find(|(_, node)| node.kind == NodeKind::Host).map(|(id, _): (u32, _)| id);
    let master =
        master.ok_or_else(|| ExportError::new("there is no host to manage the fabric", "add one"))?;
    let hops = switches_before(system, master);
    let mut text = String::new();
    let id = ids.of(master);
    let _ = writeln!(text, "DEV_DIR /RIO_SM_DEV_DIR\nDEV_DIR_MTX /RIO_SM_DEV_DIR_MUTEX");
    let _ = writeln!(
        text,
        "MPORT 0 master mem34 dev08 {id:#x} {MASTER_HOPS} END\nMASTER_INFO dev08 {id:#x} 3434"
    );
    for (node, host) in (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Host) {
        let _ = write!(text, "ENDPOINT {}", host.name);
        for port in ports(system, node)? {
            let (id, tag) = (ids.of(node), tag(ids.of(node)));
            let hops =
                if node == master { MASTER_HOPS } else { hops.get(&node).copied().unwrap_or_default() };
            let _ = write!(text, " PORT {port} {tag:x} {LANES} dev08 {id:#x} {hops} END");
        }
        text.push_str(" PEND\n");
    }
    for (node, _) in (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Switch) {
        let hops = hops.get(&node).map_or(0, |hops| hops.saturating_sub(1));
        switch(&mut text, (system, tables, &ids), node, hops)?;
    }
    for link in cables(system) {
        let name = |node: u32| &system.nodes[node as usize].name;
        let port = |port: Option<u32>| port.unwrap_or_default();
        let (a, b) = (name(link.source), name(link.destination));
        let _ = writeln!(text, "CONNECT {a}.{} {b}.{}", port(link.source_port), port(link.destination_port));
    }
    text.push_str("EOF\n");
    Ok(text)
}

/// A component tag that no other node has.
fn tag(id: u32) -> u32 {
    (id << 16) | id
}

fn check_name(name: &str) -> Result<(), ExportError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_word) {
        true => Ok(()),
        false => Err(ExportError::new(
            format!("the name `{name}` cannot stand in this file"),
            "names here are letters, digits, `_` and `-`: rename the node in the instance",
        )),
    }
}

/// For every node the switches between it and the master, itself included if it is one.
fn switches_before(system: &SystemGraph, master: u32) -> BTreeMap<u32, u32> {
    let mut hops = BTreeMap::from([(master, 0)]);
    let mut queue = VecDeque::from([master]);
    while let Some(node) = queue.pop_front() {
        let own = hops[&node];
        for link in system.links.iter().filter(|link| link.source == node && link.state == LinkState::Up) {
            let is_switch = system.nodes[link.destination as usize].kind == NodeKind::Switch;
            hops.entry(link.destination).or_insert_with(|| {
                queue.push_back(link.destination);
                own + u32::from(is_switch)
            });
        }
    }
    hops
}

/// The ports of a node, rising.
fn ports(system: &SystemGraph, node: u32) -> Result<Vec<u32>, ExportError> {
    let mut ports = Vec::new();
    for link in system.links.iter().filter(|link| link.source == node || link.destination == node) {
        let port = if link.source == node { link.source_port } else { link.destination_port };
        ports.push(port.ok_or_else(|| {
            ExportError::new(
                format!("a link of `{}` does not say its port", system.nodes[node as usize].name),
                "tables name ports: the machine has to know them",
            )
        })?);
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

fn switch(
    text: &mut String,
    (system, tables, ids): (&SystemGraph, &Tables, &DeviceIds),
    node: u32,
    hops: u32,
) -> Result<(), ExportError> {
    let switch = &system.nodes[node as usize];
    let (id, tag) = (ids.of(node), tag(ids.of(node)));
    let _ = writeln!(text, "SWITCH CPS1848 {} dev08 {id:#x} {hops} {tag:x}", switch.name);
    for port in ports(system, node)? {
        let _ = writeln!(text, "PORT {port} {LANES}");
    }
    let own: Vec<&TableEntry> = tables.entries.iter().filter(|entry| entry.switch == node).collect();
    let entries = |text: &mut String, port: Option<u32>| -> Result<(), ExportError> {
        text.push_str("RANGE 0 0xff DROP\n");
        for entry in own.iter().filter(|entry| entry.input_port == port) {
            let host = &system.nodes[entry.destination as usize].name;
            for port in ports(system, entry.destination)? {
                let _ = writeln!(text, "DESTID {host}.{port} {}", entry.output_port);
            }
        }
        Ok(())
    };
    text.push_str("ROUTING_TABLE dev08 GLOBAL\nDFLTPORT DROP\n");
    entries(text, None)?;
    let mut inputs: Vec<u32> = own.iter().filter_map(|entry| entry.input_port).collect();
    inputs.dedup();
    if !inputs.is_empty() && switch.traits.switch_type == Some(SwitchType::One) {
        return Err(ExportError::new(
            format!("switch `{}` is of type 1 and has a table for a port", switch.name),
            "check the tables with route/check",
        ));
    }
    for input in inputs {
        let _ = writeln!(text, "ROUTING_TABLE dev08 {input}");
        entries(text, Some(input))?;
    }
    text.push_str("END\n");
    Ok(())
}

/// Every cable once: of two opposite links the first.
fn cables(system: &SystemGraph) -> impl Iterator<Item = &Link> {
    let links = (0..).zip(&system.links);
    links
        .filter(|(index, link): &(usize, &Link)| {
            let back = link.reversed();
            let ends = |link: &Link| (link.source, link.source_port, link.destination, link.destination_port);
            !system.links[..*index].iter().any(|other| ends(other) == ends(&back))
        })
        .map(|(_, link)| link)
}
