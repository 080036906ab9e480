//! Scotch's programs read the exports, and compute the same distances as the importer.
//!
//! Needs Debian's package `scotch`; runs if `HOPMAP_SYSTEM_TESTS` is set.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_machines::synthetic;
use hopmap_model::{CostModel, Levels, SystemGraph};
use hopmap_test_support::{given_data, system_tests};
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{ImportParams, read};
use tempfile::TempDir;

fn folder() -> Option<TempDir> {
    system_tests().then(|| tempfile::tempdir().unwrap())
}

fn run(program: &str, arguments: &[&Path]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
}

/// Maps a ring onto a target with as many terminals as ranks: the terminals of its ranks, and the sum of the
/// distances of its edges reported by Scotch.
fn mapped(folder: &Path, target: &Path, ranks: usize) -> (Vec<usize>, u64) {
    let [graph, mapping, log] = ["ring.grf", "ring.map", "ring.log"].map(|name| folder.join(name));
    let edges: Vec<String> = (0..ranks)
        .map(|rank| {
            format!(
                "2 {} {}
",
                (rank + ranks - 1) % ranks,
                (rank + 1) % ranks
            )
        })
        .collect();
    std::fs::write(&graph, format!("0\n{ranks} {}\n0 000\n{}", 2 * ranks, edges.concat())).unwrap();
    run("scotch_gmap", &[&graph, target, &mapping, &log, Path::new("-vm")]);
    let text = std::fs::read_to_string(mapping).unwrap();
    let mut terminals = vec![usize::MAX; ranks];
    for line in text.lines().skip(1) {
        let (rank, terminal) = line.split_once('\t').unwrap();
        terminals[rank.parse::<usize>().unwrap()] = terminal.parse().unwrap();
    }
    let log = std::fs::read_to_string(log).unwrap();
    let line = log.lines().find(|line| line.contains("CommDilat")).unwrap();
    let sum = line.split(['(', ')']).nth(1).unwrap().parse().unwrap();
    (terminals, sum)
}

/// The cost of a ring on the first slots of the terminals' hosts, in order or, for `ltleaf`, by name.
fn cost(system: &SystemGraph, terminals: &[usize], is_numbered: bool) -> f64 {
    let mut hosts: Vec<_> = system.hosts().collect();
    if is_numbered {
        hosts.sort_by_key(|host| &system.nodes[host.0 as usize].name);
    }
    let slots: Vec<u32> = terminals.iter().map(|&terminal| hosts[terminal].1).collect();
    let costs = system.costs();
    (0..slots.len()).map(|rank| costs.between(slots[rank], slots[(rank + 1) % slots.len()])).sum()
}

/// Scotch maps onto a target, and agrees on the distances. For decompositions Scotch 7.0.3 reports wrong sums
/// (`archDecoDomTerm` returns the domain before the terminal), so only the compiled form is compared.
fn agrees(folder: &Path, target: &Path) {
    let system = read(target, &ImportParams::of(target)).unwrap().system;
    let text = std::fs::read_to_string(target).unwrap();
    let (terminals, sum) = mapped(folder, target, 4 * system.slots.len());
    if text.starts_with("deco") {
        assert!(terminals.iter().all(|&terminal| terminal < system.hosts().count()), "{}", target.display());
        if text.split_whitespace().nth(1) == Some("0") {
            let compiled = folder.join("compiled.tgt");
            run("acpl", &[target, &compiled]);
            let read = read(&compiled, &ImportParams::of(&compiled)).unwrap().system;
            assert_eq!(read.cost, system.cost, "{}", target.display());
        }
    } else {
        let own = cost(&system, &terminals, text.starts_with("ltleaf"));
        assert!((own - sum as f64).abs() < 0.5, "{text:?}: {own}, Scotch reports {sum}");
    }
}

