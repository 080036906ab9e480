//! Small hosts.

use std::fs;

use hopmap_model::{CostModel, SystemGraph};

use super::super::{files, read, recognise};
use super::*;
use crate::import::Format;

/// Two packages of two cores of two threads; a cache shared by both cores of a package.
fn xml(inside: &str, allowed: &str, more: &str) -> String {
    let thread =
        |index: u32| format!("<object type=\"PU\" os_index=\"{index}\" cpuset=\"{:#x}\"/>", 1 << index);
    let core = |index: u32| format!("<object type=\"Core\">{}{}</object>", thread(index), thread(index + 4));
    let package = |index: u32| {
        let set = 0x33 << (2 * index);
        format!(
            "<object type=\"Package\" os_index=\"{index}\" cpuset=\"{set:#x}\" gp_index=\"{}\">\
             <object type=\"NUMANode\" os_index=\"{index}\" cpuset=\"{set:#x}\"/>\
             <object type=\"L3Cache\" depth=\"3\"><page_type size=\"4096\"/>{}\n{}</object></object>",
            7 + index,
            core(2 * index),
            core(2 * index + 1)
        )
    };
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\
         <object type=\"Machine\" allowed_cpuset=\"{allowed}\">{inside}{}{}</object>{more}</topology>\n",
        package(0),
        package(1)
    )
}

const NAMED: &str = "<info name=\"HostName\" value=\"n1\"/>";

fn with(file: &str, text: &str, params: &ImportParams) -> Result<Imported, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, text).unwrap();
    let imported = read(&path, params).map_err(|error| error.to_string())?;
    assert_eq!(recognise(&path).unwrap(), Format::Hwloc);
    imported.system.check().unwrap();
    Ok(imported)
}

fn costs(system: &SystemGraph) -> Vec<f64> {
    let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
    levels.costs.clone()
}

fn groups(system: &SystemGraph) -> Vec<Vec<u32>> {
    let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
    levels.groups.clone()
}

