//! `hopmap rank-order`: what the present order of a training job's hosts costs, and a better one. It writes a pipeline file and runs
//! it.

mod hosts;

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_artifact::Folder;
use hopmap_command::{Exit, refuse, shown};
use hopmap_formats::host_list;
use hopmap_launchers::shell_word;
use hopmap_model::{Mapping, Metrics, Prediction, SystemGraph};
use miette::Diagnostic;
use serde::Serialize;

use super::hosts::{HostArguments, Hosts};
use super::named::is_in_store;
use super::open::{StoreArguments, working_directory};
use super::output::{Output, Result, errors};
use super::run::Request;
use super::written::{self, PipelineFile};
use crate::rank_order::RankOrderFile;
use hosts::{check_slots, hosts};

/// Names in the folder of the results.
const PIPELINE: &str = "rank-order.toml";
const PRESENT: &str = "present.hosts";
/// Results, which must not stay from another job if this one fails.
const RESULTS: [&str; 4] = ["node-ranks", "slurm-hosts", "groups-present.csv", "groups-better.csv"];
/// Kinds of groups in sentences, by their names in metrics.
const KINDS: [(&str, &str); 6] = [
    ("tp", "tensor-parallel"),
    ("cp", "context-parallel"),
    ("ep", "expert-parallel"),
    ("pp", "pipeline"),
    ("dp", "data-parallel"),
    ("edp", "expert-data-parallel"),
];
/// Ranks of a host and of all hosts at most: no host has as many accelerators, and no job. More take gigabytes of memory.
const MOST_GPUS: u32 = 1024;
const MOST_RANKS: u64 = 1 << 18;
/// Hosts of an order that is printed at most.
const MOST_LISTED: usize = 64;
/// Costs closer than this are equal: they are sums of many values.
const SAME: f64 = 1e-9;

/// A stage failed, where its error is not printed.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{path} failed")]
#[diagnostic(code(cli::no_answer), help("`hopmap run {}` says why", shell_word(path)))]
struct NoAnswer {
    path: String,
}

/// Arguments of `rank-order`.
#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    mut_arg("hosts", |hosts| hosts.help("Hosts in their present order, such as node[7,66,70,8]; those beyond the job are spares [default: those of the batch job]")),
    after_help = "\
Frameworks such as Megatron-LM fix the groups of a rank, and torchrun starts the GPUs of a host as consecutive ranks. So the order of \
the hosts is all that is left to choose. The cost is that of the bytes between hosts times the links that they pass: up to 16 \
hosts, without spares and borders, its optimum is proven. The better order is the one with the shortest predicted communication that was found, and of equally fast ones the one that costs least. DIR gets the pipeline file \
rank-order.toml, the groups with their hosts (groups-present.csv, groups-better.csv), and the better order: a node rank and its \
host in every line of node-ranks, or, with the hosts of a Slurm job, the hosts for srun in slurm-hosts.

Without --model and --bytes, the model is an example that fits the groups: the answer then depends on its proportions.

