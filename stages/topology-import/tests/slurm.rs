//! Slurm topologies: exports are imported again, and a real controller accepts them (with
//! `HOPMAP_SYSTEM_TESTS=1`).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hopmap_model::{CostModel, Levels, Link, Node, RouteCosts, RouteMetric, Routing, Slot, SystemGraph};
use hopmap_test_support::system_tests;
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{ImportParams, read};
use proptest::prelude::*;

use crate::support::description::import;

fn export(system: &SystemGraph, format: ExportFormat) -> (String, Vec<String>) {
    let (file, lost) = write(system, &ExportParams { format }).unwrap();
    (file.text, lost)
}

fn conf(system: &SystemGraph) -> String {
    export(system, ExportFormat::SlurmConf).0.split_inclusive('\n').skip(1).collect()
}

/// Hosts and switches with links in both directions.
fn network(hosts: &[&str], switches: &[&str], ends: &[(u32, u32)]) -> SystemGraph {
    let mut nodes: Vec<Node> = hosts.iter().map(|name| Node::host(*name)).collect();
    nodes.extend(switches.iter().map(|name| Node::switch(*name)));
    let count = hosts.len() as u32;
    let system = SystemGraph {
        nodes,
        links: ends.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]).collect(),
        slots: (0..count).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Routes(RouteCosts {
            metric: RouteMetric::Hops,
            inside: Levels { costs: vec![0.0], groups: vec![(0..count).collect()] },
        }),
        routing: Routing::default(),
        calibration: Vec::new(),
    };
    system.check().unwrap();
    system
}

