//! The critical path: its tasks that are too narrow for boxes, and what they wait for.

use hopmap_model::Schedule;

use super::Chart;
use super::lanes::{Cells, run_of_cells};
use crate::svg::{Path, Svg};

/// Messages that are drawn at most.
const MOST_EDGES: usize = 1500;
/// How opaque its boxes are.
pub(super) const OPACITY: f64 = 0.8;

/// Which tasks are on the critical path.
pub(super) fn tasks(schedule: &Schedule) -> Vec<bool> {
    let mut is_critical = vec![false; schedule.tasks.len()];
    schedule.critical_path().into_iter().for_each(|task| is_critical[task as usize] = true);
    is_critical
}

/// Draws where those of its tasks are that are too narrow for boxes.
pub(super) fn draw_cells(svg: &mut Svg, chart: &Chart<'_>, narrow: &[u32]) {
    if narrow.is_empty() {
        return;
    }
    let cells = Cells::of(chart);
    let mut on_path = vec![false; cells.per_lane * chart.lanes.count];
    for task in narrow.iter().map(|&task| &chart.schedule.tasks[task as usize]) {
        let lane = chart.lanes.lane(task.processor);
        for (cell, _) in cells.between(chart.across(task.start), chart.across(task.finish)) {
            on_path[lane * cells.per_lane + cell] = true;
        }
    }
    let mut text = String::new();
    for (lane, on_path) in on_path.chunks(cells.per_lane).enumerate() {
        let mut first = 0;
        for run in on_path.chunk_by(|a, b| a == b) {
            if run[0] {
                run_of_cells(&mut text, chart, &cells, (lane, first..first + run.len()));
            }
            first += run.len();
        }
    }
    svg.add(format_args!("<path d=\"{text}\" class=\"fk1\" fill-opacity=\"{OPACITY}\"/>"));
}

/// Draws the steps of the path from lane to lane.
pub(super) fn draw_edges(svg: &mut Svg, chart: &Chart<'_>) {
    let path = chart.schedule.critical_path();
    let end = |task: u32, time: f64| {
        let task = &chart.schedule.tasks[task as usize];
        let lane = chart.lanes.lane(task.processor);
        (chart.across(time), lane)
    };
    let mut edges: Vec<((f64, usize), (f64, usize))> = Vec::new();
    for pair in path.windows(2) {
        let from = end(pair[0], chart.schedule.tasks[pair[0] as usize].finish);
        let to = end(pair[1], chart.schedule.tasks[pair[1] as usize].start);
        // Of several in the same place one is enough.
        let is_near = |(a, b): &((f64, usize), (f64, usize))| {
            (a.1, b.1) == (from.1, to.1) && (a.0 - from.0).abs() < 1.0 && (b.0 - to.0).abs() < 1.0
        };
        if from.1 != to.1 && !edges.last().is_some_and(is_near) {
            edges.push((from, to));
        }
    }
    let mut lines = Path::default();
    let middle = |lane: usize| chart.lanes.top(lane) + chart.lanes.height / 2.0;
    for &(from, to) in edges.iter().step_by(edges.len().div_ceil(MOST_EDGES).max(1)) {
        lines.line(from.0, middle(from.1), to.0, middle(to.1));
    }
    let class = if chart.lanes.count > 48 { "sk1 c" } else { "g sk1" };
    svg.add(format_args!("<path d=\"{lines}\" class=\"{class}\" pointer-events=\"none\"/>"));
}
