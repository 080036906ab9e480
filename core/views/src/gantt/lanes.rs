//! Lanes, and what runs in them.

use std::fmt::Write;
use std::ops::Range;

use hopmap_model::ScheduledTask;

use super::{Chart, LEFT, TOP, WIDTH, critical};
use crate::human::six_digits;
use crate::svg::{Escaped, Number, Svg, text_width};

/// Processors with a lane of their own.
const MOST_LANES: usize = 128;
/// Lanes where each is of several.
const MOST_GROUPS: usize = 80;
/// Boxes that are drawn one by one.
const MOST_BOXES: usize = 2000;
/// Places that are drawn as how busy they are.
const MOST_CELLS: usize = 16_000;
/// Where a lane is lower than this, its boxes have no names.
const NAMED_HEIGHT: f64 = 12.0;
/// A box narrower than this is seen no more, where there are many.
const NARROW: f64 = 1.5;
/// Shades of how busy a place is.
const SHADES: usize = 6;
/// How opaque a box is.
pub(super) const FULL: f64 = 0.5;

/// Where the lanes stand.
pub(super) struct Lanes {
    pub(super) count: usize,
    /// Processors in a lane.
    pub(super) together: usize,
    processors: usize,
    pitch: f64,
    pub(super) height: f64,
}

impl Lanes {
    pub(super) fn new(processors: usize) -> Self {
        let together = if processors <= MOST_LANES { 1 } else { processors.div_ceil(MOST_GROUPS) };
        let count = processors.div_ceil(together);
        let (pitch, height) = match count {
            0..=20 => (26.0, 22.0),
            21..=48 => (17.0, 14.0),
            _ => (8.0, 6.5),
        };
        Self { count, together, processors, pitch, height }
    }

    pub(super) fn top(&self, lane: usize) -> f64 {
        TOP + self.pitch * lane as f64
    }

    pub(super) fn lane(&self, processor: u32) -> usize {
        processor as usize / self.together
    }

    pub(super) fn processors(&self, lane: usize) -> Range<usize> {
        lane * self.together..((lane + 1) * self.together).min(self.processors)
    }

    /// Of how many lanes one has its name beside it.
    pub(super) fn named(&self) -> usize {
        if self.pitch >= NAMED_HEIGHT { 1 } else { 2 }
    }
}

/// Draws the tasks that are wide enough, the others as how busy their processors are.
pub(super) fn draw(svg: &mut Svg, chart: &Chart<'_>) {
    let tasks = &chart.schedule.tasks;
    let narrowest = narrowest(chart);
    let (wide, narrow): (Vec<u32>, Vec<u32>) =
        (0..tasks.len() as u32).partition(|&task| width(chart, &tasks[task as usize]) >= narrowest);
    draw_cells(svg, chart, &narrow);
    let critical = critical::tasks(chart.schedule);
    let on_path: Vec<u32> = narrow.into_iter().filter(|&task| critical[task as usize]).collect();
    critical::draw_cells(svg, chart, &on_path);
    for (is_critical, opening) in [
        (false, format!("<g class=\"fk0\" fill-opacity=\"{FULL}\">")),
        (true, format!("<g class=\"fk1\" fill-opacity=\"{}\">", critical::OPACITY)),
    ] {
        svg.add(opening);
        for &task in wide.iter().filter(|&&task| critical[task as usize] == is_critical) {
            draw_box(svg, chart, task);
        }
        svg.close_group();
    }
    if chart.lanes.height >= NAMED_HEIGHT {
        // Not in the way of the tooltips.
        svg.add("<g pointer-events=\"none\">");
        wide.iter().for_each(|&task| draw_name(svg, chart, task));
        svg.close_group();
    }
}

fn width(chart: &Chart<'_>, task: &ScheduledTask) -> f64 {
    chart.across(task.finish) - chart.across(task.start)
}

/// The width from which on boxes are drawn one by one.
fn narrowest(chart: &Chart<'_>) -> f64 {
    let tasks = &chart.schedule.tasks;
    if chart.lanes.together > 1 {
        return f64::INFINITY;
    }
    if tasks.len() <= MOST_BOXES {
        return 0.0;
    }
    let mut widths: Vec<f64> = tasks.iter().map(|task| width(chart, task)).collect();
    widths.retain(|width| *width >= NARROW);
    if widths.len() <= MOST_BOXES {
        return NARROW;
    }
    // Those as wide as the first that has no room have none either.
    let (_, &mut first, _) = widths.select_nth_unstable_by(MOST_BOXES, |a, b| b.total_cmp(a));
    first.next_up()
}