#[test]
fn scotch_agrees_on_all_classes_of_targets() {
    let Some(temporary) = folder() else { return };
    let folder = temporary.path();
    let targets = [
        "tleaf 3 2 1000 3 100 4 10",
        "tleaf 1 7 3",
        "ltleaf 2 2 10 3 1 3 2 0 1",
        "ltleaf 2 3 10 2 1 6 5 4 3 2 1 0",
        "mesh2D 5 3",
        "mesh3D 2 3 4",
        // Scotch computes the distances of larger ones as in tori.
        "meshXD 4 2 2 2 2",
        "torus2D 5 4",
        "torus3D 3 4 3",
        "torusXD 4 3 2 4 2",
        "hcub 5",
        "cmplt 9",
        "cmpltw 5 1 2 3 1 1",
        "sub 7 11 3 5 1 0 8 9 mesh2D 4 3",
        "sub 5 1 3 4 7 11 tleaf 2 4 100 3 7",
    ];
    for target in targets {
        let file = folder.join("target.tgt");
        std::fs::write(&file, format!("{target}\n")).unwrap();
        agrees(folder, &file);
    }
}

#[test]
fn scotch_agrees_on_the_given_targets() {
    let Some(temporary) = folder() else { return };
    let folder = temporary.path();
    let Some(data) = given_data() else { return };
    let mut targets: Vec<PathBuf> = std::fs::read_dir(data.join("topology/scotch-arch"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tgt"))
        .collect();
    targets.sort();
    assert!(targets.len() > 10);
    targets.iter().for_each(|target| agrees(folder, target));
}

#[test]
fn scotch_maps_onto_exported_targets() {
    let Some(temporary) = folder() else { return };
    let folder = temporary.path();
    let tree = |shape: &str, costs: &[f64], host_level: u32| {
        let json = serde_json::json!({ "shape": shape, "costs": costs, "host_level": host_level });
        synthetic(&serde_json::from_value(json).unwrap()).unwrap()
    };
    let import = |text: &str| {
        let file = folder.join("source.tgt");
        std::fs::write(&file, text).unwrap();
        read(&file, &ImportParams::of(&file)).unwrap().system
    };
    let mut irregular = tree("tree:6x2", &[1.5, 9.0], 0);
    irregular.links.clear();
    irregular.cost = CostModel::Levels(Levels {
        costs: vec![1.5, 9.0],
        groups: vec![(0..12).map(|slot| u32::from(slot > 4)).collect(), vec![0; 12]],
    });
    let mut crossed = irregular.clone();
    crossed.cost = CostModel::Levels(Levels {
        costs: vec![1.0, 9.0],
        groups: vec![(0..12).map(|slot| slot % 4).collect(), vec![0; 12]],
    });
    let machines = [
        (tree("tree:4x16x8", &[1.0, 10.0, 100.0], 1), "tleaf"),
        (tree("tree:2x2", &[0.0, 2.0], 1), "tleaf"),
        (irregular, "deco"),
        (crossed, "ltleaf"),
        (import("torus2D 5 4\n"), "deco"),
        (import("hcub 1\n"), "tleaf"),
    ];
    for (system, class) in machines {
        let (file, _) = write(&system, &ExportParams { format: ExportFormat::Scotch }).unwrap();
        assert!(file.text.starts_with(class), "{}", file.text);
        let target = folder.join(&file.name);
        std::fs::write(&target, &file.text).unwrap();
        agrees(folder, &target);
    }
}

/// Graphviz draws every node and every edge. Needs Debian's package `graphviz`.
#[test]
fn graphviz_draws_exported_graphs() {
    let Some(temporary) = folder() else { return };
    let folder = temporary.path();
    let json = serde_json::json!({ "shape": "tree:2x4x3", "costs": [1, 10, 100] });
    let mut tree = synthetic(&serde_json::from_value(json).unwrap()).unwrap();
    tree.nodes[0].name = "a \"quoted\" \\N <name> & é; {more}".into();
    let target = folder.join("source.tgt");
    std::fs::write(&target, "torus2D 3 3\n").unwrap();
    let torus = read(&target, &ImportParams::of(&target)).unwrap().system;
    for system in [tree, torus] {
        let (file, _) = write(&system, &ExportParams { format: ExportFormat::Dot }).unwrap();
        let path = folder.join(&file.name);
        std::fs::write(&path, file.text).unwrap();
        let output = Command::new("dot").args(["-Tsvg"]).arg(&path).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let picture = String::from_utf8(output.stdout).unwrap();
        assert_eq!(picture.matches("class=\"node\"").count(), system.nodes.len());
        assert_eq!(picture.matches("class=\"edge\"").count(), system.links.len() / 2);
        if system.nodes[0].name.contains('N') {
            assert!(picture.contains("a &quot;quoted&quot; \\N &lt;name&gt; &amp; é; {more}"));
        }
    }
}
