//! Tables of switches as text for networks, and routes as pictures.
//!
//! InfiniBand linear forwarding tables are those that `dump_lfts` prints and `opensm -R file -U` loads. The subnet manager
//! chooses the local ids (LIDs), so they are taken from a dump of the running network. The export is that dump with our entries
//! instead of its own.

mod rapidio;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use hopmap_model::{Mapping, Routes, SystemGraph, Tables, TaskGraph, TextFile};
use hopmap_routing::error::{Result, RouteError, fail};
use hopmap_routing::quantity::{amount, rate};
use hopmap_views::{Routed, escape, route_loads, routes};

use crate::params::{ExportFormat, ExportParams};

/// Maximum size of a dump of forwarding tables in bytes.
const MOST_BYTES: u64 = 1 << 32;

/// The tables of a network as text. For pictures see [`draw`].
pub fn write(system: &SystemGraph, tables: &Tables, params: &ExportParams) -> Result<TextFile> {
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

/// InfiniBand linear forwarding tables: those of a dump, with our entries instead of its own.
pub fn forwarding_tables(system: &SystemGraph, tables: &Tables, dump: &str) -> Result<String> {
    only_global(system, tables, "InfiniBand")?;
    let (switches, lids_of) = read(system, dump)?;
    let named: BTreeSet<u32> = switches.iter().map(|switch| switch.node).collect();
    if let Some(entry) = tables.entries.iter().find(|entry| !named.contains(&entry.switch)) {
        let name = &system.nodes[entry.switch as usize].name;
        return fail(format!("the dump does not contain switch `{name}`"), HELP);
    }
    let mut text = String::new();
    for mut switch in switches {
        for entry in tables.entries.iter().filter(|entry| entry.switch == switch.node) {
            let host = &system.nodes[entry.destination as usize].name;
            let Some(lids) = lids_of.get(&entry.destination) else {
                return fail(format!("the dump has no LID for host `{host}`"), HELP);
            };
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

fn lids(params: &ExportParams) -> Result<String> {
    let Some(file) = &params.lids else {
        return fail(
            "the LIDs of the nodes are unknown",
            "set `lids` to a dump of the running network: `lids = \"opensm-lfts.dump\"`",
        );
    };
    hopmap_text::read_text(file.path(), MOST_BYTES)
        .map_err(|error| RouteError::new(error.to_string(), error.help_text()))
}

/// Rejects tables per input port, for formats with one table per switch.
fn only_global(system: &SystemGraph, tables: &Tables, format: &str) -> Result<()> {
    match tables.entries.iter().find(|entry| entry.input_port.is_some()) {
        Some(entry) => fail(
            format!(
                "switch `{}` has a table per input port, but {format} supports only one table per switch",
                system.nodes[entry.switch as usize].name
            ),
            "use `format = \"fmd\"` or `\"registers\"`, or switches of type 1",
        ),
        None => Ok(()),
    }
}

const HELP: &str = "`lids` must be the output of `dump_lfts` or the file `opensm-lfts.dump` of opensm";

/// A switch in a dump.
struct Switch {
    heading: String,
    node: u32,
    /// The entries by LID: output port, and the comment that follows it.
    entries: BTreeMap<u32, (u32, String)>,
}

/// The LIDs of every host: a power of two of them if the subnet manager assigns several.
type LidsOf = BTreeMap<u32, BTreeSet<u32>>;

/// The switches of a dump, and the LIDs of every host.
fn read(system: &SystemGraph, dump: &str) -> Result<(Vec<Switch>, LidsOf)> {
    let wrong = |line: usize, problem: &str| RouteError::new(format!("`lids`, line {line}: {problem}"), HELP);
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
            // Further LIDs of a port may lack the name.
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
        true => Err(wrong(1, "the dump contains no switch")),
        false => Ok((switches, lids_of)),
    }
}

/// The sixteen hexadecimal digits that follow a key, if any.
fn guid<'a>(line: &'a str, words: &str) -> &'a str {
    line.split_once(words).and_then(|(_, rest)| rest.get(..16)).unwrap_or_default()
}

/// The text in quotation marks, otherwise in the last brackets; without the adapter name that follows the host name.
fn name_in(line: &str) -> &str {
    let quoted = line.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\'')).map(|(name, _)| name);
    let bracketed = || line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name);
    let name = quoted.or_else(bracketed).unwrap_or_default();
    name.split_once(' ').map_or(name, |(host, _)| host)
}

