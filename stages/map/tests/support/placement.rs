//! Checks that reading any mapping file returns one slot per rank or an error.
//!
//! Called by a test with damaged files and by a fuzz target in `fuzz/`.
#![allow(clippy::unwrap_used, reason = "faults are reported by panicking")]

use hopmap_map::PlacementFormat::{Auto, Kahip, Machinefile, Rankfile, Ranks, Scotch};
use hopmap_map::read_placement;
use hopmap_model::{CostModel, Levels, Mapping, Node, Slot, SystemGraph, Weight};

/// Hosts `a.x` with 4 cores on two sockets, `b` with one, `10.0.0.3` with 3 on one socket.
pub(crate) fn machine() -> SystemGraph {
    let hosts = [4, 1, 3];
    let node = |name: &str| Node::host(name);
    let slots = (0..3).flat_map(|host| (0..hosts[host]).map(move |core| Slot { host: host as u32, core }));
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: ["a.x", "b", "10.0.0.3"].map(node).into(),
        links: Vec::new(),
        slots: slots.collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 2.0, 10.0],
            groups: vec![vec![0, 0, 1, 1, 2, 3, 3, 3], vec![0, 0, 0, 0, 1, 2, 2, 2], vec![0; 8]],
        }),
        calibration: Vec::new(),
    }
}

/// Reads a mapping of `ranks` ranks in every format.
pub(crate) fn placement(text: &[u8], ranks: usize) {
    let system = machine();
    for format in [Auto, Kahip, Scotch, Rankfile, Machinefile, Ranks] {
        match read_placement(text, format, ranks, &system) {
            Ok(placed) => {
                assert_eq!(placed.slots.len(), ranks);
                assert!(Mapping::new(&placed.slots, &system, Weight::Bytes).is_ok());
                assert!(placed.format != Auto && (format == Auto || placed.format == format));
            }
            Err(error) => {
                assert!((1..1000).contains(&error.problem.len()) && error.help.is_some());
                assert!(error.line.unwrap_or_default() <= text.split(|byte| *byte == b'\n').count());
            }
        }
    }
}