#[test]
fn cores_are_slots_and_redundant_objects_are_not_levels() {
    let Imported { system, notes } =
        with("a.xml", &xml(NAMED, "0xff", ""), &ImportParams::default()).unwrap();
    assert_eq!(system.nodes[0].name, "n1");
    assert_eq!(system.slots.iter().map(|slot| slot.core).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(groups(&system), [vec![0, 0, 1, 1], vec![0; 4]]);
    assert_eq!(costs(&system), [1.0, 2.0]);
    assert!(notes[0].contains("L3, NUMA node, package of 2; machine of 4"), "{notes:?}");
}

#[test]
fn hardware_threads_are_slots_on_request() {
    let params = ImportParams {
        hardware_threads: true,
        intra_node_costs: vec![0.5, 1.0, 7.0],
        ..ImportParams::default()
    };
    let system = with("a.xml", &xml("", "0xff", ""), &params).unwrap().system;
    assert_eq!((system.nodes[0].name.as_str(), system.slots.len()), ("a", 8));
    assert_eq!(groups(&system)[0], [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(costs(&system), [0.5, 1.0, 7.0]);
    let wrong = ImportParams { intra_node_costs: vec![1.0], ..params };
    assert!(with("a.xml", &xml("", "0xff", ""), &wrong).unwrap_err().contains("3 levels"));
}

#[test]
fn only_threads_that_are_allowed_count() {
    // The second core is excluded, the third has one thread left.
    let system = with("a.xml", &xml("", "0xdd", ""), &ImportParams::default()).unwrap().system;
    assert_eq!(groups(&system), [vec![0, 1, 1], vec![0; 3]]);
    assert!(with("a.xml", &xml("", "0x0", ""), &ImportParams::default()).unwrap_err().contains("allowed"));
    assert!(with("a.xml", &xml("", "0xzz", ""), &ImportParams::default()).unwrap_err().contains("not a set"));
}

#[test]
fn distances_become_costs_if_consistent_with_levels() {
    let matrix = |kind: &str, values: &str| {
        format!(
            "<distances2 type=\"{kind}\" nbobjs=\"2\" kind=\"5\" indexing=\"os\"><indexes length=\"3\">1 0</indexes>\
             <u64values length=\"9\">{values}</u64values></distances2>"
        )
    };
    let import = |more: &str| with("a.xml", &xml("", "0xff", more), &ImportParams::default());
    let imported = import(&matrix("NUMANode", "10 21 23 10")).unwrap();
    assert_eq!(costs(&imported.system), [1.0, 2.2]);
    assert!(imported.notes.iter().any(|note| note.contains("distances between NUMANodes")));
    let imported = import(&matrix("NUMANode", "10 5 5 10")).unwrap();
    assert_eq!(costs(&imported.system), [1.0, 2.0]);
    assert!(imported.notes.iter().any(|note| note.contains("the distance of an object to itself")));
    assert_eq!(costs(&import(&matrix("GPU", "10 5 5 10")).unwrap().system), [1.0, 2.0]);
    assert!(import(&matrix("NUMANode", "10 5 5")).unwrap_err().contains("2 objects have 3 distances"));
    assert!(import(&matrix("NUMANode", "10 5 5 x")).unwrap_err().contains("not a list of integers"));
    let old = "<distances nbobjs=\"2\" relative_depth=\"1\" latency_base=\"10.0\"><latency value=\"1.0\"/>\
               <latency value=\"1.5\"/><latency value=\"1.5\"/><latency value=\"1.0\"/></distances>";
    let system = with("a.xml", &xml(old, "0xff", ""), &ImportParams::default()).unwrap().system;
    assert_eq!(costs(&system), [1.0, 1.5]);
}

#[test]
fn a_folder_is_a_machine_of_hosts_and_differences_are_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let diff = |reference: &str, old: &str, new: &str| {
        format!(
            "<topologydiff refname=\"{reference}\"><diff type=\"0\" obj_depth=\"0\" obj_index=\"0\" obj_attr_type=\"2\" \
             obj_attr_name=\"HostName\" obj_attr_oldvalue=\"{old}\" obj_attr_newvalue=\"{new}\"/></topologydiff>"
        )
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("n1.xml", &xml(NAMED, "0xff", ""));
    write("n10.diff.xml", &diff("n1", "n1", "n10"));
    write("n2.diff.xml", &diff("n10.diff.xml", "n10", "n2"));
    let import = |name: &str| {
        let path = if name.is_empty() { folder.path().to_owned() } else { folder.path().join(name) };
        read(&path, &ImportParams::default()).map_err(|error| error.to_string())
    };
    let Imported { system, notes } = import("").unwrap();
    let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((names, system.slots.len(), notes.len()), (vec!["n1", "n2", "n10"], 12, 1));
    assert_eq!(costs(&system), [1.0, 2.0, 3.0]);
    assert_eq!(import("n2.diff.xml").unwrap().system.nodes[0].name, "n2");
    let list = files(&folder.path().join("n2.diff.xml"), None).unwrap();
    let list: Vec<_> = list.iter().map(|file| file.name().into_owned()).collect();
    assert_eq!(list, ["machine", "hwloc/n1.xml", "hwloc/n10.diff.xml"]);
    assert_eq!(files(folder.path(), None).unwrap().len(), 3);

    write("n10.diff.xml", &diff("n1", "other", "n10"));
    assert!(import("").unwrap_err().contains("is named `n1`, not `other`"));
    write("n10.diff.xml", &diff("n2", "n2", "n10"));
    assert!(import("n10.diff.xml").unwrap_err().contains("cyclic difference files"));
    write("n10.diff.xml", &diff("gone", "n2", "n10"));
    assert!(import("n10.diff.xml").unwrap_err().contains("no file `gone`"));
    write("n10.diff.xml", &diff("n1", "n1", "n10").replace("type=\"0\"", "type=\"1\""));
    assert!(import("n10.diff.xml").unwrap_err().contains("type `1`"));
    write("n10.xml", &xml("", "0xff", ""));
    assert!(import("").unwrap_err().contains("difference of host `n10`"));
}

#[test]
fn memory_without_processors_is_ignored_and_overlapping_memory_reported() {
    let node = |set: &str| format!("<object type=\"NUMANode\" os_index=\"9\" cpuset=\"{set}\"/>");
    let plain = with("a.xml", &xml("", "0xff", ""), &ImportParams::default()).unwrap();
    let far = with("a.xml", &xml(&node("0x0"), "0xff", ""), &ImportParams::default()).unwrap();
    assert_eq!(far, plain);
    let odd = with("a.xml", &xml(&node("0x5"), "0xff", ""), &ImportParams::default()).unwrap();
    assert_eq!(odd.system, plain.system);
    assert!(odd.notes[0].contains("ignoring NUMA node 9"), "{:?}", odd.notes);
}

/// Names of the files behind a path in the key.
fn names_in_key(path: &std::path::Path) -> Vec<String> {
    files(path, None).unwrap().iter().map(|file| file.name().into_owned()).collect()
}

#[test]
fn a_host_named_after_its_file_has_that_name_in_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, inside) in
        [("n1.xml", ""), ("n2.xml", ""), ("odd.xml", "<info name=\"HostName\" value=\"a b\"/>")]
    {
        fs::write(path(name), xml(inside, "0xff", "")).unwrap();
    }
    fs::write(path("named.xml"), xml(NAMED, "0xff", "")).unwrap();
    assert_eq!(names_in_key(&path("n1.xml")), ["machine n1"]);
    assert_eq!(names_in_key(&path("n2.xml")), ["machine n2"]);
    assert_eq!(names_in_key(&path("odd.xml")), ["machine odd"]);
    // Renaming a file that contains its host name does not change the key.
    assert_eq!(names_in_key(&path("named.xml")), ["machine"]);
}

#[test]
fn a_base_of_any_name_is_in_the_key_of_a_folder() {
    for (base, reference) in [("base", "base"), ("base.hwloc", "base.hwloc"), ("base.xml", "base")] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(base), xml(NAMED, "0xff", "")).unwrap();
        let difference = format!("<topologydiff refname=\"{reference}\"/>");
        fs::write(folder.path().join("n7.diff.xml"), &difference).unwrap();
        fs::write(folder.path().join("n8.diff.xml"), &difference).unwrap();
        let expected = [base, "n7.diff.xml", "n8.diff.xml"].map(|name| format!("hwloc/{name}"));
        assert_eq!(names_in_key(folder.path()), expected, "{base}");
    }
}

#[test]
fn missing_programs_are_reported_with_packages() {
    let error = first_of(&["hopmap-no-such-program"]).unwrap_err();
    assert_eq!(error.to_string(), "`lstopo` was not found");
    assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("apt install hwloc-nox"));
}

#[test]
fn a_program_that_fails_is_quoted() {
    let error = first_of(&["hopmap-no-such-program", "false"]).unwrap_err();
    assert_eq!(error.to_string(), "`false --of xml` ended with exit status: 1");
}

#[test]
fn a_file_of_several_machines_is_refused() {
    let host = |name| xml(&NAMED.replace("n1", name), "0xff", "").split_once("<object").unwrap().1.to_owned();
    let host = |name| format!("<object{}", host(name).replace("</topology>", ""));
    let joined = |hosts: String| format!("<topology>\n<object type=\"System\">{hosts}</object></topology>\n");
    let import = |hosts| with("a.xml", &joined(hosts), &ImportParams::default());
    assert_eq!(import(host("f0")).unwrap().system.hosts().count(), 1);
    let error = import(format!("<object type=\"Group\">{}{}</object>", host("f0"), host("f1"))).unwrap_err();
    assert!(error.contains("the file has 2 machines (`f0`, `f1`), not one"), "{error}");
}
