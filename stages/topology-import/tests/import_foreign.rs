//! Text files as people have them: with messages of other programs, packed, or with one line that is wrong.

use std::io::Read as _;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzEncoder;
use hopmap_test_support::given_data;
use hopmap_topology_import::import::{Format, ImportParams, Imported, read, recognise};
use proptest::prelude::*;

use crate::support::fabric::Fabric;

fn fabric() -> Fabric {
    let mut fabric = Fabric::default();
    let (leaf, other, spine) = (fabric.switch("leaf-1"), fabric.switch("leaf-2"), fabric.switch("spine"));
    fabric.trunks = vec![(leaf, spine), (other, spine)];
    (0..4).for_each(|host| fabric.adapter(format!("n{host} mlx5_0"), host % 2, false));
    fabric
}

fn samples() -> Vec<(Format, String)> {
    let fabric = fabric();
    let mut samples = vec![
        (Format::Ibnetdiscover, fabric.blocks()),
        (Format::Omnipath, fabric.report()),
        (Format::Iblinkinfo, fabric.link_info(false)),
        (Format::Iblinkinfo, fabric.link_info(true)),
    ];
    samples.extend(
        [
            (Format::SlurmConf, "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=t Switches=s[0-1]\n"),
            (Format::SlurmYaml, "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - switch: s0\n        nodes: n[0-1]\n"),
            (Format::GraphCsv, "source,destination,source_type,destination_type\na,s,host,switch\nb,s,host,switch\n"),
            (Format::GraphJson, "{\"nodes\": [{\"id\": \"a\"}, {\"id\": \"b\"}],\n\"links\": [{\"source\": \"a\", \"target\": \"b\"}]}\n"),
            (Format::Simgrid, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\"/>\n</platform>\n"),
            (Format::Hwloc, "<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><object type=\"Machine\">\n<object type=\"Core\"><object type=\"PU\" os_index=\"0\"/></object>\n</object></topology>\n"),
            (Format::Scotch, "tleaf 2 2 5\n2 1\n"),
            (Format::Kahip, "4:16:8\n1:10:100\n"),
            (Format::LabelList, "host,leaf,spine\nn0,l0,s0\nn1,l0,s0\nn2,l1,s0\n"),
            (Format::Matrix, "0,1,2\n1,0,2\n2,2,0\n"),
            (Format::Topograph, "{\"instances\": [\n{\"id\": \"a\",\n\"network_layers\": [\"l\"]}]}\n"),
            (Format::SwitchMap, "{\n\"a\": \"s\",\n\"b\": \"s\"}\n"),
            (Format::KubectlNodes, "NAME   STATUS   ROLES    AGE   LEAF\nn0     Ready    <none>   3d    l0\nn1     Ready    <none>   3d    l1\nn2     Ready    <none>   3d    \n"),
            (Format::NcclTopology, "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"2:0\"><gpu dev=\"0\"/></pci>\n</cpu></system>\n"),
            (Format::NvidiaSmi, "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \tN/A\n\nNIC Legend:\n  NIC0: mlx5_0\n"),
            (Format::CoreToCore, ",,\n1.5,,\n2,3,\n"),
            (Format::Mpigraph, "START mpiGraph v1.5\n\nSend\ta:0\tb:1\t\na:0 to\t0\t2\t\nb:1 to\t5\t0\t\n\nRecv\ta:0\tb:1\t\na:0 from\t0\t2\t\nb:1 from\t9\t0\t\nEND mpiGraph\n"),
            (Format::Parus, "processors 2\ntest type \"one_to_one\"\ndata type \"average\"\nbegin message length 0\nend message length 100\n\
                             step length 100\nnoise message length 0\nnumber of noise messages 0\nnumber of noise processes 0\n\
                             number of repeates 7\nhosts:\na\nb\nMessage length 0\n0.0 1e-6\n2e-6 0\n"),
        ]
        .map(|(format, text)| (format, text.to_owned())),
    );
    samples
}

