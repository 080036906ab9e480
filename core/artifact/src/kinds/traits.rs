//! Traits of nodes and demands of processes: optional tables of `system-graph` and `task-graph`.

use std::collections::BTreeMap;

use hopmap_model::{Demands, Node, ProcessDemand, Stream, SwitchType, to_u32};

use crate::{ArtifactError, Columns, Contents, Folder, Table};

/// Name of a table, its columns of owners and names, and its optional column of counts.
type Names = (&'static str, &'static str, &'static str, Option<&'static str>);

const CAPABILITIES: Names = ("capabilities", "node", "capability", None);
const DEVICES: Names = ("devices", "node", "device", Some("count"));
const DEMANDED_CAPABILITIES: Names = ("demanded_capabilities", "rank", "capability", None);
const DEMANDED_DEVICES: Names = ("demanded_devices", "rank", "device", Some("count"));

/// Adds those of the tables `traits`, `capabilities` and `devices` that have rows.
pub(super) fn encode_traits(contents: Contents, nodes: &[Node]) -> Contents {
    let numbered = || (0..).zip(nodes);
    let switch_type = |node: &Node| node.traits.switch_type.map(SwitchType::number);
    let has_any = |node: &Node| node.traits.performance.is_some() || node.traits.switch_type.is_some();
    let contents = match nodes.iter().any(has_any) {
        true => contents.table(
            Table::new("traits")
                .u32("node", 0..to_u32(nodes.len()))
                .optional_f64("performance", nodes.iter().map(|node| node.traits.performance))
                .optional_u32("switch_type", nodes.iter().map(switch_type)),
        ),
        false => contents,
    };
    let capabilities = numbered().map(|(id, node)| (id, uncounted(&node.traits.capabilities)));
    let contents = named(contents, CAPABILITIES, capabilities);
    named(contents, DEVICES, numbered().map(|(id, node)| (id, counted(&node.traits.devices))))
}

pub(super) fn decode_traits(folder: &Folder, nodes: &mut [Node]) -> Result<(), ArtifactError> {
    if let Some(table) = folder.optional_table("traits")? {
        table.index("node")?;
        if table.rows() != nodes.len() {
            return Err(table.error("node", "does not number the nodes consecutively"));
        }
        let types = table.optional_u32("switch_type")?;
        for ((node, performance), number) in
            nodes.iter_mut().zip(table.optional_f64("performance")?).zip(types)
        {
            node.traits.performance = performance;
            node.traits.switch_type = match number.map(|number| (number, SwitchType::of_number(number))) {
                None => None,
                Some((_, Some(switch_type))) => Some(switch_type),
                Some((number, None)) => {
                    return Err(
                        table.error("switch_type", format!("holds {number}, which is neither 1 nor 2"))
                    );
                }
            };
        }
    }
    read_named(folder, CAPABILITIES, |node, name, _| {
        nodes.get_mut(node as usize).map(|node| node.traits.capabilities.push(name)).is_some()
    })?;
    read_named(folder, DEVICES, |node, name, count| {
        nodes.get_mut(node as usize).map(|node| node.traits.devices.insert(name, count)).is_some()
    })
}

/// Adds those of the tables `demands`, `demanded_capabilities`, `demanded_devices` and `streams` that have
/// rows.
pub(super) fn encode_demands(contents: Contents, demands: &Demands) -> Contents {
    let Demands { processes, streams } = demands;
    let contents = match processes.is_empty() {
        true => contents,
        false => contents.table(
            Table::new("demands")
                .u32("rank", 0..to_u32(processes.len()))
                .text("name", processes.iter().map(|demand| &demand.name))
                .f64("performance", processes.iter().map(|demand| demand.performance))
                .optional_text("host", processes.iter().map(|demand| demand.host.as_deref())),
        ),
    };
    let numbered = || (0..).zip(processes);
    let capabilities = numbered().map(|(rank, demand)| (rank, uncounted(&demand.capabilities)));
    let contents = named(contents, DEMANDED_CAPABILITIES, capabilities);
    let devices = numbered().map(|(rank, demand)| (rank, counted(&demand.devices)));
    let contents = named(contents, DEMANDED_DEVICES, devices);
    match streams.is_empty() {
        true => contents,
        false => contents
            .table(encode_streams(Table::new("streams").u32("stream", 0..to_u32(streams.len())), streams)),
    }
}

pub(super) fn decode_demands(folder: &Folder) -> Result<Demands, ArtifactError> {
    let mut demands = Demands::default();
    if let Some(table) = folder.optional_table("demands")? {
        table.index("rank")?;
        let demand = |((name, performance), host)| ProcessDemand {
            name,
            performance,
            host,
            ..ProcessDemand::default()
        };
        let rows = table.text("name")?.into_iter().zip(table.f64("performance")?);
        demands.processes = rows.zip(table.optional_text("host")?).map(demand).collect();
    }
    let processes = &mut demands.processes;
    read_named(folder, DEMANDED_CAPABILITIES, |rank, name, _| {
        processes.get_mut(rank as usize).map(|demand| demand.capabilities.push(name)).is_some()
    })?;
    read_named(folder, DEMANDED_DEVICES, |rank, name, count| {
        processes.get_mut(rank as usize).map(|demand| demand.devices.insert(name, count)).is_some()
    })?;
    if let Some(table) = folder.optional_table("streams")? {
        table.index("stream")?;
        demands.streams = decode_streams(&table)?;
    }
    Ok(demands)
}

rows!(encode_streams, decode_streams: Stream { u32 source, u32 destination, f64 bandwidth_bytes_per_s });

/// Adds a table of the names that owners have, if any, with a count per name where `counts` names the
/// column.
fn named<'a>(
    contents: Contents,
    (table, owner, column, counts): Names,
    owners: impl Iterator<Item = (u32, Vec<(&'a String, u32)>)>,
) -> Contents {
    let rows: Vec<(u32, (&String, u32))> =
        owners.flat_map(|(id, names)| names.into_iter().map(move |name| (id, name))).collect();
    if rows.is_empty() {
        return contents;
    }
    let table = Table::new(table)
        .u32(owner, rows.iter().map(|row| row.0))
        .text(column, rows.iter().map(|row| row.1.0));
    contents.table(match counts {
        Some(counts) => table.u32(counts, rows.iter().map(|row| row.1.1)),
        None => table,
    })
}

fn read_named(
    folder: &Folder,
    (table, owner, column, counts): Names,
    mut add: impl FnMut(u32, String, u32) -> bool,
) -> Result<(), ArtifactError> {
    let Some(table) = folder.optional_table(table)? else { return Ok(()) };
    let counts = counts.map_or_else(|| Ok(vec![1; table.rows()]), |counts| table.u32(counts))?;
    for ((id, name), count) in table.u32(owner)?.into_iter().zip(table.text(column)?).zip(counts) {
        if !add(id, name, count) {
            return Err(table.error(owner, format!("names {id}, which does not exist")));
        }
    }
    Ok(())
}

fn uncounted(names: &[String]) -> Vec<(&String, u32)> {
    names.iter().map(|name| (name, 1)).collect()
}

fn counted(devices: &BTreeMap<String, u32>) -> Vec<(&String, u32)> {
    devices.iter().map(|(name, &count)| (name, count)).collect()
}