/// The inputs of a picture.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The machine topology.
    pub system: &'a SystemGraph,
    /// The tables of its switches.
    pub tables: &'a Tables,
    /// The routes, which a picture requires.
    pub routes: Option<&'a Routes>,
    /// The program, for the names of processes and streams.
    pub graph: Option<&'a TaskGraph>,
    /// The mapping of its processes.
    pub mapping: Option<&'a Mapping>,
}

/// Draws routes on a network: a page for `html`, otherwise only the picture. Fails without routes, and if the inputs do not
/// belong together.
pub fn draw(shown: &Shown<'_>, format: ExportFormat) -> Result<TextFile> {
    let Shown { system, tables, routes: given, graph, mapping } = *shown;
    let Some(given) = given else {
        return fail(
            "a picture needs routes, but none are connected",
            "connect `routes` of route/tables, route/map or route/check; `task-graph` and `mapping` add the names of processes",
        );
    };
    check(shown, given)?;
    let routed = Routed { system, routes: given, tables: Some(tables), graph, mapping };
    let (name, text) = match format {
        ExportFormat::Html => ("routes.html", write_picture(&routed)),
        _ => ("routes.svg", routes(&routed)),
    };
    Ok(TextFile { name: name.to_owned(), text })
}

/// Rejects inputs of another machine or program.
fn check(shown: &Shown<'_>, routes: &Routes) -> Result<()> {
    let Shown { system, tables, graph, mapping, .. } = *shown;
    let (nodes, links) = (system.nodes.len(), system.links.len());
    let other = |what: &str, of: &str| {
        RouteError::new(
            format!("{what} do not belong to this {of}"),
            "connect inputs and outputs of the same run of route/tables or route/map",
        )
    };
    let all_links = routes.routes.iter().flat_map(|route| &route.links).chain(&routes.cycle);
    let mut ends = routes.routes.iter().flat_map(|route| [route.source, route.destination]);
    if all_links.into_iter().any(|&link| link as usize >= links) || ends.any(|node| node as usize >= nodes) {
        return Err(other("the routes", "machine"));
    }
    if tables.entries.iter().any(|entry| entry.switch.max(entry.destination) as usize >= nodes) {
        return Err(other("the tables", "machine"));
    }
    let Some(graph) = graph else { return Ok(()) };
    let streams = graph.demands.streams.len();
    if routes.routes.iter().flat_map(|route| &route.streams).any(|&stream| stream as usize >= streams) {
        return Err(other("the routes", "program"));
    }
    if mapping.is_some_and(|mapping| mapping.ranks.len() != graph.ranks()) {
        return Err(other("the hosts of processes", "program"));
    }
    Ok(())
}

const STYLE: &str = "\
:root { color-scheme: light dark; --paper: #fdfdfc; --panel: #f3f3f0; --ink: #1c1e21; --soft: #62676e; --rule: #d9d9d4; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --panel: #202327; --ink: #e7e8ea; --soft: #9aa0a8; --rule: #363a40; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
figure { margin: 0 0 2.4rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; }
td { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--rule); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
";

/// The page, without scripts and external resources.
fn write_picture(routed: &Routed<'_>) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Routes – hopmap</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<figure>{}</figure>\n<figure>{}</figure>\n{}</main>\n</body>\n</html>\n",
        routes(routed),
        route_loads(routed),
        metrics(routed)
    )
}

fn metrics(routed: &Routed<'_>) -> String {
    if routed.routes.metrics.is_empty() {
        return String::new();
    }
    // Writing to a string does not fail.
    let mut html = String::from("<h2>Metrics</h2>\n<table><tbody>\n");
    for (name, &value) in &routed.routes.metrics {
        let (name, text) = (escape(&name.replace('_', " ")), metric(name, value));
        let _ = writeln!(html, "<tr><td>{name}</td><td class=\"number\">{text}</td></tr>");
    }
    html.push_str("</tbody></table>\n");
    html
}

/// A metric of routes with its unit.
fn metric(name: &str, value: f64) -> String {
    match name {
        "deadlock_free" | "proven" | "goal_proven" => if value > 0.0 { "yes" } else { "no" }.to_owned(),
        "least_bandwidth_slack" | "largest_link_load" | "largest_link_load_bound" | "largest_switch_load" => {
            rate(value)
        }
        _ if name.ends_with("_share") || name.ends_with("_utilisation") => {
            format!("{:.1} %", 100.0 * value)
        }
        _ => amount(value),
    }
}
