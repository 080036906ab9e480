use hopmap_model::{Paths, SystemGraph};

use super::super::samples::import_known;
use super::super::{Format, ImportParams, Imported};

const TEXT: &str = "\
Link Summary
4 Links in Fabric:
Rate NodeGUID          Port Type Name
100g 0x0011750101670001   1 FI   node1 hfi1_0
     Cable: S4567                11m
     some model
<->  0x0011750102000001   7 SW   leaf; 1 & <x>
 25g 0x0011750101670002   1 FI   node2 hfi1_0
<->  0x0011750102000001   8 SW   leaf; 1 & <x>
100g 0x0011750101670003   1 FI   node2 hfi1_1
<->  0x0011750102000002   9 SW   spine
100g 0x0011750102000001  48 SW   leaf; 1 & <x>
<->  0x0011750102000002  48 SW   spine
-------------------------------------------------------------------------------
";

const SELECTED: &str = "\
0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;leaf; 1 & <x>
0x0011750101670002;1;FI;node2 hfi1_0;0x0011750102000001;8;SW;leaf; 1 & <x>
0x0011750101670003;1;FI;node2 hfi1_1;0x0011750102000002;9;SW;spine
0x0011750102000001;48;SW;leaf; 1 & <x>;0x0011750102000002;48;SW;spine
";

const HEADED: &str = "\
Rate;LinkDetails;CableLength;CableLabel;CableDetails;DeviceTechShort;CableInfo.Length;CableInfo.VendorName;CableInfo.VendorPN;CableInfo.VendorRev;Port.NodeDesc;Port.PortNum;Port.NodeDesc;Port.PortNum

100g;;11m;S4567;some model;;;;;;node1 hfi1_0;1;leaf 1;7
25g;;;;;;;;;;node2 hfi1_0;1;leaf 1;8
100g;;;;;;;;;;node2 hfi1_1;1;spine;9
100g;;;;;;;;;;leaf 1;48;spine;48
";

fn xml() -> String {
    let port = |guid: &str, number: u32, kind: &str, name: &str| {
        format!(
            "<Port id=\"x\">\n<NodeGUID>{guid}</NodeGUID>\n<PortNum>{number}</PortNum>\n<NodeType>{kind}</NodeType>\n<NodeType_Int>1</NodeType_Int>\n<NodeDesc>{name}</NodeDesc>\n</Port>\n"
        )
    };
    let leaf = |number| port("0x0011750102000001", number, "SW", "leaf; 1 &amp; &lt;x&#62;");
    let spine = |number| port("0x0011750102000002", number, "SW", "spine");
    let host = |guid, name| port(guid, 1, "FI", name);
    let link = |rate: &str, a: String, b: String| {
        format!(
            "<Link id=\"y\">\n<Rate>{rate}</Rate>\n<Internal>0</Internal>\n{a}{b}<CableInfo><Length>3</Length></CableInfo>\n</Link>\n"
        )
    };
    [
        "<?xml version=\"1.0\" encoding=\"utf-8\" ?>\n<Report date=\"d\" options=\"-x -o links\" >\n<LinkSummary>\n<LinkCount>4</LinkCount>\n".to_owned(),
        link("100g", host("0x0011750101670001", "node1 hfi1_0"), leaf(7)),
        link("25g", host("0x0011750101670002", "node2 hfi1_0"), leaf(8)),
        link("100g", host("0x0011750101670003", "node2 hfi1_1"), spine(9)),
        link("100g", leaf(48), spine(48)),
        "</LinkSummary>\n<Nodes><FIs></FIs></Nodes>\n</Report>\n".to_owned(),
    ]
    .concat()
}

fn import(text: &str) -> Result<Imported, String> {
    import_known(Format::Omnipath, text, &ImportParams::default())
}

