use hopmap_model::{Link, NodeKind, Paths, SystemGraph};

use super::super::samples::{Folder, import_as};
use super::super::{Format, ImportParams, Imported, files, recognise};

/// Two switches with two cables between them, a host on each, and one with a dual-port adapter, one port on
/// each.
const BLOCKS: &str = "\
#
# Topology file: generated on Mon Feb  2 10:00:00 2026
#
# Initiated from node 0000000000000010 port 0000000000000011

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x1
switchguid=0x1(1)
Switch\t8 \"S-0000000000000001\"\t\t# \"leaf \"a\", 1\" enhanced port 0 lid 4 lmc 0
[1]\t\"H-0000000000000010\"[1](11) \t\t# \"n1 mlx5_0\" lid 8 4xNDR
[2]\t\"H-0000000000000020\"[1](21) \t\t# \"n2 mlx5_0\" lid 12 4xHDR
[7][ext 3]\t\"S-0000000000000002\"[7][ext 4]\t\t# \"spine\" lid 5 4xHDR
[8]\t\"S-0000000000000002\"[8]\t\t# \"spine\" lid 5 4x???

switchguid=0x2(2)
Switch\t8 \"S-0000000000000002\"\t\t# \"spine\" base port 0 lid 5 lmc 0
[1]\t\"H-0000000000000020\"[2](22) \t\t# \"n2 mlx5_0\" lid 16 4xHDR
[2]\t\"H-0000000000000030\"[1](31) \t\t# \"n3 mlx5_0\" lid 20 4xHDR s=4 w=2 v=4
[7]\t\"S-0000000000000001\"[7]\t\t# \"leaf \"a\", 1\" lid 4 4xHDR
[8]\t\"S-0000000000000001\"[8]\t\t# \"leaf \"a\", 1\" lid 4 4x???

caguid=0x10
Ca\t1 \"H-0000000000000010\"\t\t# \"n1 mlx5_0\"
[1](11) \t\"S-0000000000000001\"[1]\t\t# lid 8 lmc 2 \"leaf \"a\", 1\" lid 4 4xNDR

caguid=0x20
Ca\t2 \"H-0000000000000020\"\t\t# \"n2 mlx5_0\"
[1](21) \t\"S-0000000000000001\"[2]\t\t# lid 12 lmc 2 \"leaf \"a\", 1\" lid 4 4xHDR
[2](22) \t\"S-0000000000000002\"[1]\t\t# lid 16 lmc 2 \"spine\" lid 5 4xHDR

caguid=0x30
Ca\t1 \"H-0000000000000030\"\t\t# \"n3 mlx5_0\"
[1](31) \t\"S-0000000000000002\"[2]\t\t# lid 20 lmc 2 \"spine\" lid 5 4xHDR
";

/// The same, one line per port.
const COLUMNS: &str = "\
DR path slid 0; dlid 0; 0 -> new Channel Adapter {0000000000000010} portnum 1 lid 0-0 \"\"
DR path slid 0; dlid 0; 0,1 -> known Switch {0000000000000001} portnum 0 lid 4-4 \"leaf\"
CA     8  1 0x0000000000000011 4x NDR - SW     4  1 0x0000000000000001 ( 'n1 mlx5_0' - 'leaf \"a\", 1' )
SW     4  8 0x0000000000000001 4x ??? - SW     5  8 0x0000000000000002 ( 'leaf \"a\", 1' - 'spine' )
SW     4  7 0x0000000000000001 4x HDR - SW     5  7 0x0000000000000002 ( 'leaf \"a\", 1' - 'spine' )
SW     4  3 0x0000000000000001 4x SDR                                    'leaf \"a\", 1'
SW     4  2 0x0000000000000001 4x HDR - CA    12  1 0x0000000000000021 ( 'leaf \"a\", 1' - 'n2 mlx5_0' )
SW     4  1 0x0000000000000001 4x NDR - CA     8  1 0x0000000000000011 ( 'leaf \"a\", 1' - 'n1 mlx5_0' )
CA    12  1 0x0000000000000021 4x HDR - SW     4  2 0x0000000000000001 ( 'n2 mlx5_0' - 'leaf \"a\", 1' )
CA    16  2 0x0000000000000022 4x HDR - SW     5  1 0x0000000000000002 ( 'n2 mlx5_0' - 'spine' )
SW     5  8 0x0000000000000002 4x ??? - SW     4  8 0x0000000000000001 ( 'spine' - 'leaf \"a\", 1' )
SW     5  7 0x0000000000000002 4x HDR - SW     4  7 0x0000000000000001 ( 'spine' - 'leaf \"a\", 1' )
SW     5  2 0x0000000000000002 4x HDR - CA    20  1 0x0000000000000031 ( 'spine' - 'n3 mlx5_0' )
SW     5  1 0x0000000000000002 4x HDR - CA    16  2 0x0000000000000022 ( 'spine' - 'n2 mlx5_0' )
CA    20  1 0x0000000000000031 4x HDR - SW     5  2 0x0000000000000002 ( 'n3 mlx5_0' - 'spine' )
";

