//! Tests of the formats.

use super::*;
use crate::import::{Format, hops, samples};
use hopmap_model::{NodeKind, SystemGraph};

fn import(text: &str, format: Format) -> Result<Imported> {
    assert!(samples::is_recognised(format, text));
    samples::import(text)
}

fn fault(text: &str, format: Format) -> String {
    let ImportError::File(FileError { line, problem, .. }) = import(text, format).unwrap_err() else {
        unreachable!()
    };
    format!("{}{problem}", line.map(|line| format!("{line}: ")).unwrap_or_default())
}

fn hosts(system: &SystemGraph) -> Vec<&str> {
    let hosts = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    hosts.map(|node| node.name.as_str()).collect()
}

const TOPOGRAPH: &str = r#"{"instances":[
    {"id":"node70","network_layers":["leaf-b","spine-a"],"labels":{"nvidia.com/gpu.clique":"nvl-2"}},
    {"id":"node7","network_layers":["leaf-a","spine-a"],"labels":{"network.topology.nvidia.com/accelerator":"nvl-1"}},
    {"id":"node8","network_layers":["leaf-a","spine-a"],"attributes":{"nvlink":"nvl-1"}},
    {"id":"node66","network_layers":["leaf-a","spine-a"]}]}"#;

#[test]
fn the_graph_of_topograph_is_a_tree_with_domains_below_leaves() {
    let Imported { system, notes } = import(TOPOGRAPH, Format::Topograph).unwrap();
    assert_eq!(hosts(&system), ["node7", "node8", "node66", "node70"]);
    assert_eq!(hops(&system, "node7", "node8"), Some(2));
    assert_eq!(hops(&system, "node7", "node66"), Some(4));
    assert_eq!(hops(&system, "node7", "node70"), Some(6));
    assert_eq!(notes, [lacks("hosts without an accelerator domain", "1 (`node66`)")]);
}

#[test]
fn a_host_in_no_list_is_said_and_stays_reachable() {
    let text =
        r#"{"instances":[{"id":"a","network_layers":["l"]},{"id":"b","network_layers":["l"]},{"id":"c"}]}"#;
    let Imported { system, notes } = import(text, Format::Topograph).unwrap();
    assert_eq!(notes, ["hosts below no switch, connected by the top switch alone: 1 (`c`)"]);
    assert_eq!([hops(&system, "a", "b"), hops(&system, "a", "c")], [Some(2), Some(4)]);
    let text = r#"{"instances":[{"id":"a"}]}"#;
    assert_eq!(hosts(&import(text, Format::Topograph).unwrap().system), ["a"]);
}

fn lacks(what: &str, names: &str) -> String {
    format!("{what}: {names}; each has one of its own here, which groups with other hosts cross")
}

/// One host without a leaf put its spine on the level of leaf switches, which joined all leaves.
#[test]
fn a_host_without_a_switch_leaves_the_levels_of_others() {
    let areas = |text: &str, format| {
        let Imported { system, notes } = import(text, format).unwrap();
        // By the first host of each area: their numbers mean nothing.
        let of = |level: &Vec<u32>| {
            let areas: Vec<u32> = system.hosts().map(|(host, ..)| level[host as usize]).collect();
            areas.iter().map(|area| areas.iter().position(|other| other == area).unwrap() as u32).collect()
        };
        (system.areas().iter().map(of).collect::<Vec<Vec<u32>>>(), hops(&system, "a", "c"), notes)
    };
    let list = |last: &str| format!("host,leaf,spine\na,l1,s1\nb,l1,s1\nc,l2,s1\nd,l3,s2\n{last}\n");
    let in_areas = |level: [u32; 5], above: [u32; 5]| vec![level.to_vec(), above.to_vec()];
    let (alone, below_s2) =
        (in_areas([0, 0, 2, 3, 4], [0, 0, 0, 3, 4]), in_areas([0, 0, 2, 3, 4], [0, 0, 0, 3, 3]));
    let top = "2 parts without a common switch are connected by an additional top switch".to_owned();
    for (last, expected, note) in [
        ("e,l3,s2", in_areas([0, 0, 2, 3, 3], [0, 0, 0, 3, 3]), None),
        ("e,l3,", in_areas([0, 0, 2, 3, 3], [0, 0, 0, 3, 3]), None),
        ("e,,s2", below_s2.clone(), Some(lacks("hosts without a leaf switch", "1 (`e`)"))),
        (
            "e,,",
            alone.clone(),
            Some("hosts below no switch, connected by the top switch alone: 1 (`e`)".to_owned()),
        ),
    ] {
        let notes = note.into_iter().chain([top.clone()]).collect();
        assert_eq!(areas(&list(last), Format::LabelList), (expected, Some(4), notes), "{last}");
    }
    let notes = vec![lacks("switches without a spine", "1 (`l4`)"), top.replace('2', "3")];
    assert_eq!(areas(&list("e,l4,"), Format::LabelList), (alone, Some(4), notes));
    // Topograph lists switches without their levels.
    let text = r#"{"instances":[{"id":"a","network_layers":["l1","s1"]},{"id":"b","network_layers":["l1","s1"]},
        {"id":"c","network_layers":["l2","s1"]},{"id":"d","network_layers":["l3","s2"]},{"id":"e","network_layers":["s2"]}]}"#;
    let notes = vec![lacks("hosts without a leaf switch", "1 (`e`)"), top];
    assert_eq!(areas(text, Format::Topograph), (below_s2, Some(4), notes));
}

