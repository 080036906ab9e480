//! hwloc descriptions of hosts from the folder `HOPMAP_DATA`, compared with the output of hwloc's programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_model::{CostModel, SystemGraph};
use hopmap_test_support::{given_data, system_tests};
use hopmap_topology_import::import::{Format, ImportParams, Imported, read, recognise};

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("topology"))
}

fn import(path: &Path, threads: bool) -> Imported {
    assert_eq!(recognise(path).unwrap(), Format::Hwloc, "{}", path.display());
    let imported =
        read(path, &ImportParams { hardware_threads: threads, ..ImportParams::default() }).unwrap();
    imported.system.check().unwrap();
    imported
}

/// The number of slots per group of each level; of the largest group if they differ.
fn sizes(system: &SystemGraph) -> Vec<usize> {
    let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
    let largest = |groups: &Vec<u32>| groups.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap();
    levels.groups.iter().map(largest).collect()
}

fn costs(system: &SystemGraph) -> Vec<f64> {
    let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
    levels.costs.iter().map(|cost| (cost * 1000.0).round() / 1000.0).collect()
}

/// A file, its host name, slots per group of each level with cores and with threads as slots, and costs.
type Expected = (&'static str, &'static str, &'static [usize], &'static [usize], &'static [f64]);

#[test]
fn given_machines_have_the_cores_and_levels_in_their_names() {
    let Some(data) = data() else { return };
    let expected: [Expected; 8] = [
        ("16amd64-4distances", "16amd64-4distances", &[2, 8, 16], &[2, 8, 16], &[1.0, 2.0, 2.0]),
        ("16em64t-4s2c2t-offlines", "16em64t-4s2c2t-offlines", &[2, 6], &[2, 3, 7], &[1.0, 2.0]),
        ("192em64t-24n8c2t", "uv2000", &[8, 192], &[2, 16, 384], &[1.0, 7.084]),
        ("24em64t-2n6c2t-pci", "mirage004", &[6, 12], &[2, 12, 24], &[1.0, 2.0]),
        (
            "28intel64-2p2g7c-CoDgroups.v1",
            "localhost.localdomain",
            &[7, 14, 28],
            &[7, 14, 28],
            &[1.0, 2.1, 3.1],
        ),
        (
            "64intel64-fakeKNL-SNC4-hybrid",
            "localhost.localdomain",
            &[2, 4, 16],
            &[4, 8, 16, 64],
            &[1.0, 2.0, 3.0],
        ),
        ("8intel64-4n2t-memattrs", "8intel64-4n2t-memattrs", &[2, 8], &[2, 8], &[1.0, 2.0]),
        ("power8gpudistances", "drac-12.grenoble.grid5000.fr", &[4, 8], &[2, 8, 16], &[1.0, 4.0]),
    ];
    for (file, name, cores, threads, inside) in expected {
        let path = data.join("hwloc").join(format!("{file}.xml"));
        let system = import(&path, false).system;
        assert_eq!((system.nodes.len(), system.nodes[0].name.as_str()), (1, name), "{file}");
        assert_eq!(sizes(&system), cores, "{file}");
        assert_eq!(costs(&system), inside, "{file}");
        assert_eq!(system.slots.len(), *cores.last().unwrap());
        assert_eq!(sizes(&import(&path, true).system), threads, "{file}");
    }
}

#[test]
fn folders_of_real_clusters_are_machines() {
    let Some(data) = data() else { return };
    let plafrim = import(&data.join("netloc/plafrim/hwloc"), false);
    assert_eq!((plafrim.system.nodes.len(), plafrim.system.slots.len()), (122, 1308));
    let sample = import(&data.join("netloc-0.5/hwloc"), false);
    assert_eq!((sample.system.nodes.len(), sample.system.slots.len()), (8, 32));
}

/// All files of a folder with this extension.
fn xml(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "xml"));
    files.sort();
    files
}

/// The output of a program.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Number of objects inside others, as counted by `hwloc-calc`.
fn count(file: &str, what: &str, place: &str) -> usize {
    output("hwloc-calc", &["-i", file, "-N", what, place]).trim().parse().unwrap_or(0)
}

