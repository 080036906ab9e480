//! Dumps of real fabrics from the folder `HOPMAP_DATA`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hopmap_model::{NodeKind, Paths, SystemGraph};
use hopmap_test_support::{given_data, program, system_tests};
use hopmap_topology_import::import::{Format, ImportParams, Imported, read, recognise};
use tempfile::TempDir;

use crate::support::fat_tree::FatTree;

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("topology"))
}

fn import(path: &Path) -> Imported {
    let imported = read(path, &ImportParams::of(path)).unwrap();
    imported.system.check().unwrap();
    imported
}

/// Expected properties of a fabric.
struct Expected {
    name: &'static str,
    hosts: usize,
    switches: usize,
    links: usize,
    paths: usize,
    /// Number of paths by number of links.
    hops: &'static [(u32, usize)],
}

const FABRICS: [Expected; 2] = [
    Expected {
        name: "avakas",
        hosts: 281,
        switches: 25,
        links: 1138,
        paths: 78_680,
        hops: &[(2, 4660), (4, 74_020)],
    },
    Expected {
        name: "plafrim",
        hosts: 125,
        switches: 9,
        links: 402,
        paths: 15_500,
        hops: &[(2, 2410), (3, 1518), (4, 4978), (5, 3150), (6, 2040), (7, 1404)],
    },
];

fn node_file(data: &Path, name: &str) -> PathBuf {
    data.join(format!("netloc/{name}/netloc/IB-fe80:0000:0000:0000-nodes.txt"))
}

fn of_kind(system: &SystemGraph, kind: NodeKind) -> usize {
    system.nodes.iter().filter(|node| node.kind == kind).count()
}

#[test]
fn node_files_of_netloc_are_read_completely() {
    let Some(data) = data() else { return };
    for expected in &FABRICS {
        let path = node_file(&data, expected.name);
        assert_eq!(recognise(&path).unwrap(), Format::Netloc);
        let Imported { system, notes } = import(&path);
        assert_eq!(of_kind(&system, NodeKind::Host), expected.hosts);
        assert_eq!(of_kind(&system, NodeKind::Switch), expected.switches);
        assert_eq!(system.links.len(), expected.links);
        let paths = Paths::new(&system).unwrap();
        let mut hops: BTreeMap<u32, usize> = BTreeMap::new();
        for (a, b) in pairs(expected.hosts as u32) {
            *hops.entry(paths.hops(a, b).unwrap()).or_default() += 1;
        }
        assert_eq!(hops.into_iter().collect::<Vec<_>>(), expected.hops, "{}", expected.name);
        let wrong = format!(
            "bandwidths computed incorrectly by netloc, recomputed from width and speed: {0} of {0} links",
            system.links.len()
        );
        assert!(notes.contains(&wrong), "{notes:?}");
        assert!(!notes.iter().any(|note| note.contains("pairs of adapters")), "{notes:?}");
        // Four lanes of QDR carry 32 Gbit/s.
        let widest = system.links.iter().filter_map(|link| link.bandwidth_bytes_per_s).fold(0.0, f64::max);
        assert!((widest - 4e9).abs() < 1.0);
    }
}

fn pairs(hosts: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..hosts).flat_map(move |a| (0..hosts).map(move |b| (a, b))).filter(|(a, b)| a != b)
}

/// Source and destination port of every link of a node file by number, by GUID; and the lines of the paths.
struct NodeFile {
    links: BTreeMap<u32, (String, u32, String, u32)>,
    paths: Vec<(String, String, Vec<u32>)>,
}

/// An independent reader of node files, whose descriptions contain no commas.
fn node_file_apart(path: &Path) -> NodeFile {
    let text = std::fs::read_to_string(path).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let nodes: usize = all[3].parse().unwrap();
    let guid = |text: &str| text.replace(':', "");
    let mut links = BTreeMap::new();
    for line in &all[4 + nodes..4 + 2 * nodes] {
        let fields: Vec<&str> = line.split(',').collect();
        let mut at = 1;
        while at < fields.len() {
            let (peer, count) = (fields[at], fields[at + 3].parse::<usize>().unwrap());
            at += 4;
            for _ in 0..count {
                let number = |place: usize| fields[at + place].parse::<u32>().unwrap();
                links.insert(number(0), (guid(fields[0]), number(1), guid(peer), number(2)));
                at += 9;
            }
        }
    }
    let way = |line: &&str| {
        let fields: Vec<&str> = line.split(',').collect();
        (guid(fields[0]), guid(fields[1]), fields[2..].iter().map(|link| link.parse().unwrap()).collect())
    };
    NodeFile { links, paths: all[5 + 2 * nodes..].iter().map(way).collect() }
}

