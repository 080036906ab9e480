use hopmap_model::NodeKind;

use super::super::samples::{Folder, import_known, is_recognised};
use super::super::{Format, ImportParams, Imported, files, read, recognise};
use super::{description, is_cut};

/// Two hosts on one switch, a third one on another, two cables between the switches.
const SMALL: &str = "\
1
fe80:0000:0000:0000

5
0000:0000:0000:0011,1,0,0,'n1, the first HCA-1',n1
0000:0000:0000:0012,2,0,0,'n2 HCA-1',n2
0000:0000:0000:0013,3,0,0,'N_3 HCA-1',
0000:0000:0000:0001,4,1,0,'leaf, 1' ,
0000:0000:0000:0002,5,1,0,'leaf' ,
0000:0000:0000:0011,0000:0000:0000:0001,8.000000,0,1,0,1,1,4x,QDR,8.000000,'n1, the first HCA-1' - 'leaf, 1' ,3,0
0000:0000:0000:0012,0000:0000:0000:0001,8.000000,0,1,1,1,2,4x,QDR,8.000000,'n2 HCA-1' - 'leaf, 1' ,4,
0000:0000:0000:0013,0000:0000:0000:0002,8.000000,,1,2,1,1,4x,QDR,8.000000,'N_3 HCA-1' - 'leaf' ,9,
0000:0000:0000:0001,0000:0000:0000:0011,8.000000,0,1,3,1,1,4x,QDR,8.000000,'leaf, 1' - 'n1, the first HCA-1' ,0,0,0000:0000:0000:0012,8.000000,0,1,4,2,1,4x,QDR,8.000000,'leaf, 1' - 'n2 HCA-1' ,1,0,0000:0000:0000:0002,16.000000,0,2,5,8,8,4x,DDR,16.000000,'leaf, 1' - 'leaf' ,7,0,6,9,9,4x,???,1.000000,'leaf, 1' - 'leaf' ,8,0:1
0000:0000:0000:0002,0000:0000:0000:0001,16.000000,0,2,7,8,8,4x,DDR,16.000000,'leaf' - 'leaf, 1' ,5,0,8,9,9,4x,???,1.000000,'leaf' - 'leaf, 1' ,6,0,0000:0000:0000:0013,8.000000,0,1,9,1,1,4x,QDR,8.000000,'leaf' - 'N_3 HCA-1' ,2,0
n,m
0000:0000:0000:0011,0000:0000:0000:0012,0,4
0000:0000:0000:0011,0000:0000:0000:0013,0,6,9
0000:0000:0000:0012,0000:0000:0000:0011,1,3
0000:0000:0000:0012,0000:0000:0000:0013,1,6,9
0000:0000:0000:0013,0000:0000:0000:0011,2,7,3
";

fn import(text: &str) -> Result<Imported, String> {
    import_known(Format::Netloc, text, &ImportParams::default())
}

#[test]
fn a_small_fabric_is_read_completely() {
    assert!(is_recognised(Format::Netloc, SMALL));
    let Imported { system, notes } = import(SMALL).unwrap();
    let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["N_3", "n1", "n2", "leaf, 1", "leaf"]);
    assert_eq!(system.nodes[1].address.as_deref(), Some("0000000000000011"));
    assert_eq!(system.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 3);
    assert_eq!(system.links.len(), 10);
    let bandwidths: Vec<_> = system.links.iter().map(|link| link.bandwidth_bytes_per_s).collect();
    assert_eq!(bandwidths[..3], [Some(4e9); 3]);
    assert_eq!(bandwidths.iter().filter(|bandwidth| bandwidth.is_none()).count(), 2);
    assert_eq!(
        notes,
        [
            "bandwidths computed incorrectly by netloc, recomputed from width and speed: 6 of 10 links",
            "host names truncated by netloc, taken from descriptions: 1",
            "links of unknown speed or width, kept without a bandwidth: 2",
            "ordered pairs of adapters without a path in the file: 1",
            "ordered pairs of adapters without a route in the tables: 1",
        ]
    );
    // Over the cable in the path, not the first one.
    let paths = hopmap_model::Paths::new(&system).unwrap();
    let ports: Vec<_> =
        paths.path(1, 0).unwrap().iter().map(|&link| system.links[link as usize].source_port).collect();
    assert_eq!(ports, [Some(1), Some(9), Some(1)]);
    assert_eq!(paths.hops(0, 1), Some(3));
    assert_eq!(paths.hops(0, 2), None);
}

