//! Damages fabric dumps: importing ends in an error or in a consistent machine.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use std::path::{Path, PathBuf};

use hopmap_model::Paths;
use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};
use hopmap_topology_import::import::{Format, ImportParams, files, read, recognise};
use tempfile::TempDir;

const TELLING: &[u8] = b"0123456789abcdefSHRCA\"'[](),:-#=; \t\n{}<>/\x00\xff";

/// A folder of files, one of which is damaged at a time.
struct Sample {
    format: Format,
    files: &'static [(&'static str, &'static str)],
    /// The path to read: the folder, or one of the files.
    read: &'static str,
}

const NETLOC: &str = "\
1
fe80:0000:0000:0000
../hwloc
3
0000:0000:0000:0011,1,0,0,'n1, HCA-1',n1
0000:0000:0000:0012,2,0,0,'n2 HCA-1',n2
0000:0000:0000:0001,4,1,0:1,'leaf' ,
0000:0000:0000:0011,0000:0000:0000:0001,8.000000,0,1,0,1,1,4x,QDR,8.000000,'n1, HCA-1' - 'leaf' ,2,0
0000:0000:0000:0012,0000:0000:0000:0001,8.000000,0,1,1,1,2,4x,QDR,8.000000,'n2 HCA-1' - 'leaf' ,3,
0000:0000:0000:0001,0000:0000:0000:0011,8.000000,0,1,2,1,1,4x,QDR,8.000000,'leaf' - 'n1, HCA-1' ,0,0,0000:0000:0000:0012,8.000000,0,1,3,2,1,4x,QDR,8.000000,'leaf' - 'n2 HCA-1' ,1,0
n
0000:0000:0000:0011,0000:0000:0000:0012,0,3
0000:0000:0000:0012,0000:0000:0000:0011,1,2
";

const BLOCKS: &str = "\
# Topology file
vendid=0x2c9
switchguid=0x1(1)
Switch\t8 \"S-0000000000000001\"\t\t# \"leaf\" enhanced port 0 lid 4 lmc 0
[1]\t\"H-0000000000000010\"[1](11) \t\t# \"n1 mlx5_0\" lid 8 4xNDR
[2][ext 1]\t\"H-0000000000000020\"[1](21) \t\t# \"n2 mlx5_0\" lid 12 4xHDR

caguid=0x10
Ca\t1 \"H-0000000000000010\"\t\t# \"n1 mlx5_0\"
[1](11) \t\"S-0000000000000001\"[1]\t\t# lid 8 lmc 2 \"leaf\" lid 4 4xNDR

Ca\t1 \"H-0000000000000020\"\t\t# \"n2 mlx5_0\"
[1](21) \t\"S-0000000000000001\"[2]\t\t# lid 12 lmc 2 \"leaf\" lid 4 4xHDR
";

const COLUMNS: &str = "\
DR path slid 0; dlid 0; 0 -> new Channel Adapter {0000000000000010} portnum 1 lid 0-0 \"\"
CA     8  1 0x0000000000000011 4x NDR - SW     4  1 0x0000000000000001 ( 'n1 mlx5_0' - 'leaf' )
SW     4  3 0x0000000000000001 4x SDR                                    'leaf'
SW     4  2 0x0000000000000001 4x ??? - CA    12  1 0x0000000000000021 ( 'leaf' - 'n2 mlx5_0' )
SW     4  1 0x0000000000000001 4x NDR - CA     8  1 0x0000000000000011 ( 'leaf' - 'n1 mlx5_0' )
CA    12  1 0x0000000000000021 4x HDR - SW     4  2 0x0000000000000001 ( 'n2 mlx5_0' - 'leaf' )
";

const TABLES: &str = "\
Unicast lids [0x0-0x17] of switch Lid 4 guid 0x0000000000000001 (leaf):
  Lid  Out   Destination
       Port     Info
