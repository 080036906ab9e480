//! Imported platforms have the routes that SimGrid computes (with `HOPMAP_SYSTEM_TESTS=1`), and exports are
//! imported again.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopmap_machines::params::CostMetric;
use hopmap_machines::synthetic;
use hopmap_model::{CostModel, Link, Paths, SystemGraph};
use hopmap_test_support::system_tests;
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{ImportParams, Imported, read};
use proptest::prelude::*;
use serde_json::json;

use crate::support::description::import;

fn platform(zones: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n{zones}\n</platform>\n"
    )
}

fn cluster(radical: &str, rest: &str) -> String {
    format!(
        "<zone id=\"w\" routing=\"Full\"><cluster id=\"c\" prefix=\"n\" suffix=\".x\" radical=\"{radical}\" speed=\"1Gf\" bw=\"1.25GBps\" lat=\"1us\" {rest}/></zone>"
    )
}

fn griffon_like(routing: &str) -> String {
    let cabinet = |id: &str, radical: &str| {
        format!(
            "<cluster id=\"{id}\" prefix=\"n-\" suffix=\".site\" radical=\"{radical}\" speed=\"286Mf\" bw=\"125MBps\" lat=\"24us\" bb_bw=\"1.25GBps\" bb_lat=\"3us\"/>\n"
        )
    };
    let route = |a: &str, b: &str| {
        format!(
            "<zoneRoute src=\"{a}\" dst=\"{b}\" gw_src=\"n-{a}_router.site\" gw_dst=\"n-{b}_router.site\"><link_ctn id=\"bus\"/></zoneRoute>\n"
        )
    };
    let zones = [cabinet("x", "1-5,20"), cabinet("y", "6-9"), cabinet("z", "10-12")].concat();
    let routes = [route("x", "y"), route("y", "z"), route("x", "z")].concat();
    format!(
        "<zone id=\"all\" routing=\"{routing}\">\n{zones}<link id=\"bus\" bandwidth=\"1.25GBps\" latency=\"24us\"/>\n{routes}</zone>"
    )
}

const ROUTERS: &str = "<zone id=\"z\" routing=\"Floyd\">
  <host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\"/><host id=\"d\" speed=\"1Gf\"/>
  <router id=\"r1\"/><router id=\"r2\"/><router id=\"r3\"/>
  <link id=\"1\" bandwidth=\"1GBps\" latency=\"1us\"/><link id=\"2\" bandwidth=\"1GBps\" latency=\"2us\" sharing_policy=\"SPLITDUPLEX\"/>
  <link id=\"3\" bandwidth=\"1GBps\" latency=\"3us\"/><link id=\"4\" bandwidth=\"1GBps\" latency=\"10us\"/>
  <link id=\"5\" bandwidth=\"1GBps\" latency=\"20us\"/><link id=\"6\" bandwidth=\"1GBps\" latency=\"40us\"/><link id=\"7\" bandwidth=\"1GBps\" latency=\"80us\"/>
  <route src=\"a\" dst=\"r1\"><link_ctn id=\"1\"/></route>
  <route src=\"b\" dst=\"r2\"><link_ctn id=\"2\" direction=\"UP\"/></route>
  <route src=\"c\" dst=\"r3\"><link_ctn id=\"3\"/></route>
  <route src=\"d\" dst=\"r3\"><link_ctn id=\"7\"/></route>
  <route src=\"r1\" dst=\"r2\"><link_ctn id=\"4\"/></route>
  <route src=\"r2\" dst=\"r3\"><link_ctn id=\"5\"/></route>
  <route src=\"r3\" dst=\"r1\"><link_ctn id=\"6\"/></route>
</zone>";

