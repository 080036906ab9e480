//! `hopmap rank-order`: what the present order of a training job's hosts costs, and a better one. It writes a pipeline file and runs
//! it.

mod arguments;
mod file;
mod hosts;

use std::path::Path;

use hopmap_command::{Exit, refuse, shown};
use hopmap_formats::host_list;
use hopmap_launchers::shell_word;
use hopmap_model::{Mapping, Metrics, Prediction, SystemGraph};
use miette::Diagnostic;
use serde::Serialize;

use super::named::is_in_store;
use super::open::working_directory;
use super::output::{Output, Result, errors};
use super::run::Request;
use super::written::{self, PipelineFile};
pub(crate) use arguments::Arguments;
use file::{Job, PRESENT};
use hosts::{check_slots, hosts};

/// Names in the folder of the results.
const PIPELINE: &str = "rank-order.toml";
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

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let working = working_directory()?;
    let out = working.join(&arguments.out);
    if is_in_store(&out.join(PIPELINE)) {
        return refuse(format!("{} is in a store", shown(&out)), "name another folder with -o");
    }
    let hosts = hosts(arguments.hosts.named(output)?, arguments.gpus, output)?;
    let job = Job::new(arguments, hosts)?;
    check_slots(&working.join(&arguments.topology), &job.hosts)?;
    let _lock = written::lock(&out)?;
    let pipeline = job.pipeline(arguments)?;
    let file = PipelineFile::write(out.join(PIPELINE), &pipeline, &arguments.store)?;
    let present = job.present();
    let own: Vec<_> =
        RESULTS.map(|name| (name, None)).into_iter().chain([(PRESENT, Some(&*present))]).collect();
    file.save(&own)?;
    let quiet = Output::new(false, !output.is_talkative());
    let exit = file.run(&Request { no_report: true, ..Request::default() }, quiet)?;
    if exit != Exit::Done {
        // The run has said on standard error what failed.
        output.json(&errors(&[NoAnswer { path: shown(file.path()) }.into()]));
    }
    if exit == Exit::Done {
        conclude(arguments, &file, &job, output)?;
    }
    Ok(exit)
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
fn conclude(arguments: &Arguments, file: &PipelineFile<'_>, job: &Job, output: Output) -> Result<()> {
    let mapping = |cell: &str| file.newest::<Mapping>(cell);
    let seconds = |cell: &str| file.newest::<Prediction>(cell);
    let groups = |cell: &str| file.newest::<Metrics>(cell);
    let (Some(present), Some(cheapest), Some(better)) =
        (mapping("present")?, mapping("cheapest")?, mapping(job.better())?)
    else {
        return Ok(());
    };
    let of = |stage: &str| format!("{stage}-{}", job.better());
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
        arguments
            .borders
            .iter()
            .any(|(kind, level)| *kind == found.kind && level.as_integer() == i64::try_from(found.level).ok())
    };
    let [listed, order] = [&present, &better].map(|mapping| order(mapping, job.needed));
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
    answer.sentences(&file.path().with_file_name(job.hosts_file())).iter().for_each(|line| output.line(line));
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
