//! Models of clusters from the folder `HOPMAP_DATA`.

use std::path::PathBuf;

use hopmap_model::{NodeKind, Paths, SystemGraph};
use hopmap_test_support::given_data;
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology::import::{ImportParams, read, recognise};

fn models() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("topology/topograph-models"))
}

fn counts(system: &SystemGraph) -> (usize, usize) {
    let hosts = system.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
    (hosts, system.nodes.len() - hosts)
}

#[test]
fn models_of_topograph_are_trees_of_switches() {
    let Some(folder) = models() else { return };
    for (name, expected, apart) in [
        ("small-tree.yaml", (6, 3), 4),
        ("medium.yaml", (8, 7), 6),
        ("large.yaml", (96, 19), 6),
        ("nvl72.yaml", (72, 7), 6),
        ("dual-xclr-regular.yaml", (96, 19), 6),
        ("dual-xclr-irregular.yaml", (255, 34), 6),
    ] {
        let path = folder.join(name);
        assert_eq!(recognise(&path).unwrap().name(), "slurm-yaml", "{name}");
        let system = read(&path, &ImportParams::default()).unwrap().system;
        assert_eq!(counts(&system), expected, "{name}");
        let last = system.slots.last().unwrap().host;
        assert_eq!(Paths::new(&system).unwrap().hops(0, last), Some(apart), "{name}");
        // The export for Slurm is the same machine, except for switches without hosts.
        let (file, _) = write(&system, &ExportParams { format: ExportFormat::SlurmYaml }).unwrap();
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(copy.path(), file.text).unwrap();
        let again = read(copy.path(), &ImportParams::default()).unwrap().system;
        assert_eq!(counts(&again).0, expected.0, "{name}");
        let hops = |system: &SystemGraph| Paths::new(system).unwrap().hops(0, last);
        assert_eq!(hops(&again), hops(&system), "{name}");
    }
}

#[test]
fn a_graph_of_netq_is_read() {
    let Some(folder) = models() else { return };
    let path = folder.join("topologyGraph.json");
    assert_eq!(recognise(&path).unwrap().name(), "graph-json");
    let imported = read(&path, &ImportParams::default()).unwrap();
    let (hosts, switches) = counts(&imported.system);
    eprintln!("{hosts} {switches} {} {:?}", imported.system.links.len(), imported.notes);
    assert!(hosts > 0 && switches > 0 && imported.system.links.len() >= 2 * hosts);
    assert!(recognise(&folder.join("computeNodes.json")).is_err());
}
