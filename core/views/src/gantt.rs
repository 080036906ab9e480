//! Who runs what when: a lane for every processor, a box for every task.

mod critical;
mod lanes;
mod words;

use hopmap_model::Schedule;

use crate::human::{count_of, six_digits, three_digits};
use crate::scale::Axis;
use crate::svg::{Number, Path, Svg, shortened_inside, text_width};
use lanes::Lanes;
use words::TimeUnit;

const LEFT: f64 = 120.0;
const TOP: f64 = 86.0;
const WIDTH: f64 = 800.0;
/// Room on the right for the share of idle time.
const RIGHT: f64 = 64.0;
/// Lines of a hatching that are drawn at most.
const MOST_LINES: f64 = 3000.0;

/// A Gantt chart: a lane for every processor, a box for every task, the critical path with the messages it waits for, the makespan and
/// the lower bound where one is known. Above 128 processors a lane stands for several; boxes that are too narrow to be seen are drawn as
/// how busy the processor is.
#[must_use]
pub fn gantt(schedule: &Schedule) -> String {
    if let Err(error) = schedule.check() {
        return Svg::new("Schedule", &format!("is none: {error}")).finish(LEFT + WIDTH, 40.0);
    }
    let mut svg = Svg::new("Schedule", &subtitle(schedule));
    if schedule.tasks.is_empty() || schedule.processors.is_empty() {
        return svg.finish(LEFT + WIDTH, 40.0);
    }
    let chart = Chart::new(schedule);
    chart.draw_time(&mut svg);
    chart.draw_lanes(&mut svg);
    lanes::draw(&mut svg, &chart);
    critical::draw_edges(&mut svg, &chart);
    chart.draw_ends(&mut svg);
    chart.draw_legend(&mut svg);
    svg.finish(LEFT + WIDTH + RIGHT, chart.bottom() + 62.0)
}

fn subtitle(schedule: &Schedule) -> String {
    let makespan = schedule.makespan();
    let metric = |name: &str| schedule.metrics.get(name).copied();
    let mut parts = vec![
        format!(
            "{} on {}",
            count_of(schedule.tasks.len(), "task"),
            match schedule.processors.len() {
                1 => "1 processor".to_owned(),
                count => count_of(count, "processor"),
            }
        ),
        format!("makespan {}", six_digits(makespan)),
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

/// Where everything stands.
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
        Self {
            schedule,
            makespan,
            axis,
            unit: TimeUnit::of(makespan),
            lanes: Lanes::new(schedule.processors.len()),
            idle: schedule.idle(),
        }
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
        svg.add(format_args!(
            "<path d=\"M{0} {1}V{2}\" stroke=\"var(--i)\" stroke-width=\"1.4\" fill=\"none\"/>",
            Number(end),
            Number(TOP - 24.0),
            Number(bottom + 5.0)
        ));
        let makespan = format!("makespan {}", six_digits(self.makespan));
        let bound = self.schedule.metrics.get("lower_bound").copied().filter(|bound| *bound > 0.0);
        match bound {
            Some(bound) if bound < self.makespan => {
                let x = self.across(bound);
                svg.add(format_args!(
                    "<path d=\"M{0} {1}V{2}\" class=\"g sk2\" stroke-dasharray=\"5 4\"/>",
                    Number(x),
                    Number(TOP - 10.0),
                    Number(bottom + 5.0)
                ));
                let class = if x > LEFT + WIDTH / 4.0 { "q n e" } else { "q n" };
                svg.text(x, TOP - 15.0, class, &format!("lower bound {}", six_digits(bound)));
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
        entry(svg, &square("fk0", lanes::FULL), "a task, or paler how busy");
        entry(svg, &square("fk1", critical::OPACITY), "on the critical path");
        entry(svg, "<path d=\"M0 0L16 10\" class=\"g sk1\"/>", "which waits for a message");
        entry(svg, "<path d=\"M0 0h16v10h-16z\" class=\"b\"/>", "idle");
        if self.schedule.processors.iter().any(|processor| processor.available > 0.0) {
            let mut sign = Path::default();
            hatch(&mut sign, (0.0, 16.0), (0.0, 10.0), 5.0);
            entry(
                svg,
                &format!("<path d=\"{sign}\" class=\"a\" stroke-width=\"0.8\"/>"),
                "not available yet",
            );
        }
    }
}

/// Slanting lines that fill a rectangle. Patterns need names, which would clash where several pictures stand on one page.
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

#[cfg(test)]
mod tests;
