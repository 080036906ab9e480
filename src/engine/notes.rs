//! Warnings in the run summary and the report about misleading results: incomplete recordings, collective operations that are not counted,
//! programs for which all mappings are equal, predictions for the mapping of another program, and launch files with placeholders for hosts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hopmap_artifact::Folder;
use hopmap_model::{
    Artifact, BOUND_PORT, Direction, LaunchFile, MOST_GAIN, Mapping, Metrics, Prediction, Program, TaskDag,
    TaskGraph,
};
use hopmap_recording::{DESCRIPTION, Recording};
use serde_json::Value as Json;

use super::outcome::{RunReport, Settled};
use super::record::OutputRecord;
use super::save::launch_files;
use super::store::Store;
use crate::pipeline::{Cell, Need, Origin, Pipeline};

/// Shares of the communication time below this are not worth a line.
const LEAST_SHARE: f64 = 0.01;

/// Warnings about programs, one line each.
pub(crate) fn warnings(pipeline: &Pipeline, store: &Store, report: &RunReport) -> Vec<String> {
    let all = [
        incomplete(pipeline, report),
        cut_off(pipeline, report),
        uncounted_collectives(pipeline, store, report),
        no_messages(pipeline, report),
        other_program(pipeline, report),
        shared_cores(pipeline, report),
        not_calibrated(pipeline, report),
    ];
    all.into_iter().flatten().collect()
}

/// A line if launch files name hosts that no cluster has.
pub(crate) fn placeholders(pipeline: &Pipeline, store: &Store, report: &RunReport) -> Option<String> {
    if launch_files(pipeline, report, store).is_empty() {
        return None;
    }
    let has_file = |settled: &Settled| settled.outputs.values().any(|record| record.kind == LaunchFile::KIND);
    let cells = report.cells.iter().enumerate().filter(|(_, settled)| has_file(settled));
    let mut open: Vec<usize> = cells.map(|(index, _)| index).collect();
    let mut seen = vec![false; pipeline.cells.len()];
    while let Some(index) = open.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let cell = &pipeline.cells[index];
        if has_placeholders(cell) {
            let remedy = match pipeline.has_parameter("hosts") {
                true => "--hosts NAMES".to_owned(),
                false => format!("`hosts` of stage `{}`", cell.stage),
            };
            let is_assumed = cell.ready_parameters().is_some_and(|it| it.canonical()["shape"] == "auto");
            let assumed = if is_assumed { " of an assumed machine" } else { "" };
            return Some(format!("placeholders (host0, host1, …){assumed}: name yours with {remedy}"));
        }
        open.extend(cell.dependencies());
    }
    None
}

/// Whether a machine has hosts whose names were made up.
fn has_placeholders(cell: &Cell) -> bool {
    let Some(parameters) = cell.ready_parameters().filter(|_| cell.entry.kind == "topology/synthetic") else {
        return false;
    };
    let parameters = parameters.canonical();
    parameters["hosts"] == Json::Array(Vec::new())
        && parameters["hosts_file"].is_null()
        && parameters["host_prefix"] == "host"
}

/// The cells with results of a kind.
fn records<'a>(
    pipeline: &'a Pipeline,
    report: &'a RunReport,
    kind: &'static str,
) -> impl Iterator<Item = (&'a Cell, &'a OutputRecord)> {
    let cells = pipeline.cells.iter().zip(&report.cells);
    let all = cells.flat_map(|(cell, settled)| settled.outputs.values().map(move |record| (cell, record)));
    all.filter(move |(_, record)| record.kind == kind)
}

/// The first of several, and how many more.
fn and_more(first: &str, count: usize) -> String {
    match count.saturating_sub(1) {
        0 => first.to_owned(),
        more => format!("{first} and {more} more"),
    }
}

