//! Comparison of the searches for the same problem, their convergence, and tables that stages wrote.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_model::{Artifact, ConvergencePoint, Mapping, Schedule, TextFile};
use hopmap_objective::EVALUATIONS;
use hopmap_statistics::Sample;
use hopmap_views::{
    Band, Cloud, Palette, SearchCurve, bands, first_evaluations, makespan_searches, pareto,
    searches as cost_searches,
};

use super::page::{Field, Page, Results, cell_name, escape, prose};
use super::problem::Problem;
use super::sweep::front;
use crate::engine::{Settled, Store};
use crate::pipeline::{Cell, Pipeline};
use crate::selector::show;

/// Problems whose searches are drawn.
const MOST_PROBLEMS: usize = 12;
/// Lines of one picture.
const MOST_SEARCHES: usize = 7;
/// Rows and columns of a table that are shown.
const MOST_ROWS: usize = 300;
const MOST_COLUMNS: usize = 30;

/// Curves that a band summarises, and curves that a page reads.
const MOST_RUNS: usize = 40;
const MOST_CURVES: usize = 400;
/// Points of a band.
const STEPS: u32 = 80;

/// The runs for a problem by the name of their search.
type Runs<'a> = BTreeMap<String, Vec<Run<'a>>>;

/// A run of a search.
struct Run<'a> {
    found: f64,
    /// Seconds it took, if they are known.
    seconds: Option<f64>,
    /// Evaluations of all its islands.
    evaluations: u64,
    digest: &'a str,
}

/// Solutions of one kind and how their searches are drawn.
struct Sought {
    kind: &'static str,
    heading: &'static str,
    /// The metric that they minimise.
    metric: &'static str,
    convergence: fn(&Path) -> Option<Vec<ConvergencePoint>>,
    picture: fn(&[SearchCurve], &Palette) -> String,
}

const MAPPINGS: Sought = Sought {
    kind: Mapping::KIND,
    heading: "Searches",
    metric: "F",
    convergence: |folder| Some(Folder::read::<Mapping>(folder).ok()?.convergence),
    picture: |curves, palette| cost_searches(curves, palette),
};
const SCHEDULES: Sought = Sought {
    kind: Schedule::KIND,
    heading: "Searches for schedules",
    metric: "makespan",
    convergence: |folder| Some(Folder::read::<Schedule>(folder).ok()?.convergence),
    picture: |curves, palette| makespan_searches(curves, palette),
};

/// The colours of mappers or schedulers, the same in all pictures of a page.
pub(crate) struct Colours<'a> {
    results: Results<'a>,
    pub(crate) palette: Palette,
}

impl<'a> Colours<'a> {
    /// Colours of all mappers.
    pub(crate) fn of_mappers(results: Results<'a>) -> Self {
        Self { results, palette: palette(&problems(results, &MAPPINGS)) }
    }

    /// Colours of all schedulers.
    pub(crate) fn of_schedulers(results: Results<'a>) -> Self {
        Self { results, palette: palette(&problems(results, &SCHEDULES)) }
    }

    /// The name of what computed the mapping or schedule of a cell.
    pub(crate) fn name(&self, cell: usize) -> String {
        let (pipeline, cell) = (self.results.pipeline, &self.results.pipeline.cells[cell]);
        name(pipeline, &Problem::new(pipeline, cell), cell)
    }
}

/// Draws the searches of each problem that has several.
pub(crate) fn searches(
    page: &mut Page,
    results: Results<'_>,
    mappers: &Colours<'_>,
    schedulers: &Colours<'_>,
) {
    of_kind(page, results, &MAPPINGS, &mappers.palette);
    of_kind(page, results, &SCHEDULES, &schedulers.palette);
}

