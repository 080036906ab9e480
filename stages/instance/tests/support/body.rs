//! Properties of readers for arbitrary graphs: reading returns a program or an error.
//!
//! Called by a test with damaged graphs and by a fuzz target in `fuzz/`.
#![allow(clippy::unwrap_used, reason = "a failure panics")]

use std::path::Path;

use hopmap_instance::read_graph;
use hopmap_model::Context;

/// Reads a graph. Its edges are symmetric, without self-loops.
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