Examples:
  hopmap rank-order --topology topograph.json --hosts 'node[7,66,70,8]' --tp 8 --pp 2
  scontrol show topology > fabric; hopmap rank-order --topology fabric --tp 8 --pp 8 --ep 16   # in a Slurm job
  hopmap rank-order --topology topology.conf --hosts 'node[1-64]' --tp 8 --ep 16 --model layers=64,hidden=8192,experts=64,top_k=4
  hopmap rank-order --topology labels.csv --tp 8 --ep 4 --pp 2 --borders ep=1   # no expert group crosses a leaf or NVLink domain
  hopmap rank-order --topology labels.csv --hosts-file hosts --tp 8 --bytes dp=20000000000 --bandwidth 400e9,200e9"
)]
pub(crate) struct Arguments {
    /// Topology of the network: any file that topology/import reads, or the folder of a stored topology. A file that needs parameters is
    /// imported first: `hopmap exec topology/import -p path=FILE -p 'leave_out=["storage-*"]' --out network`.
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    #[command(flatten)]
    hosts: HostArguments,
    /// Ranks on each host, at most 1024, and 262144 on all hosts [default: the slots in --hosts-file, the GPUs or tasks of the job, or 8].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    /// Tensor-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    tp: u32,
    /// Context-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    cp: u32,
    /// Expert-parallel ranks.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    ep: u32,
    /// Stages of the pipeline.
    #[arg(long, value_name = "SIZE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pp: u32,
    /// Data-parallel ranks [default: as many as fill the hosts].
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u32).range(1..))]
    dp: Option<u32>,
    /// Tensor-parallel ranks of each expert [default: --tp].
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u32).range(1..))]
    etp: Option<u32>,
    /// Order in which ranks are numbered, fastest first, as in Megatron-LM.
    #[arg(long, value_name = "ORDER", default_value = "tp-cp-ep-dp-pp")]
    order: String,
    /// Size of the model: keys of `model` of the stage instance/parallel.
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = pair, conflicts_with = "bytes")]
    model: Vec<(String, String)>,
    /// Bytes of each kind of group in a step: keys of `bytes` of the stage instance/parallel.
    #[arg(long, value_name = "KIND=BYTES,…", value_delimiter = ',', value_parser = pair)]
    bytes: Vec<(String, String)>,
    /// Groups that must not cross switches of a level, such as ep=1: those that hosts are linked to, leaf switches or
    /// accelerator domains or their sub-domains.
    #[arg(long, value_name = "KIND=LEVEL,…", value_delimiter = ',', value_parser = pair)]
    borders: Vec<(String, String)>,
    /// Bytes per second of links whose bandwidth the topology lacks: those of hosts first, then level by level.
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "400e9", value_parser = positive)]
    bandwidth: Vec<f64>,
    /// Seconds of a message on a link whose latency the topology lacks.
    #[arg(long, value_name = "SECONDS", default_value = "1e-6", value_parser = positive)]
    latency: f64,
    /// Bytes per second of all GPUs of a host together, inside it.
    #[arg(long, value_name = "RATE", default_value = "3.6e12", value_parser = positive)]
    inside: f64,
    /// Write everything to this folder.
    #[arg(short, long, value_name = "DIR", default_value = "rank-order")]
    out: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "give a number above 0".to_owned())
}

/// A key and a value that is a number or a boolean.
fn pair(text: &str) -> std::result::Result<(String, String), String> {
    let help = "give a key and a whole number, such as layers=96 or dp=1e9";
    let (key, value) = text.split_once('=').ok_or(help)?;
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let whole =
        value.parse().ok().filter(|number: &f64| *number >= 0.0 && *number < 1e15 && number.fract() == 0.0);
    let value = match whole {
        Some(number) => format!("{number:.0}"),
        None if value.parse::<bool>().is_ok() => value.to_owned(),
        None => return Err(help.to_owned()),
    };
    if is_key { Ok((key.to_owned(), value)) } else { Err(help.to_owned()) }
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let working = working_directory()?;
    let out = working.join(&arguments.out);
    if is_in_store(&out.join(PIPELINE)) {
        return refuse(format!("{} is in a store", shown(&out)), "name another folder with -o");
    }
    let hosts = hosts(arguments.hosts.named(output)?, arguments.gpus, output)?;
    let job = Job::new(arguments, &hosts)?;
    check_slots(&working.join(&arguments.topology), &hosts)?;
    let _lock = written::lock(&out)?;
    let lines = hosts.hosts[..job.hosts].iter().map(|(host, gpus)| format!("{host}:{gpus}\n"));
    let text: String = std::iter::once("# hosts in their present order\n".to_owned()).chain(lines).collect();
    let pipeline = pipeline(arguments, &hosts, &job, &working);
    let file = PipelineFile::write(out.join(PIPELINE), &pipeline.text(), &arguments.store)?;
    let own: Vec<_> = RESULTS.map(|name| (name, None)).into_iter().chain([(PRESENT, Some(&*text))]).collect();
    file.save(&own)?;
    let quiet = Output::new(false, !output.is_talkative());
    let exit = file.run(&Request { no_report: true, ..Request::default() }, quiet)?;
    if exit != Exit::Done {
        // The run has said on standard error what failed.
        output.json(&errors(&[NoAnswer { path: shown(file.path()) }.into()]));
    }
    if exit == Exit::Done {
        conclude(arguments, &file, job.hosts, &pipeline, output)?;
    }
    Ok(exit)
}

