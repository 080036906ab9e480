use proptest::prelude::*;

use super::*;

fn import(text: &str, params: &ImportParams) -> Result<Imported, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    let params = ImportParams { format: Some(crate::import::Format::Scotch), ..params.clone() };
    super::super::read(file.path(), &params).map_err(|error| {
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
        format!("{error}; {help}").replace(&format!("{}", file.path().display()), "F")
    })
}

fn distances(text: &str) -> Vec<Vec<u32>> {
    let system = import(text, &ImportParams::default()).unwrap().system;
    system.check().unwrap();
    let costs = system.costs();
    let slots = system.slots.len() as u32;
    (0..slots).map(|a| (0..slots).map(|b| costs.between(a, b) as u32).collect()).collect()
}

fn message(text: &str) -> String {
    import(text, &ImportParams::default()).unwrap_err()
}

fn recognised(text: &str) -> bool {
    recognises(&Sample::of(Path::new("a"), text.as_bytes().to_vec()))
}

/// The distances of the first terminal, from `SCOTCH_archDomDist` of Scotch 7.0.3.
#[test]
fn distances_are_those_of_scotch() {
    let first = |text: &str| distances(text)[0].clone();
    assert_eq!(first("tleaf 3 2 1000 2 100 2 10"), [0, 10, 110, 110, 1110, 1110, 1110, 1110]);
    assert_eq!(first("tleaf 2 2 1 2 10\n"), [0, 10, 11, 11]);
    assert_eq!(first("TLEAF\t1\n2 3"), [0, 3]);
    assert_eq!(first("tleaf 0"), [0]);
    assert_eq!(first("mesh3D 2 2 3")[..8], [0, 1, 1, 2, 1, 2, 2, 3]);
    assert_eq!(first("torus3D 3 2 2")[..8], [0, 1, 1, 1, 2, 2, 1, 2]);
    assert_eq!(first("torusXD 2 4 3")[..8], [0, 1, 2, 1, 1, 2, 3, 2]);
    assert_eq!(first("meshXD 4 2 2 2 2")[..8], [0, 1, 1, 2, 1, 2, 2, 3]);
    assert_eq!(first("hcub 3"), [0, 1, 1, 2, 1, 2, 2, 3]);
    assert_eq!(first("torus2D 2 2"), [0, 1, 1, 2]);
    assert_eq!(first("mesh2D 3 1"), [0, 1, 2]);
    assert_eq!(first("cmplt 3"), [0, 1, 1]);
    assert_eq!(first("mesh2D 1 1"), [0]);
    assert_eq!(distances("sub 3 3 1 0 tleaf 2 2 10 2 1"), [[0, 11, 11], [11, 0, 1], [11, 1, 0]]);
    assert_eq!(distances("sub 3 1 5 0 mesh2D 3 2"), [[0, 2, 1], [2, 0, 3], [1, 3, 0]]);
    assert_eq!(distances("sub 2 2 0 sub 3 1 5 0 mesh2D 3 2"), [[0, 1], [1, 0]]);
}

#[test]
fn leaves_of_ltleaf_are_permuted() {
    let permuted = import("ltleaf 2 2 10 3 1 6 5 3 1 0 2 4", &ImportParams::default()).unwrap().system;
    let names: Vec<_> = permuted.hosts().map(|host| permuted.nodes[host.0 as usize].name.clone()).collect();
    assert_eq!(names, ["host5", "host3", "host1", "host0", "host2", "host4"]);
    let params = ImportParams { slots: 3.into(), ..ImportParams::default() };
    let inside = import("ltleaf 2 2 10 3 1 3 2 0 1", &params).unwrap().system;
    assert_eq!(inside.slots.iter().map(|slot| slot.core).collect::<Vec<_>>(), [2, 0, 1, 2, 0, 1]);
    assert!(import("ltleaf 2 2 10 3 1 6 5 3 1 0 2 4", &params).unwrap_err().contains("crosses hosts"));
    assert!(message("ltleaf 2 2 10 3 1 2 0 1").contains("allowed: 1, 3, 6"));
    assert!(message("ltleaf 1 3 1 3 0 1 1").contains("duplicate 1"));
    assert_eq!(distances("sub 2 0 1 ltleaf 1 3 1 3 2 0 1"), [[0, 1], [1, 0]]);
}

#[test]
fn weights_are_slots() {
    let weighted = import("cmpltw 3 1 2 1", &ImportParams::default()).unwrap();
    assert_eq!(weighted.notes.len(), 1);
    assert_eq!(weighted.system.slots.len(), 4);
    assert_eq!(distances("cmpltw 3 1 2 1")[1], [1, 0, 0, 1]);
    let deco = "deco\n0\n3 5\n7 1 4\n2 2 5\n4 0 3\n9\n5 6\n";
    let system = import(deco, &ImportParams::default()).unwrap().system;
    let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["host2", "host4", "host7"]);
    assert_eq!(distances(deco), [[0, 0, 9], [0, 0, 9], [9, 9, 0]]);
    assert!(message("cmpltw 2 2000000000 2000000000").contains("4000000000 slots"));
    let params = ImportParams { intra_node_costs: vec![0.5], ..ImportParams::default() };
    let system = import("cmpltw 2 2 1", &params).unwrap().system;
    assert_eq!(system.costs().block(&[0, 1, 2]), [0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 1.0, 1.0, 0.0]);
}