const FULL: &str = "<zone id=\"z\" routing=\"Full\">
  <host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\"/>
  <link id=\"la\" bandwidth=\"1GBps\" latency=\"1us\"/><link id=\"lb\" bandwidth=\"1GBps\" latency=\"2us\" sharing_policy=\"SPLITDUPLEX\"/>
  <link id=\"lc\" bandwidth=\"1GBps\" latency=\"3us\"/><link id=\"trunk\" bandwidth=\"1GBps\" latency=\"10us\"/>
  <link id=\"far\" bandwidth=\"1GBps\" latency=\"99us\"/>
  <route src=\"a\" dst=\"b\"><link_ctn id=\"la\"/><link_ctn id=\"lb_UP\"/></route>
  <route src=\"a\" dst=\"c\"><link_ctn id=\"la\"/><link_ctn id=\"trunk\"/><link_ctn id=\"lc\"/></route>
  <route src=\"b\" dst=\"c\" symmetrical=\"NO\"><link_ctn id=\"lb_DOWN\"/><link_ctn id=\"trunk\"/><link_ctn id=\"lc\"/></route>
  <route src=\"c\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"far\"/></route>
</zone>";

const CABINETS: &str = "<zone id=\"g\" routing=\"Cluster\">
  <cabinet id=\"k1\" prefix=\"n\" suffix=\"\" radical=\"1-4\" speed=\"1Gf\" bw=\"125MBps\" lat=\"100us\"/>
  <cabinet id=\"k2\" prefix=\"n\" suffix=\"\" radical=\"5-8\" speed=\"1Gf\" bw=\"125MBps\" lat=\"200us\"/>
  <backbone id=\"bb\" bandwidth=\"2.25GBps\" latency=\"500us\"/>
</zone>";

/// Platforms, and whether they become machines with links.
fn platforms() -> Vec<(&'static str, String, bool)> {
    let shape = |radical: &str, topology: &str, parameters: &str| {
        platform(&cluster(radical, &format!("topology=\"{topology}\" topo_parameters=\"{parameters}\"")))
    };
    vec![
        ("crossbar", platform(&cluster("0-5", "")), true),
        ("backbone", platform(&cluster("0-3,7", "bb_bw=\"10GBps\" bb_lat=\"300ns\" core=\"4\"")), true),
        ("fat tree", shape("0-15", "FAT_TREE", "2;4,4;1,2;1,1"), true),
        ("fat tree of three levels", shape("0-26", "FAT_TREE", "3;3,3,3;1,2,3;1,1,1"), true),
        ("fat tree of parallel links", shape("0-15", "FAT_TREE", "2;4,4;1,2;1,2"), true),
        ("fat tree of hosts with two ports", shape("0-7", "FAT_TREE", "2;4,2;2,2;1,1"), true),
        ("torus", shape("0-23", "TORUS", "3,2,4"), true),
        ("ring", shape("0-5", "TORUS", "6"), true),
        ("torus with a side of one", shape("0-34", "TORUS", "5,1,7"), true),
        ("dragonfly", shape("0-119", "DRAGONFLY", "3,4;4,3;5,1;2"), true),
        ("dragonfly of one chassis", shape("0-11", "DRAGONFLY", "3,1;1,1;4,2;1"), true),
        ("cabinets", platform(CABINETS), true),
        ("griffon", platform(&griffon_like("Full")), true),
        ("griffon by Floyd", platform(&griffon_like("Floyd")), true),
        ("routers by Floyd", platform(ROUTERS), true),
        ("routers by Dijkstra", platform(&ROUTERS.replace("Floyd", "Dijkstra")), true),
        ("full", platform(FULL), true),
    ]
}

/// For each pair of hosts the latency in seconds and the links of the route.
type Table = HashMap<(String, String), (f64, Vec<String>)>;

const PROGRAM: &str = r#"
#include <simgrid/s4u.hpp>
#include <cstdio>
int main(int argc, char** argv) {
  simgrid::s4u::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  engine.seal_platform();
  auto hosts = engine.get_all_hosts();
  for (auto* a : hosts)
    for (auto* b : hosts) {
      if (a == b) continue;
      std::vector<simgrid::s4u::Link*> links;
      double latency = 0;
      a->route_to(b, links, &latency);
      std::printf("%s %s %.17g", a->get_cname(), b->get_cname(), latency);
      for (auto* link : links) std::printf(" %s", link->get_cname());
      std::printf("\n");
    }
}
"#;