/// Sizes of the job.
struct Job {
    dp: u32,
    /// Ranks on each host.
    gpus: u32,
    /// Hosts that it needs; the others are spares.
    hosts: usize,
}

impl Job {
    fn new(arguments: &Arguments, hosts: &Hosts) -> Result<Self> {
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
        let is_silent =
            |(kind, bytes): &(String, String)| bytes == "0" || sizes.contains(&(kind.as_str(), 1));
        if !has_groups || (!arguments.bytes.is_empty() && arguments.bytes.iter().all(is_silent)) {
            return refuse(
                "no groups of several ranks communicate",
                "there is nothing to order: check the sizes and --bytes",
            );
        }
        let help = "change the sizes of the groups, --gpus or the hosts";
        hosts.check_room(ranks, help)?;
        if ranks == 0 || !ranks.is_multiple_of(u64::from(gpus)) {
            return refuse(format!("{ranks} ranks do not fill whole hosts with {gpus} GPUs each"), help);
        }
        Ok(Self { dp: dp as u32, gpus, hosts: (ranks / u64::from(gpus)) as usize })
    }
}

fn pipeline(arguments: &Arguments, hosts: &Hosts, job: &Job, working: &Path) -> RankOrderFile {
    let path = working.join(&arguments.topology);
    let uses = if Folder::open(&path).is_ok() { "stored/system-graph" } else { "topology/import" };
    let &Arguments { tp, cp, ep, pp, etp, .. } = arguments;
    let sizes = [("tp", tp), ("cp", cp), ("ep", ep), ("dp", job.dp), ("pp", pp)].into_iter();
    let traffic = match (&arguments.bytes[..], &arguments.model[..]) {
        ([], []) => ("model", example_model(arguments)),
        ([], given) => {
            let mut model = example_model(arguments);
            model.retain(|(key, _)| given.iter().all(|(other, _)| other != key));
            model.extend(given.iter().cloned());
            ("model", model)
        }
        (given, _) => ("bytes", given.to_vec()),
    };
    RankOrderFile {
        topology: (uses, path.to_string_lossy().into_owned()),
        hosts: host_list::compress(hosts.names()),
        host_count: hosts.hosts.len(),
        gpus: job.gpus,
        sizes: sizes.chain(etp.map(|etp| ("etp", etp))).collect(),
        order: arguments.order.clone(),
        traffic,
        borders: arguments.borders.clone(),
        link: (arguments.latency, arguments.bandwidth.clone()),
        inside: arguments.inside,
        present: PRESENT.to_owned(),
        is_slurm: hosts.is_job,
    }
}

/// A model of common proportions that the groups can divide.
fn example_model(arguments: &Arguments) -> Vec<(String, String)> {
    let pp = u64::from(arguments.pp);
    let mut model = vec![
        ("layers", 64u64.next_multiple_of(pp)),
        ("hidden", 8192),
        ("sequence", 4096),
        ("micro_batches", 4 * pp),
        ("zero", 1),
    ];
    if arguments.ep > 1 {
        model.extend([("experts", u64::from(arguments.ep)), ("top_k", 2), ("feed_forward", 8192)]);
    }
    model.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect()
}

/// What the answer is, also as JSON.
#[derive(Serialize)]
struct Answer {
    /// Cost of the present order over the least cost that was found, and that of the better order over it.
    cost_over_best: f64,
    better_cost_over_best: f64,
    /// Whether the least cost is proven to be the optimum.
    proven: bool,
    /// The least cost over its lower bound, minus 1.
    gap: Option<f64>,
    /// Predicted seconds of the communication of a step.
    seconds: f64,
    better_seconds: f64,
    /// Whether the present order crosses `--borders`.
    crosses_borders: bool,
    crossings: Vec<GroupLevel>,
    present: Vec<String>,
    /// The order that is written: one as good as the present order, if none is better.
    better: Vec<String>,
    /// Hosts of the present order that spares replace.
    replaced: Vec<String>,
}