#[test]
fn names_of_added_switches_are_new() {
    let text = "host,leaf,spine\na,leaf-of-b,s1\nb,,s1\nleaf-of-b_,l2,s1\n";
    let Imported { system, .. } = import(text, Format::LabelList).unwrap();
    let switches = system.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
    let names: Vec<&str> = switches.map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["l2", "leaf-of-b", "leaf-of-b__", "s1"]);
}

#[test]
fn a_map_of_switches_has_one_level_and_a_top() {
    let text = "\u{feff}{\"10.0.0.1\": \"psw-1\", \"10.0.0.2\": \"psw-1\", \"10.0.0.10\": \"psw-2\"}";
    let Imported { system, notes } = import(text, Format::SwitchMap).unwrap();
    assert_eq!(hosts(&system), ["10.0.0.1", "10.0.0.2", "10.0.0.10"]);
    assert_eq!(
        [hops(&system, "10.0.0.1", "10.0.0.2"), hops(&system, "10.0.0.1", "10.0.0.10")],
        [Some(2), Some(4)]
    );
    assert_eq!(notes, ["2 parts without a common switch are connected by an additional top switch"]);
    let twice = text.replace("10.0.0.10", "10.0.0.1");
    assert_eq!(fault(&twice, Format::SwitchMap), "the host `10.0.0.1` is listed twice");
}

#[test]
fn label_lists_have_columns_in_any_order() {
    let text = "\u{feff}# from kubectl\r\nhost,spine,network.topology.nvidia.com/leaf,accelerator,gpus\r\n\
                n1,s1,l1,d1,8\r\nn2,s1,l1,d1,8\nn10,s1,l2,,8\nn3,s1,l2,d2,8\n";
    let Imported { system, notes } = import(text, Format::LabelList).unwrap();
    assert_eq!(hosts(&system), ["n1", "n2", "n3", "n10"]);
    assert_eq!([hops(&system, "n1", "n2"), hops(&system, "n3", "n10")], [Some(2), Some(4)]);
    assert_eq!(notes[1..], [lacks("hosts without an accelerator domain", "1 (`n10`)")]);
    assert_eq!(fault("host,leaf\nn1,l1\nn1,l2\n", Format::LabelList), "3: the host `n1` is listed twice");
    assert_eq!(fault("host,leaf\n,l1\n", Format::LabelList), "2: host 1 of the file has no name");
    assert_eq!(fault("host,leaf\nn1,l1,s\n", Format::LabelList).split(':').nth(1), Some(" not a CSV file"));
    assert_eq!(fault("host,leaf\n", Format::LabelList), "no hosts");
    let skipped = "no hosts; lines of other programs, skipped: 1, the first in line 2: `n1`";
    assert_eq!(fault("host,leaf\nn1\n", Format::LabelList), skipped);
}

/// The rest of an address was a row behind a prefix, and cells of another width were cut at the columns of the first header.
#[test]
fn addresses_and_joined_tables_of_other_widths() {
    let addresses = "host,leaf\n10.0.0.1,l1\nfd00:1::1,l1\nfd00:1::2,l2\n";
    let Imported { system, .. } = import(addresses, Format::LabelList).unwrap();
    assert_eq!(hosts(&system), ["10.0.0.1", "fd00:1::1", "fd00:1::2"]);
    let joined = "NAME   LEAF   SPINE\nn1     l1     s1\nn2     l1     s1\n\
                  NAME          LEAF   SPINE\nn3            l2     s1\nn4            l2     s1\n";
    let expected = "4: the columns of this header begin elsewhere than those of the first one";
    assert_eq!(fault(joined, Format::KubectlNodes), expected);
}

#[test]
fn contradictions_are_one_message() {
    let instances = |list: &str| format!(r#"{{"instances":[{list}]}}"#);
    let of = |list: &str| fault(&instances(list), Format::Topograph);
    assert_eq!(of(r#"{"id":"a","network_layers":["s","s"]}"#), "`s` is above itself at the host `a`");
    let circle = r#"{"id":"a","network_layers":["s","t"]},{"id":"b","network_layers":["t","s"]}"#;
    assert!(of(circle).contains("is below itself"), "{}", of(circle));
    assert!(
        of(r#"{"id":"a","network_layers":["b"]},{"id":"b","network_layers":["t"]}"#)
            .contains("`b` is a host here")
    );
    assert!(of(r#"{"id":3}"#).contains("expected a string"));
}
