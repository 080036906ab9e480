use hopmap_model::{NodeKind, Paths};

use super::super::samples::Folder;
use super::super::{Format, Imported, files, recognise};

const ETHERNET: &str = r#"{"network_info":{"network_type":1,"subnet_id":"unknown"},"node_info":{
"AA:00:00:00:00:01":{"phy_id":"AA:00:00:00:00:01","node_type":2,"log_id":"10.0.0.1","desc":" ","edge_ids":[1]},
"AA:00:00:00:00:02":{"phy_id":"AA:00:00:00:00:02","node_type":2,"log_id":"10.0.0.2","desc":" ","edge_ids":[2]},
"00:00:00:00:00:00:00:01":{"phy_id":"00:00:00:00:00:00:00:01","node_type":1,"desc":" ","edge_ids":[3,4,5,6]},
"00:00:00:00:00:00:00:02":{"phy_id":"00:00:00:00:00:00:00:02","node_type":1,"desc":"top","edge_ids":[7,8]}},
"edge_info":{
"1":{"euid":1,"src_node_id":"AA:00:00:00:00:01","src_port_id":"-1","dest_node_id":"00:00:00:00:00:00:00:01","dest_port_id":"1","speed":"1","width":"1"},
"2":{"euid":2,"src_node_id":"AA:00:00:00:00:02","src_port_id":"-1","dest_node_id":"00:00:00:00:00:00:00:02","dest_port_id":"1","speed":"1","width":"1"},
"3":{"euid":3,"src_node_id":"00:00:00:00:00:00:00:01","src_port_id":"1","dest_node_id":"AA:00:00:00:00:01","dest_port_id":"-1","speed":"1","width":"1"},
"4":{"euid":4,"src_node_id":"00:00:00:00:00:00:00:01","src_port_id":"2","dest_node_id":"00:00:00:00:00:00:00:02","dest_port_id":"2","speed":"10000000000","width":"1"},
"5":{"euid":5,"src_node_id":"00:00:00:00:00:00:00:01","src_port_id":3,"dest_node_id":"00:00:00:00:00:00:00:02","dest_port_id":3,"speed":10000000000,"width":1},
"7":{"euid":7,"src_node_id":"00:00:00:00:00:00:00:02","src_port_id":"2","dest_node_id":"00:00:00:00:00:00:00:01","dest_port_id":"2","speed":"10000000000","width":"1"},
"8":{"euid":8,"src_node_id":"00:00:00:00:00:00:00:02","src_port_id":"1","dest_node_id":"AA:00:00:00:00:02","dest_port_id":"-1","speed":"1","width":"1"}}}"#;

const PATHS: &str =
    r#"{"path_info":{"AA:00:00:00:00:01":{"AA:00:00:00:00:02":[1,5,8]},"00:00:00:00:00:00:00:01":{}}}"#;

#[test]
fn ethernet_with_its_paths_is_read() {
    let folder = Folder::new(&[("E-nodes.ndat", ETHERNET), ("E-phy-paths.ndat", PATHS)]);
    for path in [folder.path.clone(), folder.path.join("E-nodes.ndat")] {
        assert_eq!(recognise(&path).unwrap(), Format::NetlocDat);
        let names: Vec<_> = files(&path, None).unwrap().iter().map(|file| file.name().into_owned()).collect();
        assert_eq!(names, ["machine", "paths"]);
        let Imported { system, notes } = folder.import(&path).unwrap();
        let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["10.0.0.1", "10.0.0.2", "switch-00:00:00:00:00:00:00:01", "top"]);
        assert_eq!(system.nodes[0].address.as_deref(), Some("aa:00:00:00:00:01"));
        assert_eq!(system.nodes[3].kind, NodeKind::Switch);
        let bandwidths: Vec<_> = system.links.iter().filter_map(|link| link.bandwidth_bytes_per_s).collect();
        assert_eq!(bandwidths, [1.25e9; 3]);
        let way = Paths::new(&system).unwrap().path(0, 1).unwrap();
        let ports: Vec<_> = way.iter().map(|&link| system.links[link as usize].source_port).collect();
        assert_eq!(ports, [None, Some(3), Some(1)]);
        assert_eq!(
            notes,
            [
                "links of unknown speed, kept without a bandwidth: 4",
                "ordered pairs of adapters without a path in the file: 1",
                "ordered pairs of adapters without a route in the tables: 1",
            ]
        );
    }
}

#[test]
fn without_paths_messages_take_the_fewest_links() {
    let folder = Folder::new(&[("E-nodes.ndat", ETHERNET)]);
    let Imported { system, notes } = folder.import(&folder.path).unwrap();
    assert!(system.routing.forwarding.is_empty());
    assert_eq!(notes[1], "no file `…-phy-paths.ndat` in the same folder: messages take the fewest links");
}

#[test]
fn errors_are_reported() {
    let nodes = |from: &str, to: &str| {
        let text = ETHERNET.replacen(from, to, 1);
        assert!(text != ETHERNET, "{from}");
        let folder = Folder::new(&[("E-nodes.ndat", &text), ("E-phy-paths.ndat", PATHS)]);
        folder.import(&folder.path).unwrap_err()
    };
    let paths = |to: &str| {
        let text = PATHS.replace("[1,5,8]", to);
        let folder = Folder::new(&[("E-nodes.ndat", ETHERNET), ("E-phy-paths.ndat", &text)]);
        folder.import(&folder.path).unwrap_err()
    };
    assert!(nodes("\"network_type\":1", "\"network_type\":9").contains("unknown network_type 9"));
    assert!(nodes("\"node_type\":1", "\"node_type\":3").contains("has type 3"));
    assert!(nodes("\"8\":{", "\"7\":{").contains("edge 7 is listed twice"));
    assert!(
        nodes("\"dest_node_id\":\"AA", "\"dest_node_id\":\"AB")
            .contains("edge 3: node AB:00:00:00:00:01 is not listed")
    );
    assert!(nodes("\"edge_info\":{", "\"edge_info\":[").starts_with("F/E-nodes.ndat:6: "));
    assert!(
        nodes("AA:00:00:00:00:02\":{", "AA:00:00:00:00:01\":{")
            .contains("node AA:00:00:00:00:01 is listed twice")
    );
    assert!(paths("[1,5]").ends_with("the path does not end at its destination"));
    assert!(paths("[5,8]").ends_with("edge 5 does not continue the path"));
    assert!(paths("[1,99]").ends_with("there is no edge 99"));
    assert!(paths("[1,3,1,5,8]").ends_with("the path passes through a host before edge 1"));
    assert!(paths("[1,5,7,4,8]").contains("forwards to the same adapter over another link"));
    let folder = Folder::new(&[("E-nodes.ndat", ETHERNET), ("I-nodes.ndat", ETHERNET)]);
    assert_eq!(folder.import(&folder.path).unwrap_err(), "F: there are several networks: E, I");
}