/// A kind of groups, and how many of them cross a level of switches.
#[derive(Serialize)]
struct GroupLevel {
    kind: String,
    level: usize,
    /// The level, and its first switch.
    switches: String,
    groups: u64,
    crossing: u64,
    better_crossing: u64,
}

/// Says what came out.
fn conclude(
    arguments: &Arguments,
    file: &PipelineFile<'_>,
    hosts: usize,
    pipeline: &RankOrderFile,
    output: Output,
) -> Result<()> {
    let mapping = |cell: &str| file.newest::<Mapping>(cell);
    let seconds = |cell: &str| file.newest::<Prediction>(cell);
    let groups = |cell: &str| file.newest::<Metrics>(cell);
    let (Some(present), Some(cheapest), Some(better)) =
        (mapping("present")?, mapping("cheapest")?, mapping(pipeline.better())?)
    else {
        return Ok(());
    };
    let of = |stage: &str| format!("{stage}-{}", pipeline.better());
    let (Some(seconds), Some(better_seconds)) = (seconds("predicted-present")?, seconds(&of("predicted"))?)
    else {
        return Ok(());
    };
    let (Some(now), Some(then)) = (groups("groups-present")?, groups(&of("groups"))?) else {
        return Ok(());
    };
    let Some(machine) = file.newest::<SystemGraph>("machine")? else { return Ok(()) };
    let over_best = |mapping: &Mapping| {
        let [cost, least] =
            [mapping, &cheapest].map(|mapping| mapping.metrics.get("F").copied().unwrap_or(0.0));
        if least > 0.0 { cost / least } else { 1.0 }
    };
    let value = |name: &str| cheapest.metrics.get(name).copied();
    let crossings = crossings(&now, &then, &machine.level_names());
    let is_border = |found: &GroupLevel| {
        arguments.borders.iter().any(|(kind, level)| *kind == found.kind && *level == found.level.to_string())
    };
    let [listed, order] = [&present, &better].map(|mapping| order(mapping, hosts));
    let answer = Answer {
        cost_over_best: over_best(&present),
        better_cost_over_best: over_best(&better),
        proven: value("proven").is_some_and(|proven| proven > 0.0),
        gap: value("gap"),
        seconds: seconds.seconds(),
        better_seconds: better_seconds.seconds(),
        crosses_borders: crossings.iter().any(|found| found.crossing > 0 && is_border(found)),
        crossings,
        replaced: listed.iter().filter(|host| !order.contains(host)).cloned().collect(),
        present: listed,
        better: order,
    };
    output.json(&answer);
    answer
        .sentences(&file.path().with_file_name(pipeline.hosts_file()))
        .iter()
        .for_each(|line| output.line(line));
    Ok(())
}

/// The hosts of a mapping in the order of their ranks, of which all have as many.
fn order(mapping: &Mapping, hosts: usize) -> Vec<String> {
    let gpus = mapping.ranks.len() / hosts.max(1);
    (0..mapping.ranks.len()).step_by(gpus.max(1)).map(|rank| mapping.host_of(rank).to_owned()).collect()
}

fn crossings(now: &Metrics, then: &Metrics, levels: &[String]) -> Vec<GroupLevel> {
    let mut found = Vec::new();
    for (kind, _) in KINDS {
        let Some(&groups) = now.summary.get(&format!("groups_{kind}")) else { continue };
        for (level, switches) in (1..).zip(levels) {
            let name = format!("crossing_{kind}_level_{level}");
            let Some(&crossing) = now.summary.get(&name) else { break };
            let better = then.summary.get(&name).copied().unwrap_or_default();
            found.push(GroupLevel {
                kind: kind.to_owned(),
                level,
                switches: switches.clone(),
                groups: groups as u64,
                crossing: crossing as u64,
                better_crossing: better as u64,
            });
        }
    }
    found
}

