//! The report: one self-contained HTML file that needs no network and no server.
//!
//! It shows the metrics compared with linear and random mappings, predicted and measured run times and their correlation, the pipeline with the state and reason of each cell, the measured
//! machine, the communication matrix before and after mapping, the machine with its loads, schedules as Gantt charts, routes on their
//! network, checkpoint deltas and stores, and the launch commands. The timeline and the trace events for Perfetto come from the
//! journal, whose cells are assigned to lanes.

mod answer;
mod measured;
mod page;
mod predictions;
mod problem;
mod searches;
mod sections;
mod solutions;
mod sweep;
mod trials;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use hopmap_islands::TIME_PLAN;
use hopmap_views::{Slice, timeline};
use miette::Report;
use serde_json::{Value as Json, json};

use crate::engine::{PipelineId, RunReport, RunSummary, Settled, StageEvent, Store, read_run, read_runs};
use crate::pipeline::Pipeline;
pub(crate) use answer::gains;
pub(crate) use measured::write_published;
pub(crate) use page::Results;
use page::{Page, Stamp, cell_name, escape};
use searches::Colours;

/// Searches whose time is said.
const MOST_PLANS: usize = 40;

/// Path of the report of the last run of a pipeline: its name, with a digest where another pipeline has the same name.
pub(crate) fn place(store: &Store, pipeline: &Pipeline) -> PathBuf {
    let safe: String = pipeline
        .name
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .collect();
    let folder = store.root().join("reports");
    let place = folder.join(format!("{safe}.html"));
    let digits = PipelineId::of(pipeline, store.root()).digits();
    match Stamp::read(&place) {
        Some(other) if other.pipeline != digits => folder.join(format!("{safe}-{digits}.html")),
        _ => place,
    }
}

/// The same, with a digest also where the last run had other parameters.
pub(crate) fn place_of_parameters(store: &Store, pipeline: &Pipeline) -> PathBuf {
    let last = place(store, pipeline);
    match Stamp::read(&last) {
        Some(there) if there.has_others(pipeline) => of_parameters(&last, &Stamp::parameters_of(pipeline)),
        _ => last,
    }
}

/// The place beside the report of the last run for one of other parameters.
fn of_parameters(last: &Path, digits: &str) -> PathBuf {
    last.with_extension(format!("{digits}.html"))
}

/// Moves the report of the last run aside if that run had other parameters, so that the new one replaces none of its results.
pub(crate) fn keep_of_others(last: &Path, pipeline: &Pipeline) -> Result<(), DurableError> {
    match Stamp::read(last).filter(|there| there.has_others(pipeline)) {
        Some(there) => {
            let aside = of_parameters(last, &there.parameters);
            std::fs::rename(last, &aside).map_err(DurableError::io("rename", last))
        }
        None => Ok(()),
    }
}

/// Whether a report of some run is at a path.
pub(crate) fn is_one(path: &Path) -> bool {
    Stamp::read(path).is_some()
}

/// What is at the beginning of every timeline: its first event names the process.
pub(crate) const TIMELINE_MARK: &str = "\"name\":\"hopmap run ";

/// Whether at a path is a report of other parameters, or of another pipeline.
pub(crate) fn is_of_others(path: &Path, pipeline: &Pipeline, store: &Store) -> bool {
    let digits = PipelineId::of(pipeline, store.root()).digits();
    Stamp::read(path).is_some_and(|there| there.pipeline != digits || there.has_others(pipeline))
}

/// Whether the report at a path is up to date, that is, shows the same results.
pub(crate) fn is_current(place: &Path, pipeline: &Pipeline, store: &Store, report: &RunReport) -> bool {
    Stamp::read(place).is_some_and(|stamp| stamp == Stamp::of(Results { pipeline, store, report }))
}

