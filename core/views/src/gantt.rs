//! Gantt chart of a schedule: a lane for every processor, a box for every task, the critical path, and cells of utilisation for tasks
//! that are too narrow for boxes.

#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::ops::Range;

use hopmap_model::{Schedule, ScheduledTask};

use crate::chart::Axis;
use crate::human::{Unit, count_of, quantity_of, six_digits, three_digits};
use crate::svg::{Escaped, Number, Path, Svg, place, shortened_inside, text_width};

const LEFT: f64 = 120.0;
const TOP: f64 = 86.0;
const WIDTH: f64 = 800.0;
/// Room on the right for the share of idle time.
const RIGHT: f64 = 64.0;
/// Lines of a hatching that are drawn at most.
const MOST_LINES: f64 = 3000.0;

/// A Gantt chart: a lane for every processor, a box for every task, the critical path with the messages it waits for, the makespan and
/// the lower bound where one is known. Above 128 processors a lane shows several; boxes that are too narrow to be visible are drawn as
/// utilisation of the processor.
#[must_use]
pub fn gantt(schedule: &Schedule) -> String {
    if let Err(error) = schedule.check() {
        return Svg::new("Schedule", &format!("invalid: {error}")).finish(LEFT + WIDTH, 40.0);
    }
    let mut svg = Svg::new("Schedule", &subtitle(schedule));
    if schedule.tasks.is_empty() || schedule.processors.is_empty() {
        return svg.finish(LEFT + WIDTH, 40.0);
    }
    let chart = Chart::new(schedule);
    chart.draw_time(&mut svg);
    chart.draw_lanes(&mut svg);
    draw(&mut svg, &chart);
    draw_edges(&mut svg, &chart);
    chart.draw_ends(&mut svg);
    chart.draw_legend(&mut svg);
    svg.finish(LEFT + WIDTH + RIGHT, chart.bottom() + 62.0)
}

fn subtitle(schedule: &Schedule) -> String {
    let makespan = schedule.makespan();
    let metric = |name: &str| schedule.metrics.get(name).copied();
    let (tasks, processors) = (schedule.tasks.len(), schedule.processors.len());
    let mut parts = vec![
        format!("{} on {}", count_of(tasks, "task"), count_of(processors, "processor")),
        format!("makespan {}", TimeUnit::of(schedule).time(makespan)),
    ];
    match metric("lower_bound") {
        _ if metric("proven").is_some_and(|proven| proven > 0.0) => parts.push("proven optimal".into()),
        Some(bound) if bound > 0.0 => {
            let gap = percent((makespan - bound) / bound);
            parts.push(format!("at most {gap} above the optimum"));
        }
        _ => {}
    }
    let shares = schedule.idle();
    if !shares.is_empty() {
        parts.push(format!("{} idle", percent(shares.iter().sum::<f64>() / shares.len() as f64)));
    }
    parts.push(format!("model {}", schedule.model.name()));
    parts.join(" · ")
}

/// A share in percent with three digits at most.
fn percent(share: f64) -> String {
    format!("{} %", three_digits(100.0 * share))
}

/// Layout of the chart.
struct Chart<'a> {
    schedule: &'a Schedule,
    makespan: f64,
    axis: Axis,
    unit: TimeUnit,
    lanes: Lanes,
    /// The share of idle time of every processor.
    idle: Vec<f64>,
}

