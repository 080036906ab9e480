//! `mapping`: tables `ranks`, `hosts` and `convergence`; `metrics`: table `placements`, one column per metric; `schedule`: tables `tasks`,
//! `processors` and `convergence`.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    ConvergencePoint, HostSlots, MOST_GAIN, Mapping, Metrics, Placement, PlacementMetrics, PlacementOrigin,
    Processor, Schedule, ScheduledTask, to_u32,
};
use hopmap_text::{decimal, duration, grouped};

use super::prediction::is_without_contention;
use crate::codec::{Codec, Contents, joined};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;
use crate::value::column;

impl Codec for Mapping {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "A process mapping: the slot of every rank.";
    const TABLES: &'static [TableForm] = &[PlacementRow::TABLE, HostSlots::TABLE, ConvergencePoint::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("bound", "`map/exact`: lower bound of F"),
        ("gap", "`map/exact`: (F − bound) / bound"),
        ("proven", "`map/exact`: 1 if the mapping is proven optimal, else 0"),
        ("nodes", "`map/exact`: nodes of the search tree"),
        ("latency_s", "weight time: latency of the machine that was used"),
        ("bandwidth_bytes_per_s", "weight time: bandwidth of the machine that was used"),
        ("makespan", "`objective = \"makespan\"`: time at which the last task finishes"),
        ("lower_bound", "`objective = \"makespan\"`: lower bound of the makespan of all mappings"),
        ("predicted_s", "`objective = \"predicted-time\"`: predicted run time"),
        ("replays", "`objective = \"predicted-time\"`: replays after those of the candidates"),
    ];

    fn encode(&self) -> Contents {
        let row = |rank: usize| {
            let Placement { slot, core, .. } = self.ranks[rank];
            PlacementRow { slot, host: self.host_of(rank).into(), core }
        };
        Contents::new()
            .table(PlacementRow::table((0..self.ranks.len()).map(row)))
            .table(HostSlots::table(&self.hosts))
            .table(ConvergencePoint::table(&self.convergence))
            .metrics(&self.metrics)
            .attribute("weight", serde_json::to_value(self.weight).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let hosts: Vec<HostSlots> = folder.rows()?;
        let index: BTreeMap<&str, u32> =
            hosts.iter().enumerate().map(|(index, host)| (host.host.as_str(), to_u32(index))).collect();
        let table = folder.table("ranks")?;
        let placement = |PlacementRow { slot, host, core }| match index.get(host.as_str()) {
            Some(&host) => Ok(Placement { slot, host, core }),
            None => Err(table.error("host", format!("names `{host}`, which is not in the table `hosts`"))),
        };
        let ranks = PlacementRow::read(&table)?.map(placement).collect::<Result<_, _>>()?;
        let mapping = Self {
            ranks,
            weight: folder.attribute("weight")?,
            metrics: folder.description().metrics.clone(),
            convergence: folder.rows()?,
            complete: folder.attribute("complete")?,
            hosts,
        };
        mapping.check().map_err(|error| folder.invalid(error))?;
        Ok(mapping)
    }
}

table_rows!("ranks": struct PlacementRow [rank = "MPI rank"] {
    slot: u32 = "slot of the machine",
    host: String = "name of the host",
    core: Option<u32> = "core of the host, where cores are known",
});

table_rows!("hosts": HostSlots {
    host: String = "name of a host",
    first_slot: u32 = "its first slot",
    slots: u32 = "number of its slots",
});

table_rows!("convergence": ConvergencePoint {
    island: u32 = "island of the search, from 0",
    evaluations: u64 = "evaluations of this island so far",
    cost: f64 = "best objective of the island so far",
});

