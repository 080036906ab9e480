//! How the best cost of searches fell over their evaluations.

use hopmap_model::ConvergencePoint;

use crate::chart::{Chart, GREY, HEIGHT, LEFT, MOST_COLOURS, TOP, WIDTH, finish};
use crate::human::{Unit, count_of, quantity, quantity_of, significant};
use crate::palette::Palette;
use crate::svg::{Number, Path, Svg, text_width};

/// Islands that are drawn at most; the best one is always among them.
const MOST_ISLANDS: usize = 40;
/// Points of a curve that are marked; dots of more would run together.
const MOST_DOTS: usize = 60;

/// What a search minimises, and how its values are written with some number of digits.
#[derive(Debug, Clone, Copy)]
struct Measure {
    name: &'static str,
    digits: usize,
    text: fn(f64, usize) -> String,
}

impl Measure {
    fn text(&self, value: f64) -> String {
        (self.text)(value, self.digits)
    }
}

const COST: Measure =
    Measure { name: "F", digits: 3, text: |cost, digits| quantity_of(cost, Unit::Count, digits) };
const MAKESPAN: Measure = Measure { name: "makespan", digits: 6, text: significant };

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
                measure.text(best),
                quantity(evaluations as f64, Unit::Count)
            )
        }
    };
    let names = islands.iter().map(|island| island.name.as_str());
    let palette = if islands.len() > MOST_COLOURS { Palette::default() } else { Palette::new(names) };
    picture(measure, &subtitle, &islands, ("islands", "evaluations of one island"), (reference, &palette))
}

/// The best F over evaluations, a line per search, each with its name and its points in the order of evaluations.
#[must_use]
pub fn searches(curves: &[(String, Vec<(u64, f64)>)], palette: &Palette) -> String {
    of_searches(COST, curves, palette)
}

/// The least makespan over evaluations, a line per search, each with its name and its points in the order of evaluations.
#[must_use]
pub fn makespan_searches(curves: &[(String, Vec<(u64, f64)>)], palette: &Palette) -> String {
    of_searches(MAKESPAN, curves, palette)
}

fn of_searches(measure: Measure, curves: &[(String, Vec<(u64, f64)>)], palette: &Palette) -> String {
    let curve = |(name, points): &(String, Vec<(u64, f64)>)| falling(name.clone(), points.iter().copied());
    let curves: Vec<Curve> = curves.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
    let subtitle = count_of(curves.len(), "search");
    picture(measure, &subtitle, &curves, ("searches", "evaluations of all islands"), (None, palette))
}

fn picture(
    measure: Measure,
    subtitle: &str,
    curves: &[Curve],
    (plural, axis): (&'static str, &str),
    (reference, palette): (Option<(f64, &str)>, &Palette),
) -> String {
    let mut svg = Svg::new(&format!("Best {} over evaluations", measure.name), subtitle);
    if !curves.is_empty() {
        let plot = Plot::new(measure, curves, reference.map(|reference| reference.0), palette);
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

/// Where an axis of evaluations begins: a tenth of the first count above zero. Earlier points are drawn there.
#[must_use]
pub fn first_evaluations(points: impl Iterator<Item = u64>) -> u64 {
    points.filter(|evaluations| *evaluations > 0).min().map_or(1, |least| (least / 10).max(1))
}

struct Plot<'a> {
    measure: Measure,
    chart: Chart,
    palette: &'a Palette,
    first: u64,
}

impl<'a> Plot<'a> {
    fn new(measure: Measure, curves: &[Curve], reference: Option<f64>, palette: &'a Palette) -> Self {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let first = first_evaluations(points().map(|point| point.0));
        let reference = reference.map(|cost| (first as f64, cost));
        let places = points().map(|&(x, y)| (x.max(first) as f64, y));
        Self { measure, chart: Chart::around(places.chain(reference), true), palette, first }
    }

    fn draw_reference(&self, svg: &mut Svg, cost: f64, name: &str) {
        if !cost.is_finite() {
            return;
        }
        let y = self.chart.down(cost);
        let (left, right, across) = (LEFT, LEFT + WIDTH, Number(y));
        svg.add(format_args!("<path d=\"M{left} {across}H{right}\" class=\"a\" stroke-dasharray=\"5 4\"/>"));
        svg.text(LEFT + WIDTH + 8.0, y - 3.0, "q n", name);
        svg.text(LEFT + WIDTH + 8.0, y + 10.0, "q n", &self.measure.text(cost));
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
        let drawn = curves.iter().enumerate().filter(|(index, _)| index % step == 0 && *index != best);
        for (_, curve) in drawn {
            let (colour, opacity) = if coloured { (self.palette.of(&curve.name), 1.0) } else { (GREY, 0.3) };
            self.draw_curve(svg, curve, colour, opacity);
        }
        self.draw_curve(svg, &curves[best], self.colour_of_best(curves, best), 1.0);
        let left = LEFT + 34.0 + text_width(self.measure.name);
        self.draw_labels(svg, curves, best, (left, plural));
    }

    /// The best of many curves is the only one with a colour.
    fn colour_of_best(&self, curves: &[Curve], best: usize) -> usize {
        if curves.len() <= MOST_COLOURS { self.palette.of(&curves[best].name) } else { 0 }
    }

    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, colour: usize, opacity: f64) {
        let best = self.measure.text(curve.best().unwrap_or(f64::NAN));
        let places = self.places(curve);
        let Some((first, rest)) = places.split_first() else { return };
        let mut path = Path::from(first.0, first.1);
        for place in rest {
            path.across_to(place.0);
            path.down_to(place.1);
        }
        let faint = if opacity < 1.0 { " style=\"opacity:0.3;stroke-width:1\"" } else { "" };
        svg.group(&format!("{}: {best}", curve.name), |svg| {
            svg.add(format_args!("<path class=\"g sk{colour}\"{faint} d=\"{path}\"/>"));
            if faint.is_empty() && places.len() <= MOST_DOTS {
                places.iter().for_each(|place| svg.disc(place.0, place.1, 3.0, &format!("fk{colour}"), 1.0));
            }
        });
    }

    /// The improvements of a curve, at most one per pixel.
    fn places(&self, curve: &Curve) -> Vec<(f64, f64)> {
        let place = |&(x, y): &(u64, f64)| (self.chart.across(x.max(self.first) as f64), self.chart.down(y));
        let mut places: Vec<(f64, f64)> = Vec::new();
        for (index, place) in curve.points.iter().map(place).enumerate() {
            let is_end = index + 1 == curve.points.len();
            let is_apart =
                places.last().is_none_or(|last| place.0 - last.0 >= 1.0 && place.1 - last.1 >= 0.1);
            if is_apart || is_end {
                places.push(place);
            }
        }
        places
    }

    /// Names of the lines.
    fn draw_labels(&self, svg: &mut Svg, curves: &[Curve], best: usize, (left, plural): (f64, &str)) {
        let y = TOP - 12.0;
        let mut x = left;
        let mut label = |svg: &mut Svg, colour: usize, text: &str| {
            svg.line(x, y - 4.0, x + 16.0, y - 4.0, &format!("g sk{colour}"));
            svg.text(x + 21.0, y, "n", text);
            x += 21.0 + text_width(text) + 16.0;
        };
        if curves.len() <= MOST_COLOURS {
            for curve in curves {
                label(svg, self.palette.of(&curve.name), &curve.name);
            }
            return;
        }
        label(svg, self.colour_of_best(curves, best), &format!("best: {}", curves[best].name));
        let drawn = curves.len().div_ceil(curves.len().div_ceil(MOST_ISLANDS));
        let others = match drawn < curves.len() {
            true => format!("{drawn} of {} {plural}", curves.len()),
            false => format!("other {plural}"),
        };
        label(svg, GREY, &others);
    }
}

/// The runs of one mapper with the same parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    /// Evaluations, in rising order, and lower quartile, median and upper quartile of the best that the runs had by then.
    pub points: Vec<(u64, [f64; 3])>,
}

