//! Tables of `RapidIO` switches: the configuration of the fabric management daemon (`RapidIO/rapidio_sw`,
//! `fabric_management/libcfg`), which is the only format for both types of switches; lines of the `routes` files of Linux
//! devices; and register writes of switches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use hopmap_model::{Link, LinkState, NodeKind, SwitchType, SystemGraph, TableEntry, Tables};
use hopmap_routing::error::{Result, RouteError, fail};
use hopmap_routing::network::nodes_of;

use crate::params::Family;

/// Device ids of 8 bits; the last one is the broadcast id.
const MOST_IDS: u32 = 0xfe;
/// Lane configuration of every port for the daemon, which trains its links itself.
const LANES: &str = "4x 4x 5p0 IDLE1 EM_ON";
/// The hop count of the host that manages the fabric.
const MASTER_HOPS: u32 = 255;

pub(super) fn write(system: &SystemGraph, tables: &Tables) -> Result<String> {
    let ids = DeviceIds::new(system, MOST_IDS)?;
    for node in &system.nodes {
        check_name(&node.name)?;
    }
    let master =
        (0..).zip(&system.nodes).find(|(_, node)| node.kind == NodeKind::Host).map(|(id, _): (u32, _)| id);
    let master = master
        .ok_or_else(|| RouteError::new("the machine has no host to manage the fabric", "add a host"))?;
    let hops = switches_before(system, master);
    let mut text = String::new();
    let id = ids.of(master);
    let _ = writeln!(text, "DEV_DIR /RIO_SM_DEV_DIR\nDEV_DIR_MTX /RIO_SM_DEV_DIR_MUTEX");
    let _ = writeln!(
        text,
        "MPORT 0 master mem34 dev08 {id:#x} {MASTER_HOPS} END\nMASTER_INFO dev08 {id:#x} 3434"
    );
    for node in nodes_of(system, NodeKind::Host) {
        let _ = write!(text, "ENDPOINT {}", system.nodes[node as usize].name);
        for port in ports(system, node)? {
            let (id, tag) = (ids.of(node), tag(ids.of(node)));
            let hops =
                if node == master { MASTER_HOPS } else { hops.get(&node).copied().unwrap_or_default() };
            let _ = write!(text, " PORT {port} {tag:x} {LANES} dev08 {id:#x} {hops} END");
        }
        text.push_str(" PEND\n");
    }
    for node in nodes_of(system, NodeKind::Switch) {
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

/// A unique component tag of a node.
fn tag(id: u32) -> u32 {
    (id << 16) | id
}

fn check_name(name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_word) {
        true => Ok(()),
        false => fail(
            format!("the name `{name}` is not allowed in this format"),
            "rename the node in the instance: only letters, digits, `_` and `-` are allowed",
        ),
    }
}

/// For every node the switches between it and the master, including itself if it is a switch.
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

/// The ports of a node, ascending.
fn ports(system: &SystemGraph, node: u32) -> Result<Vec<u32>> {
    let mut ports = Vec::new();
    for link in system.links.iter().filter(|link| link.source == node || link.destination == node) {
        let Some(port) = (if link.source == node { link.source_port } else { link.destination_port }) else {
            return fail(
                format!("a link of `{}` has no port", system.nodes[node as usize].name),
                "tables refer to ports, so every link needs one",
            );
        };
        ports.push(port);
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
) -> Result<()> {
    let switch = &system.nodes[node as usize];
    let (id, tag) = (ids.of(node), tag(ids.of(node)));
    let _ = writeln!(text, "SWITCH CPS1848 {} dev08 {id:#x} {hops} {tag:x}", switch.name);
    for port in ports(system, node)? {
        let _ = writeln!(text, "PORT {port} {LANES}");
    }
    let own: Vec<&TableEntry> = tables.entries.iter().filter(|entry| entry.switch == node).collect();
    let entries = |text: &mut String, port: Option<u32>| -> Result<()> {
        text.push_str("RANGE 0 0xff DROP\n");
        // The device asks the table of a port alone: it repeats what the table of the switch knows and the port does not.
        let of_port = |destination| {
            own.iter().any(|entry| (entry.input_port, entry.destination) == (port, destination))
        };
        let is_used = |entry: &TableEntry| {
            entry.input_port == port || (entry.input_port.is_none() && !of_port(entry.destination))
        };
        for entry in own.iter().filter(|entry| is_used(entry)) {
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
        return fail(
            format!("switch `{}` is of type 1, but has a table for a port", switch.name),
            "check the tables with route/check",
        );
    }
    for input in inputs {
        let _ = writeln!(text, "ROUTING_TABLE dev08 {input}");
        entries(text, Some(input))?;
    }
    text.push_str("END\n");
    Ok(())
}

/// Every cable once: the first of two opposite links.
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

/// Device ids of hosts and switches: hosts from 1 in node order, then switches.
struct DeviceIds(BTreeMap<u32, u32>);

impl DeviceIds {
    /// Maximum number of ids.
    fn new(system: &SystemGraph, most: u32) -> Result<Self> {
        let all = nodes_of(system, NodeKind::Host).chain(nodes_of(system, NodeKind::Switch));
        let ids: BTreeMap<u32, u32> = all.zip(1..).collect();
        match ids.len() as u32 > most {
            true => fail(
                format!("there are {} hosts and switches, and device ids go to {most}", ids.len()),
                "this format has no larger ids",
            ),
            false => Ok(Self(ids)),
        }
    }

    fn of(&self, node: u32) -> u32 {
        self.0.get(&node).copied().unwrap_or_default()
    }
}

/// Device ids of 16 bits; the last one is the broadcast id.
const MOST_WIDE_IDS: u32 = 0xfffe;
/// Ids of the tables of RXS.
const MOST_RXS_IDS: u32 = 0xff;
/// Ports are written with two hexadecimal digits; the highest values mean "no port".
const MOST_PORTS: u32 = 0xdd;

/// For every switch the contents of `/sys/bus/rapidio/devices/*/routes`: device id and output port, hexadecimal.
pub(super) fn routes(system: &SystemGraph, tables: &Tables) -> Result<String> {
    let ids = DeviceIds::new(system, MOST_WIDE_IDS)?;
    let mut text = String::new();
    for (node, name, entries) in switches(system, tables)? {
        let _ = writeln!(text, "# {name} ({:04x})", ids.of(node));
        let mut lines: Vec<(u32, u32)> =
            entries.iter().map(|entry| (ids.of(entry.destination), entry.output_port)).collect();
        lines.sort_unstable();
        for (destination, port) in lines {
            let _ = writeln!(text, "{destination:04x} {port:02x}");
        }
    }
    Ok(text)
}

/// For every switch the writes that set its tables: switch, register, value.
pub(super) fn registers(system: &SystemGraph, tables: &Tables, family: Family) -> Result<String> {
    let most = if family == Family::Rxs { MOST_RXS_IDS } else { MOST_WIDE_IDS };
    let ids = DeviceIds::new(system, most)?;
    let mut text = String::from("# switch register value\n");
    for (_, name, entries) in switches(system, tables)? {
        let mut selected = None;
        for entry in entries {
            let destination = ids.of(entry.destination);
            let mut set = |register: u32, value: u32| {
                let _ = writeln!(text, "{name} {register:#08x} {value:#010x}");
            };
            match (family, entry.input_port) {
                (Family::Cps, input) => {
                    // The selector for the two registers of the standard: 0 for the table of the switch, otherwise the port plus
                    // one.
                    let select = input.map_or(0, |port| port + 1);
                    if selected.replace(select) != Some(select) {
                        set(0x01_0070, select);
                    }
                    set(0x70, destination);
                    set(0x74, entry.output_port);
                }
                (Family::Tsi57x, None) => {
                    set(0x1_0070, destination);
                    set(0x1_0074, entry.output_port);
                }
                (Family::Tsi57x, Some(port)) => {
                    set(0x1_1070 + 0x100 * port, destination);
                    set(0x1_1074 + 0x100 * port, entry.output_port);
                }
                (Family::Rxs, None) => set(0x3_1000 + 4 * destination, entry.output_port),
                (Family::Rxs, Some(port)) => {
                    set(0x5_1000 + 0x2000 * port + 4 * destination, entry.output_port);
                }
            }
        }
    }
    Ok(text)
}

/// A switch: its node, its name and its entries.
type Switch<'a> = (u32, &'a str, Vec<&'a TableEntry>);

fn switches<'a>(system: &'a SystemGraph, tables: &'a Tables) -> Result<Vec<Switch<'a>>> {
    let ports = |entry: &TableEntry| entry.output_port.max(entry.input_port.unwrap_or_default());
    if let Some(entry) = tables.entries.iter().find(|entry| ports(entry) > MOST_PORTS) {
        return fail(
            format!("switch `{}` has a port {}", system.nodes[entry.switch as usize].name, ports(entry)),
            "the ports of these switches are numbered up to 221",
        );
    }
    let own = |id: u32| {
        let entries = tables.entries.iter().filter(|entry| entry.switch == id).collect();
        (id, system.nodes[id as usize].name.as_str(), entries)
    };
    Ok(nodes_of(system, NodeKind::Switch).map(own).collect())
}
