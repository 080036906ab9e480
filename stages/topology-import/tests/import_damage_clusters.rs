//! Damages descriptions of clusters and graphs: importing any bytes ends in an error or in a consistent
//! machine.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use std::fs;

use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};
use hopmap_topology_import::import::{Format, ImportParams, read};

const CONF: &str = "# tree\nSwitchName=s0 Nodes=n[0-3] LinkSpeed=4\nswitchname=s1 Nodes=\"n[4-5],m1\" \\\n \nSwitchName=t Switches=s[0-1]\n";
const BLOCKS: &str =
    "BlockName=b0 Nodes=n[0-3]\nBlockName=b1 Nodes=n[4-7]\nBlockName=b2 Nodes=n[8-9]\nBlockSizes=4,8\n";
const YAML: &str = "---\n- topology: a\n  cluster_default: true\n  tree:\n    switches:\n    - switch: t\n      children: s[0-1]\n    - {switch: s0, nodes: n1}\n    \
                    - switch: s1\n      nodes: [n2, \"m[1-3]\"]\n- topology: b\n  block:\n    block_sizes: [2, 4]\n    blocks:\n    - block: x\n      nodes: n3\n";
const MODEL: &str = "switches:\n  c:\n    labels: {a: b}\n    switches: [l1, l2]\nblocks:\n- switch: l1\n  nodes: [\"n[1-2]\"]\n- switch: l2\n  nodes: [n3]\n";
const RINGS: &str = "RingName=r0 Nodes=n[0-3]\nRingName=r1 Nodes=\"m1,m2\"\n";
const TORI: &str = "- topology: a\n  torus3d:\n    toruses:\n    - name: p\n      dims: {x: 3, y: 2, z: 2}\n      nodes: n[1-12]\n      placements: {dims: {x: 1, y: 2, z: 2}}\n    \
                    - name: q\n      dims: {x: 2, y: 2, z: 1}\n      regions:\n      - anchor: {x: 1, y: 0, z: 0}\n        dims: {x: 1, y: 2, z: 1}\n        nodes: [m1, m2]\n";
const YAML_RINGS: &str =
    "- topology: a\n  ring:\n    rings:\n    - ring: r0\n      nodes: n[1-4]\n    - {ring: r1, nodes: m1}\n";
const TOPOGRAPH: &str = r#"{"instances":[{"id":"n1","network_layers":["l1","s1"],"labels":{"network.topology.nvidia.com/accelerator":"d"}},
{"id":"n2","network_layers":["l1","s1"]},{"id":"n3","network_layers":["l2","s1"]},{"id":"n9"}]}"#;
const MAP: &str = r#"{"10.0.0.1": "s1", "10.0.0.2": "s1", "10.0.0.3": "s2"}"#;
const LABELS: &str = "host,accelerator,leaf,spine\nn1,d1,l1,s1\nn2,d1,l1,s1\nn3,,l2,s1\nn9,,,\n";
const SMI: &str = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV4\tPHB\t0-7\nGPU1\tNV4\t X \tSYS\t0-7\nGPU2\tPHB\tSYS\t X \t8\n";
const NCCL: &str = "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1:0\" class=\"0x060400\"><pci busid=\"2:0\"><gpu dev=\"0\"><nvlink target=\"3:0\" count=\"4\"/></gpu></pci>\
<pci busid=\"3:0\"><gpu dev=\"1\"/></pci></pci></cpu><cpu numaid=\"1\"><pci busid=\"4:0\"><gpu dev=\"2\"/></pci></cpu></system>\n";
const CSV: &str = "source,source_port,source_slots,destination,destination_port,speed,latency_us,state,both\nn1,1,4,s,7,25G,1.5,up,\n\
                   n2,1,2,s,8,4xHDR,2,down,yes\n\"n,3\",,,s,9,,,,no\n";
const JSON: &str = r#"{"directed":true,"nodes":[{"name":"a","kind":"host"},{"name":"s","kind":"switch","state":"down"}],
"links":[{"source":0,"source_port":1,"destination":1,"latency_s":1e-6},{"source":1,"destination":0,"state":"down"}],
"slots":[[0,0],[0,1]],"routing":{"ties":"first","forwarding":[[0,1,0],[1,1,1]]},"cost":{"metric":"hops","inside":{"costs":[0.5],"groups":[[0,0]]}}}"#;
const LENIENT: &str = r#"{"nodes":[{"id":1,"slots":2},{"id":2,"cores":[1,3]},"x"],"edges":[{"from":1,"to":"x","rate":"25G","latency":"1us"},{"source":2,"target":"x","both":false}]}"#;
const NETQ: &str = r#"[{"links":[{"compounded_links":[{"interfaces":[{"node":"n1"},{"node":"n2"}]}]}],"nodes":[{"compounded_nodes":[{"id":"n1","name":"l"},{"id":"n2"}]}]}]"#;
const PLATFORM: &str = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n\
<host id=\"a\" speed=\"1Gf\" core=\"2\"/><host id=\"b\" speed=\"1Gf\"/><router id=\"r\"/>\n<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>\
<link id=\"m\" bandwidth=\"1GBps\"/>\n<route src=\"a\" dst=\"b\"><link_ctn id=\"l_UP\"/><link_ctn id=\"m\"/></route>\n<route src=\"a\" dst=\"r\" symmetrical=\"NO\"><link_ctn id=\"m\"/></route>\n</zone></platform>\n";
const ZONES: &str = "<platform version=\"4.1\"><AS id=\"w\" routing=\"Floyd\">\n<cluster id=\"x\" prefix=\"n\" suffix=\"\" radical=\"0-2,5\" speed=\"1f\" bw=\"1Gbps\" lat=\"1us\" bb_bw=\"1GBps\"/>\n\
<cluster id=\"y\" prefix=\"m\" suffix=\"\" radical=\"0-2\" speed=\"1f\" bw=\"1Gbps\" lat=\"1us\"/>\n<zone id=\"k\" routing=\"Cluster\"><cabinet id=\"q\" prefix=\"p\" suffix=\"\" radical=\"1-2\" speed=\"1f\" bw=\"1Bps\" lat=\"1s\"/></zone>\n\
<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>\n<ASroute src=\"x\" dst=\"y\" gw_src=\"nx_router\" gw_dst=\"my_router\"><link_ctn id=\"l\"/></ASroute>\n</AS></platform>\n";
const SHAPES: [&str; 3] = [
    "FAT_TREE\" topo_parameters=\"2;2,2;1,2;1,1",
    "TORUS\" topo_parameters=\"2,2",
    "DRAGONFLY\" topo_parameters=\"2,1;1,1;2,1;1",
];