#[test]
fn every_path_of_a_node_file_is_the_one_of_the_machine() {
    let Some(data) = data() else { return };
    for expected in &FABRICS {
        let path = node_file(&data, expected.name);
        let system = import(&path).system;
        let paths = Paths::new(&system).unwrap();
        let file = node_file_apart(&path);
        assert_eq!(file.paths.len(), expected.paths);
        let address = |node: u32| system.nodes[node as usize].address.as_deref().unwrap();
        let nodes: BTreeMap<&str, u32> =
            (0..system.nodes.len() as u32).map(|node| (address(node), node)).collect();
        for (source, destination, links) in &file.paths {
            let found = paths.path(nodes[source.as_str()], nodes[destination.as_str()]).unwrap();
            assert_eq!(found.len(), links.len());
            for (link, id) in found.iter().zip(links) {
                let link = system.links[*link as usize];
                let (from, port, to, peer_port) = &file.links[id];
                assert_eq!((address(link.source), address(link.destination)), (from.as_str(), to.as_str()));
                assert_eq!((link.source_port, link.destination_port), (Some(*port), Some(*peer_port)));
            }
        }
    }
}

#[test]
fn raw_and_extracted_files_of_netloc_give_the_same_machine() {
    let Some(data) = data() else { return };
    for expected in &FABRICS {
        let folder = data.join(format!("netloc/{}", expected.name));
        let extracted = import(&node_file(&data, expected.name)).system;
        for raw in [folder.clone(), folder.join("ib-raw")] {
            assert_eq!(recognise(&raw).unwrap(), Format::NetlocRaw);
            let imported = import(&raw);
            assert!(imported.system == extracted, "{}: {:?}", expected.name, imported.notes);
        }
        // Without tables the machine is the same, except for the routes.
        let listing = folder.join("ib-raw/ib-subnet-fe80:0000:0000:0000.txt");
        assert_eq!(recognise(&listing).unwrap(), Format::Ibnetdiscover);
        let alone = import(&listing).system;
        assert!(alone.nodes == extracted.nodes && alone.links == extracted.links);
        assert!(alone.routing.forwarding.is_empty());
    }
}

#[test]
fn files_of_netloc_0_5_give_the_links_that_netloc_2_gives() {
    let Some(data) = data() else { return };
    let folder = data.join("netloc-0.5");
    let infiniband = folder.join("IB-fe80:0000:0000:0000-nodes.ndat");
    assert_eq!(recognise(&infiniband).unwrap(), Format::NetlocDat);
    // Both are dumps of the same fabric.
    let (old, new) = (import(&infiniband).system, import(&node_file(&data, "plafrim")).system);
    assert!(old.nodes == new.nodes && old.links == new.links);
    // Only the paths differ, being from another day: they are those in the file.
    let paths = Paths::new(&old).unwrap();
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let edges = &json("IB-fe80:0000:0000:0000-nodes.ndat")["edge_info"];
    let stored = json("IB-fe80:0000:0000:0000-phy-paths.ndat");
    let node = |guid: &str| {
        let address = guid.replace(':', "");
        old.nodes.iter().position(|node| node.address.as_deref() == Some(&address)).unwrap() as u32
    };
    let mut count = 0;
    for (source, ways) in stored["path_info"].as_object().unwrap() {
        for (destination, way) in ways.as_object().unwrap() {
            let found = paths.path(node(source), node(destination)).unwrap();
            let ports = found.iter().map(|&link| old.links[link as usize].source_port.unwrap().to_string());
            let expected = way.as_array().unwrap().iter().map(|edge| &edges[edge.to_string()]["src_port_id"]);
            assert!(
                ports.eq(expected.map(|port| port.as_str().unwrap().to_owned())),
                "{source} {destination}"
            );
            count += 1;
        }
    }
    assert_eq!(count, 15_500);
    let Imported { system, notes } = import(&folder.join("ETH-unknown-nodes.ndat"));
    assert_eq!((of_kind(&system, NodeKind::Host), of_kind(&system, NodeKind::Switch)), (8, 7));
    assert_eq!(notes, ["links of unknown speed, kept without a bandwidth: 16"]);
    let paths = Paths::new(&system).unwrap();
    let mut hops: BTreeMap<u32, usize> = BTreeMap::new();
    pairs(8).for_each(|(a, b)| *hops.entry(paths.hops(a, b).unwrap()).or_default() += 1);
    assert_eq!(hops.into_iter().collect::<Vec<_>>(), [(2, 8), (4, 16), (6, 32)]);
    let error = read(&folder, &ImportParams::of(&folder)).unwrap_err().to_string();
    assert!(error.ends_with("there are several networks: ETH-unknown, IB-fe80:0000:0000:0000"), "{error}");
}

#[test]
fn a_listing_without_cables_is_rejected() {
    let Some(data) = data() else { return };
    let path = data.join("ibnetdiscover/example-bad.out");
    assert_eq!(recognise(&path).unwrap(), Format::Ibnetdiscover);
    let error = read(&path, &ImportParams::of(&path)).unwrap_err().to_string();
    assert!(error.ends_with("no cables are listed, only the local adapter"), "{error}");
}

