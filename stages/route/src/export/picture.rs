//! Routes on a network as a picture, or as a page with the busiest links and the metrics.

use std::fmt::Write;

use hopmap_model::{Mapping, Routes, SystemGraph, Tables, TaskGraph, TextFile};
use hopmap_views::{Routed, route_loads, routes};

use crate::{ExportError, ExportFormat};

/// What a picture shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The machine.
    pub system: &'a SystemGraph,
    /// The tables of its switches.
    pub tables: &'a Tables,
    /// The routes; without them there is no picture.
    pub routes: Option<&'a Routes>,
    /// The program, for the names of processes and streams.
    pub graph: Option<&'a TaskGraph>,
    /// Where its processes are.
    pub mapping: Option<&'a Mapping>,
}

/// Routes on a network: a page for `html`, else the picture alone. Fails without routes, and where one of the inputs is about something
/// else than the others.
pub fn draw(shown: &Shown<'_>, format: ExportFormat) -> Result<TextFile, ExportError> {
    let Shown { system, tables, routes: given, graph, mapping } = *shown;
    let Some(given) = given else {
        return Err(ExportError::new(
            "a picture shows routes, and none are connected",
            "connect `routes` of route/tables, route/map or route/check; `task-graph` and `mapping` add the names of processes",
        ));
    };
    check(shown, given)?;
    let routed = Routed { system, routes: given, tables: Some(tables), graph, mapping };
    let (name, text) = match format {
        ExportFormat::Html => ("routes.html", write(&routed)),
        _ => ("routes.svg", routes(&routed)),
    };
    Ok(TextFile { name: name.to_owned(), text })
}

/// Refuses what is about another machine or another program.
fn check(shown: &Shown<'_>, routes: &Routes) -> Result<(), ExportError> {
    let Shown { system, tables, graph, mapping, .. } = *shown;
    let (nodes, links) = (system.nodes.len(), system.links.len());
    let other = |what: &str, of: &str| {
        ExportError::new(
            format!("{what} are not those of this {of}"),
            "connect the inputs and outputs of the same run of route/tables or route/map",
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
        return Err(other("the places of processes", "program"));
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

/// The page, without scripts and without anything from elsewhere.
pub(super) fn write(routed: &Routed<'_>) -> String {
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
    for (name, value) in &routed.routes.metrics {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"number\">{value}</td></tr>",
            escape(&name.replace('_', " "))
        );
    }
    html.push_str("</tbody></table>\n");
    html
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(|letter: char| letter.is_control(), " ")
}