#[test]
fn a_folder_with_one_subnet_is_read_like_its_file() {
    let temporary = Folder::new(&[("IB-fe80:0000:0000:0000-nodes.txt", SMALL)]);
    let folder = &temporary.path;
    let first = folder.join("IB-fe80:0000:0000:0000-nodes.txt");
    assert_eq!(recognise(folder).unwrap(), Format::Netloc);
    let of_folder = read(folder, &ImportParams::of(folder)).unwrap();
    assert_eq!(of_folder, read(&first, &ImportParams::of(&first)).unwrap());
    // The key does not depend on whether the file or the folder was given.
    assert_eq!(files(folder, None).unwrap(), files(&first, None).unwrap());
    std::fs::write(folder.join("IB-fe80:0000:0000:0001-nodes.txt"), SMALL).unwrap();
    let error = read(folder, &ImportParams::of(folder)).unwrap_err().to_string();
    let names = "IB-fe80:0000:0000:0000-nodes.txt, IB-fe80:0000:0000:0001-nodes.txt";
    assert!(error.ends_with(&format!("there are several subnets: {names}")), "{error}");
}

#[test]
fn errors_are_reported_with_their_line() {
    let wrong = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        import(&SMALL.replacen(from, to, 1)).unwrap_err()
    };
    let cases = [
        ("1\nfe80", "2\nfe80", "F:1: unknown format version 2"),
        ("\n5\n", "\nfive\n", "F:4: `five` is not a number of nodes"),
        ("\n5\n", "\n4294967295\n", "F:10: `0000:0000:0000:0001` is not a LID"),
        ("0012,2,0", "0011,2,0", "F:6: node 0000:0000:0000:0011 is listed twice"),
        ("0012,2,0", "0012,2,7", "F:6: `7` is not a node type"),
        ("0000:0000:0000:0012,2", "0000:0000:0012,2", "F:6: `0000:0000:0012` is not a GUID"),
        (",1,1,1,2,4x", ",1,0,1,2,4x", "F:11: two links have number 0"),
        (
            ",1,1,1,2,4x",
            ",1,1,1,3,4x",
            "F:13: port 2 of `leaf, 1` (0000000000000001) is connected to port 1 of",
        ),
        (
            "0012,0000:0000:0000:0001,8",
            "0012,0000:0000:0000:0007,8",
            "F:11: node 0000:0000:0000:0007 is not listed",
        ),
        ("0011,0000:0000:0000:0012,0,4", "0011,0000:0000:0000:0012,0", "F:16: the path does not end at"),
        ("0011,0000:0000:0000:0012,0,4", "0011,0000:0000:0000:0012,0,9", "F:16: link 9 does not continue"),
        ("0011,0000:0000:0000:0012,0,4", "0011,0000:0000:0000:0012,0,x", "F:16: `x` is not a link number"),
        ("0011,0000:0000:0000:0012,0,4", "0011,0000:0000:0000:0012,0,44", "F:16: there is no link 44"),
        (
            "0011,0000:0000:0000:0012,0,4",
            "0011,0000:0000:0000:0001,0",
            "F:16: 0000:0000:0000:0001 is a switch",
        ),
        ("0012,0,4\n", "0013,0,6,9\n", "F:17: line 16 has a path between the same hosts"),
        (
            "0013,1,6,9",
            "0013,1,5,9",
            "F:19: this path and the one in line 17 leave a switch over different links",
        ),
        ("0011,1,3", "0011,1,4,1,3", "F:18: the path passes through a host before link 1"),
    ];
    for (from, to, expected) in cases {
        let error = wrong(from, to);
        assert!(error.starts_with(expected), "{from} → {to}: {error}");
    }
    let cut: String = SMALL.lines().take(12).collect::<Vec<_>>().join("\n");
    assert!(import(&cut).unwrap_err().starts_with("F:13: the file ends where the edges"));
}

#[test]
fn descriptions_with_any_content_are_skipped() {
    let text = SMALL.replace("leaf, 1", "a ',7,b' - 'c");
    let imported = import(&text).unwrap();
    assert_eq!(imported.system.links, import(SMALL).unwrap().system.links);
}

#[test]
fn other_files_are_not_detected() {
    for text in ["1\n2\n3\n4\n5\n", "", "1\nfe80:0000:0000:0000\n\n5\n"] {
        assert!(!is_recognised(Format::Netloc, text), "{text}");
    }
}

#[test]
fn truncated_descriptions_are_recovered() {
    assert_eq!(description("'host HCA-1'"), "host HCA-1");
    assert_eq!(description("'a, b' "), "a, b");
    // From `'host HCA-1' - 'SwitchX -  Mellanox'`.
    assert_eq!(description("'host HCA-1' - 'SwitchX"), "host HCA-1");
    assert_eq!(description(" Mellanox Technologies' "), "Mellanox Technologies");
    assert!(is_cut("Node_1 HCA-1", "") && is_cut("node_1 HCA-1", "node"));
    assert!(!is_cut("node1 HCA-1", "node1") && !is_cut("node1, HCA-1", "node1") && !is_cut("node1", "m1"));
}