fn import(path: &Path) -> Result<Imported, String> {
    read(path, &ImportParams::of(path)).map_err(|error| error.to_string())
}

const FOREIGN: [&str; 15] = [
    "+ kubectl get nodes -o json",
    "ibwarn: [2718] mad_rpc: _do_madrpc failed; dport (Lid 12)",
    "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out",
    "umad_init: cannot open umad port",
    "srun: error: n3: task 3: Exited with exit code 1",
    "Warning: Permanently added 'n1' (ED25519) to the list of known hosts.",
    "E1129 12:00:00.000000   12345 memcache.go:265] couldn't get current server API group list",
    "Error from server (Forbidden): nodes is forbidden",
    "-W- lid=0x0009 guid=0x0001 port 7 is down",
    "$ ibnetdiscover --full > fabric.topo",
    "# nvidia-smi topo -m > gpus.txt",
    "user@login-1:~/runs$ kubectl get nodes",
    "[root@n1 ~]# scontrol show topology",
    "2026-11-29T12:00:00.123Z INFO reading the fabric",
    "Nov 29 12:00:00 n1 opensm[7]: state change",
];

#[test]
fn lines_of_other_programs_are_skipped_and_said_in_every_text_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    for (format, text) in samples() {
        std::fs::write(&path, &text).unwrap();
        assert_eq!(recognise(&path).ok(), Some(format), "{text}");
        let plain = import(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (place, foreign) in (0..=lines.len()).flat_map(|place| FOREIGN.map(|line| (place, line))) {
            let mixed = [&lines[..place], &[foreign, foreign], &lines[place..]].concat().join("\n") + "\n";
            std::fs::write(&path, &mixed).unwrap();
            let imported = import(&path).unwrap_or_else(|error| panic!("{error}: {mixed}"));
            assert_eq!(imported.system, plain.system, "{mixed}");
            let note = format!(
                "lines of other programs, skipped: 2, the first in line {}: `{}",
                place + 1,
                &foreign[..20]
            );
            assert!(imported.notes.iter().any(|own| own.starts_with(&note)), "{:?}", imported.notes);
            assert_eq!(imported.notes.len(), plain.notes.len() + 1, "{:?}", imported.notes);
        }
    }
}

/// What a script prints around or between the lines of a program was the reason to refuse its JSON.
#[test]
fn words_around_json_are_skipped() {
    use Format::{GraphJson, SwitchMap, Topograph};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    for (format, text) in
        samples().into_iter().filter(|(format, _)| [GraphJson, SwitchMap, Topograph].contains(format))
    {
        std::fs::write(&path, &text).unwrap();
        let plain = import(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (place, other) in (0..=lines.len()).flat_map(|place| {
            ["WARNING:", "done", "-----", "Reading nodes …", "<end>"].map(|line| (place, line))
        }) {
            let mixed = [&lines[..place], &[other], &lines[place..]].concat().join("\n");
            std::fs::write(&path, &mixed).unwrap();
            let imported = import(&path).unwrap_or_else(|error| panic!("{error}: {mixed}"));
            assert_eq!(
                (recognise(&path).ok(), imported.system),
                (Some(format), plain.system.clone()),
                "{mixed}"
            );
            assert!(imported.notes.iter().any(|note| note.contains("skipped: 1, ")), "{:?}", imported.notes);
        }
    }
}

/// They were a sign that the listing is cut off.
#[test]
fn words_behind_a_listing_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    for (format, text) in &samples()[..4] {
        if *format == Format::Omnipath {
            continue;
        }
        std::fs::write(&path, text).unwrap();
        let plain = import(&path).unwrap();
        for end in ["done", "done\n", "-----\n\n", "=====\nfinished in 3 s"] {
            std::fs::write(&path, format!("{text}{end}")).unwrap();
            let imported = import(&path).unwrap_or_else(|error| panic!("{error}: {text}{end}"));
            assert_eq!(imported.system, plain.system);
            let note = format!(
                "lines of other programs, skipped: {}, the first in line",
                end.trim().lines().count()
            );
            assert!(imported.notes.iter().any(|own| own.starts_with(&note)), "{:?}", imported.notes);
        }
    }
}

