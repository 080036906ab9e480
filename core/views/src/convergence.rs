//! How the best cost of searches fell, and what is won by spending more.

use hopmap_model::ConvergencePoint;

use crate::chart::{Chart, GREY, HEIGHT, LEFT, MOST_COLOURS, TOP, WIDTH, finish, label};
use crate::human::{Unit, count_of, quantity, six_digits};
use crate::svg::{KINDS, Number, Path, Svg, text_width};

/// Islands that are drawn at most; the best one is always among them.
const MOST_ISLANDS: usize = 40;

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
    picture(measure, &subtitle, &islands, ("islands", "evaluations of one island"), reference)
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
    picture(measure, &subtitle, &curves, ("searches", "evaluations of all islands"), reference)
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
        plot.chart.draw_axes(&mut svg, (axis, Unit::Count), (measure.name, measure.text));
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
    chart: Chart,
}

impl Plot {
    fn new(measure: Measure, curves: &[Curve], reference: Option<f64>) -> Self {
        let points = || curves.iter().flat_map(|curve| &curve.points).map(|&(x, y)| (x.max(1) as f64, y));
        let first = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let reference = reference.map(|cost| (first, cost));
        Self { measure, chart: Chart::around(points().chain(reference), true) }
    }

    fn draw_reference(&self, svg: &mut Svg, cost: f64, name: &str) {
        if !cost.is_finite() {
            return;
        }
        let y = self.chart.down(cost);
        let (left, right, across) = (LEFT, LEFT + WIDTH, Number(y));
        svg.add(format_args!("<path d=\"M{left} {across}H{right}\" class=\"a\" stroke-dasharray=\"5 4\"/>"));
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
        let left = LEFT + 34.0 + text_width(self.measure.name);
        draw_labels(svg, curves, best, coloured, (left, plural));
    }

    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, colour: usize, opacity: f64) {
        let (path, best) = (self.steps(curve), (self.measure.text)(curve.best().unwrap_or(f64::NAN)));
        let faint = if opacity < 1.0 { " style=\"opacity:0.3;stroke-width:1\"" } else { "" };
        svg.group(&format!("{}: {best}", curve.name), |svg| {
            svg.add(format_args!("<path class=\"g sk{colour}\"{faint} d=\"{path}\"/>"));
        });
    }

    /// A stair: the cost stays what it is until a better one is found. At most one step per pixel.
    fn steps(&self, curve: &Curve) -> Path {
        let place = |&(x, y): &(u64, f64)| (self.chart.across(x as f64), self.chart.down(y));
        let mut points = curve.points.iter().map(place);
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
fn draw_labels(svg: &mut Svg, curves: &[Curve], best: usize, coloured: bool, (left, plural): (f64, &str)) {
    let y = TOP - 12.0;
    let mut x = left;
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
        let others = match drawn < curves.len() {
            true => format!("{drawn} of {} {plural}", curves.len()),
            false => format!("other {plural}"),
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
    chart.draw_axes(&mut svg, ("evaluations of all islands", Unit::Count), (quality, COST.text));
    for (colour, band) in shown.iter().enumerate() {
        draw_area(&mut svg, &chart, band, colour);
    }
    for (colour, band) in shown.iter().enumerate() {
        let middle: Vec<(f64, f64)> =
            band.points.iter().map(|&(x, values)| (x.max(1) as f64, values[1])).collect();
        svg.group(&band.name, |svg| {
            svg.add(format_args!("<path d=\"{}\" class=\"g sk{colour}\"/>", chart.stair(&middle)));
        });
    }
    let name = |(colour, band): (usize, &&Band)| {
        let (median, runs) = (quantity(end(band), Unit::Count), count_of(band.runs, "run"));
        (colour, format!("{}: median {median} of {runs}", band.name))
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

/// Points that are drawn at most.
const MOST_POINTS: usize = 4000;

/// The runs of one way to do something.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cloud {
    /// Its name.
    pub name: String,
    /// What each run cost, and how good it was.
    pub points: Vec<(f64, f64)>,
    /// Lower quartile, median and upper quartile of what they cost.
    pub cost: [f64; 3],
    /// The same of how good they were.
    pub quality: [f64; 3],
    /// Whether no other one has medians that are both smaller.
    pub is_on_front: bool,
}

/// Quality against cost, less is better of both: every run as a dot, every way as a cross of its quartiles with its median, and the
/// front, the ways that no other one beats in both.
#[must_use]
pub fn pareto(clouds: &[Cloud], quality: &str, cost: &str) -> String {
    let runs: usize = clouds.iter().map(|cloud| cloud.points.len()).sum();
    let front = clouds.iter().filter(|cloud| cloud.is_on_front).count();
    let subtitle =
        format!("{} · {front} of {} on the front · less is better", count_of(runs, "run"), clouds.len());
    let mut svg = Svg::new(&format!("{quality} against {cost}"), &subtitle);
    let all = clouds.iter().flat_map(|cloud| cloud.points.iter().copied());
    let chart = Chart::around(all, false);
    let unit = if cost == "seconds" { Unit::Seconds } else { Unit::Count };
    chart.draw_axes(&mut svg, (cost, unit), (quality, |value| quantity(value, Unit::Count)));
    draw_front(&mut svg, &chart, clouds);
    let colours = colours(clouds);
    let step = runs.div_ceil(MOST_POINTS).max(1);
    for (cloud, &colour) in clouds.iter().zip(&colours) {
        for &(x, y) in cloud.points.iter().step_by(step) {
            svg.disc(chart.across(x), chart.down(y), 2.5, &format!("fk{colour}"), 0.4);
        }
    }
    for (cloud, &colour) in clouds.iter().zip(&colours) {
        draw_cross(&mut svg, &chart, cloud, colour);
    }
    draw_front_labels(&mut svg, &chart, clouds);
    finish(svg, &names(clouds, &colours))
}

/// Those on the front first have a colour of their own.
fn colours(clouds: &[Cloud]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..clouds.len()).collect();
    order.sort_by_key(|&index| !clouds[index].is_on_front);
    let mut colours = vec![GREY; clouds.len()];
    order.into_iter().take(MOST_COLOURS).enumerate().for_each(|(colour, index)| colours[index] = colour);
    colours
}

fn names(clouds: &[Cloud], colours: &[usize]) -> Vec<(usize, String)> {
    let medians = |cloud: &Cloud| {
        let front = if cloud.is_on_front { ", on the front" } else { "" };
        format!("{}: median {}{front}", cloud.name, quantity(cloud.quality[1], Unit::Count))
    };
    let own = clouds.iter().zip(colours).filter(|(_, colour)| **colour != GREY);
    let mut names: Vec<(usize, String)> = own.map(|(cloud, &colour)| (colour, medians(cloud))).collect();
    names.sort();
    match clouds.len() - names.len() {
        0 => {}
        1 => names.push((GREY, "another one".to_owned())),
        others => names.push((GREY, format!("{others} others"))),
    }
    names
}

/// The stair below and left of which there is nothing.
fn draw_front(svg: &mut Svg, chart: &Chart, clouds: &[Cloud]) {
    let mut front: Vec<(f64, f64)> = clouds
        .iter()
        .filter(|cloud| cloud.is_on_front)
        .map(|cloud| (cloud.cost[1], cloud.quality[1]))
        .collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let path = chart.stair(&front);
    svg.add(format_args!("<path d=\"{path}\" class=\"a\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>"));
}

fn draw_cross(svg: &mut Svg, chart: &Chart, cloud: &Cloud, colour: usize) {
    let [left, x, right] = cloud.cost.map(|cost| chart.across(cost));
    let [lower, y, upper] = cloud.quality.map(|quality| chart.down(quality));
    let tooltip = format!("{}: {} in {}", cloud.name, cloud.quality[1], cloud.cost[1]);
    svg.open_group("", &tooltip);
    svg.line(left, y, right, y, &format!("g sk{colour}"));
    svg.line(x, lower, x, upper, &format!("g sk{colour}"));
    svg.disc(x, y, 5.0, &format!("fk{colour}"), 1.0);
    svg.close_group();
}

/// Names beside what is on the front, but for those that would stand on another one: all are named below.
fn draw_front_labels(svg: &mut Svg, chart: &Chart, clouds: &[Cloud]) {
    const HEIGHT: f64 = 14.0;
    let mut labelled: Vec<(f64, f64, f64)> = Vec::new();
    for cloud in clouds.iter().filter(|cloud| cloud.is_on_front) {
        let (x, y) = (chart.across(cloud.cost[1]), chart.down(cloud.quality[1]));
        let width = text_width(&cloud.name) + 20.0;
        let is_near = |&(left, other, wide): &(f64, f64, f64)| {
            (y - other).abs() < HEIGHT && x - width < left + wide && left - wide < x + width
        };
        if !labelled.iter().any(is_near) {
            label(svg, (x, y), &cloud.name);
            labelled.push((x, y, width));
        }
    }
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

    #[test]
    fn the_front_is_named_and_many_runs_stay_small() {
        let cloud = |index: u32| {
            let (cost, quality) = (f64::from(index) + 1.0, 100.0 / (f64::from(index) + 1.0));
            Cloud {
                name: format!("way {index}"),
                points: vec![(cost, quality); 1000],
                cost: [cost * 0.9, cost, cost * 1.1],
                quality: [quality * 0.9, quality, quality * 1.1],
                is_on_front: index < 3,
            }
        };
        let clouds: Vec<Cloud> = (0..100).map(cloud).collect();
        let picture = pareto(&clouds, "F", "seconds");
        assert!(
            picture.contains("3 of 100 on the front") && picture.contains("way 2: median 33.3, on the front")
        );
        assert!(picture.contains(">94 others<"), "{picture}");
        assert!(picture.len() < 700_000, "{} bytes", picture.len());
    }
}