impl<'a> Chart<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let makespan = schedule.makespan();
        // A schedule without any work is a point in time.
        let axis = if makespan > 0.0 { Axis::linear(0.0, makespan) } else { Axis::linear(0.0, 1.0) };
        let (unit, lanes) = (TimeUnit::of(schedule), Lanes::new(schedule.processors.len()));
        Self { schedule, makespan, axis, unit, lanes, idle: schedule.idle() }
    }

    fn across(&self, time: f64) -> f64 {
        LEFT + WIDTH * self.axis.at(time)
    }

    fn bottom(&self) -> f64 {
        self.lanes.top(self.lanes.count)
    }

    fn draw_time(&self, svg: &mut Svg) {
        let bottom = self.bottom();
        for tick in self.axis.ticks(8) {
            let x = self.across(tick);
            svg.line(x, TOP - 4.0, x, bottom + 5.0, "l");
            svg.text(x, bottom + 18.0, "q n m", &self.unit.label(tick));
        }
        svg.text(LEFT + WIDTH + 8.0, bottom + 18.0, "q n", &self.unit.axis());
    }

    /// Names and idle times; what cannot be used yet is hatched.
    fn draw_lanes(&self, svg: &mut Svg) {
        let (lanes, every) = (&self.lanes, self.lanes.named());
        let mut hatching = Path::default();
        let step = (lanes.count as f64 * WIDTH / MOST_LINES).max(6.0);
        for lane in 0..lanes.count {
            let processors = lanes.processors(lane);
            let (y, height) = (lanes.top(lane), lanes.height);
            svg.rectangle(LEFT, y, (WIDTH, height), 0.0, "b");
            let available = self.schedule.processors[processors.clone()].iter().map(|one| one.available);
            let until = self.across(available.fold(f64::INFINITY, f64::min).min(self.makespan));
            hatch(&mut hatching, (LEFT, until), (y, height), step);
            if lane % every == 0 {
                let middle = y + height / 2.0 + 4.0;
                let name = self.lane_name(lane);
                svg.text(LEFT - 8.0, middle, "n e", &shortened_inside(&name, LEFT - 14.0));
                let idle = self.idle[processors.clone()].iter().sum::<f64>() / processors.len() as f64;
                svg.text(LEFT + WIDTH + 8.0, middle, "q n", &percent(idle));
            }
        }
        svg.text(LEFT + WIDTH + 8.0, TOP - 8.0, "q n", "idle");
        svg.add(format_args!("<path d=\"{hatching}\" class=\"a\" stroke-width=\"0.8\"/>"));
    }

    fn lane_name(&self, lane: usize) -> String {
        let processors = self.lanes.processors(lane);
        let name = |index: usize| self.schedule.processors[index].name.as_str();
        match processors.len() {
            1 => name(processors.start).to_owned(),
            count => format!("{} +{}", name(processors.start), count - 1),
        }
    }

    /// Where the schedule ends, and where it would have to end at the earliest.
    fn draw_ends(&self, svg: &mut Svg) {
        let (end, bottom) = (self.across(self.makespan), self.bottom());
        let upright = |svg: &mut Svg, x: f64, top: f64, look: &str| {
            let [x, top, bottom] = [x, top, bottom + 5.0].map(Number);
            svg.add(format_args!("<path d=\"M{x} {top}V{bottom}\" {look}/>"));
        };
        upright(svg, end, TOP - 24.0, "class=\"i\" stroke-width=\"1.4\"");
        let makespan = format!("makespan {}", self.unit.time(self.makespan));
        let bound = self.schedule.metrics.get("lower_bound").copied().filter(|bound| *bound > 0.0);
        match bound {
            Some(bound) if bound < self.makespan => {
                let x = self.across(bound);
                upright(svg, x, TOP - 10.0, "class=\"g sk2\" stroke-dasharray=\"5 4\"");
                let class = if x > LEFT + WIDTH / 4.0 { "q n e" } else { "q n" };
                svg.text(x, TOP - 15.0, class, &format!("lower bound {}", self.unit.time(bound)));
                svg.text(end, TOP - 29.0, "n e w", &makespan);
            }
            Some(_) => svg.text(end, TOP - 29.0, "n e w", &format!("{makespan} = lower bound")),
            None => svg.text(end, TOP - 29.0, "n e w", &makespan),
        }
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let y = self.bottom() + 48.0;
        let mut x = LEFT;
        let mut entry = |svg: &mut Svg, sign: &str, text: &str| {
            svg.add(format_args!("<g transform=\"translate({},{})\">{sign}</g>", Number(x), Number(y - 9.0)));
            svg.text(x + 22.0, y, "q n", text);
            x += 22.0 + text_width(text) + 18.0;
        };
        let square = |class: &str, opacity: f64| {
            format!("<path d=\"M0 0h16v10h-16z\" class=\"{class}\" fill-opacity=\"{opacity}\"/>")
        };
        entry(svg, &square("fk0", FULL), "a task, or paler how busy");
        entry(svg, &square("fk1", CRITICAL_OPACITY), "on the critical path");
        entry(svg, "<path d=\"M0 0L16 10\" class=\"g sk1\"/>", "which waits for a message");
        entry(svg, "<path d=\"M0 0h16v10h-16z\" class=\"b\"/>", "idle");
        if self.schedule.processors.iter().any(|processor| processor.available > 0.0) {
            let mut sign = Path::default();
            hatch(&mut sign, (0.0, 16.0), (0.0, 10.0), 5.0);
            let sign = format!("<path d=\"{sign}\" class=\"a\" stroke-width=\"0.8\"/>");
            entry(svg, &sign, "not available yet");
        }
    }
}

