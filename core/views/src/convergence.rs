//! How the best cost of searches fell over their evaluations.

use hopmap_model::ConvergencePoint;

use crate::chart::{Chart, GREY, LEFT, MARGIN, MOST_COLOURS, WIDTH, finish};
use hopmap_text::significant;

use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::palette::{Palette, baseline};
use crate::svg::{Number, Path, Svg};

/// Islands that are drawn at most; the best one is always among them.
const MOST_ISLANDS: usize = 40;
/// Points of a curve that are marked; dots of more would run together.
const MOST_DOTS: usize = 60;
/// Room for the name and the value of a reference.
const REFERENCE: f64 = 110.0;

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

/// The improvements of a search on islands.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IslandSearch<'a> {
    /// Its name in the palette of the page.
    pub name: &'a str,
    /// The improvements of all islands.
    pub points: &'a [ConvergencePoint],
    /// Evaluations of all islands together; curves run to their end. 0 if they are not known.
    pub evaluations: u64,
}

/// The improvements of one of several searches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchCurve {
    /// Its name in the palette of the page.
    pub name: String,
    /// Evaluations and cost, in the order of evaluations.
    pub points: Vec<(u64, f64)>,
    /// Evaluations of the whole search; its curve runs to their end.
    pub evaluations: u64,
}

/// The best F over evaluations, a line per island in the colour of the search, evaluations on a logarithmic axis.
///
/// `reference` is a cost to compare with and its name, such as that of the linear placement.
#[must_use]
pub fn convergence(search: &IslandSearch<'_>, reference: Option<(f64, &str)>, palette: &Palette) -> String {
    of_islands(COST, search, reference, palette)
}

/// The least makespan over evaluations, a line per island in the colour of the search, evaluations on a logarithmic axis.
///
/// `reference` is a makespan to compare with and its name, such as a lower bound.
#[must_use]
pub fn makespan_convergence(
    search: &IslandSearch<'_>,
    reference: Option<(f64, &str)>,
    palette: &Palette,
) -> String {
    of_islands(MAKESPAN, search, reference, palette)
}

fn of_islands(
    measure: Measure,
    search: &IslandSearch<'_>,
    reference: Option<(f64, &str)>,
    palette: &Palette,
) -> String {
    let mut islands = islands(search);
    if islands.is_empty() {
        return Svg::new(&title(measure.name), "no search").finish(LEFT + WIDTH + REFERENCE, 40.0);
    }
    let all = islands.len();
    let evaluations = search.evaluations.max(islands.iter().map(|island| island.last().0).sum());
    islands.iter_mut().for_each(|island| island.end = island.end.max(evaluations / all as u64));
    let best = best(&islands);
    let cost = measure.text(islands[best].last().1);
    let count = count_of(all, "island");
    let evaluations = quantity(evaluations as f64, Unit::Count);
    let subtitle = format!("{count} · best {cost} after {evaluations} evaluations in all");
    let colour = palette.of(search.name);
    let name = match all {
        1 => search.name.to_owned(),
        _ => format!("{}: {} is the best", search.name, islands[best].name),
    };
    let step = all.div_ceil(MOST_ISLANDS);
    let mut drawn: Vec<(Curve, Look)> = Vec::new();
    for (index, island) in islands.into_iter().enumerate() {
        if index == best || index % step == 0 {
            drawn.push((island, Look { colour, is_faint: index != best }));
        }
    }
    // The best island is drawn above the others.
    drawn.sort_by_key(|(_, look)| !look.is_faint);
    let mut legend = vec![(colour, name)];
    if drawn.len() < all {
        legend.push((colour, format!("{} of {all} islands are drawn", drawn.len())));
    }
    picture(measure, &subtitle, &drawn, ("evaluations of one island", reference), &legend)
}

/// The best F over evaluations, a line per search.
#[must_use]
pub fn searches(curves: &[SearchCurve], palette: &Palette) -> String {
    of_searches(COST, curves, palette)
}

/// The least makespan over evaluations, a line per search.
#[must_use]
pub fn makespan_searches(curves: &[SearchCurve], palette: &Palette) -> String {
    of_searches(MAKESPAN, curves, palette)
}

fn of_searches(measure: Measure, curves: &[SearchCurve], palette: &Palette) -> String {
    let curve = |search: &SearchCurve| {
        let curve = falling(search.name.clone(), search.points.iter().copied(), search.evaluations)?;
        Some((curve, Look { colour: palette.of(&search.name), is_faint: false }))
    };
    let curves: Vec<(Curve, Look)> = curves.iter().filter_map(curve).collect();
    let subtitle = count_of(curves.len(), "search");
    let name = |(curve, look): &(Curve, Look)| {
        (look.colour, format!("{}: {}", curve.name, measure.text(curve.last().1)))
    };
    let legend: Vec<(usize, String)> = curves.iter().map(name).collect();
    picture(measure, &subtitle, &curves, ("evaluations of all islands", None), &legend)
}