impl Codec for Metrics {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str =
        "A mapping compared with baselines; a bound; or metrics of several mappings compared with run times.";
    const TABLES: &'static [TableForm] = &[TableForm {
        columns: &[
            PlacementMetrics::COLUMNS,
            &[column::<Option<f64>>(
                "*",
                "one column per metric; for mappings with run times also `measured_s`, their median, `measured_low_s` and `measured_high_s`, its interval, and `predicted_s`",
            )],
        ],
        ..PlacementMetrics::TABLE
    }];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("F", "communication cost of the mapping; every other metric of mappings likewise"),
        ("F_linear", "the same of the linear mapping"),
        ("F_round_robin", "the same of the round-robin mapping"),
        ("F_random", "mean of the random mappings"),
        ("most_gain", "of a bound: largest fraction of the run time that a placement can gain"),
        (
            "uncounted_s",
            "of a bound without `most_gain`: seconds of a rank for the ends of its messages, which the bound leaves out",
        ),
        ("bound_s", "of a bound: no run is shorter; also `bound_computation_s` and other parts"),
        ("reference_s", "of a bound: the run time that it is compared with"),
        ("contended", "of a bound: 1 if messages share links, 0 if the machine has no links"),
        ("F_over_linear", "F / F_linear; also `_over_round_robin` and `_over_random`"),
        (
            "spearman_F",
            "of run times: Spearman's ρ of F and seconds; likewise of every metric, and `predicted_s`",
        ),
        ("kendall_F", "of run times: Kendall's τ-b of F and seconds; likewise of all others"),
        ("kendall_beyond_noise_F", "the same of the pairs of mappings that differ by more than the noise"),
        (
            "regret_F",
            "of run times: seconds of the mapping with the smallest F / fewest seconds − 1; likewise of all others",
        ),
        ("prediction_error", "of run times: median of |predicted / measured − 1|"),
        ("mappings", "of run times: mappings with a run time; also `pairs` and `pairs_beyond_noise`"),
    ];

    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        bound(metrics).or_else(|| crossings(metrics)).or_else(|| quality(metrics))
    }

    fn encode(&self) -> Contents {
        let names: BTreeSet<&String> = self.placements.iter().flat_map(|row| row.values.keys()).collect();
        let table = names.into_iter().fold(PlacementMetrics::table(&self.placements), |table, name| {
            table.column(name, self.placements.iter().map(|row| row.values.get(name).copied()))
        });
        Contents::new().table(table).metrics(&self.summary)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("placements")?;
        let mut placements: Vec<PlacementMetrics> = PlacementMetrics::read(&table)?.collect();
        for name in table.names().into_iter().filter(|name| name != "placement" && name != "sample") {
            for (row, value) in placements.iter_mut().zip(table.column::<Option<f64>>(&name)?) {
                row.values.extend(value.map(|value| (name.clone(), value)));
            }
        }
        Ok(Self { placements, summary: folder.description().metrics.clone() })
    }
}

table_rows!("placements": PlacementMetrics {
    origin as placement: PlacementOrigin = "`mapping`, `linear`, `round-robin` or `random`",
    sample: u32 = "number of the random mapping, or of the mapping where several have run times",
} other values);

value_names!(PlacementOrigin = &PlacementOrigin::NAMES);

/// A bound in words: what part of some seconds placement can save at most.
#[must_use]
pub fn saved_at_most(part: f64, seconds: f64) -> String {
    let percent = 100.0 * part;
    let percent = if percent < 10.0 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    format!("placement can save at most {percent} % of the {} run", duration(seconds))
}

/// What a placement can gain at most, if the metrics are those of a bound.
fn bound(metrics: &BTreeMap<String, f64>) -> Option<String> {
    let value = |name: &str| metrics.get(name).copied();
    let seconds = value("bound_s")?;
    let contention = if is_without_contention(metrics) { ", without contention" } else { "" };
    Some(match (value(MOST_GAIN).zip(value("reference_s")), value("uncounted_s")) {
        (Some((gain, reference)), _) => saved_at_most(gain, reference) + contention,
        (None, Some(uncounted)) => format!(
            "what a placement gains is not bounded: up to {uncounted:.6} s for the handling of messages is left out"
        ),
        _ if seconds > 0.0 => format!("no run is shorter than {seconds:.6} s{contention}"),
        _ => "the recording has no times: what a placement gains is not bounded".to_owned(),
    })
}

/// The groups of ranks that are below several switches, if they are counted.
fn crossings(metrics: &BTreeMap<String, f64>) -> Option<String> {
    let mut kinds =
        metrics.iter().filter_map(|(name, all)| Some((name.strip_prefix("groups_")?, all))).peekable();
    kinds.peek()?;
    let crossing = kinds.filter_map(|(kind, all)| {
        let crossing =
            metrics.get(&format!("crossing_{kind}_level_1")).filter(|crossing| **crossing > 0.0)?;
        Some(format!("{crossing} of {all} {kind}"))
    });
    let crossing: Vec<String> = crossing.collect();
    Some(match crossing.is_empty() {
        true => "no group crosses switches".to_owned(),
        false => format!("groups that cross switches: {}", crossing.join(", ")),
    })
}

/// The metrics of a mapping relative to linear and random.
fn quality(metrics: &BTreeMap<String, f64>) -> Option<String> {
    let ratio = |name: &str, baseline: &str| {
        let value = metrics.get(&format!("{name}_over_{baseline}"))?;
        Some(format!("{name} {value:.3} × {baseline}"))
    };
    let link = ratio("max_link_time_s", "linear").or_else(|| ratio("max_link_load_bytes", "linear"));
    joined([ratio("F", "linear"), ratio("F", "random"), ratio("T", "linear"), link])
}

/// The heads of what [`compared`] gives.
pub const COMPARED: [&str; 4] = ["F", "F / linear", "F / round-robin", "gain"];

/// F of a mapping, relative to the baselines, and what is gained against the better of them; none where F is not compared.
#[must_use]
pub fn compared(metrics: &BTreeMap<String, f64>) -> Option<[String; 4]> {
    let ratios = [metrics.get("F_over_linear"), metrics.get("F_over_round_robin")];
    ratios[0]?;
    let better = ratios.into_iter().flatten().copied().fold(0.0, f64::max);
    let [linear, round_robin] =
        ratios.map(|ratio| ratio.map_or_else(String::new, |value| format!("{value:.3}")));
    let cost = metrics.get("F").map_or_else(String::new, |value| grouped(value.trunc()));
    Some([cost, linear, round_robin, format!("{:.1} %", 100.0 * (1.0 - better) + 0.0)])
}

