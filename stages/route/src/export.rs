//! Tables of switches as text that networks load, and routes as pictures.
//!
//! Linear forwarding tables of InfiniBand are those that `dump_lfts` prints and `opensm -R file -U` loads. A subnet manager gives local ids
//! (LIDs) as it likes, so a dump of the running network says which they are: its tables are written again with our entries in place.

mod picture;
mod rapidio;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use hopmap_model::{SystemGraph, Tables, TextFile};

use crate::{ExportError, ExportFormat, ExportParams};
pub use picture::{Shown, draw};

/// Bytes of a dump of forwarding tables.
const MOST_BYTES: u64 = 1 << 32;

/// The tables of a network as text. Pictures need more than tables: see [`draw`].
pub fn write(system: &SystemGraph, tables: &Tables, params: &ExportParams) -> Result<TextFile, ExportError> {
    if params.format == ExportFormat::Rio {
        only_global(system, tables, "the kernel's file")?;
    }
    let (name, text) = match params.format {
        ExportFormat::Fmd => ("fmd.conf", rapidio::write(system, tables)?),
        ExportFormat::Lft => ("lfts.txt", forwarding_tables(system, tables, &lids(params)?)?),
        ExportFormat::Rio => ("routes.txt", rapidio::routes(system, tables)?),
        ExportFormat::Registers => ("registers.txt", rapidio::registers(system, tables, params.family)?),
        ExportFormat::Svg | ExportFormat::Html => {
            let shown = Shown { system, tables, routes: None, graph: None, mapping: None };
            return draw(&shown, params.format);
        }
    };
    Ok(TextFile { name: name.to_owned(), text })
}

/// Linear forwarding tables of InfiniBand: those of a dump, with the entries of ours in place of its own.
pub fn forwarding_tables(system: &SystemGraph, tables: &Tables, dump: &str) -> Result<String, ExportError> {
    only_global(system, tables, "InfiniBand")?;
    write_lft(system, tables, dump)
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

const HELP: &str = "`lids` is what `dump_lfts` or opensm's `opensm-lfts.dump` says of the network";

/// What a dump says of a switch.
struct Switch {
    heading: String,
    node: u32,
    /// The entries by LID: output port, and the comment behind it.
    entries: BTreeMap<u32, (u32, String)>,
}

fn write_lft(system: &SystemGraph, tables: &Tables, dump: &str) -> Result<String, ExportError> {
    let (switches, lids_of) = read(system, dump)?;
    let named: BTreeSet<u32> = switches.iter().map(|switch| switch.node).collect();
    if let Some(entry) = tables.entries.iter().find(|entry| !named.contains(&entry.switch)) {
        let name = &system.nodes[entry.switch as usize].name;
        return Err(ExportError::new(format!("the dump says nothing of switch `{name}`"), HELP));
    }
    let mut text = String::new();
    for mut switch in switches {
        for entry in tables.entries.iter().filter(|entry| entry.switch == switch.node) {
            let host = &system.nodes[entry.destination as usize].name;
            let lids = lids_of
                .get(&entry.destination)
                .ok_or_else(|| ExportError::new(format!("the dump says no LID of host `{host}`"), HELP))?;
            for &lid in lids {
                let place = switch.entries.entry(lid).or_insert((0, format!("# '{host}'")));
                place.0 = entry.output_port;
            }
        }
        let _ = writeln!(text, "{}", switch.heading);
        for (lid, (port, comment)) in &switch.entries {
            let _ = writeln!(text, "{lid:#06x} {port:03} {comment}");
        }
        let _ = writeln!(text, "{} lids dumped", switch.entries.len());
    }
    Ok(text)
}

/// The LIDs of every host: a power of two of them where a subnet manager gives it several.
type LidsOf = BTreeMap<u32, BTreeSet<u32>>;

/// The switches of a dump, and the LIDs of every host.
fn read(system: &SystemGraph, dump: &str) -> Result<(Vec<Switch>, LidsOf), ExportError> {
    let wrong =
        |line: usize, problem: &str| ExportError::new(format!("`lids`, line {line}: {problem}"), HELP);
    let nodes: BTreeMap<&str, u32> =
        (0..).zip(&system.nodes).map(|(id, node)| (node.name.as_str(), id)).collect();
    let by_address: BTreeMap<&str, u32> =
        (0..).zip(&system.nodes).filter_map(|(id, node)| Some((node.address.as_deref()?, id))).collect();
    let mut switches: Vec<Switch> = Vec::new();
    let mut lids_of = LidsOf::new();
    let mut by_port: BTreeMap<&str, u32> = BTreeMap::new();
    for (number, line) in (1..).zip(dump.lines()) {
        if line.starts_with("Unicast lids") {
            let node = by_address.get(guid(line, " guid 0x")).or_else(|| nodes.get(name_in(line)));
            let node = *node.ok_or_else(|| wrong(number, "this switch is not in the machine"))?;
            switches.push(Switch { heading: line.to_owned(), node, entries: BTreeMap::new() });
        } else if let Some(rest) = line.strip_prefix("0x") {
            let mut words = rest.splitn(3, ' ');
            let lid = words.next().and_then(|word| u32::from_str_radix(word, 16).ok());
            let port = words.next().and_then(|word| word.parse().ok());
            let (Some(lid), Some(port), Some(switch)) = (lid, port, switches.last_mut()) else {
                return Err(wrong(number, "an entry has a LID and a port, below the heading of a switch"));
            };
            let comment = words.next().unwrap_or_default();
            // Further LIDs of a port may come without the name.
            let at_port = guid(comment, "portguid 0x");
            let node = nodes.get(name_in(comment)).or_else(|| by_port.get(at_port)).copied();
            if let Some(node) = node {
                lids_of.entry(node).or_default().insert(lid);
                by_port.insert(at_port, node);
            }
            switch.entries.insert(lid, (port, comment.to_owned()));
        }
    }
    match switches.is_empty() {
        true => Err(wrong(1, "there is no switch in it")),
        false => Ok((switches, lids_of)),
    }
}

/// The sixteen hexadecimal digits behind some words, or nothing.
fn guid<'a>(line: &'a str, words: &str) -> &'a str {
    line.split_once(words).and_then(|(_, rest)| rest.get(..16)).unwrap_or_default()
}

/// What stands between quotation marks, else in the last brackets; without the name of the adapter behind that of the host.
fn name_in(line: &str) -> &str {
    let quoted = line.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\'')).map(|(name, _)| name);
    let bracketed = || line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name);
    let name = quoted.or_else(bracketed).unwrap_or_default();
    name.split_once(' ').map_or(name, |(host, _)| host)
}