/// Writes the report of a run or a plan. `shown` formats the path of a file for a command.
pub(crate) fn write(
    path: &Path,
    pipeline: &Pipeline,
    store: &Store,
    report: &RunReport,
    shown: &dyn Fn(&Path) -> String,
) -> Result<(), Report> {
    let results = Results { pipeline, store, report };
    let mut page = Page::new(page::MOST_BYTES);
    let (mappers, schedulers) = (Colours::of_mappers(results), Colours::of_schedulers(results));
    sections::summary(&mut page, results);
    let is_measured = trials::trials(&mut page, results);
    sections::launch(&mut page, results, shown);
    sections::gates(&mut page, results);
    sections::quality(&mut page, results, &mappers);
    sections::tables(&mut page, results);
    // What a sweep compares comes before its pictures; of a trial the pictures are about the placements that ran.
    if !is_measured {
        sweep::sweeps(&mut page, results);
    }
    solutions::mappings(&mut page, results, &mappers);
    predictions::predictions(&mut page, results);
    predictions::correlations(&mut page, results);
    if is_measured {
        sweep::sweeps(&mut page, results);
    }
    solutions::programs(&mut page, results);
    searches::tables(&mut page, results);
    searches::searches(&mut page, results, &mappers, &schedulers);
    measured::measured(&mut page, results);
    solutions::schedules(&mut page, results, &schedulers);
    solutions::routes(&mut page, results);
    solutions::deltas(&mut page, results);
    solutions::stored(&mut page, results);
    sections::pipeline(&mut page, results);
    draw(&mut page, results);
    sections::stages(&mut page, results);
    let text = page.finish(&pipeline.name, &Stamp::of(results).to_string());
    let blake3 = blake3::hash(text.as_bytes()).to_hex();
    replace_file(path, format!("{text}{SEAL}{blake3}{SEAL_END}").as_bytes())?;
    Ok(())
}

/// What is around the BLAKE3 of a report at its end.
const SEAL: &str = "<!-- BLAKE3 ";
const SEAL_END: &str = " -->\n";

/// Whether a report was edited since it was written.
#[must_use]
pub(crate) fn is_edited(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // Older reports have no seal.
    let sealed = text.rsplit_once(SEAL);
    sealed.is_some_and(|(text, seal)| seal != format!("{}{SEAL_END}", blake3::hash(text.as_bytes()).to_hex()))
}

/// Journals round times, and record an end slightly late.
const TOLERANCE_S: f64 = 1e-3;

/// A cell that ran, in a lane that is free during its run.
struct Ran<'a> {
    event: &'a StageEvent,
    lane: usize,
    begin_s: f64,
    end_s: f64,
}

/// The cells that ran in the order of their start, each in the first free lane.
fn lanes(run: &RunSummary) -> Vec<Ran<'_>> {
    let ran = |event: &&StageEvent| event.seconds > 0.0;
    let mut events: Vec<&StageEvent> = run.stages.iter().filter(ran).collect();
    let begin = |event: &StageEvent| (event.at_s - event.seconds).max(0.0);
    events.sort_by(|a, b| begin(a).total_cmp(&begin(b)).then_with(|| a.cell.cmp(&b.cell)));
    let mut free: Vec<f64> = Vec::new();
    let mut all = Vec::new();
    for event in events {
        let at = begin(event);
        let lane = free.iter().position(|&end| end <= at + TOLERANCE_S).unwrap_or(free.len());
        if lane == free.len() {
            free.push(0.0);
        }
        // Slices of a lane must not overlap, or they count as nested.
        let begin_s = at.max(free[lane]);
        let end_s = event.at_s.max(begin_s);
        free[lane] = end_s;
        all.push(Ran { event, lane, begin_s, end_s });
    }
    all
}

/// A run as Chrome trace events for ui.perfetto.dev: a track for every slot, a slice for every cell that ran, with its reasons as
/// arguments. Times are microseconds since the start of the run.
pub(crate) fn chrome_trace(run: &RunSummary) -> Json {
    let ran = lanes(run);
    let lanes = ran.iter().map(|ran| ran.lane + 1).max().unwrap_or(0);
    let process = json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": format!("hopmap run {}", run.pipeline) } });
    let track = |lane: usize| json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": lane + 1, "args": { "name": format!("slot {}", lane + 1) } });
    let microseconds = |seconds: f64| (seconds * 1e6).round();
    let slice = |ran: &Ran<'_>| {
        let matrix: serde_json::Map<String, Json> = ran.event.matrix.iter().cloned().collect();
        json!({
            "name": ran.event.cell,
            "cat": ran.event.stage,
            "ph": "X",
            "pid": 1,
            "tid": ran.lane + 1,
            "ts": microseconds(ran.begin_s),
            "dur": microseconds(ran.end_s - ran.begin_s),
            "args": {
                "state": ran.event.state,
                "reasons": ran.event.reasons,
                "matrix": matrix,
                "key": ran.event.key,
            },
        })
    };
    let mut events = vec![process];
    events.extend((0..lanes).map(track));
    events.extend(ran.iter().map(slice));
    json!({
        "displayTimeUnit": "ms",
        "otherData": { "pipeline": run.pipeline, "run": run.run, "time": run.time, "seconds": run.seconds, "exit": run.exit },
        "traceEvents": events,
    })
}