impl Answer {
    fn sentences(&self, file: &Path) -> Vec<String> {
        let within = if self.crosses_borders { " within the borders" } else { "" };
        let mut lines = Vec::new();
        if self.crosses_borders {
            lines.push("groups of this order cross the borders".to_owned());
        }
        lines.push(match (self.proven, self.gap) {
            (true, _) => format!("this order costs {:.2} × the optimum{within}", self.cost_over_best),
            (false, Some(gap)) => {
                let gap = format!("at most {:.1} % above the optimum", 100.0 * gap);
                format!(
                    "this order costs {:.2} × the best that was found{within}, {gap}",
                    self.cost_over_best
                )
            }
            (false, None) => {
                format!("this order costs {:.2} × the best that was found{within}", self.cost_over_best)
            }
        });
        let is_faster = self.better_seconds < self.seconds * (1.0 - SAME);
        let is_cheaper = self.better_cost_over_best < self.cost_over_best * (1.0 - SAME);
        let is_better = self.present != self.better && (is_faster || is_cheaper || self.crosses_borders);
        let crosses = |level: &&GroupLevel| level.crossing > 0 || level.better_crossing > 0;
        lines.extend(self.crossings.iter().filter(crosses).map(|level| level.sentence(is_better)));
        let seconds = format!("predicted communication of a step: {}", hopmap_views::seconds(self.seconds));
        if !is_better {
            lines.push(seconds);
            lines.push("no order was found that is faster".to_owned());
            return lines;
        }
        let change = 100.0 * (self.better_seconds / self.seconds - 1.0);
        let change = match (is_faster, change > 100.0 * SAME) {
            (false, false) => "as fast".to_owned(),
            (_, is_slower) => format!("{:.1} % {}", change.abs(), if is_slower { "more" } else { "less" }),
        };
        let cost = match self.better_cost_over_best <= 1.0 + SAME {
            true if is_faster => String::new(),
            true => ", at the least cost".to_owned(),
            false => format!(", at {:.2} × the least cost", self.better_cost_over_best),
        };
        let better = hopmap_views::seconds(self.better_seconds);
        lines.push(format!("{seconds}, {better} in the better order ({change}{cost})"));
        lines.extend(self.results(file));
        lines
    }

    /// The better order, and where it is.
    fn results(&self, file: &Path) -> Vec<String> {
        let folder = shown(file.parent().unwrap_or(file));
        let order = format!("better order: {}", host_list::compress(&self.better));
        let replaced = format!("spares replace {}", host_list::compress(&self.replaced));
        let files = format!(
            "{} has the hosts in the better order, {folder}/groups-present.csv the hosts of every group",
            shown(file)
        );
        let replaced = Some(replaced).filter(|_| !self.replaced.is_empty());
        let order = Some(order).filter(|_| self.better.len() <= MOST_LISTED);
        order.into_iter().chain(replaced).chain([files]).collect()
    }
}

impl GroupLevel {
    fn sentence(&self, is_better: bool) -> String {
        let Self { crossing, groups, better_crossing, switches, .. } = self;
        let kind = KINDS.iter().find(|(name, _)| *name == self.kind).map_or("", |(_, name)| name);
        let better =
            if is_better { format!(", {better_crossing} in the better order") } else { String::new() };
        format!("  {crossing} of {groups} {kind} groups cross {switches}{better}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_numbers() {
        assert_eq!(pair("layers=96"), Ok(("layers".to_owned(), "96".to_owned())));
        assert_eq!(pair("dp=1e9"), Ok(("dp".to_owned(), "1000000000".to_owned())));
        assert_eq!(pair("sequence_parallel=false"), Ok(("sequence_parallel".to_owned(), "false".to_owned())));
        for wrong in ["layers", "layers=", "=3", "layers=many", "a b=3", "dp=-1"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
        assert!(positive("-1").is_err() && positive("fast").is_err() && positive("50e9").is_ok());
    }
}
