//! Searches of the same problem side by side, what is won by searching longer, and tables that stages made.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_model::{Artifact, ConvergencePoint, Mapping, Schedule, TextFile};
use hopmap_statistics::Sample;
use hopmap_views::{Band, Cloud, bands, makespan_searches, pareto, searches as cost_searches};

use super::page::{Page, Results, escape};
use super::sweep::front;
use crate::engine::{Settled, Store};
use crate::pipeline::{Cell, Origin, Pipeline, show};

/// Problems whose searches are drawn.
const MOST_PROBLEMS: usize = 12;
/// Lines of one picture.
const MOST_SEARCHES: usize = 7;
/// Rows and columns of a table that are shown.
const MOST_ROWS: usize = 300;
const MOST_COLUMNS: usize = 30;

/// Curves of one way that a band is made of, and curves of a page.
const MOST_RUNS: usize = 40;
const MOST_CURVES: usize = 400;
/// Points of a band.
const STEPS: u32 = 80;

/// The runs of every way to search a problem.
type Runs<'a> = BTreeMap<String, Vec<Run<'a>>>;

/// A run of a search.
struct Run<'a> {
    found: f64,
    /// Seconds it took, if they are known.
    seconds: Option<f64>,
    digest: &'a str,
}

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
pub(crate) fn searches(page: &mut Page, results: Results<'_>) {
    SOUGHT.iter().for_each(|sought| of_kind(page, results, sought));
}

fn of_kind(page: &mut Page, results: Results<'_>, sought: &Sought) {
    let mut problems: Vec<(Vec<usize>, Runs<'_>)> = Vec::new();
    for (cell, settled) in results.cells() {
        let Some(run) = run(results.store, settled, sought) else { continue };
        let problem = problem(cell);
        let way = way(results.pipeline, &problem, cell);
        let index = problems.iter().position(|(other, _)| *other == problem).unwrap_or_else(|| {
            problems.push((problem, Runs::new()));
            problems.len() - 1
        });
        problems[index].1.entry(way).or_default().push(run);
    }
    problems.retain(|(_, runs)| runs.len() > 1 || runs.values().any(|runs| runs.len() > 2));
    if problems.is_empty() {
        return;
    }
    page.heading(sought.heading);
    let mut curves_left = MOST_CURVES;
    for (problem, runs) in problems.iter().take(MOST_PROBLEMS) {
        let names: Vec<&str> = problem.iter().map(|&cell| results.pipeline.cells[cell].id.as_str()).collect();
        page.add(&format!("<h3>{}</h3>\n", escape(&names.join(", "))));
        let quality_against_cost = clouds(page, runs, sought);
        if runs.values().any(|runs| runs.len() > 2) {
            draw_bands(page, results.store, runs, sought, &mut curves_left);
        } else {
            draw_best(page, results.store, runs, sought);
        }
        if quality_against_cost {
            page.add("</div>\n");
        }
    }
    if problems.len() > MOST_PROBLEMS {
        page.note(&format!("{MOST_PROBLEMS} of {} problems are shown.", problems.len()));
    }
}

/// What a cell found, and what that took.
fn run<'a>(store: &Store, settled: &'a Settled, sought: &Sought) -> Option<Run<'a>> {
    let record = settled.outputs.values().find(|record| record.kind == sought.kind)?;
    let found = *record.metrics.get(sought.metric)?;
    let seconds = settled.key.as_deref().and_then(|key| store.result(key)).and_then(|result| result.seconds);
    Some(Run { found, seconds, digest: &record.digest })
}

/// Draws what was found against the seconds it took, and begins a pair of pictures with it, if there is anything to compare.
fn clouds(page: &mut Page, runs: &Runs<'_>, sought: &Sought) -> bool {
    let cloud = |(name, runs): (&String, &Vec<Run<'_>>)| {
        let point = |run: &Run<'_>| Some((run.seconds.filter(|seconds| *seconds > 0.0)?, run.found));
        let points: Vec<(f64, f64)> = runs.iter().filter_map(point).collect();
        let cost = Sample::new(points.iter().map(|point| point.0)).quartiles();
        let quality = Sample::new(points.iter().map(|point| point.1)).quartiles();
        Cloud { name: name.clone(), points, cost, quality, is_on_front: false }
    };
    let mut clouds: Vec<Cloud> = runs.iter().map(cloud).filter(|cloud| !cloud.points.is_empty()).collect();
    if clouds.len() < 2 {
        return false;
    }
    let medians: Vec<(f64, f64)> = clouds.iter().map(|cloud| (cloud.cost[1], cloud.quality[1])).collect();
    clouds.iter_mut().zip(front(&medians)).for_each(|(cloud, is_on_front)| cloud.is_on_front = is_on_front);
    page.add("<div class=\"pair\">\n");
    let caption = "Every run is a dot, every way a cross of its quartiles; what is above and right of the broken line is beaten by \
                   something that is as quick.";
    page.figure(&pareto(&clouds, sought.metric, "seconds"), caption);
    true
}