#[test]
fn equivalent_switches_are_merged() {
    // Two pods of two leaves and two spines each, two cores, and two hosts per leaf.
    let hosts: Vec<String> = (0..8).map(|host| format!("n{host}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let switches = ["l0", "l1", "l2", "l3", "p0", "p1", "p2", "p3", "c0", "c1"];
    let mut ends: Vec<(u32, u32)> = (0..8).map(|host| (host, 8 + host / 2)).collect();
    for leaf in 0..4 {
        ends.extend((0..2).map(|spine| (8 + leaf, 12 + leaf / 2 * 2 + spine)));
    }
    ends.extend((12..16).flat_map(|spine| [(spine, 16), (spine, 17)]));
    let system = network(&hosts, &switches, &ends);
    let expected = "SwitchName=l0 Nodes=n[0-1]\nSwitchName=l1 Nodes=n[2-3]\nSwitchName=l2 Nodes=n[4-5]\nSwitchName=l3 Nodes=n[6-7]\n\
                    SwitchName=p0 Switches=l[0-1]\nSwitchName=p2 Switches=l[2-3]\nSwitchName=c0 Switches=p[0,2]\n";
    assert_eq!(conf(&system), expected);
    let lost = export(&system, ExportFormat::SlurmYaml).1;
    assert!(lost[0].contains("3 switches of the tree represent several"), "{lost:?}");
}

#[test]
fn hosts_below_the_same_rails_are_grouped() {
    let hosts = ["a1", "a2", "b1", "b2"];
    let rails = |host: u32| [(host, 4 + host / 2 * 2), (host, 5 + host / 2 * 2)];
    let mut ends: Vec<(u32, u32)> = (0..4).flat_map(rails).collect();
    ends.extend((4..8).map(|leaf| (leaf, 8)));
    let system = network(&hosts, &["r0", "r1", "r2", "r3", "spine"], &ends);
    let expected =
        "SwitchName=r0 Nodes=a[1-2]\nSwitchName=r2 Nodes=b[1-2]\nSwitchName=spine Switches=r[0,2]\n";
    assert_eq!(conf(&system), expected);
}

#[test]
fn names_are_changed_to_ones_that_slurm_accepts() {
    let long = "x".repeat(100);
    let switches = ["MF0;A09:MQM9700/U1", "MF0;A09:MQM9700/U2", &long, "n1:"];
    let ends = [(0, 3), (1, 4), (2, 5), (3, 6), (4, 6), (5, 6)];
    let (text, lost) = export(&network(&["n1", "n2", "n3"], &switches, &ends), ExportFormat::SlurmConf);
    assert!(text.contains("SwitchName=MF0_A09_MQM9700_U1 Nodes=n1\n"), "{text}");
    assert!(text.contains("SwitchName=n1_ Switches=MF0_A09_MQM9700_U[1-2],xxxx"), "{text}");
    assert!(lost.iter().any(|lost| lost.starts_with("the names of 4 switches")), "{lost:?}");
    let refused =
        write(&network(&["n 1"], &["s"], &[(0, 1)]), &ExportParams { format: ExportFormat::SlurmConf });
    assert!(refused.unwrap_err().to_string().contains("does not accept the host name `n 1`"));
}

#[test]
fn a_machine_without_links_is_grouped_by_its_costs() {
    let mut system = network(&["a", "b", "c", "d", "e"], &[], &[]);
    let groups = vec![(0..5).collect(), vec![0, 0, 1, 1, 2], vec![0; 5]];
    system.cost = CostModel::Levels(Levels { costs: vec![0.0, 1.0, 2.0], groups });
    let expected = "SwitchName=level1-0 Nodes=a,b\nSwitchName=level1-1 Nodes=c,d\nSwitchName=level2-0-hosts Nodes=e\n\
                    SwitchName=level2-0 Switches=level1-[0-1],level2-0-hosts\n";
    assert_eq!(conf(&system), expected);
    // A ring of hosts is not a tree.
    let ring = network(&["a", "b", "c"], &[], &[(0, 1), (1, 2), (2, 0)]);
    let error = write(&ring, &ExportParams { format: ExportFormat::SlurmConf }).unwrap_err();
    assert!(error.to_string().contains("linked directly"), "{error}");
}

#[test]
fn hosts_without_links_are_included() {
    let system = network(&["a", "b", "c"], &["s"], &[(0, 3), (2, 3)]);
    assert_eq!(conf(&system), "SwitchName=unlinked Nodes=b\nSwitchName=s Nodes=a,c\n");
    assert_eq!(import(&conf(&system)).system.nodes.len(), 5);
}

/// A forest of switches with all leaf switches on one level, as a `topology.conf`.
fn any_conf() -> impl Strategy<Value = String> {
    let part = (1..4_usize, proptest::collection::vec(2..4_usize, 0..3), 1..5_usize);
    proptest::collection::vec(part, 1..3).prop_map(|parts| {
        let mut text = String::new();
        let mut host = 0;
        for (part, (_, branches, hosts)) in parts.into_iter().enumerate() {
            let mut row: Vec<String> =
                (0..branches.iter().product()).map(|leaf| format!("p{part}leaf{leaf}")).collect();
            for leaf in &row {
                text.push_str(&format!("SwitchName={leaf} Nodes=h[{host}-{}]\n", host + hosts));
                host += hosts + 1;
            }
            for (level, width) in branches.iter().enumerate() {
                let above = row.chunks(*width).enumerate().map(|(index, below)| {
                    let name = format!("p{part}level{level}s{index}");
                    text.push_str(&format!("SwitchName={name} Switches={}\n", below.join(",")));
                    name
                });
                row = above.collect();
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn trees_are_read_as_they_were_written(text in any_conf()) {
        let system = import(&text).system;
        for to in [ExportFormat::SlurmConf, ExportFormat::SlurmYaml] {
            let (text, lost) = export(&system, to);
            prop_assert_eq!(&import(&text).system, &system);
            prop_assert!(lost.is_empty(), "{:?}", lost);
        }
    }
}

/// A Slurm controller for a topology, and its munge daemon.
struct Controller {
    folder: tempfile::TempDir,
}

impl Controller {
    fn start(topology: &str, hosts: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        ["munge", "state", "spool"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let owner_only = |name: &str, mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(folder.path().join(name), mode).unwrap();
        };
        owner_only("munge", 0o711);
        fs::write(
            folder.path().join("munge/key"),
            (0..128).map(|byte| (byte * 37 % 251) as u8).collect::<Vec<_>>(),
        )
        .unwrap();
        owner_only("munge/key", 0o600);
        let munge = ["key", "pid", "log", "seed"].map(|name| format!("--{name}-file={path}/munge/{name}"));
        daemon("munged", munge.iter().cloned().chain([format!("--socket={path}/munge/socket")]));
        fs::write(folder.path().join("topology.conf"), topology).unwrap();
        fs::write(folder.path().join("slurm.conf"), configuration(&path, hosts)).unwrap();
        daemon("slurmctld", ["-f".to_owned(), format!("{path}/slurm.conf")].into_iter());
        Self { folder }
    }

    fn scontrol(&self, arguments: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let configuration = self.folder.path().join("slurm.conf");
            let output =
                Command::new("scontrol").args(arguments).env("SLURM_CONF", configuration).output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            let log = fs::read_to_string(self.folder.path().join("ctld.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{}\n{log}", String::from_utf8_lossy(&output.stderr));
            sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for file in ["ctld.pid", "munge/pid"] {
            let Ok(pid) = fs::read_to_string(self.folder.path().join(file)) else { continue };
            let pid = pid.trim().to_owned();
            // The `kill` of the shell: not every machine has the program.
            let _ = Command::new("sh").args(["-c", &format!("kill {pid}")]).status();
            let deadline = Instant::now() + Duration::from_secs(10);
            while Path::new("/proc").join(&pid).exists() && Instant::now() < deadline {
                sleep(Duration::from_millis(50));
            }
        }
    }
}

fn daemon(program: &str, arguments: impl Iterator<Item = String>) {
    let status = Command::new(program)
        .args(arguments)
        .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{program} does not start");
}

fn configuration(folder: &str, hosts: &str) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let listeners = [0; 2].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, other] = listeners.map(|listener| listener.local_addr().unwrap().port());
    format!(
        "ClusterName=lab\nSlurmctldHost={}(127.0.0.1)\nSlurmctldPort={port}\nSlurmdPort={other}\nSlurmUser={user}\nSlurmdUser={user}\n\
         AuthType=auth/munge\nAuthInfo=socket={folder}/munge/socket\nCryptoType=crypto/munge\nStateSaveLocation={folder}/state\n\
         SlurmdSpoolDir={folder}/spool\nSlurmctldPidFile={folder}/ctld.pid\nSlurmctldLogFile={folder}/ctld.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         TopologyPlugin=topology/tree\nNodeName={hosts} CPUs=1 NodeAddr=127.0.0.1 State=FUTURE\n\
         PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
        host.trim()
    )
}

/// Every switch of `scontrol show topology` with the hosts and switches below it.
fn shown(text: &str) -> Vec<(String, Vec<String>, Vec<String>)> {
    let field = |line: &str, key: &str| {
        let value = line.split_whitespace().find_map(|word| word.strip_prefix(key).map(str::to_owned));
        hopmap_formats::host_list::expand(&value.unwrap_or_default()).unwrap()
    };
    let line =
        |line: &str| (field(line, "SwitchName=").join(""), field(line, "Nodes="), field(line, "Switches="));
    let mut all: Vec<_> = text.lines().filter(|line| line.contains("SwitchName=")).map(line).collect();
    all.iter_mut().for_each(|(_, hosts, switches)| {
        hosts.sort();
        switches.sort();
    });
    all.sort();
    all
}

#[test]
fn a_controller_accepts_exports() {
    if !system_tests() {
        return;
    }
    // 16 leaves of 16 hosts; four of them below two spines each; three cores above all.
    let hosts: Vec<String> = (0..256).map(|host| format!("tux{host:03}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let switches: Vec<String> = (0..16)
        .map(|leaf| format!("MF0;leaf {leaf}:SX6036"))
        .chain((0..11).map(|n| format!("up{n}")))
        .collect();
    let switches: Vec<&str> = switches.iter().map(String::as_str).collect();
    let mut ends: Vec<(u32, u32)> = (0..256).map(|host| (host, 256 + host / 16)).collect();
    ends.extend(
        (0..16).flat_map(|leaf| [(256 + leaf, 272 + leaf / 4 * 2), (256 + leaf, 273 + leaf / 4 * 2)]),
    );
    ends.extend((272..280).flat_map(|spine| [280, 281, 282].map(|core| (spine, core))));
    let system = network(&hosts, &switches, &ends);
    let text = export(&system, ExportFormat::SlurmConf).0;
    let controller = Controller::start(&text, "tux[000-255]");
    let topology = controller.scontrol(&["show", "topology"]);
    let printed = shown(&topology);
    let written = shown(&text);
    assert_eq!(written.len(), 21);
    assert_eq!(printed.len(), 21);
    for ((name, hosts, below), (printed, all, children)) in written.iter().zip(&printed) {
        assert_eq!((name, below), (printed, children));
        // The controller also lists hosts farther below.
        match hosts.is_empty() {
            true => assert!(all.len() == 64 || all.len() == 256, "{name}: {}", all.len()),
            false => assert_eq!(hosts, all),
        }
    }
    assert_eq!(import(&text).system.slots.len(), 256);
    assert_eq!(import(&topology).system, import(&text).system);
}

/// Files that Slurm takes, from the folder of inputs of people.
#[test]
fn what_slurm_takes_is_read() {
    let Some(data) = hopmap_test_support::given_data() else { return };
    let read = |name: &str, topology: Option<&str>| {
        let params = ImportParams { topology: topology.map(str::to_owned), ..ImportParams::default() };
        read(&data.join("reports").join(name), &params).unwrap()
    };
    let hops = |system: &SystemGraph, a: &str, b: &str| {
        let node = |name| system.nodes.iter().position(|node| node.name == name).unwrap() as u32;
        hopmap_model::Paths::new(system).unwrap().hops(node(a), node(b))
    };
    let two = read("slurm-host-below-two-leaves.conf", None);
    assert_eq!((two.system.hosts().count(), two.system.links.len()), (50, 2 * (51 + 3)));
    assert_eq!(two.notes, ["hosts below several switches, linked to all of them: 1 (`c020`)"]);
    let of = [("c019", "c020"), ("c020", "c040"), ("c019", "c040")];
    assert_eq!(of.map(|(a, b)| hops(&two.system, a, b)), [Some(2), Some(2), Some(4)]);
    let rails = read("slurm-two-rails.conf", None);
    assert_eq!(["n2", "n3"].map(|to| hops(&rails.system, "n1", to)), [Some(2), Some(4)]);
    assert_eq!(
        rails.notes,
        [
            "hosts below several switches, linked to all of them: 4 (`n1`, `n2`, `n3`, `n4`)",
            "several networks join the same hosts, and messages take the shortest path in any of them: a0, a1, topa (4 hosts); \
             b0, b1, topb (4 hosts); topology/import leaves out what messages do not take by its switches or adapters: \
             `leave_out = [\"a0\", \"a1\", \"topa\"]` or `leave_out = [\"b0\", \"b1\", \"topb\"]`"
        ]
    );
    let empty = read("slurm-allow-empty-switch.conf", None);
    assert_eq!((empty.system.hosts().count(), hops(&empty.system, "n1", "n3")), (4, Some(4)));
    assert_eq!(empty.notes, ["switches with nothing below them: 1"]);
    for (name, topology, hosts) in [
        ("slurm-tree-and-blocks.conf", "tree", 8),
        ("slurm-tree-and-blocks.conf", "block", 8),
        ("slurm-flat-default.yaml", "gpu-tree", 4),
        ("slurm-flat-default.yaml", "gpu-block", 4),
    ] {
        assert_eq!(read(name, Some(topology)).system.hosts().count(), hosts, "{name} {topology}");
    }
}

/// `scontrol show topology` repeats all hosts at higher switches, and prints empty switches and rails.
#[test]
fn printed_rails_are_those_of_the_file() {
    let conf = "SwitchName=a0 Nodes=n[1-2]\nSwitchName=a1\nSwitchName=b0 Nodes=n[1-3]\nSwitchName=top Switches=a[0-1]\n";
    let printed = "SwitchName=a0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=a1 Level=0 LinkSpeed=1\n\
                   SwitchName=b0 Level=0 LinkSpeed=1 Nodes=n[1-3]\n\
                   SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=a[0-1]\n";
    assert_eq!(import(conf), import(printed));
    for nothing in
        ["No topology information available\n", "slurm_load_topo error: Unable to contact slurm controller\n"]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("scontrol: error: {nothing}")).unwrap();
        let error = read(file.path(), &ImportParams::default()).unwrap_err().to_string();
        assert!(error.contains(":1: scontrol has no topology"), "{error}");
    }
}