fn names(system: &SystemGraph) -> Vec<&str> {
    system.nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn text_and_xml_give_the_same_machine() {
    let text = import(TEXT).unwrap();
    assert_eq!(import(&xml()).unwrap(), text);
    let Imported { system, notes } = text;
    assert_eq!(notes, [""; 0]);
    assert_eq!(names(&system), ["node1", "node2", "leaf; 1 & <x>", "spine"]);
    assert_eq!(system.nodes[1].address.as_deref(), Some("0011750101670002"));
    assert_eq!(system.links.len(), 8);
    assert_eq!(system.links[0].bandwidth_bytes_per_s, Some(12.5e9));
    assert_eq!(system.links[1].bandwidth_bytes_per_s, Some(3.125e9));
    assert_eq!(system.links[1].destination_port, Some(8));
    // node1 and node2 are attached to the same switch.
    assert_eq!(Paths::new(&system).unwrap().hops(0, 1), Some(2));
}

#[test]
fn tables_without_rates_or_guids_are_read() {
    let text = import(TEXT).unwrap().system;
    let Imported { system, notes } = import(SELECTED).unwrap();
    assert_eq!(system.nodes, text.nodes);
    assert!(
        system
            .links
            .iter()
            .zip(&text.links)
            .all(|(a, b)| a.source_port == b.source_port && a.source == b.source)
    );
    assert_eq!(notes, ["links of unknown speed or width, kept without a bandwidth: 8"]);
    let Imported { system, notes } = import(HEADED).unwrap();
    assert_eq!(names(&system), ["node1", "node2", "leaf 1", "spine"]);
    assert!(system.nodes.iter().all(|node| node.address.is_none()));
    assert_eq!(system.links[0].bandwidth_bytes_per_s, Some(12.5e9));
    assert_eq!(notes, ["nodes of unknown type, treated as hosts if only port 1 has a cable: 5"]);
}

#[test]
fn errors_are_reported() {
    let text = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        import(&TEXT.replacen(from, to, 1)).unwrap_err()
    };
    assert!(
        text("0001   8 SW", "0001   7 SW")
            .starts_with("F:8: port 7 of `leaf; 1 & <x>` (0011750102000001) is connected to")
    );
    assert!(text("<->  0x0011750102000001   7 SW   leaf; 1 & <x>\n", "").starts_with("F:4: the second port"));
    assert!(text("100g 0x0011750101670001   1 FI   node1 hfi1_0\n", "").starts_with("F:6: the first port"));
    assert!(
        text("0001  48 SW", "0001  48 FI").starts_with("F:12: `leaf; 1 & <x>` is both a host and a switch")
    );
    assert!(text("Link Summary", "FI Link Summary").starts_with("F:1: `FI Link Summary` lists only some"));
    assert!(
        import(&HEADED.replace("leaf 1;7", "leaf; 1;7")).unwrap_err().starts_with("F:3: there are 15 fields")
    );
    assert!(
        import(&HEADED.replace("leaf 1;7", "leaf 1;x"))
            .unwrap_err()
            .starts_with("F:3: `x` is not a port number")
    );
    assert!(import(&SELECTED.replace(";9;SW;", ";9;")).unwrap_err().starts_with("F:3: this is not a link"));
    let xml = |from: &str, to: &str| {
        let changed = xml().replacen(from, to, 1);
        assert!(changed != self::xml(), "{from}");
        import(&changed).unwrap_err()
    };
    let doctype = "<!DOCTYPE Report [<!ENTITY a \"b\">]>\n<Report date";
    assert!(xml("<Report date", doctype).starts_with("F:2: the document type declares"));
    let entity = xml("&amp;", "&other;");
    assert!(entity.contains("entity reference"), "{entity}");
    assert!(xml("<PortNum>7</PortNum>", "").contains("a port of this link has no number"));
    assert!(
        xml("<PortNum>7</PortNum>", "<PortNum>7</PortNum></Port><Port>").contains("this link has 3 ports")
    );
    assert!(xml("<NodeType>FI</NodeType>", "<NodeType>XX</NodeType>").contains("`XX` is not a node type"));
    let some = import(&self::xml().replace("LinkSummary>", "ISLinkSummary>")).unwrap_err();
    assert!(some.contains("`ISLinkSummary` lists only some"), "{some}");
    let deep = "<a>".repeat(100);
    let ends = "</a>".repeat(100);
    assert!(xml("<LinkSummary>", &format!("{deep}{ends}<LinkSummary>")).contains("nested more than 64"));
}

#[test]
fn other_files_are_not_detected() {
    for text in [
        "a;b;c\n1;2;3\n",
        "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n</topology>",
        "Link Summary\n",
        "0x1;1;FI;x\n",
    ] {
        let error = import(text).unwrap_err();
        assert_eq!(error, "F: the file contains no Omni-Path links");
    }
}
