//! Tests of lenient parsing.

use super::*;
use crate::import::samples::import;

fn fault(text: &str) -> String {
    let ImportError::File(hopmap_text::FileError { problem, .. }) = import(text).unwrap_err() else {
        unreachable!()
    };
    problem
}

fn ends(imported: &Imported) -> Vec<(u32, u32)> {
    imported.system.links.iter().map(|link| (link.source, link.destination)).collect()
}

#[test]
fn nodes_are_referenced_by_name_or_number() {
    let by_number = r#"{"nodes":[{"name":"a","kind":"host","slots":2},{"name":"s","kind":"switch"},{"name":"b","cores":[0,2],"state":"down"}],
        "links":[{"source":0,"destination":1,"bandwidth_gbps":100,"latency_s":1e-6,"source_port":3},{"source":2,"destination":1,"state":"down"}]}"#;
    let one = import(by_number).unwrap();
    assert_eq!(ends(&one), [(0, 1), (1, 0), (2, 1), (1, 2)]);
    assert_eq!(one.system.links[1].destination_port, Some(3));
    assert_eq!(one.system.links[0].bandwidth_bytes_per_s, Some(12.5e9));
    assert_eq!(one.system.links[2].state, LinkState::Down);
    assert_eq!(
        one.system.slots.iter().map(|slot| (slot.host, slot.core)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (2, 0), (2, 2)]
    );
    assert!(one.notes.len() == 1 && one.notes[0].contains("no path joins"), "{:?}", one.notes);
    let by_name = by_number.replace(r#""source":0,"destination":1"#, r#""source":"a","destination":"s""#);
    assert_eq!(import(&by_name).unwrap().system, one.system);
}

#[test]
fn formats_of_other_programs_are_read() {
    // NetworkX: numbers are node ids, in any order.
    let networkx = r#"{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": 2}, {"id": 1}, {"id": 0}],
        "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}]}"#;
    let imported = import(networkx).unwrap();
    assert_eq!(ends(&imported), [(2, 1), (1, 2), (1, 0), (0, 1)]);
    assert_eq!(imported.system.nodes[1].kind, NodeKind::Switch);
    assert!(imported.notes[0].contains("3 nodes of unknown kind"), "{:?}", imported.notes);
    let cytoscape = r#"{"elements":{"nodes":[{"data":{"id":"x"}},{"data":{"id":"y"}}],"edges":[{"data":{"source":"x","target":"y"}}]}}"#;
    assert_eq!(ends(&import(cytoscape).unwrap()), [(0, 1), (1, 0)]);
    let netq = r#"[{"links":[{"compounded_links":[{"interfaces":[{"node":"n1","interface":"swp1"},{"node":"n2","interface":"e"}]},
        {"interfaces":[{"node":"n1","interface":"swp2"},{"node":"n3","interface":"e"}]}],"src":"n1","target":"n2"}],
        "nodes":[{"compounded_nodes":[{"id":"n1","name":"leaf","device_type":"switch"},{"id":"n2","name":"dgx-1","device_type":"discovered_via_lldp"}]},
        {"compounded_nodes":[{"id":"n3","name":"dgx-2"}]}]}]"#;
    let imported = import(netq).unwrap();
    assert_eq!(ends(&imported), [(0, 1), (1, 0), (0, 2), (2, 0)]);
    assert_eq!(imported.system.nodes[2].name, "dgx-2");
    // Edges only; both directions of one of them are listed.
    let edges = r#"{"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"},{"from":"a","to":"c"}]}"#;
    let imported = import(edges).unwrap();
    assert_eq!(ends(&imported), [(0, 1), (1, 0), (0, 2), (2, 0)]);
    assert!(
        imported.notes.iter().any(|note| note.starts_with("2 links with a listed reverse")),
        "{:?}",
        imported.notes
    );
}

#[test]
fn errors_report_the_node_or_link() {
    assert_eq!(fault(r#"{"nodes":["a","a"],"links":[]}"#), "nodes[1] duplicates the name `a`");
    assert_eq!(
        fault(r#"{"nodes":["a"],"links":[{"source":"a","target":"b"}]}"#),
        "links[0] refers to `b`, which is not a node"
    );
    assert_eq!(
        fault(r#"{"nodes":["a"],"links":[{"source":0,"target":7}]}"#),
        "links[0] refers to node 7 of 1"
    );
    assert_eq!(fault(r#"{"nodes":["a"],"links":[{"source":0}]}"#), "links[0] has no destination");
    assert!(fault("{\"nodes\":[\n}").contains("line 2"));
    assert!(
        fault(r#"{"nodes":[{"name":"a","slots":4294967295}],"links":[]}"#)
            .contains("4294967295 slots in total")
    );
}

/// The bandwidth was ignored, and the latency refused.
#[test]
fn the_lossless_form_takes_rates_that_it_lacks() {
    let text = r#"{"nodes":[{"name":"a","kind":"host"},{"name":"s","kind":"switch"}],"links":[{"source":0,"destination":1},
        {"source":1,"destination":0,"latency_s":3e-6}],"slots":[[0,0],[0,1]],"cost":{"levels":{"costs":[1],"groups":[[0,0]]}}}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let params = ImportParams {
        slots: 8.into(),
        link_latency_s: Some(1e-6),
        link_bandwidth_bytes_per_s: vec![4e9],
        ..ImportParams::default()
    };
    let Imported { system, notes } = super::super::read(file.path(), &params).unwrap();
    let rates = system.links.iter().map(|link| (link.latency_s, link.bandwidth_bytes_per_s));
    assert_eq!(rates.collect::<Vec<_>>(), [(Some(1e-6), Some(4e9)), (Some(3e-6), Some(4e9))]);
    assert_eq!(system.slots.len(), 2);
    assert_eq!(notes[0], "the file defines the slots of hosts: `slots` has no effect");
}