/// A sample with its format; damaged samples that look like another format are still read as this one.
fn sample(random: &mut Random) -> (Format, String) {
    let shape = || {
        let kind = SHAPES[0];
        format!(
            "<platform version=\"4\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1f\" bw=\"1Bps\" lat=\"1s\" topology=\"{kind}\"/></platform>"
        )
    };
    match random.below(22) {
        0 | 1 => (Format::SlurmConf, CONF.into()),
        2 => (Format::SlurmConf, BLOCKS.into()),
        3 => (Format::SlurmYaml, YAML.into()),
        4 => (Format::SlurmYaml, MODEL.into()),
        5 => (Format::GraphCsv, CSV.into()),
        6 => (Format::GraphJson, JSON.into()),
        7 => (Format::GraphJson, LENIENT.into()),
        8 => (Format::GraphJson, NETQ.into()),
        9 => (Format::Simgrid, PLATFORM.into()),
        10 => (Format::Simgrid, ZONES.into()),
        11 => (Format::SlurmConf, RINGS.into()),
        12 => (Format::Topograph, TOPOGRAPH.into()),
        13 => (Format::SwitchMap, MAP.into()),
        14 => (Format::LabelList, LABELS.into()),
        19 => (
            Format::KubectlNodes,
            "NAME  AGE  LEAF  SPINE\nn1    1d   l1    s\nn2    1d   -\nn3    2d         s\n".into(),
        ),
        15 => (Format::NvidiaSmi, SMI.into()),
        16 => (Format::NcclTopology, NCCL.into()),
        17 => (Format::SlurmYaml, TORI.into()),
        18 => (Format::SlurmYaml, YAML_RINGS.into()),
        _ => (Format::Simgrid, shape().replace(SHAPES[0], SHAPES[random.below(3)])),
    }
}

fn telling(format: Format) -> &'static [u8] {
    match format {
        Format::SlurmConf => b"=[]-,#\\\n \"0129snNS",
        Format::SlurmYaml => b":-[]{},\n \"'&*!|>?%0129sn",
        Format::NvidiaSmi => b"GPUNVXISYHB \t\n0129-",
        Format::KubectlNodes => b"  \n\tNAMELF-/1",
        Format::LabelList | Format::GraphCsv => b",;\"\n\t #.0129eG",
        Format::GraphJson | Format::Topograph | Format::SwitchMap => b"{}[]:,\"\\0129-.e\n",
        _ => b"<>/=\"'&;!?[]-,0129 \n",
    }
}

#[test]
fn undamaged_descriptions_are_machines() {
    for seed in 0..200 {
        let (format, text) = sample(&mut Random(seed));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        assert_eq!(hopmap_topology_import::import::recognise(file.path()).unwrap(), format);
        read(file.path(), &ImportParams::default()).unwrap().system.check().unwrap();
    }
}

#[test]
fn damaged_descriptions_end_in_an_error_or_a_machine() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for seed in seeds(3000, 300_000) {
        let mut random = Random(seed);
        let (format, text) = sample(&mut random);
        let mut bytes = text.into_bytes();
        damage(&mut bytes, &mut random, telling(format));
        fs::write(file.path(), &bytes).unwrap();
        let params = ImportParams { format: Some(format), ..ImportParams::default() };
        match read(file.path(), &params) {
            Ok(imported) => imported.system.check().unwrap(),
            Err(error) => assert!((1..5000).contains(&error.to_string().len()), "{seed}"),
        }
    }
}

#[test]
fn extreme_numbers_end_in_an_error_or_a_machine_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let samples: std::collections::BTreeMap<String, Format> =
        (0..200).map(|seed| sample(&mut Random(seed))).map(|(format, text)| (text, format)).collect();
    for (text, format) in samples {
        for bytes in with_extreme_numbers(text.as_bytes()) {
            fs::write(file.path(), &bytes).unwrap();
            crate::support::description::description(file.path(), format);
        }
    }
}
