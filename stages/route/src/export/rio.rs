//! Lines of the `routes` files of Linux's `RapidIO` devices, and what to write into the registers of switches.

use std::fmt::Write;

use hopmap_model::{NodeKind, SystemGraph, TableEntry, Tables};

use super::{DeviceIds, only_global};
use crate::{ExportError, Family};

/// Device ids of 16 bits; the last one means everybody.
const MOST_IDS: u32 = 0xfffe;
/// Ids of the tables of RXS.
const MOST_RXS_IDS: u32 = 0xff;
/// Ports are written with two hexadecimal digits, the last of which mean that there is none.
const MOST_PORTS: u32 = 0xdd;

/// For every switch what `/sys/bus/rapidio/devices/*/routes` shows: device id and output port, hexadecimal.
pub(super) fn routes(system: &SystemGraph, tables: &Tables) -> Result<String, ExportError> {
    only_global(system, tables, "the kernel's file")?;
    let ids = DeviceIds::new(system, MOST_IDS)?;
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

/// For every switch the writes that set its tables: the switch, the register, the value.
pub(super) fn registers(
    system: &SystemGraph,
    tables: &Tables,
    family: Family,
) -> Result<String, ExportError> {
    let most = if family == Family::Rxs { MOST_RXS_IDS } else { MOST_IDS };
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
                    // Which table the two registers of the standard go to: 0 for that of the switch, else the port and one.
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

fn switches<'a>(system: &'a SystemGraph, tables: &'a Tables) -> Result<Vec<Switch<'a>>, ExportError> {
    let ports = |entry: &TableEntry| entry.output_port.max(entry.input_port.unwrap_or_default());
    if let Some(entry) = tables.entries.iter().find(|entry| ports(entry) > MOST_PORTS) {
        return Err(ExportError::new(
            format!("switch `{}` has a port {}", system.nodes[entry.switch as usize].name, ports(entry)),
            "ports of these switches go to 221",
        ));
    }
    let nodes = (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Switch);
    let own = |(id, node): (u32, &'a hopmap_model::Node)| {
        (id, node.name.as_str(), tables.entries.iter().filter(|entry| entry.switch == id).collect())
    };
    Ok(nodes.map(own).collect())
}