fn written(folder: &TempDir, name: &str, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> PathBuf {
    let mut text = Vec::new();
    write(&mut text).unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn generated_fat_trees_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let tree = FatTree::new(8, 100);
    let blocks = written(&folder, "blocks", |out| tree.blocks(out));
    let columns = written(&folder, "columns/fabric", |out| tree.columns(out));
    let plain = import(&blocks).system;
    // 100 hosts in seven pods of four leaves and four spines, and sixteen cores above.
    assert_eq!((of_kind(&plain, NodeKind::Host), of_kind(&plain, NodeKind::Switch)), (100, 7 * 8 + 16));
    assert_eq!(plain.links.len(), 2 * (100 + 7 * 16 + 7 * 16));
    let alone = import(&columns);
    assert_eq!((alone.notes.len(), alone.system.links == plain.links), (0, true));
    written(&folder, "columns/tables", |out| tree.tables(out));
    let Imported { system, notes } = import(columns.parent().unwrap());
    assert_eq!(notes, [""; 0]);
    let (paths, shortest) = (Paths::new(&system).unwrap(), Paths::new(&plain).unwrap());
    for (a, b) in pairs(100) {
        let levels = if a / 4 == b / 4 {
            1
        } else if a / 16 == b / 16 {
            2
        } else {
            3
        };
        assert_eq!(paths.hops(a, b), Some(2 * levels), "{a} {b}");
        assert_eq!(shortest.hops(a, b), Some(2 * levels), "{a} {b}");
    }
}

/// Prints the output of the programs for a fabric simulated by ibsim.
const SIMULATED: &str = r#"
set -e
cd "$1"
export IBSIM_SERVER_PORT=$((20000 + $$ % 20000)) SIM_HOST=H1
so=$(ls /usr/lib/*/umad2sim/libumad2sim.so)
mkfifo console
ibsim -s -N 100 net < console > ibsim.log 2>&1 &
server=$!
exec 3> console
trap 'kill $server' EXIT
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.3
  LD_PRELOAD=$so ibnetdiscover > /dev/null 2>&1 && break
done
OSM_TMP_DIR=$PWD LD_PRELOAD=$so opensm -o -l 1 -f osm.log > opensm.log 2>&1
LD_PRELOAD=$so ibnetdiscover > blocks
LD_PRELOAD=$so ibnetdiscover -g > group
mkdir columns
LD_PRELOAD=$so ibnetdiscover -s -p > columns/fabric
LD_PRELOAD=$so dump_fts > columns/tables
"#;

/// A ring of three switches; H3 has a port on each of two.
const RING: &str = "Switch 8 \"S0\"\n[1] \"H1\"[1]\n[2] \"H2\"[1]\n[3] \"H3\"[1]\n[6] \"S2\"[6]\n[7] \"S1\"[7]\n[8] \"S1\"[8]\n\n\
Switch 8 \"S1\"\n[1] \"H3\"[2]\n[2] \"H4\"[1]\n[5] \"S2\"[5]\n[7] \"S0\"[7]\n[8] \"S0\"[8]\n\n\
Switch 8 \"S2\"\n[1] \"H5\"[1]\n[5] \"S1\"[5]\n[6] \"S0\"[6]\n\n\
Hca 2 \"H1\"\n[1] \"S0\"[1]\n\nHca 2 \"H2\"\n[1] \"S0\"[2]\n\nHca 2 \"H3\"\n[1] \"S0\"[3]\n[2] \"S1\"[1]\n\n\
Hca 2 \"H4\"\n[1] \"S1\"[2]\n\nHca 2 \"H5\"\n[1] \"S2\"[1]\n";

/// Output of the real programs for a fabric without hardware. Needs ibsim-utils, infiniband-diags and opensm.
#[test]
fn the_output_for_a_simulated_fabric_is_read() {
    let programs = ["ibsim", "opensm", "ibnetdiscover", "dump_fts"];
    if !system_tests() || programs.iter().any(|name| program(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    written(&folder, "net", |out| out.write_all(RING.as_bytes()));
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
    let shell = std::process::Command::new("sh")
        .args(["-c", SIMULATED, "sh"])
        .arg(folder.path())
        .env("PATH", path)
        .output();
    let shell = shell.unwrap();
    assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
    let (blocks, group) = (import(&folder.path().join("blocks")), import(&folder.path().join("group")));
    assert_eq!(blocks.system, group.system);
    let names: Vec<_> = blocks.system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["H1", "H2", "H3", "H4", "H5", "S0", "S1", "S2"]);
    assert_eq!(blocks.system.links.len(), 2 * (6 + 4));
    let Imported { system, notes } = import(&folder.path().join("columns"));
    assert_eq!(system.links, blocks.system.links);
    assert!(
        !notes.iter().any(|note| note.contains("pairs of adapters") || note.contains("without a table")),
        "{notes:?}"
    );
    let paths = Paths::new(&system).unwrap();
    assert!(pairs(5).all(|(a, b)| (2..=3).contains(&paths.hops(a, b).unwrap())));
}
