//! Latencies over time.

use crate::chart::{Axis, GREY, MOST_COLOURS};
use crate::human::{self, Unit, count_of, quantity, quantity_of};
use crate::svg::{Number, Path, Svg, text_width};

const LEFT: f64 = 64.0;
const WIDTH: f64 = 560.0;
const TOP: f64 = 88.0;
const HEIGHT: f64 = 190.0;
/// The panel below: largest ratio and hosts that are down.
const LOWER_TOP: f64 = TOP + HEIGHT + 44.0;
const LOWER_HEIGHT: f64 = 80.0;
const BOTTOM: f64 = LOWER_TOP + LOWER_HEIGHT;
/// Marks with a tooltip.
const MOST_MARKS: usize = 200;

/// One probe.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DriftPoint {
    /// Seconds since the epoch.
    pub time: f64,
    /// Median latency of every level in seconds, innermost first.
    pub medians: Vec<f64>,
    /// The largest ratio of the latency of a pair to the baseline.
    pub largest_ratio: f64,
    /// Hosts that did not answer.
    pub hosts_down: u32,
    /// Whether a new topology was published.
    pub published: bool,
}

/// Median latencies of the levels over time, with marks where a new topology was published; below the largest ratio of a pair to the
/// baseline, and bars of hosts that did not answer. Points may be in any order; times are UTC.
#[must_use]
pub fn drift(points: &[DriftPoint]) -> String {
    let mut points: Vec<&DriftPoint> = points.iter().filter(|point| point.time.is_finite()).collect();
    points.sort_by(|a, b| a.time.total_cmp(&b.time));
    let mut svg = Svg::new("Latencies over time", &subtitle(&points));
    if points.is_empty() {
        return svg.finish(420.0, 40.0);
    }
    let chart = Chart::new(&points);
    chart.draw_axes(&mut svg);
    chart.draw_published(&mut svg, &points);
    chart.draw_levels(&mut svg, &points);
    chart.draw_hosts_down(&mut svg, &points);
    chart.draw_ratio(&mut svg, &points);
    svg.finish(LEFT + WIDTH + 110.0, BOTTOM + 24.0)
}

fn subtitle(points: &[&DriftPoint]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return "no probe yet".to_owned() };
    let published = points.iter().filter(|point| point.published).count();
    format!(
        "{} from {} to {} UTC · {} published",
        count_of(points.len(), "probe"),
        human::moment(first.time),
        human::moment(last.time),
        count_of(published, "topology")
    )
}

struct Chart {
    begin: f64,
    end: f64,
    across: Axis,
    latency: Axis,
    ratio: Axis,
    most_down: u32,
    levels: usize,
}