/// Compiles a program that queries SimGrid.
fn oracle(folder: &Path) {
    fs::write(folder.join("routes.cpp"), PROGRAM).unwrap();
    let status = Command::new("g++")
        .args(["-std=c++17", "-O0", "routes.cpp", "-o", "routes", "-lsimgrid"])
        .current_dir(folder)
        .status();
    assert!(status.unwrap().success(), "install g++ and libsimgrid-dev");
}

fn simgrid(folder: &Path, text: &str) -> Table {
    let file = folder.join("platform.xml");
    fs::write(&file, text).unwrap();
    let output =
        Command::new(folder.join("routes")).arg(&file).arg("--log=root.thres:error").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (a, b, latency) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        ((a, b), (latency.parse().unwrap(), words.collect()))
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// Compares latency in seconds and number of links of every route of a machine.
fn compare(name: &str, system: &SystemGraph, table: &Table, is_odd: impl Fn(&str, &str) -> bool) {
    let hosts: Vec<(u32, u32)> = system.hosts().map(|(host, slot, _)| (host, slot)).collect();
    assert_eq!(table.len(), hosts.len() * (hosts.len() - 1), "{name}");
    let paths = Paths::new(system);
    for &(a, slot_a) in &hosts {
        for &(b, slot_b) in hosts.iter().filter(|(b, _)| *b != a) {
            let names = [a, b].map(|host| system.nodes[host as usize].name.clone());
            let (latency, links) = &table[&(names[0].clone(), names[1].clone())];
            if is_odd(&names[0], &names[1]) {
                // Up to one link of difference.
                assert_eq!(
                    paths.as_ref().unwrap().hops(a, b).unwrap().abs_diff(links.len() as u32),
                    1,
                    "{name}: {names:?}"
                );
                continue;
            }
            match (&system.cost, &paths) {
                (CostModel::Matrix(_), _) => {
                    let own = system.costs().between(slot_a, slot_b) * 1e-6;
                    assert!(same(own, *latency), "{name}: {names:?} {own} {latency}");
                }
                (_, Some(paths)) => {
                    let path = paths.path(a, b).unwrap();
                    let own: f64 =
                        path.iter().map(|&link| system.links[link as usize].latency_s.unwrap()).sum();
                    assert_eq!(path.len(), links.len(), "{name}: {names:?} {links:?}");
                    assert!(same(own, *latency), "{name}: {names:?} {own} {latency}");
                }
                _ => unreachable!(),
            }
        }
    }
}

/// Between these nodes of the dragonfly `3,4;4,3;5,1;2` SimGrid continues from the first chassis, wherever
/// the link in the chassis of the source ended (`DragonflyZone::get_local_route`): no cables do that.
fn jumps(a: &str, b: &str) -> bool {
    let place = |name: &str| {
        let number: u32 = name.trim_start_matches('n').trim_end_matches(".x").parse().unwrap();
        (number / 40, number % 40 / 10, number % 10 / 2)
    };
    let ((group, chassis, blade), (other_group, other_chassis, other_blade)) = (place(a), place(b));
    group == other_group && chassis > 0 && blade != other_blade && [0, chassis].contains(&other_chassis)
}

#[test]
fn routes_are_those_of_simgrid() {
    if !system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    oracle(folder.path());
    for (name, text, has_links) in platforms() {
        let system = import(&text).system;
        assert_eq!(!system.links.is_empty(), has_links, "{name}");
        compare(name, &system, &simgrid(folder.path(), &text), |a, b| name == "dragonfly" && jumps(a, b));
        // The export has identical routes, link by link.
        let (file, _) = write(&system, &ExportParams { format: ExportFormat::Simgrid }).unwrap();
        let table = simgrid(folder.path(), &file.text);
        compare(name, &system, &table, |_, _| false);
        let paths = Paths::new(&system).unwrap();
        let node = |name: &String| system.nodes.iter().position(|node| node.name == *name).unwrap() as u32;
        for ((a, b), (_, links)) in &table {
            let own: Vec<String> =
                paths.path(node(a), node(b)).unwrap().into_iter().map(|link| format!("l{link}")).collect();
            assert_eq!(&own, links, "{name}: {a} {b}");
        }
    }
    // A tree of costs becomes a tree of latencies.
    let conf = "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=t Switches=s[0-1]\n";
    let mut system = import(conf).system.explicit(100).unwrap().into_owned();
    system.links.clear();
    let (file, _) = write(&system, &ExportParams { format: ExportFormat::Simgrid }).unwrap();
    for ((a, b), (latency, _)) in simgrid(folder.path(), &file.text) {
        let slot = |name: &str| name[1..].parse::<u32>().unwrap();
        let cost = system.costs().between(slot(&a), slot(&b));
        assert!(same(latency * 1e6, cost), "{a} {b}: {latency} {cost}");
    }
}

#[test]
fn exported_platforms_cost_the_same() {
    for (name, text, _) in platforms() {
        let params = ImportParams {
            cost: Some(serde_json::from_str("\"latency\"").unwrap()),
            ..ImportParams::default()
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &text).unwrap();
        let first = read(file.path(), &params).unwrap().system;
        let (exported, _) = write(&first, &ExportParams { format: ExportFormat::Simgrid }).unwrap();
        fs::write(file.path(), &exported.text).unwrap();
        let second = read(file.path(), &params).unwrap().system;
        assert_eq!(first.slots.len(), second.slots.len(), "{name}");
        let slot = |system: &SystemGraph, name: &str| {
            system.hosts().find(|(host, ..)| system.nodes[*host as usize].name == name).unwrap().1
        };
        for (a, ..) in first.hosts().take(20) {
            for (b, ..) in first.hosts().filter(|(b, ..)| *b != a) {
                let [a, b] = [a, b].map(|host| first.nodes[host as usize].name.as_str());
                let one = first.costs().between(slot(&first, a), slot(&first, b));
                let other = second.costs().between(slot(&second, a), slot(&second, b));
                assert!(same(one, other), "{name}: {a} {b} {one} {other}");
            }
        }
    }
}

/// The machine of a shape, and the import of its export.
fn there_and_back(shape: &str) -> (SystemGraph, Imported) {
    let dimensions = shape.matches('x').count() + 1;
    let latencies: Vec<f64> = (1..=dimensions).map(|dimension| dimension as f64 * 1e-6).collect();
    let params = json!({ "shape": shape, "cost": "latency", "link_latency_s": latencies, "bandwidth_bytes_per_s": vec![1e9; dimensions] });
    let system = synthetic(&serde_json::from_value(params).unwrap()).unwrap();
    let (exported, _) = write(&system, &ExportParams { format: ExportFormat::Simgrid }).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &exported.text).unwrap();
    let params = ImportParams { cost: Some(CostMetric::Latency), ..ImportParams::default() };
    (system, read(file.path(), &params).unwrap())
}

