//! How the best cost of a search fell.

use hopmap_model::ConvergencePoint;

use crate::chart::{Axis, Chart, MOST_COLOURS, finish};
use crate::human::{Unit, count_of, quantity, six_digits};
use crate::svg::{KINDS, Path, Svg, text_width};

/// Islands that are drawn at most; the best one is always among them.
const MOST_ISLANDS: usize = 40;
const LEFT: f64 = 64.0;
const TOP: f64 = 82.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 260.0;

/// What a search makes small.
#[derive(Debug, Clone, Copy)]
struct Measure {
    name: &'static str,
    text: fn(f64) -> String,
}

const COST: Measure = Measure { name: "F", text: |cost| quantity(cost, Unit::Count) };
const MAKESPAN: Measure = Measure { name: "makespan", text: six_digits };

/// The best F over evaluations, a line per island, evaluations on a logarithmic axis.
///
/// `reference` is a cost to compare with and its name, such as that of the linear placement.
#[must_use]
pub fn convergence(points: &[ConvergencePoint], reference: Option<(f64, &str)>) -> String {
    of_islands(COST, points, reference)
}

/// The least makespan over evaluations, a line per island, evaluations on a logarithmic axis.
///
/// `reference` is a makespan to compare with and its name, such as a lower bound.
#[must_use]
pub fn makespan_convergence(points: &[ConvergencePoint], reference: Option<(f64, &str)>) -> String {
    of_islands(MAKESPAN, points, reference)
}

fn of_islands(measure: Measure, points: &[ConvergencePoint], reference: Option<(f64, &str)>) -> String {
    let islands = islands(points);
    let best = islands.iter().filter_map(Curve::best).fold(f64::INFINITY, f64::min);
    let subtitle = match islands.len() {
        0 => "no search".to_owned(),
        count => {
            let evaluations: u64 =
                islands.iter().filter_map(|island| island.points.last()).map(|point| point.0).sum();
            format!(
                "{} · best {} after {} evaluations in all",
                count_of(count, "island"),
                (measure.text)(best),
                quantity(evaluations as f64, Unit::Count)
            )
        }
    };
    picture(measure, &subtitle, &islands, ("islands", "evaluations of one island →"), reference)
}

/// The best F over evaluations, a line per search, each with its name and its points in the order of evaluations.
#[must_use]
pub fn searches(curves: &[(String, Vec<(u64, f64)>)], reference: Option<(f64, &str)>) -> String {
    of_searches(COST, curves, reference)
}

/// The least makespan over evaluations, a line per search, each with its name and its points in the order of evaluations.
#[must_use]
pub fn makespan_searches(curves: &[(String, Vec<(u64, f64)>)], reference: Option<(f64, &str)>) -> String {
    of_searches(MAKESPAN, curves, reference)
}

fn of_searches(
    measure: Measure,
    curves: &[(String, Vec<(u64, f64)>)],
    reference: Option<(f64, &str)>,
) -> String {
    let curve = |(name, points): &(String, Vec<(u64, f64)>)| falling(name.clone(), points.iter().copied());
    let curves: Vec<Curve> = curves.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    let subtitle = count_of(curves.len(), "search");
    picture(measure, &subtitle, &curves, ("searches", "evaluations of all islands →"), reference)
}

