//! Linear forwarding tables of InfiniBand, as `dump_lfts` prints them and `opensm -R file -U` loads them.
//!
//! A subnet manager gives local ids (LIDs) as it likes, so a dump of the running network says which they are: the tables of the dump are
//! written again with the entries of ours in place of its own.

use std::collections::BTreeMap;
use std::fmt::Write;

use hopmap_model::{SystemGraph, Tables};

use super::only_global;
use crate::ExportError;

const HELP: &str = "`lids` is what `dump_lfts` or opensm's `opensm-lfts.dump` says of the network";

/// What a dump says of a switch.
struct Switch {
    heading: String,
    node: u32,
    /// The entries by LID: output port, and the comment behind it.
    entries: BTreeMap<u32, (u32, String)>,
}

pub(super) fn write(system: &SystemGraph, tables: &Tables, dump: &str) -> Result<String, ExportError> {
    only_global(system, tables, "InfiniBand")?;
    let (switches, lid_of) = read(system, dump)?;
    let mut text = String::new();
    for mut switch in switches {
        for entry in tables.entries.iter().filter(|entry| entry.switch == switch.node) {
            let host = &system.nodes[entry.destination as usize].name;
            let lid = *lid_of
                .get(&entry.destination)
                .ok_or_else(|| ExportError::new(format!("the dump says no LID of host `{host}`"), HELP))?;
            let place = switch.entries.entry(lid).or_insert((0, format!("# '{host}'")));
            place.0 = entry.output_port;
        }
        let _ = writeln!(text, "{}", switch.heading);
        for (lid, (port, comment)) in &switch.entries {
            let _ = writeln!(text, "{lid:#06x} {port:03} {comment}");
        }
        let _ = writeln!(text, "{} lids dumped", switch.entries.len());
    }
    if let Some(entry) = tables.entries.iter().find(|entry| !text.contains(&quoted(system, entry.switch))) {
        let name = &system.nodes[entry.switch as usize].name;
        return Err(ExportError::new(format!("the dump says nothing of switch `{name}`"), HELP));
    }
    Ok(text)
}

fn quoted(system: &SystemGraph, node: u32) -> String {
    format!("('{}')", system.nodes[node as usize].name)
}

/// The switches of a dump, and the LID of every host.
fn read(system: &SystemGraph, dump: &str) -> Result<(Vec<Switch>, BTreeMap<u32, u32>), ExportError> {
    let wrong =
        |line: usize, problem: &str| ExportError::new(format!("`lids`, line {line}: {problem}"), HELP);
    let nodes: BTreeMap<&str, u32> =
        (0..).zip(&system.nodes).map(|(id, node)| (node.name.as_str(), id)).collect();
    let by_address: BTreeMap<&str, u32> =
        (0..).zip(&system.nodes).filter_map(|(id, node)| Some((node.address.as_deref()?, id))).collect();
    let mut switches: Vec<Switch> = Vec::new();
    let mut lid_of = BTreeMap::new();
    for (number, line) in (1..).zip(dump.lines()) {
        if line.starts_with("Unicast lids") {
            let address = line.split("guid 0x").nth(1).and_then(|rest| rest.get(..16)).unwrap_or_default();
            let node = by_address.get(address).or_else(|| nodes.get(name_in(line)));
            let node = *node.ok_or_else(|| wrong(number, "this switch is not in the machine"))?;
            switches.push(Switch { heading: line.to_owned(), node, entries: BTreeMap::new() });
        } else if let Some(rest) = line.strip_prefix("0x") {
            let mut words = rest.splitn(3, ' ');
            let lid = words.next().and_then(|word| u32::from_str_radix(word, 16).ok());
            let port = words.next().and_then(|word| word.parse().ok());
            let (Some(lid), Some(port), Some(switch)) = (lid, port, switches.last_mut()) else {
                return Err(wrong(number, "an entry has a LID and a port, below the heading of a switch"));
            };
            let comment = words.next().unwrap_or_default().to_owned();
            if let Some(&node) = nodes.get(name_in(&comment)) {
                lid_of.insert(node, lid);
            }
            switch.entries.insert(lid, (port, comment));
        }
    }
    match switches.is_empty() {
        true => Err(wrong(1, "there is no switch in it")),
        false => Ok((switches, lid_of)),
    }
}

/// What stands between quotation marks at the end, without the name of the adapter behind that of the host.
fn name_in(line: &str) -> &str {
    let name =
        line.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\'')).map_or("", |(name, _)| name);
    name.split_once(' ').map_or(name, |(host, _)| host)
}
