//! Searches of the same problem side by side, and tables that stages made.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_model::{Artifact, ConvergencePoint, Mapping, Schedule, TextFile};
use hopmap_views::{makespan_searches, searches as cost_searches};

use super::page::{Page, escape};
use crate::engine::{RunReport, Store};
use crate::pipeline::{Cell, Origin, Pipeline};

/// Problems whose searches are drawn.
const MOST_PROBLEMS: usize = 12;
/// Lines of one picture.
const MOST_SEARCHES: usize = 7;
/// Rows and columns of a table that are shown.
const MOST_ROWS: usize = 300;
const MOST_COLUMNS: usize = 30;

/// The best run of every way to search a problem: what it found, cell and digest.
type Runs<'a> = BTreeMap<String, (f64, &'a Cell, &'a str)>;

/// Lines of a picture: the name of a search, and its best after so many evaluations.
type Curves = [(String, Vec<(u64, f64)>)];

/// What searches look for.
struct Sought {
    kind: &'static str,
    heading: &'static str,
    /// The metric that they make small.
    metric: &'static str,
    convergence: fn(&Path) -> Option<Vec<ConvergencePoint>>,
    picture: fn(&Curves) -> String,
}

const SOUGHT: [Sought; 2] = [
    Sought {
        kind: Mapping::KIND,
        heading: "Searches",
        metric: "F",
        convergence: |folder| Some(Folder::read::<Mapping>(folder).ok()?.convergence),
        picture: |curves| cost_searches(curves, None),
    },
    Sought {
        kind: Schedule::KIND,
        heading: "Searches for schedules",
        metric: "makespan",
        convergence: |folder| Some(Folder::read::<Schedule>(folder).ok()?.convergence),
        picture: |curves| makespan_searches(curves, None),
    },
];

/// Draws how the searches of each problem went, where there are several of them.
pub(crate) fn searches(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    for sought in &SOUGHT {
        of_kind(page, pipeline, store, report, sought);
    }
}

fn of_kind(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport, sought: &Sought) {
    let mut problems: Vec<(Vec<usize>, Runs<'_>)> = Vec::new();
    for (cell, settled) in pipeline.cells.iter().zip(&report.cells) {
        let Some(record) = settled.outputs.values().find(|record| record.kind == sought.kind) else {
            continue;
        };
        let Some(&found) = record.metrics.get(sought.metric) else { continue };
        let problem = problem(cell);
        let way = way(pipeline, &problem, cell);
        let index = problems.iter().position(|(other, _)| *other == problem).unwrap_or_else(|| {
            problems.push((problem, Runs::new()));
            problems.len() - 1
        });
        let run = problems[index].1.entry(way).or_insert((found, cell, &record.digest));
        if found < run.0 {
            *run = (found, cell, &record.digest);
        }
    }
    problems.retain(|(_, runs)| runs.len() > 1);
    if problems.is_empty() {
        return;
    }
    page.heading(sought.heading);
    for (problem, runs) in problems.iter().take(MOST_PROBLEMS) {
        let names: Vec<&str> = problem.iter().map(|&cell| pipeline.cells[cell].id.as_str()).collect();
        page.add(&format!("<h3>{}</h3>\n", escape(&names.join(", "))));
        let curves: Vec<_> =
            runs.iter().filter_map(|(way, run)| Some((way.clone(), curve(store, run.2, sought)?))).collect();
        let curves: Vec<_> =
            curves.into_iter().filter(|(_, points)| points.len() > 1).take(MOST_SEARCHES).collect();
        page.figure(&(sought.picture)(&curves), "The best run of each way to search.");
    }
    if problems.len() > MOST_PROBLEMS {
        page.add(&format!(
            "<p class=\"note\">{MOST_PROBLEMS} of {} problems are shown.</p>\n",
            problems.len()
        ));
    }
}

/// The cells that a mapping's program and machine come from.
fn problem(cell: &Cell) -> Vec<usize> {
    let origins = cell.needs.iter().flat_map(|need| &need.origins);
    let mut cells: Vec<usize> = origins
        .filter_map(|origin| match origin {
            Origin::Cell { cell, .. } => Some(*cell),
            Origin::Best { .. } => None,
        })
        .collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// How a cell searches: its kind and its matrix without the seed and what the matrix of its problem has.
fn way(pipeline: &Pipeline, problem: &[usize], cell: &Cell) -> String {
    let of_problem = |key: &String| {
        problem.iter().any(|&cell| pipeline.cells[cell].matrix.iter().any(|(other, _)| other == key))
    };
    let keys = cell.matrix.iter().filter(|(key, _)| key != "seed" && key != "mapper" && !of_problem(key));
    let keys: Vec<String> = keys
        .map(|(key, value)| {
            format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    let kind = cell.entry.kind.rsplit('/').next().unwrap_or_default();
    if keys.is_empty() { kind.to_owned() } else { format!("{kind} {}", keys.join(" ")) }
}

/// The best cost over the evaluations of all islands.
fn curve(store: &Store, digest: &str, sought: &Sought) -> Option<Vec<(u64, f64)>> {
    let mut points = (sought.convergence)(&store.artifact(digest))?;
    let islands = u64::from(points.iter().map(|point| point.island).max()? + 1);
    points.sort_by_key(|point| point.evaluations);
    Some(points.into_iter().map(|point| (point.evaluations * islands, point.cost)).collect())
}

/// Shows the tables that stages made as CSV.
pub(crate) fn tables(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    for (cell, settled) in pipeline.cells.iter().zip(&report.cells) {
        for record in settled.outputs.values().filter(|record| record.kind == TextFile::KIND) {
            let Ok(file) = Folder::read::<TextFile>(&store.artifact(&record.digest)) else { continue };
            if Path::new(&file.name).extension().is_some_and(|extension| extension == "csv") {
                table(page, cell, &file.text);
            }
        }
    }
}

fn table(page: &mut Page, cell: &Cell, text: &str) {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let Ok(header) = reader.headers().cloned() else { return };
    let shown = |record: &csv::StringRecord| record.iter().take(MOST_COLUMNS).map(escape).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> =
        reader.records().filter_map(Result::ok).take(MOST_ROWS).map(|record| shown(&record)).collect();
    page.heading(&cell.id);
    page.add(&format!("<p class=\"note\">{}.</p>\n", escape(cell.entry.summary)));
    page.table(&header.iter().take(MOST_COLUMNS).collect::<Vec<_>>(), &rows);
    let all = text.lines().count().saturating_sub(1);
    if all > rows.len() {
        page.add(&format!("<p class=\"note\">{} of {all} rows are shown.</p>\n", rows.len()));
    }
}
