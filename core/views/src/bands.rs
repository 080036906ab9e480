//! How searches went: the middle of many runs, and how far they were apart.

use crate::chart::{Chart, MOST_COLOURS, finish};
use crate::human::{Unit, count_of, quantity};
use crate::svg::Svg;

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