/// Draws the best run of every way.
fn draw_best(page: &mut Page, store: &Store, runs: &Runs<'_>, sought: &Sought) {
    let best = |runs: &Vec<Run<'_>>| {
        let least = runs.iter().min_by(|a, b| a.found.total_cmp(&b.found))?;
        curve(store, least.digest, sought)
    };
    let curves: Vec<_> = runs.iter().filter_map(|(way, runs)| Some((way.clone(), best(runs)?))).collect();
    let curves: Vec<_> =
        curves.into_iter().filter(|(_, points)| points.len() > 1).take(MOST_SEARCHES).collect();
    if !curves.is_empty() {
        page.figure(&(sought.picture)(&curves), "The best run of each way to search.");
    }
}

/// Draws the median and the quartiles of the runs of every way.
fn draw_bands(page: &mut Page, store: &Store, runs: &Runs<'_>, sought: &Sought, curves_left: &mut usize) {
    let mut drawn = Vec::new();
    let mut most = 0;
    for (way, runs) in runs {
        let taken = runs.len().min(MOST_RUNS).min(*curves_left);
        *curves_left -= taken;
        most = most.max(runs.len());
        let curves: Vec<Vec<(u64, f64)>> =
            runs.iter().take(taken).filter_map(|run| curve(store, run.digest, sought)).collect();
        drawn.extend(band(way, &curves));
    }
    if drawn.is_empty() {
        return;
    }
    let mut caption =
        "The best found so far: the median of the runs, and the band of the middle half of them.".to_owned();
    if most > MOST_RUNS {
        caption.push_str(&format!(" Of each way the first {MOST_RUNS} runs."));
    }
    page.figure(&bands(&drawn, sought.metric), &caption);
}

/// The median and the quartiles of what runs had found by the same number of evaluations. None of ways that do not search.
fn band(way: &str, curves: &[Vec<(u64, f64)>]) -> Option<Band> {
    let curves: Vec<Vec<(u64, f64)>> =
        curves.iter().filter(|curve| !curve.is_empty()).map(|curve| falling(curve)).collect();
    let begin = curves.iter().filter_map(|curve| curve.first()).map(|point| point.0).max()?.max(1);
    let end = curves.iter().filter_map(|curve| curve.last()).map(|point| point.0).max()?;
    if end <= begin {
        return None;
    }
    let factor = end as f64 / begin as f64;
    let at = |step: u32| (begin as f64 * factor.powf(f64::from(step) / f64::from(STEPS))).round() as u64;
    let mut evaluations: Vec<u64> = (0..=STEPS).map(at).collect();
    evaluations.dedup();
    let point = |evaluations: u64| {
        let by_then = |curve: &Vec<(u64, f64)>| {
            let reached = curve.partition_point(|point| point.0 <= evaluations);
            curve.get(reached.saturating_sub(1)).map(|point| point.1)
        };
        (evaluations, Sample::new(curves.iter().filter_map(by_then)).quartiles())
    };
    let points = evaluations.into_iter().map(point).collect();
    Some(Band { name: way.to_owned(), runs: curves.len(), points })
}

/// The best so far after every evaluation.
fn falling(curve: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut best = f64::INFINITY;
    let so_far = |&(evaluations, found): &(u64, f64)| {
        best = best.min(found);
        (evaluations, best)
    };
    curve.iter().map(so_far).collect()
}

/// The cells that a mapping's program and machine come from.
fn problem(cell: &Cell) -> Vec<usize> {
    let origins = cell.needs.iter().flat_map(|need| &need.origins);
    let known = |origin: &Origin| match origin {
        Origin::Cell { cell, .. } => Some(*cell),
        Origin::Best { .. } => None,
    };
    let mut cells: Vec<usize> = origins.filter_map(known).collect();
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
    let keys: Vec<String> = keys.map(|(key, value)| format!("{key}={}", show(value))).collect();
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
pub(crate) fn tables(page: &mut Page, results: Results<'_>) {
    for (cell, settled) in results.cells() {
        for record in settled.outputs.values().filter(|record| record.kind == TextFile::KIND) {
            let Some(file) = results.read::<TextFile>(record) else { continue };
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
    page.note(&format!("{}.", escape(cell.entry.summary)));
    page.table(&header.iter().take(MOST_COLUMNS).collect::<Vec<_>>(), &rows);
    let all = text.lines().count().saturating_sub(1);
    if all > rows.len() {
        page.note(&format!("{} of {all} rows are shown.", rows.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_the_middle_of_what_runs_had_by_then() {
        let curves = [
            vec![(1, 10.0), (10, 4.0), (100, 2.0)],
            vec![(1, 8.0), (10, 9.0), (50, 6.0)],
            vec![(1, 12.0), (100, 3.0)],
        ];
        let band = band("a", &curves).unwrap();
        assert_eq!((band.runs, band.points.first().unwrap().0, band.points.last().unwrap().0), (3, 1, 100));
        let shown = |values: [f64; 3]| values.map(|value| value.to_string());
        assert_eq!(shown(band.points[0].1), ["9", "10", "11"]);
        // A run that has ended keeps what it found; one that became worse keeps its best.
        assert_eq!(shown(band.points.last().unwrap().1), ["2.5", "3", "4.5"]);
        assert!(band.points.windows(2).all(|pair| pair[1].1[1] <= pair[0].1[1]));
        assert!(super::band("no search", &[vec![(0, 5.0)]]).is_none());
    }
}