/// A raw decomposition and the same one compiled by Scotch.
#[test]
fn compiled_decompositions_contain_terminal_distances() {
    let raw = "deco 0\n3 5\n0 1 4\n1 1 5\n2 1 3\n1\n2 3\n";
    let compiled = "deco\n1\n3\t5\n0 3 3\n0 2 2\n2 1 1\n0 1 1\n1 1 1\n1 2 2 0 1 2 1 1 3 1\n";
    assert_eq!(distances(raw), [[0, 1, 2], [1, 0, 3], [2, 3, 0]]);
    assert_eq!(distances(compiled), distances(raw));
    assert!(message("deco 1 2 3 0 2 2 0 1 1 1 1 1 1 1 0").contains("distance 0"));
    assert!(message("deco 1 2 2 0 2 2 0 1 1 0").contains("1 domains have one terminal"));
}

#[test]
fn slots_group_leaves_of_trees_and_multiply_slots_of_grids() {
    let params = |slots| ImportParams { slots: u32::into(slots), ..ImportParams::default() };
    let tree = import("tleaf 2 3 100 4 10", &params(4)).unwrap().system;
    assert_eq!((tree.hosts().count(), tree.slots.len()), (3, 12));
    assert_eq!(tree.costs().between(0, 11) as u32, 110);
    let error = import("tleaf 2 3 100 4 10", &params(5)).unwrap_err();
    assert!(error.contains("allowed: 1, 4, 12"), "{error}");
    let mesh = import("mesh2D 2 2", &params(2)).unwrap().system;
    assert_eq!((mesh.hosts().count(), mesh.slots.len(), mesh.links.len()), (4, 8, 8));
    let part = import("sub 2 3 0 mesh2D 2 2", &params(2)).unwrap();
    assert_eq!(part.system.slots.iter().map(|slot| slot.host).collect::<Vec<_>>(), [3, 3, 0, 0]);
    assert_eq!(part.system.costs().between(0, 3) as u32, 2);
    assert_eq!(part.notes, ["2 of 4 terminals are kept; the other hosts have no slots but forward messages"]);
}

#[test]
fn routes_of_tori_are_dimension_ordered() {
    let system = import("torus2D 4 4", &ImportParams::default()).unwrap().system;
    let paths = hopmap_model::Paths::new(&system).unwrap();
    let nodes = |from, to| -> Vec<u32> {
        let path = paths.path(from, to).unwrap();
        path.iter().map(|&link| system.links[link as usize].destination).collect()
    };
    assert_eq!(nodes(0, 5), [1, 5]);
    assert_eq!(nodes(5, 0), [4, 0]);
    // Half-way round, both directions are equally long: upwards is preferred.
    assert_eq!(nodes(0, 10), [1, 2, 6, 10]);
}

#[test]
fn errors_are_reported_with_their_line() {
    assert_eq!(
        message("tleaf 2\n3 100\n4 x"),
        "F:3:3: the cost of the links of a level is `x`; the cost of the links of a level must be an integer from 1 to 2147483647"
    );
    assert!(message("tleaf 1 1 3").contains("the number of branches of a level is `1`"));
    assert!(message("tleaf 2 3").starts_with("F:1: the file ends where the cost of the links"));
    assert!(message("varcmplt\n").contains("has no fixed size"));
    assert!(message("deco 2 1 1 1").contains("type 2"));
    assert!(message("dist 2 cmplt 4").contains("unknown target class `dist`"));
    assert!(message("sub 2 1 1 cmplt 4").contains("duplicate terminal 1"));
    assert!(message("sub 2 1 4 cmplt 4").contains("keeps terminal 4, but there are 4"));
    assert!(message("mesh2D 4096 4096").contains("more than 1048576 terminals"));
    assert!(message("tleaf 2 65536 1 65536 1").contains("more than 16777216 slots"));
    assert!(message("tleaf 2 4096 1 1024 1").contains("every leaf is a host, and 4194304 exceed"));
    assert!(message("torusXD 6 2 2 2 2 2 2").contains("from 1 to 5"));
    assert!(message("").contains("the file contains no target"));
    let rest = import("cmplt 4\n\nand more\n", &ImportParams::default()).unwrap();
    assert_eq!(rest.notes, ["text after the target, from line 3 on, is ignored, as in Scotch"]);
    let params = ImportParams { costs: vec![1.0], ..ImportParams::default() };
    assert!(import("cmplt 4", &params).unwrap_err().starts_with("`costs` has no effect"));
}

#[test]
fn targets_are_detected_by_their_class() {
    for text in ["tleaf 2 2 1 2 1", "\n Cmplt\n8", "varhcub\n", "sub 1 0 hcub 3", "deco\n0\n"] {
        assert!(recognised(text), "{text}");
    }
    for text in ["", "tleaf", "tleaf x", "sub,1,2", "4:16", "leaf 4", "cmplt = 3", "varcmplt is"] {
        assert!(!recognised(text), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn grids_have_the_distances_of_their_coordinates(
        sizes in prop::collection::vec(1_u32..5, 1..5),
        wraps in any::<bool>(),
    ) {
        let text = format!(
            "{} {} {}",
            if wraps { "torusXD" } else { "meshXD" },
            sizes.len(),
            sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
        );
        let far = |a: u32, b: u32, size: u32| {
            let step = a.abs_diff(b);
            if wraps { step.min(size - step) } else { step }
        };
        for (a, row) in distances(&text).into_iter().enumerate() {
            for (b, distance) in row.into_iter().enumerate() {
                let (mut a, mut b, mut sum) = (a as u32, b as u32, 0);
                for &size in &sizes {
                    sum += far(a % size, b % size, size);
                    (a, b) = (a / size, b / size);
                }
                prop_assert_eq!(distance, sum);
            }
        }
    }
}