impl Codec for Schedule {
    const SCHEMA: u32 = 2;
    const CONTENTS: &'static str = "The processor and the start time of every task.";
    const TABLES: &'static [TableForm] = &[
        TableForm {
            columns: &[
                ScheduledTask::COLUMNS,
                &[column::<String>("name", "name of the task; written only if tasks have names")],
                ProcessOfTask::COLUMNS,
            ],
            ..ScheduledTask::TABLE
        },
        Processor::TABLE,
        ConvergencePoint::TABLE,
    ];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("makespan", "finish time of the last task"),
        ("critical_work", "computation on the critical path; the rest of the makespan is messages"),
        ("recorded_s", "run time of the traced program as recorded, to compare the makespan with"),
        ("predicted_s", "run time in the model of `predict/time`, if a program is connected"),
        ("predicted_computation_s", "computation on its critical path"),
        ("predicted_messages_s", "latency and transfer of messages on it, each alone on its links"),
        ("predicted_overhead_s", "overheads of messages at both ends on it"),
        ("predicted_waiting_s", "waiting for other ranks and for shared links on it"),
        ("lower_bound", "no schedule has a smaller makespan"),
        ("gap", "(makespan − lower bound) / lower bound"),
        ("proven", "1 if the schedule is proven optimal, else 0"),
        ("idle", "fraction of time that processors idle"),
        ("evaluations", "schedules that the search evaluated"),
    ];

    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        let makespan = *metrics.get("makespan")?;
        let seconds = |name: &str, what: &str| Some(format!("{what} {:.6} s", metrics.get(name)?));
        let Some(recorded) = seconds("recorded_s", "recorded") else {
            return Some(format!("makespan {}", decimal(makespan)));
        };
        joined([seconds("makespan", "makespan"), seconds("predicted_s", "predicted"), Some(recorded)])
    }

    fn encode(&self) -> Contents {
        let tasks = ScheduledTask::table(&self.tasks);
        let tasks = match self.names.is_empty() {
            true => tasks,
            false => tasks.column("name", self.names.iter().cloned()),
        };
        let processes = self.tasks.iter().zip(self.segments());
        let processes: Vec<_> =
            processes.map(|(task, segment)| ProcessOfTask { process: task.process, segment }).collect();
        Contents::new()
            .table(ProcessOfTask::add(tasks, processes.iter()))
            .table(Processor::table(&self.processors))
            .table(ConvergencePoint::table(&self.convergence))
            .metrics(&self.metrics)
            .attribute("model", serde_json::to_value(self.model).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("tasks")?;
        let processes = ProcessOfTask::read(&table)?.map(|row| row.process);
        let tasks = ScheduledTask::read(&table)?.zip(processes);
        let schedule = Self {
            tasks: tasks.map(|(task, process)| ScheduledTask { process, ..task }).collect(),
            names: if table.has("name") { table.column("name")? } else { Vec::new() },
            processors: folder.rows()?,
            model: folder.attribute("model")?,
            metrics: folder.description().metrics.clone(),
            convergence: folder.rows()?,
            complete: folder.attribute("complete")?,
        };
        schedule.check().map_err(|error| folder.invalid(error))?;
        Ok(schedule)
    }
}

table_rows!("tasks": ScheduledTask [task = "task of the task DAG"] {
    processor: u32 = "processor that runs it",
    turn: u32 = "position of the task on the processor, from 0",
    start: f64 = "start time, in the unit of the work",
    finish: f64 = "finish time, in the unit of the work",
    waits_for: Option<u32> = "task that keeps this one from starting earlier",
} other process);

struct ProcessOfTask {
    process: Option<u32>,
    segment: Option<u32>,
}

table_rows!("tasks": ProcessOfTask {} given {
    process: Option<u32> = "MPI rank of the task; written only for traced programs",
    segment: Option<u32> = "position of the task within its MPI rank",
});

table_rows!("processors": Processor [processor = "processor, from 0"] {
    name: String = "its name",
    available: f64 = "time at which it becomes available",
    slot: Option<u32> = "slot of the machine, where one is connected",
});

#[cfg(test)]
mod tests {
    use super::saved_at_most;

    /// Once the bound was the first figure, and read as if it were the gain.
    #[test]
    fn a_bound_is_what_can_be_saved_at_most() {
        let texts = [(0.612, 1.086_841), (0.0421, 30.0)].map(|(part, seconds)| saved_at_most(part, seconds));
        assert_eq!(
            texts,
            [
                "placement can save at most 61 % of the 1.09 s run",
                "placement can save at most 4.2 % of the 30 s run"
            ]
        );
    }
}