0x0004 000 : (Switch portguid 0x0000000000000001: 'leaf')
0x0008 001 : (Channel Adapter portguid 0x0000000000000011: 'n1 mlx5_0')
0x0009 001 : (path #2 out of 4: portguid 0x0000000000000011)
0x000c 002
3 valid lids dumped
";

const ETHERNET: &str = r#"{"network_info":{"network_type":1},"node_info":{
"a:1":{"phy_id":"a:1","node_type":2,"log_id":"10.0.0.1","desc":" "},
"a:2":{"phy_id":"a:2","node_type":2,"log_id":"10.0.0.2","desc":" "},
"b:1":{"phy_id":"b:1","node_type":1,"log_id":"x","desc":"top"}},"edge_info":{
"1":{"euid":1,"src_node_id":"a:1","src_port_id":"-1","dest_node_id":"b:1","dest_port_id":"1","speed":"1","width":"1"},
"2":{"euid":2,"src_node_id":"a:2","src_port_id":"-1","dest_node_id":"b:1","dest_port_id":"2","speed":"1","width":"1"},
"3":{"euid":3,"src_node_id":"b:1","src_port_id":"1","dest_node_id":"a:1","dest_port_id":"-1","speed":"1000000","width":"1"},
"4":{"euid":4,"src_node_id":"b:1","src_port_id":"2","dest_node_id":"a:2","dest_port_id":"-1","speed":"1","width":"1"}}}"#;

const ETHERNET_PATHS: &str = r#"{"path_info":{"a:1":{"a:2":[1,4]},"a:2":{"a:1":[2,3]},"b:1":{}}}"#;

const OPA_TEXT: &str = "\
Link Summary
2 Links in Fabric:
Rate NodeGUID          Port Type Name
100g 0x0011750101670001   1 FI   node1 hfi1_0
<->  0x0011750102000001   7 SW   leaf 1
 25g 0x0011750101670002   1 FI   node2 hfi1_0
     Cable: S4567                11m
<->  0x0011750102000001   8 SW   leaf 1
";

const OPA_XML: &str = r#"<?xml version="1.0" encoding="utf-8" ?>
<Report date="d" options="-x -o links" ><LinkSummary><LinkCount>2</LinkCount>
<Link id="1"><Rate>100g</Rate><Port id="a"><NodeGUID>0x0011750101670001</NodeGUID><PortNum>1</PortNum>
<NodeType>FI</NodeType><NodeDesc>node1 &amp; hfi1_0</NodeDesc></Port><Port id="b"><NodeGUID>0x0011750102000001</NodeGUID>
<PortNum>7</PortNum><NodeType>SW</NodeType><NodeDesc>leaf</NodeDesc></Port></Link>
<Link id="1"><Rate>100g</Rate><Port id="a"><NodeGUID>0x0011750101670002</NodeGUID><PortNum>1</PortNum>
<NodeType>FI</NodeType><NodeDesc>node2 &#x41; hfi1_0</NodeDesc></Port><Port id="b"><NodeGUID>0x0011750102000001</NodeGUID>
<PortNum>8</PortNum><NodeType>SW</NodeType><NodeDesc>leaf</NodeDesc></Port></Link>
</LinkSummary></Report>
"#;

const OPA_TABLE: &str = "\
Rate;LinkDetails;Port.NodeDesc;Port.PortNum;Port.NodeDesc;Port.PortNum

100g;;node1 hfi1_0;1;leaf 1;7
25g;;node2 hfi1_0;1;leaf 1;8
";

const OPA_PLAIN: &str = "\
0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;leaf 1
0x0011750101670002;1;FI;node2 hfi1_0;0x0011750102000001;8;SW;leaf 1
";

const LINK_INFO: &str = "\
CA: node1 hfi1_0:
      0x0c42a10300aa0001     11    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       5    1[  ] \"leaf\" ( )
CA: node2 hfi1_0:
      0x0c42a10300aa0002     12    1[  ] ==( 2X        53.125 Gbps Active/  LinkUp)==>       5    2[  ] \"leaf\" ( Could be 4X)
Switch: 0x0c42a10300bb0001 leaf:
           5    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>      11    1[  ] \"node1 hfi1_0\" ( )
           5    2[  ] ==( 2X        53.125 Gbps Active/  LinkUp)==>      12    1[  ] \"node2 hfi1_0\" ( Could be 4X)
           5    3[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )
";