#[test]
fn forwarding_hosts_keep_their_links() {
    for shape in ["torus:4x3x2", "torus:5x4", "mesh:4x3", "mesh:3x3x3", "mesh:5", "ring:6"] {
        let (first, Imported { system, notes }) = there_and_back(shape);
        assert_eq!(notes, [""; 0], "{shape}");
        let names = |system: &SystemGraph| -> Vec<String> {
            system.nodes.iter().map(|node| node.name.clone()).collect()
        };
        assert_eq!(names(&system), names(&first), "{shape}");
        let link = |link: &Link| (link.source, link.destination, link.latency_s, link.bandwidth_bytes_per_s);
        let links = |system: &SystemGraph| system.links.iter().map(link).collect::<Vec<_>>();
        assert_eq!(links(&system), links(&first), "{shape}");
        assert_eq!(system.routing, first.routing, "{shape}");
        let slots: Vec<u32> = (0..first.slots.len() as u32).collect();
        assert_eq!(system.costs().block(&slots), first.costs().block(&slots), "{shape}");
    }
}

#[test]
fn routes_impossible_in_a_mesh_become_costs() {
    // From a to c over b, although a and c are linked directly.
    let (hosts, link) = (["a", "b", "c"], |name: &str| {
        format!("<link id=\"{name}\" bandwidth=\"1GBps\" latency=\"1us\"/>\n")
    });
    let hosts = hosts.map(|name| format!("<host id=\"{name}\" speed=\"1Gf\"/>\n")).concat();
    let route = |a: &str, b: &str, links: &[&str]| {
        let links: Vec<String> = links.iter().map(|link| format!("<link_ctn id=\"{link}\"/>")).collect();
        let links = links.concat();
        format!("<route src=\"{a}\" dst=\"{b}\" symmetrical=\"NO\">{links}</route>\n")
    };
    let links: String = ["ab", "bc", "ca"].map(link).concat();
    let routes = [
        route("a", "b", &["ab"]),
        route("b", "c", &["bc"]),
        route("c", "a", &["ca"]),
        route("a", "c", &["ab", "bc"]),
        route("c", "b", &["ca", "ab"]),
        route("b", "a", &["bc", "ca"]),
    ];
    let cycle =
        platform(&format!("<zone id=\"z\" routing=\"Full\">\n{hosts}{links}{}</zone>", routes.concat()));
    assert_eq!(import(&cycle).system.links.len(), 3);
    let longer = cycle.replace(&routes[0], &route("a", "b", &["ab", "bc", "ca", "ab"]));
    let Imported { system, notes } = import(&longer);
    assert!(system.links.is_empty(), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("no network of links")), "{notes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The costs of any shape survive export and import.
    #[test]
    fn shapes_survive_export_and_import(
        kind in prop::sample::select(vec!["fat-tree", "torus", "mesh", "ring", "dragonfly"]),
        (a, b, c) in (1_u32..4, 2_u32..5, 1_u32..3), nanoseconds in 1_u32..100_000,
    ) {
        let shape = match kind {
            "fat-tree" => format!("fat-tree:{b}x{a}/1x{c}"),
            "ring" => format!("ring:{}", a + b),
            "dragonfly" => format!("dragonfly:{a}x{b}x{c}"),
            _ => format!("{kind}:{a}x{b}"),
        };
        let params = json!({
            "shape": shape, "cost": "latency", "link_latency_s": [f64::from(nanoseconds) * 1e-9], "bandwidth_bytes_per_s": [1e9],
        });
        let first = synthetic(&serde_json::from_value(params).unwrap()).unwrap();
        let (exported, _) = write(&first, &ExportParams { format: ExportFormat::Simgrid }).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &exported.text).unwrap();
        let params = ImportParams { cost: Some(CostMetric::Latency), ..ImportParams::default() };
        let second = read(file.path(), &params).unwrap().system;
        prop_assert_eq!(first.hosts().count(), second.hosts().count());
        let names = |system: &SystemGraph| -> HashMap<String, u32> {
            system.hosts().map(|(node, slot, _)| (system.nodes[node as usize].name.clone(), slot)).collect()
        };
        let (old, new) = (names(&first), names(&second));
        let (before, after) = (first.costs(), second.costs());
        for (a, from) in &old {
            for (b, to) in &old {
                prop_assert!(same(before.between(*from, *to), after.between(new[a], new[b])), "{}: {} {}", shape, a, b);
            }
        }
    }
}
