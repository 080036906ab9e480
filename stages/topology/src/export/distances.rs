//! The costs between all slots as CSV.

use std::fmt::Write;

use hopmap_model::{CostsError, SystemGraph};

use super::{ExportError, ExportParams};

/// Most slots that are written.
const MOST: usize = 4096;

/// A row for every slot, what it costs from there to every slot; the first row and the first column name the slots, `host:core`, or
/// `host` where every host has one.
pub(super) fn write(system: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    let count = system.slots.len();
    if count > MOST {
        return Err(CostsError::TooMany { slots: count, most: MOST }.into());
    }
    let costs = system.matrix()?.costs;
    let names = names(system);
    let mut text = String::new();
    for name in &names {
        text.push(',');
        text.push_str(name);
    }
    text.push('\n');
    for (name, row) in names.iter().zip(costs.chunks(count.max(1))) {
        text.push_str(name);
        for cost in row {
            // Writing to a string does not fail.
            let _ = write!(text, ",{cost}");
        }
        text.push('\n');
    }
    let mut lost = Vec::new();
    if !system.links.is_empty() {
        lost.push("switches, links and routes: only what slots cost between each other".to_owned());
    }
    Ok((text, lost))
}

fn names(system: &SystemGraph) -> Vec<String> {
    let is_alone = system.hosts().all(|(_, _, slots)| slots == 1);
    let name = |slot: &hopmap_model::Slot| {
        let host = system.nodes.get(slot.host as usize).map_or("", |node| node.name.as_str());
        let name = if is_alone { host.to_owned() } else { format!("{host}:{}", slot.core) };
        quoted(&name)
    };
    system.slots.iter().map(name).collect()
}

/// A cell of a CSV file (RFC 4180).
fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r', ';', '\t', ' ', '#']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}
