//! The pipeline of `hopmap rank-order`, and the job that it is about.

use hopmap_artifact::Folder;
use hopmap_command::refuse;
use hopmap_formats::host_list;
use toml::Value;

use super::arguments::Arguments;
use crate::cli::hosts::Hosts;
use crate::cli::open::working_directory;
use crate::cli::output::Result;
use crate::pipeline_text::{PipelineText, StageText, path_text};

/// The file with the present order, in the folder of the results.
pub(super) const PRESENT: &str = "present.hosts";
/// The stage of the fastest order.
const BETTER: &str = "better";
/// Ranks of a host and of all hosts at most: no host has as many accelerators, and no job. More take gigabytes of memory.
const MOST_GPUS: u32 = 1024;
const MOST_RANKS: u64 = 1 << 18;
/// Hosts whose best order is proven, and the nodes of the search trees for these and for more hosts: of 13 orders of 16 hosts the
/// proof took at most 695 nodes, and of 24 to 40 hosts often more than a minute.
const MOST_PROVEN: usize = 16;
const PROOF_NODES: i64 = 10_000;
const BOUND_NODES: i64 = 64;
/// Hosts of a job whose orders are compared by replays: one of 1,024 hosts takes a fifth of a second, one of 4,096 up to minutes.
const MOST_REPLAYED: usize = 1024;
/// Evaluations of each search for a candidate, and replays of exchanges times hosts, which take some seconds.
const EVALUATIONS: i64 = 1 << 14;
const REPLAYS: usize = 1 << 14;

/// A job, the hosts that it is given, and its size.
pub(super) struct Job {
    pub(super) hosts: Hosts,
    dp: u32,
    /// Hosts that it needs; the others are spares.
    pub(super) needed: usize,
}

impl Job {
    pub(super) fn new(arguments: &Arguments, hosts: Hosts) -> Result<Self> {
        let &Arguments { tp, cp, ep, pp, .. } = arguments;
        let (count, gpus, all) = (hosts.hosts.len(), hosts.most(), hosts.slots());
        if gpus > MOST_GPUS || all > MOST_RANKS {
            let problem = format!("{gpus} ranks on each of {count} hosts are too many");
            let help = format!("at most {MOST_GPUS} ranks on a host and {MOST_RANKS} in all can be ordered");
            return refuse(problem, help);
        }
        let replica = [tp, cp, pp].iter().fold(1u64, |all, &size| all.saturating_mul(u64::from(size)));
        let dp = match arguments.dp {
            Some(dp) => u64::from(dp),
            None if all.is_multiple_of(replica) => all / replica,
            None => {
                let problem = format!(
                    "{all} GPUs on {count} hosts are not divisible by tp {tp} × cp {cp} × pp {pp} = {replica}"
                );
                return refuse(problem, "give --dp, and the hosts that are left over are spares");
            }
        };
        let ranks = replica.saturating_mul(dp);
        let sizes = [("tp", tp), ("cp", cp), ("ep", ep), ("pp", pp), ("dp", dp as u32)];
        let has_groups = sizes.iter().any(|&(_, size)| size > 1);
        let is_silent = |(kind, bytes): &(String, Value)| {
            bytes.as_integer() == Some(0) || sizes.contains(&(kind.as_str(), 1))
        };
        if !has_groups || (!arguments.bytes.is_empty() && arguments.bytes.iter().all(is_silent)) {
            return refuse(
                "no groups of several ranks communicate",
                "there is nothing to order: check the sizes and --bytes",
            );
        }
        for (option, pairs) in
            [("model", &arguments.model), ("bytes", &arguments.bytes), ("borders", &arguments.borders)]
        {
            let twice = |(index, (key, _)): &(usize, &(String, Value))| {
                pairs[..*index].iter().any(|(other, _)| other == key)
            };
            if let Some((_, (key, _))) = pairs.iter().enumerate().find(twice) {
                return refuse(format!("`--{option}` has `{key}` twice"), "give every key once");
            }
        }
        let help = "change the sizes of the groups, --gpus or the hosts";
        hosts.check_room(ranks, help)?;
        if ranks == 0 || !ranks.is_multiple_of(u64::from(gpus)) {
            return refuse(format!("{ranks} ranks do not fill whole hosts with {gpus} GPUs each"), help);
        }
        Ok(Self { hosts, dp: dp as u32, needed: (ranks / u64::from(gpus)) as usize })
    }

    /// The file with the hosts in their present order.
    pub(super) fn present(&self) -> String {
        let lines = self.hosts.hosts[..self.needed].iter().map(|(host, gpus)| format!("{host}:{gpus}\n"));
        std::iter::once("# hosts in their present order\n".to_owned()).chain(lines).collect()
    }

