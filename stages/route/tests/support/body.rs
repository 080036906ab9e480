//! The body of tests and fuzz targets for files with arbitrary contents.

use std::path::Path;

use hopmap_route::{Instance, export};
use hopmap_routing::check;
use hopmap_routing::paper::Formulation;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};

/// Kinds of files.
pub(crate) const KINDS: usize = 3;

/// Limit of links times streams of a program that is formulated; a damaged number can ask for many.
const SMALL: usize = 10_000;

/// Reads an instance or an inventory, or writes tables into a dump of forwarding tables. Returns whether that succeeded; panics if the
/// error has no message or the result is inconsistent.
pub(crate) fn file(kind: usize, bytes: &[u8], network: &str) -> bool {
    match kind % KINDS {
        0 => match Instance::parse(bytes, Path::new("instance")) {
            Ok(instance) => holds(&instance),
            Err(error) => {
                assert!(error.to_string().len() > 10);
                false
            }
        },
        1 => hopmap_route::check_inventory(bytes, Path::new("kit")).is_ok(),
        _ => {
            let Ok(Instance { system, tables, .. }) =
                Instance::parse(network.as_bytes(), Path::new("network"))
            else {
                return false;
            };
            let text = String::from_utf8_lossy(bytes);
            export::forwarding_tables(&system, &tables.unwrap_or_default(), &text).is_ok()
        }
    }
}

fn holds(instance: &Instance) -> bool {
    let Instance { graph, system, mapping, tables } = instance;
    let is_consistent = graph.check().is_ok() && system.check().is_ok();
    let weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };
    if system.links.len() * graph.demands.streams.len() < SMALL
        && system.nodes.len() < SMALL
        && let Ok(problem) = Problem::new(graph, system, mapping.as_ref(), Rules::from(weights))
    {
        let _ = Formulation::new(&problem);
    }
    if let (Some(mapping), Some(tables)) = (mapping, tables) {
        let _ = check::check(graph, system, mapping, tables, None, &Rules::from(weights), false);
    }
    is_consistent
}
