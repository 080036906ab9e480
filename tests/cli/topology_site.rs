//! A machine that changes, and the folder in which its topology is published.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use hopmap::refresh::{Entry, Publication, read_machine};
use hopmap_artifact::Folder;
use hopmap_changes::{Machine, Missing, Thresholds, changes, keep_down};
use hopmap_model::{
    CostModel, Endpoint, Levels, Link, Measurements, Node, NodeState, ProbePhase, Sample, Slot, SystemGraph,
};

use crate::sandbox::Sandbox;

/// A sandbox with a machine in `machine` and what is published of it in `pub`.
pub(crate) struct Site {
    pub(crate) sandbox: Sandbox,
}

/// A machine of hosts with two slots each, four hosts a leaf.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Hosts, and whether each answers.
    pub(crate) hosts: Vec<bool>,
    /// Links between every host and its leaf.
    pub(crate) rails: usize,
    /// What a message between leaves costs.
    pub(crate) far: f64,
}

/// An entry of the history that was read and found whole.
pub(crate) type Whole = (Entry, Machine);

impl Plan {
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts: vec![true; hosts], rails: 1, far: 100.0 }
    }

    pub(crate) fn down(hosts: usize, down: &[usize]) -> Self {
        let mut plan = Self::new(hosts);
        down.iter().for_each(|&host| plan.hosts[host] = false);
        plan
    }

    /// What a source sees: hosts that do not answer have a name and no more.
    pub(crate) fn machine(&self) -> SystemGraph {
        let count = self.hosts.len();
        let leaves = count.div_ceil(4);
        let mut nodes: Vec<Node> = (0..count).map(|host| Node::host(format!("n{host}"))).collect();
        nodes.extend((0..leaves).map(|leaf| Node::switch(format!("leaf{leaf}"))));
        nodes.push(Node::switch("spine"));
        let (mut links, mut slots) = (Vec::new(), Vec::new());
        let link = |(source, destination): (usize, usize)| Link {
            latency_s: None,
            bandwidth_bytes_per_s: Some(12.5e9),
            ..Link::new(source as u32, destination as u32)
        };
        for (host, &up) in self.hosts.iter().enumerate() {
            let leaf = count + host / 4;
            if !up {
                nodes[host].state = NodeState::Down;
                continue;
            }
            for _ in 0..self.rails {
                links.extend([(host, leaf), (leaf, host)].map(link));
            }
            slots.extend((0..2).map(|core| Slot { host: host as u32, core }));
        }
        for leaf in count..count + leaves {
            links.extend([(leaf, count + leaves), (count + leaves, leaf)].map(link));
        }
        let group = |of: &dyn Fn(u32) -> u32| slots.iter().map(|slot| of(slot.host)).collect();
        let groups = vec![group(&|host| host), group(&|host| host / 4), group(&|_| 0)];
        let cost = CostModel::Levels(Levels { costs: vec![1.0, 10.0, self.far], groups });
        let machine = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes,
            links,
            slots,
            cost,
            calibration: Vec::new(),
        };
        machine.check().unwrap();
        machine
    }
}

/// A source that the tests can change.
const PIPELINE: &str = r#"name = "topology"

[params]
machine = "machine"

[stages.machine]
uses = "stored/system-graph"
with = { path = "${params.machine}" }
"#;

/// Measurements between some hosts: 100 µs, but for one pair.
pub(crate) fn measured(hosts: u32, slow: (u32, u32), micros: f64) -> Measurements {
    let endpoint = |host| Endpoint { host: format!("n{host}"), core: 0, state: NodeState::Up };
    let pairs = (0..hosts).flat_map(|a| (0..hosts).filter(move |b| *b != a).map(move |b| (a, b)));
    let sample = |(source, destination): (u32, u32)| {
        let is_slow = (source.min(destination), source.max(destination)) == slow;
        let time = if is_slow { micros * 2e-6 } else { 200e-6 };
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes: 1,
            messages: 100,
            minimum_s: time,
            first_decile_s: time,
            median_s: time,
            ninth_decile_s: time,
            maximum_s: time,
        }
    };
    Measurements {
        endpoints: (0..hosts).map(endpoint).collect(),
        samples: pairs.map(sample).collect(),
        ..Measurements::default()
    }
}

impl Site {
    pub(crate) fn new(plan: &Plan) -> Self {
        let site = Self { sandbox: Sandbox::new() };
        site.sandbox.write("topology.toml", PIPELINE);
        site.set(plan);
        site
    }

    /// Makes the machine another one.
    pub(crate) fn set(&self, plan: &Plan) {
        self.put("machine", |folder| drop(Folder::write(folder, &plan.machine()).unwrap()));
    }

    /// Makes the measurements others.
    pub(crate) fn measure(&self, measured: &Measurements) {
        self.put("measured", |folder| drop(Folder::write(folder, measured).unwrap()));
    }

    fn put(&self, name: &str, write: impl FnOnce(&std::path::Path)) {
        let place = self.sandbox.path().join(name);
        let aside = self.sandbox.path().join(format!("{name}.new"));
        std::fs::create_dir(&aside).unwrap();
        write(&aside);
        let _ = std::fs::remove_dir_all(&place);
        std::fs::rename(aside, place).unwrap();
    }

    pub(crate) fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["topology", "refresh", "topology.toml", "--publish", "pub"], more].concat()
    }

    /// Refreshes, and gives all that a person would see.
    pub(crate) fn refresh(&self, more: &[&str]) -> String {
        self.sandbox.seen(&Self::arguments(more))
    }

    pub(crate) fn publication(&self) -> Publication {
        Publication::at(self.sandbox.path().join("pub"))
    }

    /// Checks all that always holds, and gives what is published and what is accepted.
    pub(crate) fn sound(&self) -> (Option<Whole>, Option<Whole>) {
        let publication = self.publication();
        for entry in publication.entries().unwrap() {
            let folder = publication.folder(&entry);
            read_machine(&folder).unwrap();
            let changes = std::fs::read(folder.join("changes.json")).unwrap();
            serde_json::from_slice::<serde_json::Value>(&changes).unwrap();
            assert!(folder.join("changes.txt").is_file());
        }
        let read = |entry: Option<Entry>| {
            entry.map(|entry| {
                let machine = read_machine(&publication.folder(&entry)).unwrap();
                (entry, machine)
            })
        };
        (read(publication.current().unwrap()), read(publication.accepted().unwrap()))
    }

    /// Whether a machine agrees with a plan on the hosts that answer.
    pub(crate) fn is_of(machine: &Machine, plan: &Plan) -> bool {
        let now = Machine { system: plan.machine(), measurements: None };
        let kept = keep_down(&machine.snapshot(), &now.snapshot(), Missing::Down);
        changes(&machine.snapshot(), &kept.snapshot(), &Thresholds::default()).is_empty()
    }

    /// Every file and folder of what is published: path, inode, time of change, size and bytes.
    pub(crate) fn untouchable(&self) -> Vec<(PathBuf, u64, i64, i64, Vec<u8>)> {
        let root = self.sandbox.path().join("pub");
        let mut open = vec![root.join("current"), root.join("history"), root.join("accepted.json")];
        let mut found = Vec::new();
        while let Some(path) = open.pop() {
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            let bytes = match metadata.is_file() {
                true => std::fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if metadata.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.push((path, metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), bytes));
        }
        found.sort();
        found
    }
}
