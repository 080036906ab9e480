//! What nodes have and processes ask for: tables beside those of `system-graph` and `task-graph`, only where there is something.

use std::collections::BTreeMap;

use hopmap_model::{Demands, Node, ProcessDemand, Stream, SwitchType};

use crate::{ArtifactError, Columns, Contents, Folder, Table};

/// Adds the tables `traits`, `capabilities` and `devices`, as far as nodes have any.
pub(super) fn encode_traits(contents: Contents, nodes: &[Node]) -> Contents {
    let numbered = || (0..).zip(nodes);
    let contents =
        match nodes.iter().any(|node| node.traits.performance.is_some() || node.traits.switch_type.is_some())
        {
            true => contents.table(
                Table::new("traits")
                    .u32("node", 0..nodes.len() as u32)
                    .optional_f64("performance", nodes.iter().map(|node| node.traits.performance))
                    .optional_u32(
                        "switch_type",
                        nodes.iter().map(|node| node.traits.switch_type.map(SwitchType::number)),
                    ),
            ),
            false => contents,
        };
    let contents = named(
        contents,
        ("capabilities", "node", "capability"),
        numbered().map(|(id, node)| (id, &node.traits.capabilities)),
    );
    counted(contents, ("devices", "node"), numbered().map(|(id, node)| (id, &node.traits.devices)))
}

pub(super) fn decode_traits(folder: &Folder, nodes: &mut [Node]) -> Result<(), ArtifactError> {
    if let Some(table) = folder.optional_table("traits")? {
        table.index("node")?;
        if table.rows() != nodes.len() {
            return Err(table.error("node", "does not count the nodes"));
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
    read_named(folder, ("capabilities", "node", "capability"), |node, name| {
        nodes.get_mut(node as usize).map(|node| node.traits.capabilities.push(name))
    })?;
    read_counted(folder, ("devices", "node"), |node, name, count| {
        nodes.get_mut(node as usize).map(|node| node.traits.devices.insert(name, count)).is_some()
    })
}

/// Adds the tables `demands`, `demanded_capabilities`, `demanded_devices` and `streams`, as far as something is asked for.
pub(super) fn encode_demands(contents: Contents, demands: &Demands) -> Contents {
    let Demands { processes, streams } = demands;
    let contents = match processes.is_empty() {
        true => contents,
        false => contents.table(
            Table::new("demands")
                .u32("rank", 0..processes.len() as u32)
                .text("name", processes.iter().map(|demand| &demand.name))
                .f64("performance", processes.iter().map(|demand| demand.performance))
                .optional_text("host", processes.iter().map(|demand| demand.host.as_deref())),
        ),
    };
    let numbered = || (0..).zip(processes);
    let capabilities = numbered().map(|(rank, demand)| (rank, &demand.capabilities));
    let contents = named(contents, ("demanded_capabilities", "rank", "capability"), capabilities);
    let contents = counted(
        contents,
        ("demanded_devices", "rank"),
        numbered().map(|(rank, demand)| (rank, &demand.devices)),
    );
    match streams.is_empty() {
        true => contents,
        false => contents
            .table(encode_streams(Table::new("streams").u32("stream", 0..streams.len() as u32), streams)),
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
    read_named(folder, ("demanded_capabilities", "rank", "capability"), |rank, name| {
        processes.get_mut(rank as usize).map(|demand| demand.capabilities.push(name))
    })?;
    read_counted(folder, ("demanded_devices", "rank"), |rank, name, count| {
        processes.get_mut(rank as usize).map(|demand| demand.devices.insert(name, count)).is_some()
    })?;
    if let Some(table) = folder.optional_table("streams")? {
        table.index("stream")?;
        demands.streams = decode_streams(&table)?;
    }
    Ok(demands)
}

rows!(encode_streams, decode_streams: Stream { u32 source, u32 destination, f64 bandwidth_bytes_per_s });

/// Adds a table of the names that owners have, unless none has any.
fn named<'a>(
    contents: Contents,
    (table, owner, column): (&str, &str, &str),
    owners: impl Iterator<Item = (u32, &'a Vec<String>)>,
) -> Contents {
    let rows: Vec<(u32, &String)> =
        owners.flat_map(|(id, names)| names.iter().map(move |name| (id, name))).collect();
    match rows.is_empty() {
        true => contents,
        false => contents.table(
            Table::new(table)
                .u32(owner, rows.iter().map(|row| row.0))
                .text(column, rows.iter().map(|row| row.1)),
        ),
    }
}

fn read_named(
    folder: &Folder,
    (table, owner, column): (&str, &str, &str),
    mut add: impl FnMut(u32, String) -> Option<()>,
) -> Result<(), ArtifactError> {
    let Some(table) = folder.optional_table(table)? else { return Ok(()) };
    for (id, name) in table.u32(owner)?.into_iter().zip(table.text(column)?) {
        add(id, name).ok_or_else(|| table.error(owner, format!("names {id}, which does not exist")))?;
    }
    Ok(())
}

/// Adds a table of the devices that owners have, unless none has any.
fn counted<'a>(
    contents: Contents,
    (table, owner): (&str, &str),
    owners: impl Iterator<Item = (u32, &'a BTreeMap<String, u32>)>,
) -> Contents {
    let rows: Vec<(u32, &String, u32)> = owners
        .flat_map(|(id, devices)| devices.iter().map(move |(name, &count)| (id, name, count)))
        .collect();
    match rows.is_empty() {
        true => contents,
        false => contents.table(
            Table::new(table)
                .u32(owner, rows.iter().map(|row| row.0))
                .text("device", rows.iter().map(|row| row.1))
                .u32("count", rows.iter().map(|row| row.2)),
        ),
    }
}

fn read_counted(
    folder: &Folder,
    (table, owner): (&str, &str),
    mut add: impl FnMut(u32, String, u32) -> bool,
) -> Result<(), ArtifactError> {
    let Some(table) = folder.optional_table(table)? else { return Ok(()) };
    for ((id, name), count) in
        table.u32(owner)?.into_iter().zip(table.text("device")?).zip(table.u32("count")?)
    {
        if !add(id, name, count) {
            return Err(table.error(owner, format!("names {id}, which does not exist")));
        }
    }
    Ok(())
}
