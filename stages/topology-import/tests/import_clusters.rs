//! Models of clusters from the folder `HOPMAP_DATA`.

use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, NodeKind, Paths, SystemGraph};
use hopmap_test_support::given_data;
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{ImportParams, Imported, read, recognise};
use proptest::prelude::*;

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

/// Two GPUs with `NVLink` on each of two sockets; every host of a network has them.
#[test]
fn all_hosts_are_like_the_one_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let network = file("labels.csv", "host,leaf,spine\na,l1,s\nb,l1,s\nc,l2,s\n");
    let gpus = "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV4 SYS SYS\nGPU1 NV4 X SYS SYS\nGPU2 SYS SYS X NV4\nGPU3 SYS SYS NV4 X\n";
    let every_host = Some(InputPath::new(file("gpus.txt", gpus)));
    let params = ImportParams { every_host, intra_node_costs: vec![0.1, 0.5], ..ImportParams::default() };
    let system = read(&network, &params).unwrap().system;
    assert_eq!(system.hosts().map(|(_, _, slots)| slots).collect::<Vec<_>>(), [4, 4, 4]);
    let costs = system.costs();
    let pairs = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 8), (8, 9), (9, 10)];
    let found: Vec<f64> = pairs.iter().map(|&(a, b)| costs.between(a, b)).collect();
    assert_eq!(found, [0.1, 0.5, 0.5, 2.0, 4.0, 0.1, 0.5]);

    let fault = |path: &Path, params: &ImportParams| read(path, params).unwrap_err().to_string();
    let both = ImportParams { slots: 8.into(), ..params.clone() };
    assert!(
        fault(&network, &both).contains("`slots` has no effect: `every_host` defines"),
        "{}",
        fault(&network, &both)
    );
    let other = ImportParams { every_host: Some(InputPath::new(&network)), ..params.clone() };
    assert!(
        fault(&network, &other).contains("`every_host` does not describe"),
        "{}",
        fault(&network, &other)
    );
    let machine = file(
        "n1.xml",
        "<topology><object type=\"Machine\"><object type=\"Core\"><object type=\"PU\" os_index=\"0\"/></object></object></topology>",
    );
    assert!(
        fault(&machine, &params).contains("`every_host` has no effect: hwloc"),
        "{}",
        fault(&machine, &params)
    );
    let alone = folder.path().join("gpus.txt");
    assert!(fault(&alone, &params).contains("`every_host` has no effect"), "{}", fault(&alone, &params));
}

const MISSING: &str = "<none>;N/A;-;null;Unknown;<no value>;NaN;NONE;;--;<nil>;undefined;n.a.;TBD;none assigned;?;\
                       Not_Available;(to do)";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Hosts are neighbours if they have the same label, and never by a word for a missing one.
    #[test]
    fn missing_labels_make_no_neighbours(leaves in proptest::collection::vec((0..3_usize, 0..36_usize), 2..9)) {
        let missing: Vec<&str> = MISSING.split(';').collect();
        let label = |&(leaf, word): &(usize, usize)| missing.get(word).map_or(format!("l{leaf}"), |word| (*word).to_owned());
        let labels: Vec<String> = leaves.iter().map(label).collect();
        // Without any label, all hosts are below one switch.
        prop_assume!(labels.iter().any(|label| !missing.contains(&&**label)));
        let rows = |row: &dyn Fn((usize, &String)) -> String| labels.iter().enumerate().map(row).collect::<Vec<_>>();
        let list = rows(&|(host, label)| format!("n{host},{label}\n")).concat();
        let map = rows(&|(host, label)| format!(r#""n{host}": "{label}""#)).join(",");
        let null = map.replace(r#""null""#, "null");
        let instances =
            rows(&|(host, label)| format!(r#"{{"id":"n{host}","network_layers":["{label}"]}}"#)).join(",");
        for text in [
            format!("Host,Leaf\n{list}"),
            format!("{{{map}}}"),
            format!("{{{null}}}"),
            format!(r#"{{"instances":[{instances}]}}"#),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &text).unwrap();
            let imported = read(file.path(), &ImportParams::default()).unwrap();
            let paths = Paths::new(&imported.system).unwrap();
            let node = |host: usize| {
                let name = format!("n{host}");
                imported.system.nodes.iter().position(|node| node.name == name).unwrap() as u32
            };
            for (a, b) in (0..labels.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
                let is_near = labels[a] == labels[b] && !missing.contains(&&*labels[a]);
                prop_assert_eq!(paths.hops(node(a), node(b)) == Some(2), is_near, "{} {} {}", text, a, b);
            }
            let said = labels.iter().any(|label| !label.is_empty() && missing.contains(&&**label));
            let is_said = imported.notes.iter().any(|note| note.starts_with("labels that say"));
            prop_assert_eq!(said && !text.contains(": null"), is_said && !text.contains(": null"), "{:?}", imported.notes);
        }
    }
}

#[test]
fn hosts_without_a_label_have_a_leaf_of_their_own() {
    let Some(data) = hopmap_test_support::given_data() else { return };
    let Imported { system, notes } =
        read(&data.join("reports/labels-none.csv"), &ImportParams::default()).unwrap();
    assert_eq!(counts(&system).0, 5);
    let hops = |a, b| Paths::new(&system).unwrap().hops(a, b);
    assert_eq!([hops(0, 1), hops(2, 3), hops(0, 2), hops(0, 4)], [Some(2), Some(4), Some(4), Some(6)]);
    assert_eq!(notes[0], "labels that say that they are not set: 2 `<none>`");
    assert!(notes[1].starts_with("hosts without a leaf switch: 2 (`n3`, `n4`)"), "{notes:?}");
}