/// The programs of which only a part was recorded.
fn incomplete(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let graphs = records(pipeline, report, TaskGraph::KIND).filter(|(cell, _)| is_read_from_a_trace(cell));
    let cells: Vec<&Cell> = graphs
        .filter(|(_, record)| record.metrics.contains_key("incomplete"))
        .map(|(cell, _)| cell)
        .collect();
    let first = and_more(&cells.first()?.name, cells.len());
    Some(format!(
        "warning: the recording of {first} is incomplete, so that messages are missing: record the program again"
    ))
}

/// The programs that lack operations.
fn cut_off(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let left_out = |(cell, record): (_, &OutputRecord)| Some((cell, *record.metrics.get("left_out_s")?));
    let programs: Vec<(&Cell, f64)> = records(pipeline, report, Program::KIND).filter_map(left_out).collect();
    let (first, seconds) = *programs.first()?;
    Some(format!(
        "warning: {} lacks operations, which touches {seconds:.6} s of its ranks together: predictions from it are too short",
        and_more(&first.name, programs.len())
    ))
}

/// The program whose collective operations take the largest share of its communication time, if they do not count.
fn uncounted_collectives(pipeline: &Pipeline, store: &Store, report: &RunReport) -> Option<String> {
    let graphs = records(pipeline, report, TaskGraph::KIND).filter(|(cell, record)| !counts(cell, record));
    let shares = graphs.filter_map(|(cell, record)| Some((collective_share(store, record)?, cell)));
    let mut shares: Vec<(f64, &Cell)> = shares.filter(|(share, _)| *share >= LEAST_SHARE).collect();
    shares.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let (share, cell) = *shares.first()?;
    let remedy = match (cell.entry.kind, pipeline.has_parameter("collectives")) {
        ("trace/otf2" | "trace/import", true) => ": -p collectives=expand",
        ("trace/otf2" | "trace/import", false) => ": `collectives = \"expand\"`",
        _ => "",
    };
    Some(format!(
        "warning: collectives are {:.0} % of the communication time of {} and are not counted{remedy}",
        100.0 * share,
        and_more(&cell.name, shares.len())
    ))
}

/// Whether the collective operations of a program are among its messages, as far as that is known.
fn counts(cell: &Cell, record: &OutputRecord) -> bool {
    match cell.ready_parameters().map(|parameters| &parameters.canonical()["collectives"]) {
        Some(Json::String(collectives)) => collectives == "expand",
        _ => !is_read_from_a_trace(cell) || record.metrics.contains_key("collectives"),
    }
}

/// Stages with inputs change a program that an earlier stage has read.
fn is_read_from_a_trace(cell: &Cell) -> bool {
    cell.needs.is_empty()
}

/// The share of collective operations in the communication time of all ranks, if the trace has both times.
fn collective_share(store: &Store, record: &OutputRecord) -> Option<f64> {
    let folder = Folder::open(&store.artifact(&record.digest)).ok()?;
    let processes = folder.table("processes").ok()?;
    let sum = |column| processes.column::<Option<f64>>(column).ok()?.into_iter().sum::<Option<f64>>();
    let communication = sum("communication_s")?;
    Some(sum("collective_s")? / communication).filter(|share| share.is_finite())
}

/// If F is 0 for every mapping, gates on it always pass. A mapper that keeps all messages inside a host whose cores cost nothing also
/// reaches F = 0, but then the linear, round-robin and random mappings do not.
fn no_messages(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let is_zero = |record: &OutputRecord| {
        let cost = |name: &str| record.metrics.get(name).copied();
        let others = ["F_linear", "F_round_robin", "F_random"];
        cost("F") == Some(0.0) && others.into_iter().filter_map(cost).all(|cost| cost == 0.0)
    };
    let cells: Vec<&Cell> = records(pipeline, report, Metrics::KIND)
        .filter(|(_, record)| is_zero(record))
        .map(|(cell, _)| cell)
        .collect();
    let first = and_more(&cells.first()?.name, cells.len());
    Some(format!(
        "warning: F is 0 for {first}: no messages between ranks on different hosts, so all mappings are equal"
    ))
}