#[test]
fn hwloc_counts_the_same_cores_and_threads() {
    let Some(data) = data().filter(|_| system_tests()) else { return };
    let mut files = xml(&data.join("hwloc"));
    files.extend(xml(&data.join("netloc/plafrim/hwloc")).into_iter().step_by(7));
    for path in files {
        let file = path.to_str().unwrap();
        let [cores, threads] = ["core", "pu"].map(|what| count(file, what, "all"));
        let system = import(&path, false).system;
        assert_eq!(system.slots.len(), if cores == 0 { threads } else { cores }, "{file}");
        let with_threads = import(&path, true).system;
        assert_eq!(with_threads.slots.len(), threads, "{file}");
        // Core 3 of hwloc is slot 3: it has the same number of threads.
        let CostModel::Levels(levels) = &with_threads.cost else { panic!("no levels") };
        if cores > 0 && cores < threads {
            let of_cores = levels.groups[0].chunk_by(|a, b| a == b).map(<[u32]>::len);
            let theirs = (0..cores).map(|core| count(file, "pu", &format!("core:{core}")));
            assert_eq!(of_cores.collect::<Vec<_>>(), theirs.collect::<Vec<_>>(), "{file}");
        }
        // The slots of a NUMA node are a group of some level, or all single slots.
        let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
        let unit = if cores == 0 { "pu" } else { "core" };
        for node in 0..count(file, "numa", "all") {
            let list = output("hwloc-calc", &["-i", file, "-I", unit, &format!("numa:{node}")]);
            let slots: Vec<usize> = list.trim().split(',').filter_map(|slot| slot.parse().ok()).collect();
            let is_group = |groups: &Vec<u32>| {
                (0..groups.len()).filter(|&slot| groups[slot] == groups[slots[0]]).eq(slots.iter().copied())
            };
            assert!(slots.len() < 2 || levels.groups.iter().any(is_group), "{file} numa:{node}");
        }
    }
}

/// Differences written by `hwloc-diff` are applied like by `hwloc-patch`.
#[test]
fn differences_are_applied_as_hwloc_does() {
    let Some(data) = data().filter(|_| system_tests()) else { return };
    let hosts = data.join("netloc/plafrim/hwloc");
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (one, other) in [("bonobo001", "bonobo002"), ("mirage001", "mirage002"), ("fourmi001", "fourmi020")] {
        let [one_file, other_file] = [one, other].map(|name| hosts.join(format!("{name}.xml")));
        // In the output format of this hwloc version; devices may differ too much.
        output(
            "lstopo-no-graphics",
            &["--no-io", "-i", one_file.to_str().unwrap(), "-f", &place(&format!("{one}.xml"))],
        );
        output(
            "lstopo-no-graphics",
            &["--no-io", "-i", other_file.to_str().unwrap(), "-f", &place("other.xml")],
        );
        let [reference, difference] = [place(&format!("{one}.xml")), place(&format!("{other}.diff.xml"))];
        output(
            "hwloc-diff",
            &["--refname", &format!("{one}.xml"), &reference, &place("other.xml"), &difference],
        );
        output("hwloc-patch", &[&reference, &difference, &place("patched.xml")]);
        let ours = import(Path::new(&difference), false).system;
        assert_eq!(ours.nodes[0].name, other);
        assert_eq!(ours, import(Path::new(&place("patched.xml")), false).system);
        assert_eq!(ours, import(&other_file, false).system);
    }
}

#[test]
fn this_machine_is_the_same_twice() {
    use hopmap_model::{Context, Inputs, Outcome, Stage};
    use hopmap_topology_import::import::Hwloc;
    if !system_tests() {
        return;
    }
    let look = || match Hwloc::run(ImportParams::default(), Inputs::new(), &Context::detached()).unwrap() {
        Outcome::Done(outputs) => {
            outputs.get("system-graph").unwrap().downcast_ref::<SystemGraph>().unwrap().clone()
        }
        _ => panic!("not done"),
    };
    assert_eq!(look(), look());
}