    /// The stage whose mapping is the better order.
    pub(super) fn better(&self) -> &'static str {
        if self.hosts.hosts.len() <= MOST_REPLAYED { BETTER } else { "cheapest" }
    }

    /// The file with the better order.
    pub(super) fn hosts_file(&self) -> &'static str {
        if self.hosts.is_job { "slurm-hosts" } else { "node-ranks" }
    }

    /// The pipeline: the job on its hosts in their present order and in a better one.
    pub(super) fn pipeline(&self, arguments: &Arguments) -> Result<PipelineText> {
        let path = working_directory()?.join(&arguments.topology);
        let is_stored = Folder::open(&path).is_ok();
        let uses = if is_stored { "stored/system-graph" } else { "topology/import" };
        let gpus = self.hosts.most();
        let network = StageText::new("network", uses)
            .given("--topology", "path", Some(path_text(&path)))
            .given("--gpus", "slots", (!is_stored).then_some(gpus));
        let machine = StageText::new("machine", "select/nodes")
            .need("system", "network")
            .given("--hosts", "free", Some(host_list::compress(self.hosts.names())))
            .given("--gpus", "slots_per_host", Some(gpus))
            .given("--latency", "link_latency_s", Some(arguments.latency))
            .given("--bandwidth", "link_bandwidth_bytes_per_s", Some(arguments.bandwidth.clone()));
        let mut stages = vec![network, machine, self.training(arguments)];
        stages.extend(self.orders(arguments));
        for mapping in ["present", self.better()] {
            let predicted = StageText::new(format!("predicted-{mapping}"), "predict/time")
                .need("program", "job.program")
                .need("system", "machine")
                .need("mapping", mapping)
                .with("baselines", false)
                .given("--inside", "memory_bandwidth_bytes_per_s", Some(arguments.inside));
            let name = if mapping == "present" { mapping } else { BETTER };
            let groups = on_machine(format!("groups-{mapping}"), "evaluate/groups")
                .need("mapping", mapping)
                .save("csv", &format!("groups-{name}.csv"));
            stages.extend([predicted, groups]);
        }
        let launch = StageText::new("launch", "launch/torch")
            .need("mapping", self.better())
            .with("start", if self.hosts.is_job { "slurm" } else { "node-ranks" })
            .save("torch", self.hosts_file());
        stages.push(launch);
        let description = "The present order of the hosts of a training job, and a better one";
        Ok(PipelineText { name: "rank-order", description, stages, ..PipelineText::default() })
    }

    /// The stage of the job's traffic.
    fn training(&self, arguments: &Arguments) -> StageText {
        let &Arguments { tp, cp, ep, pp, etp, .. } = arguments;
        let mut model = example_model(arguments);
        model.extend(arguments.model.iter().cloned());
        let bytes = table(&arguments.bytes);
        StageText::new("job", "instance/parallel")
            .given("--tp", "sizes.tp", Some(tp))
            .given("--cp", "sizes.cp", Some(cp))
            .given("--ep", "sizes.ep", Some(ep))
            .given("--dp", "sizes.dp", Some(self.dp))
            .given("--pp", "sizes.pp", Some(pp))
            .given("--etp", "sizes.etp", etp)
            .given("--order", "order", Some(arguments.order.as_str()))
            .given("--gpus", "gpus_per_host", Some(self.hosts.most()))
            .given("--model", "model", bytes.is_none().then_some(model))
            .given("--bytes", "bytes", bytes)
    }

    /// The stages of the present order and of better ones.
    fn orders(&self, arguments: &Arguments) -> Vec<StageText> {
        let hosts = self.hosts.hosts.len();
        let nodes = if hosts <= MOST_PROVEN { PROOF_NODES } else { BOUND_NODES };
        let present = on_machine("present", "map/import")
            .with("path", PRESENT)
            .with("format", "machinefile")
            .with("weight", "bytes");
        let order = |name: &str, uses: &str| {
            on_machine(name, uses).with("blocks", "host").with("weight", "bytes").given(
                "--borders",
                "borders",
                table(&arguments.borders),
            )
        };
        let cheapest = order("cheapest", "map/exact")
            .comment("Ranks of a host move together and keep their local ranks.")
            .with("max_search_nodes", nodes);
        let better = order(BETTER, "map/auto")
            .comment(
                "The fastest of these orders and others by the prediction, which counts that messages share links.",
            )
            .need("program", "job.program")
            .need("mappings", vec!["cheapest", "present"])
            .with("objective", "predicted-time")
            .given("--inside", "memory_bandwidth_bytes_per_s", Some(arguments.inside))
            .with("islands", 1)
            .with("evaluations", EVALUATIONS)
            .with("replays", (REPLAYS / hosts).clamp(16, 512) as u32);
        let better = Some(better).filter(|_| self.better() == BETTER);
        [present, cheapest].into_iter().chain(better).collect()
    }
}

/// A stage of the job on the machine.
fn on_machine(name: impl Into<String>, uses: &str) -> StageText {
    StageText::new(name, uses).need("task-graph", "job.task-graph").need("system", "machine")
}

/// Pairs of an option as a table, if there are any.
fn table(pairs: &[(String, Value)]) -> Option<toml::Table> {
    (!pairs.is_empty()).then(|| pairs.iter().cloned().collect())
}

/// A model of common proportions that the groups can divide.
fn example_model(arguments: &Arguments) -> toml::Table {
    let pp = arguments.pp;
    let mut model = vec![
        ("layers", 64u32.next_multiple_of(pp)),
        ("hidden", 8192),
        ("sequence", 4096),
        ("micro_batches", pp.saturating_mul(4)),
        ("zero", 1),
    ];
    if arguments.ep > 1 {
        model.extend([("experts", arguments.ep), ("top_k", 2), ("feed_forward", 8192)]);
    }
    model.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}