const SAMPLES: &[Sample] = &[
    Sample { format: Format::Iblinkinfo, files: &[("links", LINK_INFO)], read: "links" },
    Sample { format: Format::Netloc, files: &[("nodes.txt", NETLOC)], read: "nodes.txt" },
    Sample { format: Format::Ibnetdiscover, files: &[("fabric", BLOCKS), ("tables", TABLES)], read: "" },
    Sample { format: Format::Ibnetdiscover, files: &[("fabric", COLUMNS)], read: "fabric" },
    Sample { format: Format::Omnipath, files: &[("links", OPA_TEXT)], read: "links" },
    Sample { format: Format::Omnipath, files: &[("links", OPA_XML)], read: "links" },
    Sample { format: Format::Omnipath, files: &[("links", OPA_TABLE)], read: "links" },
    Sample { format: Format::Omnipath, files: &[("links", OPA_PLAIN)], read: "links" },
    Sample {
        format: Format::NetlocDat,
        files: &[("E-nodes.ndat", ETHERNET), ("E-phy-paths.ndat", ETHERNET_PATHS)],
        read: "",
    },
    Sample {
        format: Format::NetlocRaw,
        files: &[("ib-raw/ib-subnet-1.txt", COLUMNS), ("ib-raw/ibroutes-1/ibroute-1-4.txt", TABLES)],
        read: "",
    },
];

/// Writes a sample, optionally with one damaged file.
fn write(folder: &TempDir, sample: &Sample, damaged: Option<&mut Random>) -> PathBuf {
    write_with(folder, sample, |files| {
        if let Some(random) = damaged {
            let place = random.below(files.len());
            damage(&mut files[place].1, random, TELLING);
        }
    })
}

/// Writes a sample with some of its files changed.
fn write_with(
    folder: &TempDir,
    sample: &Sample,
    change: impl FnOnce(&mut Vec<(PathBuf, Vec<u8>)>),
) -> PathBuf {
    let file = |(name, text): &(&str, &str)| (folder.path().join(name), text.as_bytes().to_vec());
    let mut files: Vec<(PathBuf, Vec<u8>)> = sample.files.iter().map(file).collect();
    change(&mut files);
    for (path, bytes) in files {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    if sample.read.is_empty() { folder.path().to_owned() } else { folder.path().join(sample.read) }
}

/// Reads it as its format and as the detected one; machines must be consistent, and paths must end.
fn try_all(path: &Path, format: Format) {
    for format in [Some(format), recognise(path).ok()].into_iter().flatten() {
        let _ = files(path, Some(format));
        let params = ImportParams { format: Some(format), ..ImportParams::of(path) };
        let Ok(imported) = read(path, &params) else { continue };
        imported.system.check().unwrap();
        let nodes = imported.system.nodes.len() as u32;
        let Some(paths) = Paths::new(&imported.system) else { continue };
        for a in 0..nodes.min(8) {
            (0..nodes.min(8)).for_each(|b| drop(paths.path(a, b)));
        }
    }
}

#[test]
fn damaged_fabrics_end_in_an_error_or_a_machine() {
    let count = SAMPLES.len() as u64;
    for seed in seeds(100 * count, 20_000 * count) {
        let sample = &SAMPLES[(seed % count) as usize];
        let folder = tempfile::tempdir().unwrap();
        let path = write(&folder, sample, Some(&mut Random(seed)));
        try_all(&path, sample.format);
    }
}

#[test]
fn undamaged_samples_are_machines() {
    for (number, sample) in SAMPLES.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(&folder, sample, None);
        assert_eq!(recognise(&path).unwrap(), sample.format);
        let imported = read(&path, &ImportParams::of(&path)).unwrap();
        assert_eq!(imported.system.nodes.len(), 3, "{number}");
        assert_eq!(Paths::new(&imported.system).unwrap().hops(0, 1), Some(2), "{number}");
    }
}

#[test]
fn extreme_numbers_end_in_an_error_or_a_machine_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    for sample in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        for (file, (_, text)) in sample.files.iter().enumerate() {
            for bytes in with_extreme_numbers(text.as_bytes()) {
                let path = write_with(&folder, sample, |files| files[file].1 = bytes);
                try_all(&path, sample.format);
            }
        }
    }
}
