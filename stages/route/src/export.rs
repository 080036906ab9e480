//! Tables of switches as text that networks load, and routes as pictures.

mod fmd;
mod lft;
mod page;
mod picture;
mod rio;

use std::collections::BTreeMap;

use hopmap_model::{NodeKind, SystemGraph, Tables, TextFile};

use crate::{ExportError, ExportFormat, ExportParams};

/// Bytes of a dump of forwarding tables.
const MOST_BYTES: u64 = 1 << 32;

pub use picture::{Shown, draw};

/// The tables of a network as text. Pictures need more than tables: see [`draw`].
pub fn write(system: &SystemGraph, tables: &Tables, params: &ExportParams) -> Result<TextFile, ExportError> {
    let (name, text) = match params.format {
        ExportFormat::Fmd => ("fmd.conf", fmd::write(system, tables)?),
        ExportFormat::Lft => ("lfts.txt", forwarding_tables(system, tables, &lids(params)?)?),
        ExportFormat::Rio => ("routes.txt", rio::routes(system, tables)?),
        ExportFormat::Registers => ("registers.txt", rio::registers(system, tables, params.family)?),
        ExportFormat::Svg | ExportFormat::Html => {
            let shown = Shown { system, tables, routes: None, graph: None, mapping: None };
            return draw(&shown, params.format);
        }
    };
    Ok(TextFile { name: name.to_owned(), text })
}

/// Linear forwarding tables of InfiniBand: those of a dump, with the entries of ours in place of its own.
pub fn forwarding_tables(system: &SystemGraph, tables: &Tables, dump: &str) -> Result<String, ExportError> {
    lft::write(system, tables, dump)
}

fn lids(params: &ExportParams) -> Result<String, ExportError> {
    let Some(file) = &params.lids else {
        return Err(ExportError::new(
            "nothing says which LIDs the nodes have",
            "give a dump of the running network: `lids = \"opensm-lfts.dump\"`",
        ));
    };
    hopmap_text::read_text(file.path(), MOST_BYTES)
        .map_err(|error| ExportError::new(error.to_string(), error.help_text()))
}

/// Device ids of hosts and switches: hosts from 1 in the order of nodes, switches behind them.
struct DeviceIds(BTreeMap<u32, u32>);

impl DeviceIds {
    /// At most so many ids.
    fn new(system: &SystemGraph, most: u32) -> Result<Self, ExportError> {
        let of_kind = |kind| {
            (0..).zip(&system.nodes).filter(move |(_, node)| node.kind == kind).map(|(id, _): (u32, _)| id)
        };
        let all = of_kind(NodeKind::Host).chain(of_kind(NodeKind::Switch));
        let ids: BTreeMap<u32, u32> = all.zip(1..).collect();
        match ids.len() as u32 > most {
            true => Err(ExportError::new(
                format!("there are {} hosts and switches, and device ids go to {most}", ids.len()),
                "this format has no larger ids",
            )),
            false => Ok(Self(ids)),
        }
    }

    fn of(&self, node: u32) -> u32 {
        self.0.get(&node).copied().unwrap_or_default()
    }
}

/// Refuses tables of ports, for formats that know one table for a switch only.
fn only_global(system: &SystemGraph, tables: &Tables, format: &str) -> Result<(), ExportError> {
    match tables.entries.iter().find(|entry| entry.input_port.is_some()) {
        Some(entry) => Err(ExportError::new(
            format!(
                "switch `{}` has a table for a port, and {format} knows one table for a switch",
                system.nodes[entry.switch as usize].name
            ),
            "use `format = \"fmd\"` or `\"registers\"`, or switches of type 1",
        )),
        None => Ok(()),
    }
}