/// Half of the rows were left out, as every one with a time is like a line of a log.
#[test]
fn rows_behind_a_prefix_are_refused() {
    use Format::{GraphCsv, Iblinkinfo, Ibnetdiscover, KubectlNodes, LabelList, Matrix, SlurmConf};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    for (format, text) in samples() {
        if ![GraphCsv, Iblinkinfo, Ibnetdiscover, KubectlNodes, LabelList, Matrix, SlurmConf]
            .contains(&format)
        {
            continue;
        }
        for prefix in ["12:00:01 ", "2026-11-30T10:00:00 ", "[2026-11-30 10:00:00,5] ", "Nov 30 10:00:00 "] {
            // The second one of rows that are alike: the last one of the table lacks a label.
            let lines: Vec<&str> = text.lines().collect();
            let place = lines.len() - 1 - usize::from(format == KubectlNodes);
            let mixed: String = lines
                .iter()
                .enumerate()
                .flat_map(|(at, line)| [if at == place { prefix } else { "" }, line, "\n"])
                .collect();
            std::fs::write(&path, &mixed).unwrap();
            let error = import(&path).err().unwrap_or_else(|| panic!("{mixed}"));
            assert!(
                error.contains(&format!("machine:{}: the row `", place + 1))
                    && error.contains(&format!("is behind `{}", prefix.trim_end())),
                "{error}: {mixed}"
            );
        }
        for prefix in ["12:00:01 ", "[1,0]<stdout>:", "[n01] ", "0: ", "n01: "] {
            if format == Matrix {
                continue;
            }
            let mixed: String = text.lines().flat_map(|line| [prefix, line, "\n"]).collect();
            std::fs::write(&path, &mixed).unwrap();
            let error = import(&path).unwrap_err();
            assert!(
                error.contains(&format!(
                    "every line is behind `{prefix}`; without it, this is `{}`",
                    format.name()
                )),
                "{error}: {mixed}"
            );
        }
    }
}

proptest! {
    /// Words of a shell or a program behind or between the lines of a file were hosts in tables, and made XML one that is not valid.
    #[test]
    fn other_lines_are_told_by_their_shape(
        sample in 0..samples().len(),
        place in 0usize..99,
        words in prop::collection::vec("[A-Za-z$>(~\\[][a-z0-9:.$~)\\\\-]{0,4}|-{4,9}|n[0-9]", 1..7),
    ) {
        use Format::{GraphCsv, Hwloc, KubectlNodes, LabelList, Matrix, NcclTopology, Simgrid};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        let (format, text) = samples().swap_remove(sample);
        std::fs::write(&path, &text).unwrap();
        let plain = import(&path).unwrap();
        let (mut lines, other): (Vec<&str>, _) = (text.lines().collect(), words.join(" "));
        let is_xml = matches!(format, Hwloc | NcclTopology | Simgrid);
        lines.insert(if is_xml { lines.len() } else { 1 + place % lines.len() }, &other);
        std::fs::write(&path, lines.join("\n")).unwrap();
        let is_skipped = is_xml || matches!(format, GraphCsv | KubectlNodes | LabelList | Matrix);
        match import(&path) {
            // The name of a host may begin half of its row.
            Err(error) => prop_assert!(!is_skipped || words[0].contains(|c: char| c.is_ascii_digit()), "{}: {error}", lines.join("\n")),
            Ok(Imported { system, notes }) => {
                prop_assert_eq!(system, plain.system, "{}", lines.join("\n"));
                // A legend of GPUs and the like is not counted.
                prop_assert!(!is_skipped || notes.len() > plain.notes.len(), "{}", lines.join("\n"));
            }
        }
    }
}

