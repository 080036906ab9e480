//! Routes on a network as a picture or a page.

use hopmap_model::{Mapping, Routes, SystemGraph, Tables, TaskGraph, TextFile};
use hopmap_views::{Routed, routes};

use super::page;
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
        ExportFormat::Html => ("routes.html", page::write(&routed)),
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