/// All problems with the runs of their searches.
fn problems<'a>(results: Results<'a>, sought: &Sought) -> Vec<(Problem, Runs<'a>)> {
    let mut problems: Vec<(Problem, Runs<'_>)> = Vec::new();
    for (cell, settled) in results.cells() {
        let Some(run) = run(results.store, settled, sought) else { continue };
        let problem = Problem::new(results.pipeline, cell);
        let name = name(results.pipeline, &problem, cell);
        let index = problems.iter().position(|(other, _)| *other == problem).unwrap_or_else(|| {
            problems.push((problem, Runs::new()));
            problems.len() - 1
        });
        problems[index].1.entry(name).or_default().push(run);
    }
    problems
}

fn of_kind(page: &mut Page, results: Results<'_>, sought: &Sought, palette: &Palette) {
    let mut problems = problems(results, sought);
    problems.retain(|(_, runs)| runs.len() > 1 || runs.values().any(|runs| runs.len() > 2));
    if problems.is_empty() {
        return;
    }
    page.heading(sought.heading);
    page.explain([sought.metric]);
    let mut curves_left = MOST_CURVES;
    for (problem, runs) in problems.iter().take(MOST_PROBLEMS) {
        page.heading_below(&title(results.pipeline, problem, &problems));
        let quality_against_cost = clouds(page, runs, sought, palette);
        if runs.values().any(|runs| runs.len() > 2) {
            draw_bands(page, results.store, runs, (sought, palette), &mut curves_left);
        } else {
            draw_best(page, results.store, runs, (sought, palette));
        }
        if quality_against_cost {
            page.add("</div>\n");
        }
    }
    if problems.len() > MOST_PROBLEMS {
        page.note(&format!("{MOST_PROBLEMS} of {} problems are shown.", problems.len()));
    }
}

/// The sources of a problem, and the parameters in which it differs from others, as HTML.
fn title(pipeline: &Pipeline, problem: &Problem, problems: &[(Problem, Runs<'_>)]) -> String {
    let sources = problem.cells.iter().map(|&cell| cell_name(&pipeline.cells[cell]));
    let differs =
        |parameter: &&(&str, String)| problems.iter().any(|(other, _)| !other.parameters.contains(parameter));
    let parameters =
        problem.parameters.iter().filter(differs).map(|(name, value)| format!("{name} = {}", escape(value)));
    sources.chain(parameters).collect::<Vec<_>>().join(", ")
}

/// Colours of the searches of all problems, those with the best mean rank first.
fn palette(problems: &[(Problem, Runs<'_>)]) -> Palette {
    let mut ranks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, runs) in problems {
        let found = |runs: &Vec<Run<'_>>| median(runs.iter().map(|run| run.found));
        let mut order: Vec<(f64, &str)> =
            runs.iter().map(|(name, runs)| (found(runs), name.as_str())).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        (0_u32..)
            .zip(order)
            .for_each(|(rank, (_, name))| ranks.entry(name).or_default().push(f64::from(rank)));
    }
    let mean = |ranks: &Vec<f64>| ranks.iter().sum::<f64>() / ranks.len() as f64;
    let mut names: Vec<(f64, &str)> = ranks.iter().map(|(name, ranks)| (mean(ranks), *name)).collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
    Palette::new(names.iter().map(|(_, name)| *name))
}

/// The result of a cell and how long it took.
fn run<'a>(store: &Store, settled: &'a Settled, sought: &Sought) -> Option<Run<'a>> {
    let record = settled.outputs.values().find(|record| record.kind == sought.kind)?;
    let found = *record.metrics.get(sought.metric)?;
    let seconds = settled.key.as_deref().and_then(|key| store.result(key)).and_then(|result| result.seconds);
    Some(Run { found, seconds, evaluations: evaluations(&record.metrics), digest: &record.digest })
}

/// Evaluations of all islands of a search; 0 without a search.
pub(crate) fn evaluations(metrics: &BTreeMap<String, f64>) -> u64 {
    metrics.get(EVALUATIONS.name).map_or(0, |evaluations| *evaluations as u64)
}

/// Draws results against run times, and opens a pair of pictures with it, if there are several searches.
fn clouds(page: &mut Page, runs: &Runs<'_>, sought: &Sought, palette: &Palette) -> bool {
    let cloud = |(name, runs): (&String, &Vec<Run<'_>>)| {
        let point = |run: &Run<'_>| Some((run.seconds.filter(|seconds| *seconds > 0.0)?, run.found));
        let points: Vec<(f64, f64)> = runs.iter().filter_map(point).collect();
        let median = (median(points.iter().map(|point| point.0)), median(points.iter().map(|point| point.1)));
        Cloud { name: name.clone(), points, median, is_on_front: false }
    };
    let mut clouds: Vec<Cloud> = runs.iter().map(cloud).filter(|cloud| !cloud.points.is_empty()).collect();
    if clouds.len() < 2 {
        return false;
    }
    let medians: Vec<(f64, f64)> = clouds.iter().map(|cloud| cloud.median).collect();
    clouds.iter_mut().zip(front(&medians)).for_each(|(cloud, is_on_front)| cloud.is_on_front = is_on_front);
    page.add("<div class=\"pair\">\n");
    let caption = "Small dots: runs; large dots: medians; dashed line: Pareto front of the medians (searches above and right of it are \
                   dominated).";
    page.figure(&pareto(&clouds, sought.metric, "seconds", palette), caption);
    true
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Sample::new(values).quartiles()[1]
}

/// Draws the best run of every search.
fn draw_best(page: &mut Page, store: &Store, runs: &Runs<'_>, (sought, palette): (&Sought, &Palette)) {
    let best = |runs: &Vec<Run<'_>>| {
        let least = runs.iter().min_by(|a, b| a.found.total_cmp(&b.found))?;
        Some((curve(store, least.digest, sought)?, least.evaluations))
    };
    let curves = runs.iter().filter_map(|(name, runs)| {
        let (points, evaluations) = best(runs)?;
        Some(SearchCurve { name: name.clone(), points, evaluations })
    });
    // A mapper that does not search has one point, without evaluations.
    let curves: Vec<SearchCurve> =
        curves.filter(|curve| curve.points.len() > 1 || curve.evaluations > 0).take(MOST_SEARCHES).collect();
    if !curves.is_empty() {
        page.figure(
            &(sought.picture)(&curves, palette),
            "The best run of each search. Every step is an improvement.",
        );
    }
}

/// Draws the median and the quartiles of the runs of every search.
fn draw_bands(
    page: &mut Page,
    store: &Store,
    runs: &Runs<'_>,
    (sought, palette): (&Sought, &Palette),
    curves_left: &mut usize,
) {
    let mut curves_of = Vec::new();
    let mut most = 0;
    for (name, runs) in runs {
        let taken = runs.len().min(MOST_RUNS).min(*curves_left);
        *curves_left -= taken;
        most = most.max(runs.len());
        let curve = |run: &Run<'_>| Some((curve(store, run.digest, sought)?, run.evaluations));
        let curves: Vec<(Vec<(u64, f64)>, u64)> = runs.iter().take(taken).filter_map(curve).collect();
        curves_of.push((name, curves));
    }
    let recorded = curves_of.iter().flat_map(|(_, curves)| curves).flat_map(|(points, _)| points);
    let first = first_evaluations(recorded.map(|point| point.0));
    let drawn: Vec<Band> =
        curves_of.into_iter().filter_map(|(name, curves)| band(name, curves, first)).collect();
    if drawn.is_empty() {
        return;
    }
    let mut caption = format!("Best {} so far. Line: median of the runs; band: quartiles.", sought.metric);
    if most > MOST_RUNS {
        caption.push_str(&format!(" Only the first {MOST_RUNS} runs of each search are included."));
    }
    page.figure(&bands(&drawn, sought.metric, palette), &caption);
}

/// Median and quartiles of the best values that runs had found after the same numbers of evaluations, from `first` on, each with the
/// evaluations of the whole run. None for mappers that do not search.
fn band(name: &str, curves: Vec<(Vec<(u64, f64)>, u64)>, first: u64) -> Option<Band> {
    let later = |point: (u64, f64)| (point.0.max(first), point.1);
    let whole = |(points, evaluations): (Vec<(u64, f64)>, u64)| {
        let mut curve: Vec<(u64, f64)> = falling(&points).into_iter().map(later).collect();
        let &(last, best) = curve.last()?;
        if last < evaluations {
            curve.push((evaluations, best));
        }
        Some(curve)
    };
    let curves: Vec<Vec<(u64, f64)>> = curves.into_iter().filter_map(whole).collect();
    let begin = curves.iter().filter_map(|curve| curve.first()).map(|point| point.0).max()?;
    let end = curves.iter().filter_map(|curve| curve.last()).map(|point| point.0).max()?;
    if end <= begin {
        return None;
    }
    let factor = end as f64 / begin as f64;
    let at = |step: u32| (begin as f64 * factor.powf(f64::from(step) / f64::from(STEPS))).round() as u64;
    let mut evaluations: Vec<u64> = (0..=STEPS).map(at).collect();
    evaluations.dedup();
    let point = |evaluations: u64| {
        let by_then = curves.iter().filter_map(|curve| best_by(curve, evaluations));
        (evaluations, Sample::new(by_then).quartiles())
    };
    let points = evaluations.into_iter().map(point).collect();
    Some(Band { name: name.to_owned(), runs: curves.len(), points })
}

/// The best value of a curve after some evaluations: it stays until the next improvement.
fn best_by(curve: &[(u64, f64)], evaluations: u64) -> Option<f64> {
    let reached = curve.partition_point(|point| point.0 <= evaluations);
    curve.get(reached.saturating_sub(1)).map(|point| point.1)
}

/// The best value so far after every number of evaluations.
fn falling(curve: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut best = f64::INFINITY;
    let so_far = |&(evaluations, found): &(u64, f64)| {
        best = best.min(found);
        (evaluations, best)
    };
    curve.iter().map(so_far).collect()
}

/// Name of a search: its kind, and its matrix without the seed and the keys of its problem.
fn name(pipeline: &Pipeline, problem: &Problem, cell: &Cell) -> String {
    let of_search = |key: &str| key != "seed" && key != "mapper" && !problem.has_key(pipeline, key);
    let keys = cell.matrix.iter().filter(|(key, _)| of_search(key));
    let keys: Vec<String> = keys.map(|(key, value)| format!("{key}={}", show(value))).collect();
    let kind = cell.entry.kind.rsplit('/').next().unwrap_or_default();
    if keys.is_empty() { kind.to_owned() } else { format!("{kind} {}", keys.join(" ")) }
}

/// The best value over the evaluations of all islands.
fn curve(store: &Store, digest: &str, sought: &Sought) -> Option<Vec<(u64, f64)>> {
    let mut points = (sought.convergence)(&store.artifact(digest))?;
    let islands = u64::from(points.iter().map(|point| point.island).max()? + 1);
    points.sort_by_key(|point| point.evaluations);
    Some(points.into_iter().map(|point| (point.evaluations * islands, point.cost)).collect())
}

/// Shows the tables that stages wrote as CSV.
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
    let shown =
        |record: &csv::StringRecord| record.iter().take(MOST_COLUMNS).map(Field::new).collect::<Vec<_>>();
    let rows: Vec<Vec<Field>> =
        reader.records().filter_map(Result::ok).take(MOST_ROWS).map(|record| shown(&record)).collect();
    page.heading_of("", cell);
    page.note(&format!("{}.", prose(cell.entry.summary)));
    page.sortable(&header.iter().take(MOST_COLUMNS).collect::<Vec<_>>(), &rows);
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
        let runs = curves.iter().map(|curve| (curve.clone(), 100)).collect();
        let band = band("a", runs, 1).unwrap();
        assert_eq!((band.runs, band.points.first().unwrap().0, band.points.last().unwrap().0), (3, 1, 100));
        let shown = |values: [f64; 3]| values.map(|value| value.to_string());
        assert_eq!(shown(band.points[0].1), ["9", "10", "11"]);
        // A run that has ended keeps what it found; one that became worse keeps its best.
        assert_eq!(shown(band.points.last().unwrap().1), ["2.5", "3", "4.5"]);
        assert!(band.points.windows(2).all(|pair| pair[1].1[1] <= pair[0].1[1]));
        // A value stays until the next improvement.
        assert_eq!(
            [1, 99, 100].map(|evaluations| best_by(&curves[2], evaluations)),
            [12.0, 12.0, 3.0].map(Some)
        );
        assert!(super::band("no search", vec![(vec![(0, 5.0)], 0)], 1).is_none());
    }

    /// Once searches that started from the optimum had no band.
    #[test]
    fn a_band_of_single_points_runs_to_the_end_of_the_searches() {
        let band = band("a", vec![(vec![(1, 5.0)], 1000), (vec![(0, 6.0)], 500)], 1).unwrap();
        let ends: Vec<u64> = band.points.iter().map(|point| point.0).collect();
        assert_eq!((ends.first(), ends.last()), (Some(&1), Some(&1000)));
    }
}