#[test]
fn packed_files_of_every_text_format_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (format, text)) in samples().into_iter().enumerate() {
        let (plain, path) =
            (folder.path().join(format!("{number}")), folder.path().join(format!("{number}.gz")));
        std::fs::write(&plain, &text).unwrap();
        let mut packed = Vec::new();
        GzEncoder::new(text.as_bytes(), Compression::fast()).read_to_end(&mut packed).unwrap();
        std::fs::write(&path, &packed).unwrap();
        assert_eq!(recognise(&path).ok(), Some(format), "{text}");
        let (own, expected) = (import(&path).unwrap(), import(&plain).unwrap());
        assert_eq!(own.system.links, expected.system.links);
        assert_eq!(own.system.slots, expected.system.slots);
        assert_eq!(own.notes, expected.notes);
    }
}

#[test]
fn a_file_with_one_wrong_line_is_told_its_nearest_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    for (format, text) in [&samples()[4..7], &samples()[12..13]].concat() {
        std::fs::write(&path, format!("what is this?\n{text}")).unwrap();
        let error = import(&path).unwrap_err();
        let expected =
            format!("nearest to `{}`, whose files do not have a line such as line 1", format.name());
        assert!(error.contains(&expected), "{error}");
    }
    std::fs::write(&path, " \n").unwrap();
    assert!(import(&path).unwrap_err().ends_with(": it is empty"));
    std::fs::write(&path, "what is this?\nnobody knows\n").unwrap();
    assert!(import(&path).unwrap_err().ends_with("unknown machine topology format"));
}

#[test]
fn reports_of_people_are_read_or_refused() {
    let Some(reports) = given_data().map(|folder| folder.join("reports")) else { return };
    let Imported { system, notes } = import(&reports.join("ib-warning-first.topo")).unwrap();
    assert_eq!((system.hosts().count(), system.links.len()), (2, 4));
    assert!(
        notes.len() == 1 && notes[0].starts_with("lines of other programs, skipped: 1, the first in line 1"),
        "{notes:?}"
    );
    let Imported { system, notes } = import(&reports.join("iblinkinfo.txt")).unwrap();
    assert_eq!(
        (system.hosts().count(), system.links.len(), notes),
        (2, 4, vec!["ports without a cable, ignored: 1".to_owned()])
    );
    let path = reports.join("opareport-cut.txt");
    let error = import(&path).unwrap_err();
    assert!(error.ends_with("opareport-cut.txt:3: the report states 8 links, but 5 are listed: it is cut off, or limited to a part"), "{error}");
    let allowed = read(&path, &ImportParams { allow_truncated: true, ..ImportParams::of(&path) }).unwrap();
    assert_eq!((allowed.system.hosts().count(), allowed.system.links.len()), (5, 10));
    assert!(allowed.notes[0].contains("states 8 links, but 5 are listed"), "{:?}", allowed.notes);
}

#[test]
fn a_cut_listing_is_refused_or_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine");
    let (whole, count) = (fabric(), 4);
    for text in [whole.blocks(), whole.report(), whole.link_info(false), whole.link_info(true)] {
        let lines: Vec<&str> = text.lines().collect();
        for end in 1..lines.len() - 1 {
            std::fs::write(&path, lines[..end].join("\n") + "\n").unwrap();
            let all = |imported: Imported| {
                imported.system.hosts().count() == count && imported.system.links.len() == 12
            };
            let is_said = |imported: Imported| {
                imported.notes.iter().any(|note| note.contains("cut off")) || all(imported)
            };
            assert!(import(&path).map_or(true, is_said), "{}", lines[..end].join("\n"));
            let Ok(some) = read(&path, &ImportParams { allow_truncated: true, ..ImportParams::of(&path) })
            else {
                continue;
            };
            assert!(
                some.notes.iter().any(|note| note.contains("`allow_truncated` permits"))
                    || is_said(some.clone()),
                "{:?}",
                some.notes
            );
        }
    }
}