fn title(quality: &str) -> String {
    format!("Best {quality} over evaluations")
}

fn picture(
    measure: Measure,
    subtitle: &str,
    curves: &[(Curve, Look)],
    (axis, reference): (&str, Option<(f64, &str)>),
    legend: &[(usize, String)],
) -> String {
    let mut svg = Svg::new(&title(measure.name), subtitle);
    if curves.is_empty() {
        return svg.finish(LEFT + WIDTH + REFERENCE, 40.0);
    }
    let reference = reference.filter(|(cost, _)| cost.is_finite());
    let plot = Plot::new(measure, curves, reference.map(|reference| reference.0));
    plot.chart.draw_axes(&mut svg, (axis, Unit::Count), (measure.name, measure.text));
    if let Some((cost, name)) = reference {
        plot.draw_reference(&mut svg, cost, name);
    }
    curves.iter().for_each(|(curve, look)| plot.draw_curve(&mut svg, curve, *look));
    finish(svg, legend, REFERENCE)
}

/// One line: evaluations and cost, in the order of evaluations, the cost never rising.
struct Curve {
    name: String,
    /// The improvements, at least one.
    points: Vec<(u64, f64)>,
    /// Evaluations at which the search ended.
    end: u64,
}

impl Curve {
    /// The last improvement.
    fn last(&self) -> (u64, f64) {
        self.points.last().copied().unwrap_or((0, f64::NAN))
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
struct Look {
    colour: usize,
    is_faint: bool,
}

/// A curve that runs at least to `evaluations`; none without finite points.
fn falling(name: String, points: impl Iterator<Item = (u64, f64)>, evaluations: u64) -> Option<Curve> {
    let mut best = f64::INFINITY;
    let points = points.filter(|point| point.1.is_finite()).map(|(evaluations, cost)| {
        best = best.min(cost);
        (evaluations, best)
    });
    let points: Vec<(u64, f64)> = points.collect();
    let end = points.last()?.0.max(evaluations);
    Some(Curve { name, points, end })
}

/// The islands by number.
fn islands(search: &IslandSearch<'_>) -> Vec<Curve> {
    let mut sorted: Vec<&ConvergencePoint> =
        search.points.iter().filter(|point| point.cost.is_finite()).collect();
    sorted.sort_by_key(|point| (point.island, point.evaluations));
    let island = |points: &[&ConvergencePoint]| {
        let name = format!("island {}", points[0].island);
        falling(name, points.iter().map(|point| (point.evaluations, point.cost)), 0)
    };
    sorted.chunk_by(|a, b| a.island == b.island).filter_map(island).collect()
}

/// The first curve that ends lowest.
fn best(curves: &[Curve]) -> usize {
    let cost = |index: usize| curves[index].last().1;
    (0..curves.len()).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}

/// Where an axis of evaluations begins: a tenth of the first count above zero. Earlier points are drawn there.
#[must_use]
pub fn first_evaluations(points: impl Iterator<Item = u64>) -> u64 {
    points.filter(|evaluations| *evaluations > 0).min().map_or(1, |least| (least / 10).max(1))
}

struct Plot {
    measure: Measure,
    chart: Chart,
    first: u64,
}

impl Plot {
    fn new(measure: Measure, curves: &[(Curve, Look)], reference: Option<f64>) -> Self {
        let points = || curves.iter().flat_map(|(curve, _)| &curve.points);
        let first = first_evaluations(points().map(|point| point.0));
        let reference = reference.map(|cost| (first as f64, cost));
        let ends = curves.iter().map(|(curve, _)| (curve.end, curve.last().1));
        let places = points().copied().chain(ends).map(|(x, y)| (x.max(first) as f64, y));
        Self { measure, chart: Chart::around(places.chain(reference), true), first }
    }

    fn draw_reference(&self, svg: &mut Svg, cost: f64, name: &str) {
        let y = self.chart.down(cost);
        let (left, right, across) = (LEFT, LEFT + WIDTH, Number(y));
        let class = baseline(name).map_or("a".to_owned(), |colour| format!("g sk{colour}"));
        svg.add(format_args!(
            "<path d=\"M{left} {across}H{right}\" class=\"{class}\" stroke-dasharray=\"5 4\"/>"
        ));
        svg.text(LEFT + WIDTH + 8.0, y - 3.0, "q n", name);
        svg.text(LEFT + WIDTH + 8.0, y + 10.0, "q n", &self.measure.text(cost));
    }

    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, look: Look) {
        let places = self.places(curve);
        let Some((first, rest)) = places.split_first() else { return };
        let mut path = Path::from(first.0, first.1);
        for place in rest {
            path.across_to(place.0);
            path.down_to(place.1);
        }
        // The best value stays until the search ends.
        path.across_to(self.chart.across(curve.end.max(self.first) as f64));
        let colour = look.colour;
        let faint = if look.is_faint { " style=\"opacity:0.3;stroke-width:1\"" } else { "" };
        let best = self.measure.text(curve.last().1);
        svg.group(&format!("{}: {best}", curve.name), |svg| {
            svg.add(format_args!("<path class=\"g sk{colour}\"{faint} d=\"{path}\"/>"));
            if !look.is_faint && places.len() <= MOST_DOTS {
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
    let mut svg = Svg::new(&title(quality), &subtitle);
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
    finish(svg, &shown.iter().map(name).collect::<Vec<_>>(), MARGIN)
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

    fn of(points: &[ConvergencePoint], evaluations: u64) -> IslandSearch<'_> {
        IslandSearch { name: "annealing", points, evaluations }
    }

    fn palette() -> Palette {
        Palette::new(["tabu", "annealing"].into_iter())
    }

    #[test]
    fn points_are_sorted_and_never_rise() {
        let points = [point(1, 20, 5.0), point(0, 1, 9.0), point(1, 10, 4.0), point(0, 5, f64::NAN)];
        let islands = islands(&of(&points, 0));
        assert_eq!(islands.len(), 2);
        assert_eq!(islands[1].points, [(10, 4.0), (20, 4.0)]);
    }

    #[test]
    fn the_reference_is_named() {
        let points = [point(0, 1, 9.0), point(0, 100, 4.0)];
        let picture = convergence(&of(&points, 0), Some((12.0, "linear")), &palette());
        assert!(picture.contains(">linear</text>") && picture.contains(">12</text>"));
    }

    /// Once a search that started from the optimum was a single dot, and its axis had ticks such as 0.995.
    #[test]
    fn a_curve_of_one_point_runs_to_the_end_of_the_search() {
        let points = [point(0, 1, 9.0), point(1, 1, 9.0)];
        let picture = convergence(&of(&points, 20_000), None, &palette());
        let (left, right) = (Number(LEFT + WIDTH * 0.037), Number(LEFT + WIDTH * 0.963));
        assert!(picture.contains("best 9 after 20 k evaluations in all"), "{picture}");
        assert_eq!(picture.matches(&format!("d=\"M{left} 210H{right}\"")).count(), 2, "{picture}");
        for tick in ["1", "10", "100", "1000", "10 k"] {
            assert_eq!(picture.matches(&format!("class=\"q n m\">{tick}<")).count(), 1, "{tick}: {picture}");
        }
        // The axis of F has one tick: all values are 9.
        assert_eq!(picture.matches("class=\"q n e\">").count(), 2, "{picture}");
        let curve = SearchCurve { name: "annealing".into(), points: vec![(1, 9.0)], evaluations: 20_000 };
        let picture = searches(&[curve], &palette());
        assert_eq!(picture.matches(&format!("H{right}\"")).count(), 1, "{picture}");
    }

    /// Once islands had colours of their own, which were those of other mappers in the next chart, and linear was grey.
    #[test]
    fn searches_and_references_have_the_colours_of_their_mappers() {
        let points = [point(0, 1, 9.0), point(0, 100, 4.0), point(1, 1, 8.0)];
        let picture = convergence(&of(&points, 200), Some((12.0, "linear")), &palette());
        let curves = picture.matches("<path class=\"g sk1\"").count();
        assert!(curves == 2 && !picture.contains("g sk0\""), "{picture}");
        assert!(picture.contains("class=\"g sk4\" stroke-dasharray"), "{picture}");
        assert!(picture.contains(">annealing: island 0 is the best<"), "{picture}");
    }

    #[test]
    fn makespans_are_named_and_may_be_small() {
        let points = [point(0, 1, 0.0025), point(0, 100, 0.002)];
        let picture = makespan_convergence(&of(&points, 0), Some((0.0019, "lower bound")), &palette());
        for part in ["Best makespan over evaluations", ">lower bound<", ">0.0019<", "best 0.002 after"] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        let curve = SearchCurve { name: "list".into(), points: vec![(1, 57.0)], evaluations: 1 };
        assert!(makespan_searches(&[curve], &Palette::default()).contains("list: 57"));
    }

    #[test]
    fn many_points_take_at_most_one_per_pixel() {
        let points: Vec<ConvergencePoint> =
            (0..50_000_u32).map(|index| point(0, u64::from(index) + 1, 1e9 - f64::from(index))).collect();
        assert!(convergence(&of(&points, 0), None, &palette()).len() < 20_000);
    }
}
