//! What is done with graphs that may hold anything: reading ends with a program or an error.
//!
//! Called by a test with damaged graphs and by a target in `fuzz/` with whatever the fuzzer thinks of.
#![allow(clippy::unwrap_used, reason = "a fault is told by panicking")]

use std::path::Path;

use hopmap_instance::read_graph;
use hopmap_model::Context;

/// Reads a graph. What is read sends the same both ways, and nobody to itself.
pub(crate) fn graph(path: &Path) {
    match read_graph(path, &Context::detached()) {
        Ok(graph) => {
            graph.check().unwrap();
            let mut back: Vec<_> = graph.edges.iter().map(|e| (e.destination, e.source, e.bytes)).collect();
            back.sort_unstable();
            assert!(graph.edges.iter().map(|e| (e.source, e.destination, e.bytes)).eq(back));
            assert!(graph.edges.iter().all(|edge| edge.source != edge.destination && edge.messages == 1));
        }
        Err(error) => assert!((1..1000).contains(&error.to_string().len())),
    }
}