fn draw_box(svg: &mut Svg, chart: &Chart<'_>, number: u32) {
    let task = &chart.schedule.tasks[number as usize];
    let (begin, end) = (chart.across(task.start), chart.across(task.finish));
    // A gap tells neighbours apart.
    let width = if end - begin > 4.0 { end - begin - 0.8 } else { (end - begin).max(1.0) };
    svg.add(format_args!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
        Number(begin),
        Number(chart.lanes.top(chart.lanes.lane(task.processor))),
        Number(width),
        Number(chart.lanes.height),
        Escaped(&tooltip(chart, number))
    ));
}

fn tooltip(chart: &Chart<'_>, number: u32) -> String {
    let task = &chart.schedule.tasks[number as usize];
    let mut text = format!(
        "{}: {} to {} on {}",
        chart.schedule.name(number),
        six_digits(task.start),
        six_digits(task.finish),
        chart.schedule.processors[task.processor as usize].name
    );
    // Writing to a string does not fail.
    if let Some(process) = task.process {
        let _ = write!(text, " · rank {process}");
    }
    if let Some(before) = task.waits_for {
        let _ = write!(text, " · waits for {}", chart.schedule.name(before));
    }
    text
}

fn draw_name(svg: &mut Svg, chart: &Chart<'_>, number: u32) {
    let task = &chart.schedule.tasks[number as usize];
    let name = chart.schedule.name(number);
    // In 11 px type.
    if text_width(&name) * 0.92 + 4.0 <= width(chart, task) {
        let lane = chart.lanes.top(chart.lanes.lane(task.processor));
        let middle = f64::midpoint(chart.across(task.start), chart.across(task.finish));
        svg.text(middle, lane + chart.lanes.height / 2.0 + 4.0, "n m", &name);
    }
}

/// A lane cut into places of equal width.
pub(super) struct Cells {
    pub(super) per_lane: usize,
    pub(super) width: f64,
}

impl Cells {
    pub(super) fn of(chart: &Chart<'_>) -> Self {
        let per_lane = (MOST_CELLS / chart.lanes.count).clamp(1, WIDTH as usize);
        Self { per_lane, width: WIDTH / per_lane as f64 }
    }

    /// The places that lie between two places across, and how much of each.
    pub(super) fn between(&self, begin: f64, end: f64) -> impl Iterator<Item = (usize, f64)> + '_ {
        let [begin, end] = [begin, end].map(|x| ((x - LEFT) / self.width).clamp(0.0, self.per_lane as f64));
        let first = (begin as usize).min(self.per_lane - 1);
        let last = (end.ceil() as usize).clamp(first + 1, self.per_lane);
        (first..last).map(move |cell| (cell, end.min(cell as f64 + 1.0) - begin.max(cell as f64)))
    }
}

fn draw_cells(svg: &mut Svg, chart: &Chart<'_>, narrow: &[u32]) {
    if narrow.is_empty() {
        return;
    }
    let cells = Cells::of(chart);
    let mut busy = vec![0.0f64; cells.per_lane * chart.lanes.count];
    for task in narrow.iter().map(|&task| &chart.schedule.tasks[task as usize]) {
        let lane = chart.lanes.lane(task.processor);
        for (cell, share) in cells.between(chart.across(task.start), chart.across(task.finish)) {
            // A task without work leaves a trace too.
            busy[lane * cells.per_lane + cell] += share.max(1e-9);
        }
    }
    let shade = |lane: usize, busy: f64| {
        let share = busy / chart.lanes.processors(lane).len() as f64;
        (busy > 0.0).then(|| ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES))
    };
    let mut paths = vec![String::new(); SHADES];
    for (lane, busy) in busy.chunks(cells.per_lane).enumerate() {
        let mut first = 0;
        for run in busy.chunk_by(|&a, &b| shade(lane, a) == shade(lane, b)) {
            if let Some(shade) = shade(lane, run[0]) {
                run_of_cells(&mut paths[shade - 1], chart, &cells, (lane, first..first + run.len()));
            }
            first += run.len();
        }
    }
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let opacity = Number(10.0 * FULL * (index + 1) as f64 / SHADES as f64).to_string();
        svg.add(format_args!(
            "<path d=\"{path}\" class=\"fk0\" fill-opacity=\"{}\"/>",
            opacity.parse::<f64>().unwrap_or(1.0) / 10.0
        ));
    }
}

/// Adds a rectangle over places that are next to each other.
pub(super) fn run_of_cells(
    path: &mut String,
    chart: &Chart<'_>,
    cells: &Cells,
    (lane, run): (usize, Range<usize>),
) {
    let (begin, end) = (LEFT + cells.width * run.start as f64, LEFT + cells.width * run.end as f64);
    // Writing to a string does not fail.
    let _ = write!(
        path,
        "M{} {}H{}v{}H{}z",
        Number(begin),
        Number(chart.lanes.top(lane)),
        Number(end),
        Number(chart.lanes.height),
        Number(begin)
    );
}