/// Hatching of a rectangle. SVG patterns need ids, which would clash if a page has several pictures.
fn hatch(path: &mut Path, (left, right): (f64, f64), (top, height): (f64, f64), step: f64) {
    let mut x = left - height + step / 2.0;
    while x < right {
        let (begin, end) = (x.max(left), (x + height).min(right));
        if end - begin > 0.5 {
            path.line(begin, top + height - (begin - x), end, top + height - (end - x));
        }
        x += step;
    }
}

/// Messages that are drawn at most.
const MOST_EDGES: usize = 1500;
/// Opacity of the boxes of critical tasks.
const CRITICAL_OPACITY: f64 = 0.8;

/// Which tasks are on the critical path.
fn critical_tasks(schedule: &Schedule) -> Vec<bool> {
    let mut is_critical = vec![false; schedule.tasks.len()];
    schedule.critical_path().into_iter().for_each(|task| is_critical[task as usize] = true);
    is_critical
}

/// Draws the critical tasks that are too narrow for boxes.
fn draw_critical_cells(svg: &mut Svg, chart: &Chart<'_>, narrow: &[u32]) {
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
    let paths = shaded(chart, &cells, &on_path, 1, |_, &on_path| on_path.then_some(0));
    let text = &paths[0];
    svg.add(format_args!("<path d=\"{text}\" class=\"fk1\" fill-opacity=\"{CRITICAL_OPACITY}\"/>"));
}

/// Draws the steps of the path from lane to lane.
fn draw_edges(svg: &mut Svg, chart: &Chart<'_>) {
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
const FULL: f64 = 0.5;

/// Positions of the lanes.
struct Lanes {
    count: usize,
    /// Processors in a lane.
    together: usize,
    processors: usize,
    pitch: f64,
    height: f64,
}

impl Lanes {
    fn new(processors: usize) -> Self {
        let together = if processors <= MOST_LANES { 1 } else { processors.div_ceil(MOST_GROUPS) };
        let count = processors.div_ceil(together);
        let (pitch, height) = match count {
            0..=20 => (26.0, 22.0),
            21..=48 => (17.0, 14.0),
            _ => (8.0, 6.5),
        };
        Self { count, together, processors, pitch, height }
    }

    fn top(&self, lane: usize) -> f64 {
        TOP + self.pitch * lane as f64
    }

    fn lane(&self, processor: u32) -> usize {
        processor as usize / self.together
    }

    fn processors(&self, lane: usize) -> Range<usize> {
        lane * self.together..((lane + 1) * self.together).min(self.processors)
    }

    /// One of how many lanes has its name next to it.
    fn named(&self) -> usize {
        if self.pitch >= NAMED_HEIGHT { 1 } else { 2 }
    }
}

/// Draws the tasks that are wide enough, the others as how busy their processors are.
fn draw(svg: &mut Svg, chart: &Chart<'_>) {
    let tasks = &chart.schedule.tasks;
    let narrowest = narrowest(chart);
    let (wide, narrow): (Vec<u32>, Vec<u32>) =
        (0..tasks.len() as u32).partition(|&task| width(chart, &tasks[task as usize]) >= narrowest);
    draw_cells(svg, chart, &narrow);
    let critical = critical_tasks(chart.schedule);
    let on_path: Vec<u32> = narrow.into_iter().filter(|&task| critical[task as usize]).collect();
    draw_critical_cells(svg, chart, &on_path);
    for (is_critical, opening) in [
        (false, format!("<g class=\"fk0\" fill-opacity=\"{FULL}\">")),
        (true, format!("<g class=\"fk1\" fill-opacity=\"{CRITICAL_OPACITY}\">")),
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
    // Columns as wide as the first one without room have no name either.
    let (_, &mut first, _) = widths.select_nth_unstable_by(MOST_BOXES, |a, b| b.total_cmp(a));
    first.next_up()
}

fn draw_box(svg: &mut Svg, chart: &Chart<'_>, number: u32) {
    let task = &chart.schedule.tasks[number as usize];
    let (begin, end) = (chart.across(task.start), chart.across(task.finish));
    // A gap separates neighbours.
    let width = if end - begin > 4.0 { end - begin - 0.8 } else { (end - begin).max(1.0) };
    let top = chart.lanes.top(chart.lanes.lane(task.processor));
    let (tooltip, place) = (tooltip(chart, number), place(begin, top, (width, chart.lanes.height)));
    svg.add(format_args!("<rect {place}><title>{}</title></rect>", Escaped(&tooltip)));
}

fn tooltip(chart: &Chart<'_>, number: u32) -> String {
    let task = &chart.schedule.tasks[number as usize];
    let (name, processor) = (chart.schedule.name(number), task.processor as usize);
    let [start, finish] = [task.start, task.finish].map(|time| chart.unit.time(time));
    let processor = &chart.schedule.processors[processor].name;
    let mut text = format!("{name}: {start} to {finish} on {processor}");
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
struct Cells {
    per_lane: usize,
    width: f64,
}

impl Cells {
    fn of(chart: &Chart<'_>) -> Self {
        let per_lane = (MOST_CELLS / chart.lanes.count).clamp(1, WIDTH as usize);
        Self { per_lane, width: WIDTH / per_lane as f64 }
    }

    /// The places that lie between two places across, and how much of each.
    fn between(&self, begin: f64, end: f64) -> impl Iterator<Item = (usize, f64)> + '_ {
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
    let shade = |lane: usize, busy: &f64| {
        let share = busy / chart.lanes.processors(lane).len() as f64;
        (*busy > 0.0).then(|| ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES) - 1)
    };
    let paths = shaded(chart, &cells, &busy, SHADES, shade);
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let opacity = Number(10.0 * FULL * (index + 1) as f64 / SHADES as f64).to_string();
        let opacity = opacity.parse::<f64>().unwrap_or(1.0) / 10.0;
        svg.add(format_args!("<path d=\"{path}\" class=\"fk0\" fill-opacity=\"{opacity}\"/>"));
    }
}

/// For every shade the places that have it, those next to each other as one rectangle.
fn shaded<T>(
    chart: &Chart<'_>,
    cells: &Cells,
    values: &[T],
    shades: usize,
    shade: impl Fn(usize, &T) -> Option<usize>,
) -> Vec<String> {
    let mut paths = vec![String::new(); shades];
    for (lane, values) in values.chunks(cells.per_lane).enumerate() {
        let mut first = 0;
        for run in values.chunk_by(|a, b| shade(lane, a) == shade(lane, b)) {
            if let Some(shade) = shade(lane, &run[0]) {
                run_of_cells(&mut paths[shade], chart, cells, (lane, first..first + run.len()));
            }
            first += run.len();
        }
    }
    paths
}

/// Adds a rectangle over places that are next to each other.
fn run_of_cells(path: &mut String, chart: &Chart<'_>, cells: &Cells, (lane, run): (usize, Range<usize>)) {
    let (begin, end) = (LEFT + cells.width * run.start as f64, LEFT + cells.width * run.end as f64);
    // Writing to a string does not fail.
    let [x, y, right, height] = [begin, chart.lanes.top(lane), end, chart.lanes.height].map(Number);
    let _ = write!(path, "M{x} {y}H{right}v{height}H{x}z");
}

/// Unit of the times of a schedule: seconds for a traced program, otherwise that of the weights of the graph, which has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeUnit {
    /// Labels of the axis are divided by this power of ten.
    exponent: i32,
    is_seconds: bool,
}