const TABLES: &str = "\
Unicast lids [0x0-0x17] of switch DR path slid 0; dlid 0; 0,1 guid 0x0000000000000001 (leaf \"a\", 1):
  Lid  Out   Destination
       Port     Info
0x0004 000 : (Switch portguid 0x0000000000000001: 'leaf')
0x0005 007 : (Switch portguid 0x0000000000000002: 'spine')
0x0008 001 : (Channel Adapter portguid 0x0000000000000011: 'n1 mlx5_0')
0x0009 001 : (path #2 out of 4: portguid 0x0000000000000011)
0x000c 002 : (Channel Adapter portguid 0x0000000000000021: 'n2 mlx5_0')
0x0010 007 : (Channel Adapter portguid 0x0000000000000022: 'n2 mlx5_0')
0x0014 008 : (Channel Adapter portguid 0x0000000000000031: 'n3 mlx5_0')
0x0015 007 : (path #2 out of 4: portguid 0x0000000000000031)
0x0018 255 : (illegal port)
8 valid lids dumped
Unicast lids [0x0-0x17] of switch Lid 5 guid 0x0000000000000002 ('spine'):
0x0008 007
0x0009 008
0x000c 008
0x0010 001
0x0014 002
0x0040 002
5 lids dumped
ibroute: iberror: failed: dump tables
";

fn import(text: &str) -> Result<Imported, String> {
    import_as(Format::Ibnetdiscover, text, &ImportParams::default())
}

fn names(system: &SystemGraph) -> Vec<&str> {
    system.nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn both_syntaxes_give_the_same_machine() {
    let blocks = import(BLOCKS).unwrap();
    let columns = import(COLUMNS).unwrap();
    assert_eq!(names(&blocks.system), ["n1", "n2", "n3", "leaf \"a\", 1", "spine"]);
    assert_eq!(names(&blocks.system), names(&columns.system));
    assert_eq!(blocks.system.links, columns.system.links);
    // Without -p adapters have their own GUIDs, with it those of their first ports.
    let addresses = |imported: &Imported| -> Vec<_> {
        imported.system.nodes.iter().map(|node| node.address.clone().unwrap()[14..].to_owned()).collect()
    };
    assert_eq!(addresses(&blocks), ["10", "20", "30", "01", "02"]);
    assert_eq!(addresses(&columns), ["11", "21", "31", "01", "02"]);
    let unknown = "links of unknown speed or width, kept without a bandwidth: 2";
    assert_eq!(blocks.notes, [unknown]);
    assert_eq!(
        columns.notes,
        [
            "further ports combined with their adapters by GUID: 1",
            "ports without a cable, ignored: 1",
            unknown
        ]
    );
}

#[test]
fn ports_and_bandwidths_are_those_of_the_listing() {
    let system = import(BLOCKS).unwrap().system;
    let link = |a, p, b, q, bandwidth_bytes_per_s| Link {
        source_port: Some(p),
        destination_port: Some(q),
        bandwidth_bytes_per_s,
        ..Link::new(a, b)
    };
    assert_eq!(system.links.len(), 12);
    assert_eq!(system.links[0], link(0, 1, 3, 1, Some(5e10)));
    assert_eq!(system.links[1..3], [link(1, 1, 3, 2, Some(2.5e10)), link(1, 2, 4, 1, Some(2.5e10))]);
    assert_eq!(system.links[7], link(3, 8, 4, 8, None));
}

#[test]
fn tables_define_routes() {
    let folder = Folder::new(&[("fabric.txt", BLOCKS), ("lfts/all.txt", TABLES), ("README", "what it is\n")]);
    assert_eq!(recognise(&folder.path).unwrap(), Format::Ibnetdiscover);
    let names: Vec<_> =
        files(&folder.path, None).unwrap().iter().map(|file| file.name().into_owned()).collect();
    assert_eq!(names, ["machine", "tables/lfts/all.txt"]);
    let Imported { system, notes } = folder.import(&folder.path).unwrap();
    assert_eq!(
        notes,
        [
            "other files in the folder, ignored: 1",
            "links of unknown speed or width, kept without a bandwidth: 2",
            "table files with error messages: 1",
            "entries for additional LIDs of a port (LMC), ignored: messages use the first one: 3",
            "entries for LIDs of unlisted adapters, ignored: 1",
            "lfts/all.txt: lines of other programs, skipped: 1, the first in line 22: `ibroute: iberror: failed: dump tables`",
        ]
    );
    let paths = Paths::new(&system).unwrap();
    let ports = |a, b| -> Vec<_> {
        paths
            .path(a, b)
            .unwrap()
            .iter()
            .map(|&link| system.links[link as usize].source_port.unwrap())
            .collect()
    };
    assert_eq!(ports(0, 2), [1, 8, 2]);
    assert_eq!(ports(2, 0), [1, 7, 1]);
    // The nearer of the two ports of n2 is used.
    assert_eq!((ports(0, 1), ports(2, 1)), (vec![1, 2], vec![1, 1]));
    assert_eq!(system.routing.forwarding.len(), 8);
}

#[test]
fn tables_are_matched_by_guid_if_lids_have_changed() {
    let moved = TABLES.replace("0x0014 008 : (Channel", "0x0063 008 : (Channel");
    let folder = Folder::new(&[("fabric.txt", COLUMNS), ("tables.txt", &moved)]);
    let Imported { system, notes } = folder.import(&folder.path).unwrap();
    assert!(
        notes.contains(&"entries whose LID now belongs to another adapter, assigned by GUID: 1".to_owned()),
        "{notes:?}"
    );
    assert_eq!(Paths::new(&system).unwrap().hops(0, 2), Some(3));
}

#[test]
fn contradictory_tables_are_rejected() {
    let error = |files: &[(&str, &str)]| {
        let folder = Folder::new(files);
        folder.import(&folder.path).unwrap_err()
    };
    let other = TABLES.replace("0x0014 008", "0x0014 007");
    let text = error(&[("f", BLOCKS), ("t1", TABLES), ("t2", &other)]);
    assert_eq!(text, "F/t2:10: LID 20 is forwarded to port 7, but to another port by the table at F/t1:1");
    let twice = TABLES
        .replace("0x0014 008", "0x0010 008 : (Channel Adapter portguid 0x0000000000000022: 'x')\n0x0014 008");
    let text = error(&[("f", BLOCKS), ("t", &twice)]);
    assert_eq!(text, "F/t:10: LID 16 is forwarded to port 8, but to another port by line 9");
    let text = error(&[("f", BLOCKS), ("t", &TABLES.replace("0x0008 007", "8 goes to 7"))]);
    assert_eq!(text, "F/t:15: `8 goes to 7` is not a line of a forwarding table");
    let text = error(&[("f", &BLOCKS.replace("lid 20", "lid 12")), ("t", TABLES)]);
    assert!(text.starts_with("F/f:19: LID 12 belongs to port 1 of `n3 mlx5_0`"), "{text}");
    let text = error(&[("f", BLOCKS), ("g", COLUMNS)]);
    assert_eq!(text, "F: several files are output of ibnetdiscover: f, g");
}

#[test]
fn the_same_table_twice_is_one() {
    let one = Folder::new(&[("f", BLOCKS), ("t", TABLES)]);
    let two = Folder::new(&[("f", BLOCKS), ("t", TABLES), ("u", TABLES)]);
    assert_eq!(one.import(&one.path).unwrap().system, two.import(&two.path).unwrap().system);
}

#[test]
fn switches_without_tables_are_counted() {
    let first: String = TABLES.split_inclusive('\n').take(13).collect();
    let folder = Folder::new(&[("f", BLOCKS), ("t", &first)]);
    let notes = folder.import(&folder.path).unwrap().notes;
    assert!(notes.contains(&"switches without a table: 1 of 2".to_owned()), "{notes:?}");
    // n1 and n2 reach each other only.
    assert!(
        notes.contains(&"ordered pairs of adapters without a route in the tables: 10".to_owned()),
        "{notes:?}"
    );
}

#[test]
fn contradictions_report_both_lines() {
    let error = |from: &str, to: &str| {
        assert!(BLOCKS.contains(from), "{from}");
        import(&BLOCKS.replacen(from, to, 1)).unwrap_err()
    };
    let cases = [
        (
            "[7]\t\"S-0000000000000001\"[7]",
            "[7]\t\"S-0000000000000001\"[6]",
            "F:20: port 7 of `spine` (0000000000000002) is connected to port 6 of `leaf \"a\", 1` (0000000000000001), but by line 13 ",
        ),
        ("[8]\t\"S-0000000000000001\"[8]", "[7]\t\"S-0000000000000001\"[8]", "F:21: port 7 of `spine`"),
        (
            "Ca\t1 \"H-0000000000000030\"",
            "Ca\t1 \"H-0000000000000010\"",
            "F:34: port 1 of `n1 mlx5_0` (0000000000000010) is connected to port 2 of",
        ),
        (
            "S-0000000000000002\"[7]",
            "H-0000000000000002\"[7]",
            "F:14: 0000000000000002 is a switch here, but an adapter by line 13",
        ),
        ("[2]\t\"H-0000000000000020\"[1](21) ", "[2]\t\"H-20\"[1](21) ", "F:12: `[2]\t\"H-20\"[1](21)"),
        ("caguid=0x20", "cagui=0x20", "F:27: `cagui=0x20` is not a line of ibnetdiscover"),
    ];
    for (from, to, expected) in cases {
        let text = error(from, to);
        assert!(text.starts_with(expected), "{from} → {to}: {text}");
    }
}

#[test]
fn cables_of_one_end_and_routers_are_kept() {
    let text = BLOCKS
        .replace("[7]\t\"S-0000000000000001\"[7]\t\t# \"leaf \"a\", 1\" lid 4 4xHDR\n", "")
        .replace("Ca\t1 \"H-0000000000000030\"", "Rt\t1 \"R-0000000000000030\"")
        .replace("\"H-0000000000000030\"", "\"R-0000000000000030\"");
    let Imported { system, notes } = import(&text).unwrap();
    assert_eq!(system.links.len(), 12);
    assert_eq!(system.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 2);
    assert!(notes.contains(&"routers, treated as switches: 1".to_owned()), "{notes:?}");
    assert!(notes.contains(&"cables listed at one end only: 1".to_owned()), "{notes:?}");
}

#[test]
fn a_truncated_listing_is_rejected() {
    let expected = "which lists no cables (as do 2 nodes in total): the listing is truncated";
    let end = BLOCKS.find("caguid=0x20").unwrap();
    let error = import(&BLOCKS[..end]).unwrap_err();
    assert!(error.contains(expected), "{error}");
    // After its header an adapter may lack its ports; with -p, entire nodes may be missing.
    let end = BLOCKS.find("\n[1](21)").unwrap();
    assert!(import(&BLOCKS[..end]).unwrap_err().contains(expected));
    let end = COLUMNS.find("CA    12  1 0x0000000000000021 4x").unwrap();
    let error = import(&COLUMNS[..end]).unwrap_err();
    assert!(error.contains("the listing is truncated"), "{error}");
    // Within the ports of the last node.
    let last = BLOCKS.find("\ncaguid=0x30").unwrap();
    let adapter = BLOCKS.find("\ncaguid=0x20").unwrap();
    let text = BLOCKS[..adapter].to_owned() + &BLOCKS[last..] + &BLOCKS[adapter..last];
    assert!(import(&text).is_ok());
    let error = import(&text[..text.rfind("[2]").unwrap()]).unwrap_err();
    assert!(
        error.contains("`n2 mlx5_0`, which does not list its port 2: the listing is truncated"),
        "{error}"
    );
}

/// Every switch since HDR contains an adapter for SHARP.
#[test]
fn aggregation_nodes_of_switches_are_not_hosts() {
    let inside =
        "[9]\t\"H-0000000000000040\"[1](41) \t\t# \"Mellanox Technologies Aggregation Node\" lid 24 4xHDR\n";
    let adapter = "\ncaguid=0x40\nCa\t1 \"H-0000000000000040\"\t\t# \"Mellanox Technologies Aggregation Node\"\n\
        [1](41) \t\"S-0000000000000001\"[9]\t\t# lid 24 lmc 0 \"leaf \"a\", 1\" lid 4 4xHDR\n";
    let text = BLOCKS.replacen("\nswitchguid=0x2", &format!("{inside}\nswitchguid=0x2"), 1) + adapter;
    let Imported { system, notes } = import(&text).unwrap();
    assert_eq!(system, import(BLOCKS).unwrap().system);
    assert!(notes.contains(&"aggregation nodes of switches, ignored: 1".to_owned()), "{notes:?}");
    // The same holds with forwarding tables.
    let tables = [("fabric.txt", BLOCKS), ("tables.txt", TABLES)];
    let (plain, sharp) = (Folder::new(&tables), Folder::new(&[("fabric.txt", &text), tables[1]]));
    assert_eq!(sharp.import(&sharp.path).unwrap().system, plain.import(&plain.path).unwrap().system);
}

/// Both are listed as adapters.
#[test]
fn gateways_are_not_hosts() {
    let by_device = BLOCKS.replace("caguid=0x30", "vendid=0x8f1\ndevid=0x5a01\ncaguid=0x30");
    let by_guid = BLOCKS.replace("H-0000000000000030", "H-0013970300000030");
    let columns = COLUMNS.replace("0x0000000000000031", "0x0013970300000031");
    let texts = [("device", by_device.as_str()), ("guid", by_guid.as_str()), ("columns", columns.as_str())];
    for (name, text) in texts {
        let Imported { system, notes } = import(text).unwrap();
        let hosts: Vec<&str> = system.hosts().map(|(node, ..)| &*system.nodes[node as usize].name).collect();
        assert_eq!(hosts, ["n1", "n2"], "{name}");
        assert_eq!(system.links.len(), import(BLOCKS).unwrap().system.links.len(), "{name}");
        assert!(
            notes.contains(&"gateways to other networks, treated as switches: 1".to_owned()),
            "{notes:?}"
        );
    }
    let tables = [("fabric.txt", by_device.as_str()), ("tables.txt", TABLES)];
    let folder = Folder::new(&tables);
    assert!(folder.import(&folder.path).is_ok());
}

#[test]
fn nodes_repeated_by_g_count_once() {
    let group = BLOCKS.replacen("\nvendid", "\nChassis 1 (guid 0x1)\n\n# Spine Nodes\nvendid", 1);
    let again: String = BLOCKS.split_inclusive('\n').skip(8).take(6).collect();
    let group = format!("{group}\n# Chassis Switches\n{again}\nNon-Chassis Nodes\n");
    assert_eq!(import(&group).unwrap(), import(BLOCKS).unwrap());
}

#[test]
fn other_files_are_not_detected() {
    let cases = [
        ("tables", TABLES),
        ("ibsim", "Switch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1]\n"),
        ("empty", ""),
        ("comment", "# Topology file: generated\n"),
        ("conf", "SwitchName=s0 Nodes=n[0-3]\n"),
    ];
    for (name, text) in cases {
        let folder = Folder::new(&[("f", text)]);
        for path in [folder.path.clone(), folder.path.join("f")] {
            assert!(!recognise(&path).is_ok_and(|format| format == Format::Ibnetdiscover), "{name}");
        }
    }
}

#[test]
fn several_subnets_are_rejected_with_a_list() {
    let one =
        [("ib-raw/ib-subnet-fe80:1.txt", COLUMNS), ("ib-raw/ibroutes-fe80:1/ibroute-fe80:1-4.txt", TABLES)];
    let folder = Folder::new(&one);
    assert_eq!(recognise(&folder.path).unwrap(), Format::NetlocRaw);
    let imported = folder.import(&folder.path).unwrap();
    assert_eq!(imported.system, folder.import(&folder.path.join("ib-raw")).unwrap().system);
    assert_eq!(imported.system.routing.forwarding.len(), 8);
    let two = Folder::new(&[one[0], ("ib-raw/ib-subnet-fe80:2.txt", COLUMNS)]);
    assert_eq!(two.import(&two.path).unwrap_err(), "F: there are several subnets: fe80:1, fe80:2");
}