/// Medians of the best found so far over evaluations, in a band from the lower to the upper quartile; at most six bands, those with a
/// colour first, then those that end best.
#[must_use]
pub fn bands(bands: &[Band], quality: &str, palette: &Palette) -> String {
    let end = |band: &&Band| band.points.last().map_or(f64::INFINITY, |point| point.1[1]);
    let colour = |band: &&Band| palette.of(&band.name);
    let mut shown: Vec<&Band> = bands.iter().filter(|band| !band.points.is_empty()).collect();
    shown.sort_by(|a, b| (colour(a) == GREY).cmp(&(colour(b) == GREY)).then(end(a).total_cmp(&end(b))));
    let all = shown.len();
    shown.truncate(MOST_COLOURS);
    let runs: usize = shown.iter().map(|band| band.runs).sum();
    let of = if all > shown.len() { format!(" · {} of {all} searches", shown.len()) } else { String::new() };
    let subtitle = format!("median and quartiles of {}{of}", count_of(runs, "run"));
    let mut svg = Svg::new(&format!("Best {quality} over evaluations"), &subtitle);
    let corners = shown.iter().flat_map(|band| &band.points);
    let corners = corners.flat_map(|&(x, values)| values.map(|value| (x.max(1) as f64, value)));
    let chart = Chart::around(corners, true);
    chart.draw_axes(&mut svg, ("evaluations of all islands", Unit::Count), (quality, COST.text));
    for band in &shown {
        draw_area(&mut svg, &chart, band, colour(band));
    }
    for band in &shown {
        let middle = band.points.iter().map(|&(x, values)| (x.max(1) as f64, values[1]));
        svg.group(&band.name, |svg| {
            svg.add(format_args!("<path d=\"{}\" class=\"g sk{}\"/>", chart.lines(middle), colour(band)));
        });
    }
    let name = |band: &&Band| {
        let (median, runs) = (quantity(end(band), Unit::Count), count_of(band.runs, "run"));
        (colour(band), format!("{}: median {median} of {runs}", band.name))
    };
    finish(svg, &shown.iter().map(name).collect::<Vec<_>>())
}

/// The area between the quartiles.
fn draw_area(svg: &mut Svg, chart: &Chart, band: &Band, colour: usize) {
    let side = |which: usize| band.points.iter().map(move |&(x, values)| (x.max(1) as f64, values[which]));
    let outline = chart.lines(side(2).chain(side(0).rev()));
    svg.add(format_args!("<path d=\"{outline}Z\" class=\"fk{colour}\" fill-opacity=\"0.18\"/>"));
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
        assert!(
            makespan_searches(&[("list".into(), vec![(1, 57.0)])], &Palette::default()).contains("list: 57")
        );
    }

    #[test]
    fn many_points_take_at_most_one_per_pixel() {
        let points: Vec<ConvergencePoint> =
            (0..50_000_u32).map(|index| point(0, u64::from(index) + 1, 1e9 - f64::from(index))).collect();
        assert!(convergence(&points, None).len() < 20_000);
    }
}