fn picture(
    measure: Measure,
    subtitle: &str,
    curves: &[Curve],
    (plural, axis): (&'static str, &str),
    reference: Option<(f64, &str)>,
) -> String {
    let mut svg = Svg::new(&format!("Best {} over evaluations", measure.name), subtitle);
    if !curves.is_empty() {
        let plot = Plot::new(measure, curves, reference.map(|reference| reference.0));
        plot.draw_axes(&mut svg, axis);
        if let Some((cost, name)) = reference {
            plot.draw_reference(&mut svg, cost, name);
        }
        plot.draw_curves(&mut svg, curves, plural);
    }
    let height = if curves.is_empty() { 40.0 } else { TOP + HEIGHT + 44.0 };
    svg.finish(LEFT + WIDTH + 110.0, height)
}

/// One line: evaluations and cost, in the order of evaluations, the cost never rising.
struct Curve {
    name: String,
    points: Vec<(u64, f64)>,
}

impl Curve {
    fn best(&self) -> Option<f64> {
        self.points.last().map(|point| point.1)
    }
}

fn falling(name: String, points: impl Iterator<Item = (u64, f64)>) -> Curve {
    let mut best = f64::INFINITY;
    let points = points.filter(|point| point.1.is_finite()).map(|(evaluations, cost)| {
        best = best.min(cost);
        (evaluations, best)
    });
    Curve { name, points: points.collect() }
}

/// The islands by number.
fn islands(points: &[ConvergencePoint]) -> Vec<Curve> {
    let mut sorted: Vec<&ConvergencePoint> = points.iter().filter(|point| point.cost.is_finite()).collect();
    sorted.sort_by_key(|point| (point.island, point.evaluations));
    let island = |points: &[&ConvergencePoint]| {
        let name = format!("island {}", points[0].island);
        falling(name, points.iter().map(|point| (point.evaluations, point.cost)))
    };
    sorted.chunk_by(|a, b| a.island == b.island).map(island).collect()
}

struct Plot {
    measure: Measure,
    x: Axis,
    y: Axis,
}

impl Plot {
    fn new(measure: Measure, curves: &[Curve], reference: Option<f64>) -> Self {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let last = points().map(|point| point.0).max().unwrap_or(1).max(2);
        let first = points().map(|point| point.0.max(1)).min().unwrap_or(1).min(last / 2);
        let costs = || points().map(|point| point.1).chain(reference.filter(|cost| cost.is_finite()));
        let low = costs().fold(f64::INFINITY, f64::min);
        let high = costs().fold(low, f64::max);
        let y = if low > 0.0 && high > 20.0 * low {
            Axis::logarithmic(low * 0.9, high * 1.1)
        } else {
            let margin = (high - low) * 0.06;
            Axis::linear(low - margin, high + margin)
        };
        Self { measure, x: Axis::logarithmic(first.max(1) as f64, last as f64), y }
    }

    fn across(&self, evaluations: u64) -> f64 {
        LEFT + WIDTH * self.x.at(evaluations as f64)
    }

    fn down(&self, cost: f64) -> f64 {
        TOP + HEIGHT * (1.0 - self.y.at(cost))
    }

    fn draw_axes(&self, svg: &mut Svg, axis: &str) {
        for tick in self.y.ticks(5) {
            let y = self.down(tick);
            svg.line(LEFT, y, LEFT + WIDTH, y, "l");
            svg.text(LEFT - 8.0, y + 4.0, "q n e", &(self.measure.text)(tick));
        }
        for tick in self.x.ticks(7) {
            let x = LEFT + WIDTH * self.x.at(tick);
            svg.line(x, TOP + HEIGHT, x, TOP + HEIGHT + 5.0, "a");
            svg.text(x, TOP + HEIGHT + 18.0, "q n m", &quantity(tick, Unit::Count));
        }
        svg.line(LEFT, TOP + HEIGHT, LEFT + WIDTH, TOP + HEIGHT, "a");
        svg.text(LEFT + WIDTH, TOP + HEIGHT + 36.0, "q n e", axis);
        svg.text(LEFT - 8.0, TOP - 10.0, "q n e", self.measure.name);
    }

    fn draw_reference(&self, svg: &mut Svg, cost: f64, name: &str) {
        if !cost.is_finite() {
            return;
        }
        let y = self.down(cost);
        let mut path = Path::from(LEFT, y);
        path.across_to(LEFT + WIDTH);
        svg.add(format_args!("<path d=\"{path}\" class=\"a\" stroke-dasharray=\"5 4\"/>"));
        svg.text(LEFT + WIDTH + 8.0, y - 3.0, "q n", name);
        svg.text(LEFT + WIDTH + 8.0, y + 10.0, "q n", &(self.measure.text)(cost));
    }

    fn draw_curves(&self, svg: &mut Svg, curves: &[Curve], plural: &str) {
        let best = (0..curves.len())
            .min_by(|&a, &b| {
                let cost = |index: usize| curves[index].best().unwrap_or(f64::INFINITY);
                cost(a).total_cmp(&cost(b)).then(a.cmp(&b))
            })
            .unwrap_or(0);
        let coloured = curves.len() <= MOST_COLOURS;
        let step = curves.len().div_ceil(MOST_ISLANDS);
        for (index, curve) in
            curves.iter().enumerate().filter(|(index, _)| index % step == 0 && *index != best)
        {
            let (class, opacity) = if coloured { (index, 1.0) } else { (KINDS - 1, 0.3) };
            self.draw_curve(svg, curve, class, opacity);
        }
        self.draw_curve(svg, &curves[best], if coloured { best } else { 0 }, 1.0);
        draw_labels(svg, curves, best, coloured, plural);
    }

    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, colour: usize, opacity: f64) {
        let path = self.steps(curve);
        let faint = if opacity < 1.0 {
            format!(" style=\"opacity:{opacity};stroke-width:1\"")
        } else {
            String::new()
        };
        svg.open_group(
            "",
            &format!("{}: {}", curve.name, (self.measure.text)(curve.best().unwrap_or(f64::NAN))),
        );
        svg.add(format_args!("<path class=\"g sk{colour}\"{faint} d=\"{path}\"/>"));
        svg.close_group();
    }

    /// A stair: the cost stays what it is until a better one is found. At most one step per pixel.
    fn steps(&self, curve: &Curve) -> Path {
        let mut points =
            curve.points.iter().map(|&(evaluations, cost)| (self.across(evaluations), self.down(cost)));
        let Some(mut last) = points.next() else { return Path::default() };
        let mut path = Path::from(last.0, last.1);
        let mut end = last;
        for point in points {
            end = point;
            if point.0 - last.0 >= 1.0 && point.1 - last.1 >= 0.1 {
                path.across_to(point.0);
                path.down_to(point.1);
                last = point;
            }
        }
        path.across_to(end.0);
        path.down_to(end.1);
        path
    }
}