impl Chart {
    fn new(points: &[&DriftPoint]) -> Self {
        let (begin, end) = (points[0].time, points[points.len() - 1].time);
        let known =
            || points.iter().flat_map(|point| &point.medians).copied().filter(|value| is_shown(*value));
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(0.0, f64::max);
        let (low, high) = if low.is_finite() { (low / 1.3, high * 1.3) } else { (1e-6, 1e-5) };
        let ratios = points.iter().map(|point| point.largest_ratio).filter(|ratio| is_shown(*ratio));
        let (lowest, highest) =
            ratios.fold((1.0_f64, 1.5_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
        Self {
            begin,
            end,
            across: Axis::linear(begin, end),
            latency: Axis::logarithmic(low, high),
            ratio: Axis::logarithmic(lowest, highest * 1.1),
            most_down: points.iter().map(|point| point.hosts_down).max().unwrap_or(0),
            levels: points.iter().map(|point| point.medians.len()).max().unwrap_or(0),
        }
    }

    fn x(&self, time: f64) -> f64 {
        LEFT + WIDTH * self.across.at(time)
    }

    fn y(&self, latency: f64) -> f64 {
        TOP + HEIGHT * (1.0 - self.latency.at(latency))
    }

    fn lower_y(&self, ratio: f64) -> f64 {
        LOWER_TOP + LOWER_HEIGHT * (1.0 - self.ratio.at(ratio))
    }

    fn draw_axes(&self, svg: &mut Svg) {
        let seconds = |tick, digits| quantity_of(tick, Unit::Seconds, digits);
        self.latency.draw_scale(svg, 5, (LEFT, WIDTH), (TOP + HEIGHT, HEIGHT), seconds);
        let ratio = |tick, digits| format!("× {}", quantity_of(tick, Unit::Count, digits));
        self.ratio.draw_scale(svg, 3, (LEFT, WIDTH), (BOTTOM, LOWER_HEIGHT), ratio);
        let ticks = human::ticks(self.begin, self.end, 6);
        let step = if ticks.len() > 1 { ticks[1] - ticks[0] } else { (self.end - self.begin).max(60.0) };
        for tick in ticks {
            let x = self.x(tick);
            svg.line(x, BOTTOM, x, BOTTOM + 5.0, "a");
            svg.text(x, BOTTOM + 18.0, "q n m", &human::label(tick, step));
        }
        svg.line(LEFT, TOP + HEIGHT, LEFT + WIDTH, TOP + HEIGHT, "a");
        svg.line(LEFT, BOTTOM, LEFT + WIDTH, BOTTOM, "a");
        svg.text(LEFT, LOWER_TOP - 10.0, "q n", "largest ratio of a pair to the baseline");
        svg.text(LEFT, TOP - 10.0, "q n", "median latency, one way");
    }

    fn draw_published(&self, svg: &mut Svg, points: &[&DriftPoint]) {
        let published: Vec<f64> =
            points.iter().filter(|point| point.published).map(|point| point.time).collect();
        let step = published.len().div_ceil(MOST_MARKS).max(1);
        for &time in published.iter().step_by(step) {
            let x = self.x(time);
            svg.group(&format!("new topology: {}", human::moment(time)), |svg| {
                let place = Number(x);
                svg.add(format_args!(
                    "<path d=\"M{place} {TOP}V{BOTTOM}\" class=\"a\" stroke-dasharray=\"4 3\"/>"
                ));
                draw_mark(svg, x, TOP);
            });
        }
        if !published.is_empty() {
            let x = LEFT + WIDTH - text_width("new topology") - 14.0;
            draw_mark(svg, x, TOP - 26.0);
            svg.text(x + 9.0, TOP - 26.0, "n", "new topology");
        }
    }

    fn draw_levels(&self, svg: &mut Svg, points: &[&DriftPoint]) {
        let mut taken: Vec<f64> = Vec::new();
        for level in (0..self.levels).rev().take(MOST_COLOURS) {
            let median =
                |point: &&DriftPoint| point.medians.get(level).copied().filter(|value| is_shown(*value));
            let colour = level % MOST_COLOURS;
            let line = self.line(points, &median, &|value| self.y(value));
            let Some(last) = points.iter().rev().find_map(median) else { continue };
            let seconds = quantity(last, Unit::Seconds);
            svg.group(&format!("level {}: {seconds} in the last probe", level + 1), |svg| {
                svg.add(format_args!("<path class=\"g sk{colour}\" d=\"{line}\"/>"));
            });
            let y = taken
                .iter()
                .fold(self.y(last), |y, other| if (y - other).abs() < 13.0 { other + 13.0 } else { y });
            taken.push(y);
            let text = format!("level {} {seconds}", level + 1);
            svg.text(LEFT + WIDTH + 8.0, y + 4.0, "n", &text);
        }
    }

    fn draw_ratio(&self, svg: &mut Svg, points: &[&DriftPoint]) {
        let ratio = |point: &&DriftPoint| Some(point.largest_ratio).filter(|ratio| is_shown(*ratio));
        let line = self.line(points, &ratio, &|value| self.lower_y(value));
        if let Some(last) = points.iter().rev().find_map(ratio) {
            svg.add(format_args!("<path class=\"g sk1\" d=\"{line}\"/>"));
            let text = format!("× {}", quantity(last, Unit::Count));
            svg.text(LEFT + WIDTH + 8.0, self.lower_y(last) + 4.0, "n", &text);
        }
    }

    /// Bars from below, as high as the panel where most hosts were down.
    fn draw_hosts_down(&self, svg: &mut Svg, points: &[&DriftPoint]) {
        if self.most_down == 0 {
            return;
        }
        let mut last = f64::NEG_INFINITY;
        svg.add("<g opacity=\"0.5\">");
        for point in points.iter().filter(|point| point.hosts_down > 0) {
            let x = self.x(point.time);
            if x - last < 2.0 {
                continue;
            }
            last = x;
            let height = LOWER_HEIGHT * f64::from(point.hosts_down) / f64::from(self.most_down);
            let (moment, hosts) = (human::moment(point.time), count_of(point.hosts_down as usize, "host"));
            svg.group(&format!("{moment}: {hosts} down"), |svg| {
                svg.rectangle(x - 1.5, BOTTOM - height, (3.0, height), 0.0, &format!("fk{GREY}"));
            });
        }
        svg.close_group();
        let text = format!("bars: hosts down, at most {}", self.most_down);
        svg.text(LEFT + WIDTH, LOWER_TOP - 10.0, "q n e", &text);
    }

    /// Known values one after another, interrupted where there is none; of those in one pixel the smallest and the largest.
    fn line(
        &self,
        points: &[&DriftPoint],
        value: &dyn Fn(&&DriftPoint) -> Option<f64>,
        y: &dyn Fn(f64) -> f64,
    ) -> Path {
        let place = |point: &&DriftPoint| (self.x(point.time), value(point).map(y));
        let places: Vec<(f64, Option<f64>)> = points.iter().map(place).collect();
        let mut path = Path::default();
        let mut is_down = false;
        for pixel in places
            .chunk_by(|a, b| a.0.floor().total_cmp(&b.0.floor()).is_eq() && a.1.is_some() == b.1.is_some())
        {
            let (x, values) = (pixel[0].0, pixel.iter().filter_map(|place| place.1));
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
            if low > high {
                is_down = false;
                continue;
            }
            match is_down {
                true => path.line_to(x, low),
                // A dot where nothing follows.
                false => path.line(x - 1.0, low, x, low),
            }
            if high - low > 0.5 {
                path.line_to(x, high);
            }
            is_down = true;
        }
        path
    }
}

/// The mark of a new topology.
fn draw_mark(svg: &mut Svg, x: f64, y: f64) {
    let [x, y] = [x, y].map(Number);
    svg.add(format_args!("<path d=\"M{x} {y}l-5 -8h10z\" class=\"fk{GREY}\"/>"));
}

fn is_shown(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: f64, medians: &[f64]) -> DriftPoint {
        DriftPoint { time, medians: medians.to_vec(), largest_ratio: 1.0, ..DriftPoint::default() }
    }

    #[test]
    fn every_level_has_a_line_and_every_new_topology_a_mark() {
        let mut points =
            vec![point(3600.0, &[1e-6, 5e-6]), point(0.0, &[1e-6, 4e-6]), point(7200.0, &[1e-6, 9e-6])];
        points[2].published = true;
        points[2].hosts_down = 2;
        let picture = drift(&points);
        assert_eq!(picture.matches("<title>level ").count(), 2);
        assert!(picture.contains("level 2 9 µs") && picture.contains("new topology: 1970-01-01 02:00"));
        assert!(
            picture.contains("3 probes from 1970-01-01 00:00 to 1970-01-01 02:00 UTC · 1 topology published")
        );
        assert!(picture.contains("2 hosts down"));
    }

    #[test]
    fn strange_points_have_a_picture() {
        for points in [
            vec![],
            vec![point(5.0, &[])],
            vec![point(5.0, &[1e-6])],
            vec![point(f64::NAN, &[1e-6]), point(1e300, &[0.0, f64::INFINITY]), point(-1e300, &[f64::NAN])],
        ] {
            let picture = drift(&points);
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
    }

    #[test]
    fn many_probes_are_small() {
        let points: Vec<DriftPoint> = (0..50_000_u32)
            .map(|probe| DriftPoint {
                hosts_down: probe % 3,
                published: probe % 7 == 0,
                ..point(f64::from(probe) * 60.0, &[1e-6 + f64::from(probe % 100) * 1e-9, 3e-6])
            })
            .collect();
        assert!(drift(&points).len() < 300_000, "{}", drift(&points).len());
    }
}