/// The last run of a pipeline in which something ran; if there is none, the last one.
pub(crate) fn latest_run(store: &Store, pipeline: &Pipeline) -> Option<RunSummary> {
    let id = PipelineId::of(pipeline, store.root());
    let mut runs = read_runs(store).ok()?;
    runs.retain(|run| run.is_of(&id));
    let busy = runs.iter().rposition(|run| run.stages.iter().any(|event| event.seconds > 0.0));
    let last = runs.len().checked_sub(1)?;
    Some(runs.swap_remove(busy.unwrap_or(last)))
}

/// Draws the timeline of the run of the report, or of the last run.
pub(crate) fn draw(page: &mut Page, results: Results<'_>) {
    let run = match &results.report.folder {
        Some(folder) => read_run(folder).ok(),
        None => latest_run(results.store, results.pipeline),
    };
    let Some(run) = run else { return };
    let slices: Vec<Slice> = lanes(&run).iter().map(slice).collect();
    if slices.is_empty() {
        return;
    }
    let caption =
        format!("The run of {}. `hopmap report --timeline FILE` writes it for ui.perfetto.dev.", run.time);
    page.figure(&timeline(&slices), &caption);
    let plans = results.cells().filter_map(|(cell, settled)| Some((cell, time_plan(settled)?)));
    for (cell, plan) in plans.take(MOST_PLANS) {
        page.note(&format!("{}: {}", cell_name(cell), escape(&plan)));
    }
}

/// What a search that ran with a time limit has spent it on.
fn time_plan(settled: &Settled) -> Option<String> {
    let lines = BufReader::new(File::open(settled.log.as_ref()?).ok()?).lines();
    lines.map_while(Result::ok).find(|line| line.starts_with(TIME_PLAN))
}

fn slice(ran: &Ran<'_>) -> Slice {
    Slice {
        name: ran.event.cell.clone(),
        group: ran.event.stage.clone(),
        lane: ran.lane,
        begin_s: ran.begin_s,
        end_s: ran.end_s,
        failed: matches!(ran.event.state.as_str(), "failed" | "infeasible"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(times: &[(f64, f64)]) -> RunSummary {
        let event = |(index, &(begin, seconds)): (usize, &(f64, f64))| StageEvent {
            cell: format!("a[seed={index}]"),
            stage: "a".into(),
            matrix: vec![("seed".into(), json!(index))],
            key: None,
            state: "ran".into(),
            at_s: begin + seconds,
            seconds,
            reasons: vec!["no result in this store yet".into()],
        };
        RunSummary {
            run: "RUN".into(),
            pipeline: "p".into(),
            file: "p.toml".into(),
            time: "TIME".into(),
            seconds: Some(3.0),
            exit: Some(0),
            stages: times.iter().enumerate().map(event).collect(),
        }
    }

    #[test]
    fn a_trace_has_a_track_for_each_slot_and_a_slice_for_each_cell_that_ran() {
        let trace = chrome_trace(&run(&[(0.0, 1.0), (0.5, 1.5), (1.0, 0.5), (1.0, 0.0)]));
        let events = trace["traceEvents"].as_array().unwrap();
        let slices: Vec<(&Json, &Json)> = events
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| (&event["name"], &event["tid"]))
            .collect();
        assert_eq!(
            slices,
            [
                (&json!("a[seed=0]"), &json!(1)),
                (&json!("a[seed=1]"), &json!(2)),
                (&json!("a[seed=2]"), &json!(1))
            ]
        );
        assert_eq!(events.iter().filter(|event| event["name"] == "thread_name").count(), 2);
        assert_eq!(events[3]["args"]["reasons"], json!(["no result in this store yet"]));
        assert_eq!((&events[4]["ts"], &events[4]["dur"]), (&json!(500_000.0), &json!(1_500_000.0)));
    }

    proptest! {
        #[test]
        fn slices_of_a_lane_never_overlap(times in prop::collection::vec((0.0_f64..10.0, 0.001_f64..5.0), 0..60)) {
            let run = run(&times);
            let mut ran = lanes(&run);
            prop_assert_eq!(ran.len(), times.len());
            ran.sort_by(|a, b| a.lane.cmp(&b.lane).then(a.begin_s.total_cmp(&b.begin_s)));
            for pair in ran.windows(2) {
                prop_assert!(pair[0].lane != pair[1].lane || pair[0].end_s <= pair[1].begin_s);
            }
        }
    }
}