impl TimeUnit {
    /// The one in which the makespan has one to three digits before the point, or none if it is a common number.
    fn of(schedule: &Schedule) -> Self {
        let (makespan, is_seconds) = (schedule.makespan(), schedule.metrics.contains_key("recorded_s"));
        let exponent = match makespan {
            _ if !(makespan > 0.0 && makespan.is_finite()) => 0,
            common if (0.1..1e5).contains(&common) => 0,
            _ => 3 * libm::floor(libm::log10(makespan) / 3.0) as i32,
        };
        Self { exponent, is_seconds }
    }

    /// A time with its unit.
    fn time(self, time: f64) -> String {
        if self.is_seconds { quantity_of(time, Unit::Seconds, 6) } else { six_digits(time) }
    }

    /// A time on the axis.
    fn label(self, time: f64) -> String {
        six_digits(time * libm::exp10(f64::from(-self.exponent)))
    }

    /// What the axis is.
    fn axis(self) -> String {
        const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        let unit = match (self.is_seconds, self.exponent) {
            (true, 0) => return "s →".to_owned(),
            (true, -3) => return "ms →".to_owned(),
            (true, -6) => return "µs →".to_owned(),
            (true, -9) => return "ns →".to_owned(),
            (true, _) => "s",
            (false, 0) => return "time →".to_owned(),
            (false, _) => "time",
        };
        let digit = |digit: char| match digit.to_digit(10) {
            Some(digit) => SUPERSCRIPTS[digit as usize],
            None => '⁻',
        };
        format!("{unit} × 10{} →", self.exponent.to_string().chars().map(digit).collect::<String>())
    }
}