/// Names of the lines.
fn draw_labels(svg: &mut Svg, curves: &[Curve], best: usize, coloured: bool, plural: &str) {
    let y = TOP - 10.0;
    let mut x = LEFT + 18.0;
    let mut label = |svg: &mut Svg, colour: usize, text: &str| {
        svg.line(x, y - 4.0, x + 16.0, y - 4.0, &format!("g sk{colour}"));
        svg.text(x + 21.0, y, "n", text);
        x += 21.0 + text_width(text) + 16.0;
    };
    if coloured {
        for (index, curve) in curves.iter().enumerate() {
            label(svg, index, &curve.name);
        }
    } else {
        label(svg, 0, &format!("best: {}", curves[best].name));
        let drawn = curves.len().div_ceil(curves.len().div_ceil(MOST_ISLANDS));
        let others = if drawn < curves.len() {
            format!("{drawn} of {} {plural}", curves.len())
        } else {
            format!("other {plural}")
        };
        label(svg, KINDS - 1, &others);
    }
}

/// The runs of one way to search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    /// Evaluations, in rising order, and lower quartile, median and upper quartile of the best that the runs had by then.
    pub points: Vec<(u64, [f64; 3])>,
}

/// Medians of the best found so far over evaluations, in a band from the lower to the upper quartile; the six ways that end best.
#[must_use]
pub fn bands(bands: &[Band], quality: &str) -> String {
    let end = |band: &&Band| band.points.last().map_or(f64::INFINITY, |point| point.1[1]);
    let mut shown: Vec<&Band> = bands.iter().filter(|band| !band.points.is_empty()).collect();
    shown.sort_by(|a, b| end(a).total_cmp(&end(b)));
    let all = shown.len();
    shown.truncate(MOST_COLOURS);
    let runs: usize = shown.iter().map(|band| band.runs).sum();
    let of = if all > shown.len() { format!(" · the best {} of {all}", shown.len()) } else { String::new() };
    let subtitle = format!("median and quartiles of {}{of}", count_of(runs, "run"));
    let mut svg = Svg::new(&format!("Best {quality} over evaluations"), &subtitle);
    let of_band = |band: &&Band| band.points.clone();
    let points: Vec<(u64, [f64; 3])> = shown.iter().flat_map(of_band).collect();
    let corners = points.iter().flat_map(|&(x, values)| values.map(|value| (x.max(1) as f64, value)));
    let chart = Chart::around(corners, true);
    chart.draw_axes(&mut svg, ("evaluations of all islands", Unit::Count), quality);
    for (colour, band) in shown.iter().enumerate() {
        draw_area(&mut svg, &chart, band, colour);
    }
    for (colour, band) in shown.iter().enumerate() {
        let middle: Vec<(f64, f64)> =
            band.points.iter().map(|&(x, values)| (x.max(1) as f64, values[1])).collect();
        svg.open_group("", &band.name);
        svg.add(format_args!("<path d=\"{}\" class=\"g sk{colour}\"/>", chart.stair(&middle)));
        svg.close_group();
    }
    let name = |(colour, band): (usize, &&Band)| {
        (
            colour,
            format!(
                "{}: median {} of {}",
                band.name,
                quantity(end(band), Unit::Count),
                count_of(band.runs, "run")
            ),
        )
    };
    finish(svg, &shown.iter().enumerate().map(name).collect::<Vec<_>>())
}