/// A line for all predictions that only the network costs time.
fn not_calibrated(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let is_calibrated = |record: &OutputRecord| record.metrics.get("calibrated") != Some(&0.0);
    records(pipeline, report, Prediction::KIND).find(|(_, record)| !is_calibrated(record)).map(|_| {
        "not calibrated: predictions take the overheads of messages at their ends as zero; topology/probe with calibrate = true measures them"
            .to_owned()
    })
}

/// The bound of a program whose recorded ranks waited for cores, which they need not where each has one.
fn shared_cores(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let bounds =
        records(pipeline, report, Metrics::KIND).filter(|(_, record)| record.metrics.contains_key(MOST_GAIN));
    let has_shared = |need: &Need| {
        let files = sources(pipeline, need).map(|(_, sources)| sources).unwrap_or_default();
        files.into_iter().flatten().any(|file| {
            let folder = file.parent().filter(|_| file.ends_with(DESCRIPTION)).unwrap_or(&file);
            folder.join(DESCRIPTION).is_file()
                && Recording::read(folder).is_ok_and(|recording| recording.shares_processors())
        })
    };
    let (cell, _) = bounds.into_iter().find(|(cell, _)| {
        cell.needs
            .iter()
            .filter(|need| [TaskGraph::KIND, Program::KIND].contains(&need.port.kind))
            .any(has_shared)
    })?;
    Some(format!(
        "warning: the recorded ranks shared cores and waited for them: stage `{}` gives no upper bound where each rank has a core",
        cell.name
    ))
}

/// The origins of a program: the files that were read, or the cell that generated it.
type Sources = BTreeSet<Result<PathBuf, usize>>;

/// The predictions and bounds whose program has no source in common with their mapping or task graph.
fn other_program(pipeline: &Pipeline, report: &RunReport) -> Option<String> {
    let mut others = pipeline.cells.iter().zip(&report.cells).filter_map(|(cell, settled)| {
        let need = |kind: &str| cell.needs.iter().find(|need| need.port.kind == kind);
        let (program, other) = (need(Program::KIND)?, need(Mapping::KIND).or_else(|| need(TaskGraph::KIND))?);
        let (replayed, placed) = (sources(pipeline, program)?, sources(pipeline, other)?);
        let is_other = settled.is_usable() && replayed.1.is_disjoint(&placed.1);
        is_other.then_some((&cell.name, replayed.0, placed.0))
    });
    let (cell, replayed, placed) = others.next()?;
    let first = and_more(cell, 1 + others.count());
    Some(format!(
        "warning: {replayed} and {placed}, inputs of {first}, are read from different files: check that they are the same program"
    ))
}

/// The first cell that made the program behind an input, and all its sources; none if no program is behind it.
fn sources<'a>(pipeline: &'a Pipeline, need: &Need) -> Option<(&'a str, Sources)> {
    let mut open: Vec<usize> = need.origins.iter().flat_map(Origin::cells).copied().collect();
    let mut seen = vec![false; pipeline.cells.len()];
    let (mut first, mut sources) = (None, Sources::new());
    while let Some(index) = open.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let cell = &pipeline.cells[index];
        // A mapper takes nothing but the bound from a program that it does not map.
        let needs = cell.needs.iter().filter(|need| need.port.name != BOUND_PORT);
        open.extend(needs.flat_map(|need| &need.origins).flat_map(Origin::cells));
        open.extend(cell.named_artifacts().map(|(index, _)| index));
        let makes_program = |kind: &str| [TaskGraph::KIND, TaskDag::KIND, Program::KIND].contains(&kind);
        if cell.dependencies().next().is_none() {
            let files =
                cell.ready_parameters().and_then(|parameters| parameters.reads().ok()).unwrap_or_default();
            let made = [Err(index)].into_iter().filter(|_| files.is_empty());
            sources.extend(files.iter().map(|file| Ok(file.path().to_owned())).chain(made));
            if cell.entry.ports(Direction::Out).any(|port| makes_program(port.kind)) {
                first = Some(cell.name.as_str());
            }
        }
    }
    first.map(|name| (name, sources))
}
