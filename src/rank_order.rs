//! The pipeline file of `hopmap rank-order`: a training job on its hosts in their present order and in a better one.

use std::fmt::Write as _;

use crate::pipeline::literal as quoted;

/// Hosts whose best order is proven, and the nodes of the search trees for these and for more hosts: of 13 orders of 16 hosts the
/// proof took at most 695 nodes, and of 24 to 40 hosts often more than a minute.
const MOST_PROVEN: usize = 16;
const PROOF_NODES: u64 = 10_000;
const BOUND_NODES: u64 = 64;
/// Hosts of a job whose orders are compared by replays: one of 1,024 hosts takes a fifth of a second, one of 4,096 up to minutes.
pub const MOST_REPLAYED: usize = 1024;
/// Evaluations of each search for a candidate, and replays of exchanges times hosts, which take some seconds.
const EVALUATIONS: u64 = 1 << 14;
const REPLAYS: usize = 1 << 14;

/// What the file says.
#[derive(Debug, Clone, PartialEq)]
pub struct RankOrderFile {
    /// The stage that reads the topology, and its path.
    pub topology: (&'static str, String),
    /// The hosts of the job and spares, as a host list.
    pub hosts: String,
    /// Number of hosts.
    pub host_count: usize,
    /// Ranks on each host.
    pub gpus: u32,
    /// Sizes of the groups by name.
    pub sizes: Vec<(&'static str, u32)>,
    /// Order of the dimensions.
    pub order: String,
    /// `bytes` or `model`, and its keys with their values in TOML.
    pub traffic: (&'static str, Vec<(String, String)>),
    /// Levels of switches that kinds of groups must not cross.
    pub borders: Vec<(String, String)>,
    /// Latency of links in seconds, and bandwidths by level in bytes per second, where the topology has none.
    pub link: (f64, Vec<f64>),
    /// Bandwidth inside a host in bytes per second.
    pub inside: f64,
    /// File with the hosts in their present order.
    pub present: String,
    /// Whether `srun` starts the job.
    pub is_slurm: bool,
}

/// The stage of the fastest order.
const BETTER: &str = "better";

impl RankOrderFile {
    /// The stage whose mapping is the better order.
    #[must_use]
    pub fn better(&self) -> &'static str {
        if self.host_count <= MOST_REPLAYED { BETTER } else { "cheapest" }
    }

    /// The file with the better order.
    #[must_use]
    pub fn hosts_file(&self) -> &'static str {
        if self.is_slurm { "slurm-hosts" } else { "node-ranks" }
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let (uses, path) = (&self.topology.0, quoted(&self.topology.1));
        let import = match self.topology.0 {
            "topology/import" => format!("with.slots = {}\n", self.gpus),
            _ => String::new(),
        };
        let sizes: Vec<String> = self.sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        let list = |pairs: &[(String, String)]| -> String {
            pairs.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
        };
        let borders = match self.borders.is_empty() {
            true => String::new(),
            false => format!(", borders = {{ {} }}", list(&self.borders)),
        };
        let nodes = if self.host_count <= MOST_PROVEN { PROOF_NODES } else { BOUND_NODES };
        let mut text = format!(
            r#"name = "rank-order"
description = "The present order of the hosts of a training job, and a better one"

[stages.network]
uses = "{uses}"
with.path = {path}
{import}
[stages.machine]
uses  = "select/nodes"
needs = {{ system = "network" }}
with.free = {hosts}
with.slots_per_host = {gpus}
with.link_latency_s = {latency:?}
with.link_bandwidth_bytes_per_s = {bandwidths:?}

[stages.job]
uses = "instance/parallel"
with.sizes = {{ {sizes} }}
with.order = {order}
with.gpus_per_host = {gpus}
with.{traffic_name} = {{ {traffic} }}

[stages.present]
uses  = "map/import"
needs = {{ task-graph = "job.task-graph", system = "machine" }}
with  = {{ path = {present}, format = "machinefile", weight = "bytes" }}

# Ranks of a host move together and keep their local ranks.
[stages.cheapest]
uses  = "map/exact"
needs = {{ task-graph = "job.task-graph", system = "machine" }}
with  = {{ blocks = "host", weight = "bytes", max_search_nodes = {nodes}{borders} }}
"#,
            hosts = quoted(&self.hosts),
            gpus = self.gpus,
            latency = self.link.0,
            bandwidths = self.link.1,
            sizes = sizes.join(", "),
            order = quoted(&self.order),
            traffic_name = self.traffic.0,
            traffic = list(&self.traffic.1),
            present = quoted(&self.present),
        );
        if self.better() == BETTER {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                r#"
# The fastest of these orders and others by the prediction, which counts that messages share links.
[stages.better]
uses  = "map/auto"
needs = {{ task-graph = "job.task-graph", system = "machine", program = "job.program", mappings = ["cheapest", "present"] }}
with  = {{ blocks = "host", weight = "bytes", objective = "predicted-time", memory_bandwidth_bytes_per_s = {inside:?}, islands = 1, evaluations = {EVALUATIONS}, replays = {replays}{borders} }}
"#,
                inside = self.inside,
                replays = (REPLAYS / self.host_count.max(1)).clamp(16, 512),
            );
        }
        for mapping in ["present", self.better()] {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                r#"
[stages.predicted-{mapping}]
uses  = "predict/time"
needs = {{ program = "job.program", system = "machine", mapping = "{mapping}" }}
with  = {{ baselines = false, memory_bandwidth_bytes_per_s = {inside:?} }}

[stages.groups-{mapping}]
uses  = "evaluate/groups"
needs = {{ task-graph = "job.task-graph", system = "machine", mapping = "{mapping}" }}
save  = {{ csv = "groups-{name}.csv" }}
"#,
                inside = self.inside,
                name = if mapping == "present" { mapping } else { BETTER },
            );
        }
        let _ = write!(
            text,
            r#"
[stages.launch]
uses  = "launch/torch"
needs = {{ mapping = "{better}" }}
with  = {{ start = "{start}" }}
save  = {{ torch = "{file}" }}
"#,
            better = self.better(),
            start = if self.is_slurm { "slurm" } else { "node-ranks" },
            file = self.hosts_file(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_toml_with_what_was_given() {
        let file = RankOrderFile {
            topology: ("topology/import", "a \"b\".json".into()),
            hosts: "node[7,66]".into(),
            host_count: 2,
            gpus: 8,
            sizes: vec![("tp", 8), ("dp", 2)],
            order: "tp-dp".into(),
            traffic: ("bytes", vec![("dp".into(), "4000000000".into())]),
            borders: vec![("dp".into(), "1".into())],
            link: (1e-6, vec![4e11, 1e11]),
            inside: 3.6e12,
            present: "present.hosts".into(),
            is_slurm: false,
        };
        let table: toml::Table = file.text().parse().unwrap();
        let stages = table["stages"].as_table().unwrap();
        assert_eq!(stages["network"]["with"]["path"].as_str(), Some("a \"b\".json"));
        assert_eq!(stages["job"]["with"]["sizes"]["dp"].as_integer(), Some(2));
        assert_eq!(stages["job"]["with"]["bytes"]["dp"].as_integer(), Some(4_000_000_000));
        assert_eq!(stages["cheapest"]["uses"].as_str(), Some("map/exact"));
        assert_eq!(stages["cheapest"]["with"]["borders"]["dp"].as_integer(), Some(1));
        assert!(stages["present"]["with"].get("borders").is_none());
        // Without a limit, orders of 24 hosts did not end within minutes.
        assert!(stages["cheapest"]["with"]["max_search_nodes"].as_integer() > Some(1000));
        assert_eq!(stages["launch"]["save"]["torch"].as_str(), Some("node-ranks"));
        let many = RankOrderFile { host_count: 24, is_slurm: true, ..file.clone() };
        let table: toml::Table = many.text().parse().unwrap();
        assert_eq!(table["stages"]["launch"]["save"]["torch"].as_str(), Some("slurm-hosts"));
        let many = RankOrderFile { host_count: MOST_REPLAYED + 1, ..file };
        let table: toml::Table = many.text().parse().unwrap();
        let stages = table["stages"].as_table().unwrap();
        assert!(stages.contains_key("predicted-cheapest") && !stages.contains_key("better"));
        assert!(table["stages"]["cheapest"]["with"]["max_search_nodes"].as_integer() < Some(100));
    }
}