/// The area between the quartiles, as stairs there and back.
fn draw_area(svg: &mut Svg, chart: &Chart, band: &Band, colour: usize) {
    let side = |which: usize| -> Vec<(f64, f64)> {
        band.points.iter().map(|&(x, values)| (x.max(1) as f64, values[which])).collect()
    };
    let mut path = chart.stair(&side(2));
    let lower = side(0);
    for pair in lower.windows(2).rev() {
        path.line_to(chart.across(pair[1].0), chart.down(pair[1].1));
        path.line_to(chart.across(pair[1].0), chart.down(pair[0].1));
    }
    if let Some(first) = lower.first() {
        path.line_to(chart.across(first.0), chart.down(first.1));
    }
    svg.add(format_args!("<path d=\"{path}Z\" class=\"fk{colour}\" fill-opacity=\"0.18\"/>"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(island: u32, evaluations: u64, cost: f64) -> ConvergencePoint {
        ConvergencePoint { island, evaluations, cost }
    }

    #[test]
    fn points_are_sorted_and_never_rise() {
        let islands =
            islands(&[point(1, 20, 5.0), point(0, 1, 9.0), point(1, 10, 4.0), point(0, 5, f64::NAN)]);
        assert_eq!(islands.len(), 2);
        assert_eq!(islands[1].points, [(10, 4.0), (20, 4.0)]);
    }

    #[test]
    fn the_reference_is_named() {
        let picture = convergence(&[point(0, 1, 9.0), point(0, 100, 4.0)], Some((12.0, "linear")));
        assert!(picture.contains(">linear</text>") && picture.contains(">12</text>"));
    }

    #[test]
    fn makespans_are_named_and_may_be_small() {
        let points = [point(0, 1, 0.0025), point(0, 100, 0.002)];
        let picture = makespan_convergence(&points, Some((0.0019, "lower bound")));
        for part in ["Best makespan over evaluations", ">lower bound<", ">0.0019<", "best 0.002 after"] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        assert!(makespan_searches(&[("list".into(), vec![(1, 57.0)])], None).contains("list: 57"));
    }

    #[test]
    fn many_points_take_at_most_a_step_per_pixel() {
        let points: Vec<ConvergencePoint> =
            (0..50_000_u32).map(|index| point(0, u64::from(index) + 1, 1e9 - f64::from(index))).collect();
        assert!(convergence(&points, None).len() < 20_000);
    }
}
