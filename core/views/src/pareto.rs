//! Quality of searches against what they cost.

use crate::chart::{Chart, GREY, MARGIN, finish, label};
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::palette::Palette;
use crate::svg::{Svg, text_width};

/// Points that are drawn at most.
const MOST_POINTS: usize = 4000;

/// The runs of one mapper with the same parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cloud {
    /// Its name.
    pub name: String,
    /// What each run cost, and how good it was.
    pub points: Vec<(f64, f64)>,
    /// Median of what they cost, and of how good they were.
    pub median: (f64, f64),
    /// Whether no other one has medians that are both smaller.
    pub is_on_front: bool,
}

/// Quality against cost, less is better of both: every run as a dot, the medians of each search as a larger one, and the Pareto front
/// of the medians.
#[must_use]
pub fn pareto(clouds: &[Cloud], quality: &str, cost: &str, palette: &Palette) -> String {
    let runs: usize = clouds.iter().map(|cloud| cloud.points.len()).sum();
    let front = clouds.iter().filter(|cloud| cloud.is_on_front).count();
    let subtitle =
        format!("{} · {front} of {} on the front · less is better", count_of(runs, "run"), clouds.len());
    let mut svg = Svg::new(&format!("{quality} against {cost}"), &subtitle);
    let all = clouds.iter().flat_map(|cloud| cloud.points.iter().copied());
    let chart = Chart::around(all, false);
    let unit = if cost == "seconds" { Unit::Seconds } else { Unit::Count };
    chart.draw_axes(
        &mut svg,
        (cost, unit),
        (quality, |value, digits| quantity_of(value, Unit::Count, digits)),
    );
    draw_front(&mut svg, &chart, clouds);
    let colours: Vec<usize> = clouds.iter().map(|cloud| palette.of(&cloud.name)).collect();
    let step = runs.div_ceil(MOST_POINTS).max(1);
    for (cloud, &colour) in clouds.iter().zip(&colours) {
        for &(x, y) in cloud.points.iter().step_by(step) {
            svg.disc(chart.across(x), chart.down(y), 2.5, &format!("fk{colour}"), 0.4);
        }
    }
    for (cloud, &colour) in clouds.iter().zip(&colours) {
        draw_median(&mut svg, &chart, cloud, (colour, unit));
    }
    draw_front_labels(&mut svg, &chart, clouds);
    finish(svg, &names(clouds, &colours), MARGIN)
}

fn names(clouds: &[Cloud], colours: &[usize]) -> Vec<(usize, String)> {
    let medians = |cloud: &Cloud| {
        let front = if cloud.is_on_front { ", on the front" } else { "" };
        format!("{}: median {}{front}", cloud.name, quantity(cloud.median.1, Unit::Count))
    };
    let own = clouds.iter().zip(colours).filter(|(_, colour)| **colour != GREY);
    let mut names: Vec<(usize, String)> = own.map(|(cloud, &colour)| (colour, medians(cloud))).collect();
    names.sort();
    match clouds.len() - names.len() {
        0 => {}
        1 => names.push((GREY, "1 other".to_owned())),
        others => names.push((GREY, format!("{others} others"))),
    }
    names
}

/// The Pareto front as a stair.
fn draw_front(svg: &mut Svg, chart: &Chart, clouds: &[Cloud]) {
    let mut front: Vec<(f64, f64)> =
        clouds.iter().filter(|cloud| cloud.is_on_front).map(|cloud| cloud.median).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let path = chart.stair(&front);
    svg.add(format_args!("<path d=\"{path}\" class=\"a\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>"));
}

fn draw_median(svg: &mut Svg, chart: &Chart, cloud: &Cloud, (colour, unit): (usize, Unit)) {
    let (cost, quality) = cloud.median;
    let (x, y) = (chart.across(cost), chart.down(quality));
    let (quality, cost) = (quantity(quality, Unit::Count), quantity(cost, unit));
    svg.group(&format!("{}: {quality} in {cost}", cloud.name), |svg| {
        svg.disc(x, y, 5.0, &format!("fk{colour}"), 1.0);
    });
}

/// Names of searches on the front, unless they would overlap another name. The legend has all of them.
fn draw_front_labels(svg: &mut Svg, chart: &Chart, clouds: &[Cloud]) {
    const HEIGHT: f64 = 14.0;
    let mut labelled: Vec<(f64, f64, f64)> = Vec::new();
    for cloud in clouds.iter().filter(|cloud| cloud.is_on_front) {
        let (x, y) = (chart.across(cloud.median.0), chart.down(cloud.median.1));
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

    /// Once the tooltip of a median was `a: 123456789.125 in 0.0123456789`.
    #[test]
    fn tooltips_have_three_digits_and_a_unit() {
        let median = (0.012_345_678_9, 123_456_789.125);
        let cloud = Cloud { name: "a".into(), points: vec![median], median, is_on_front: true };
        let picture = pareto(&[cloud], "F", "seconds", &Palette::new(["a"].into_iter()));
        assert!(picture.contains("<title>a: 123 M in 12.3 ms</title>"), "{picture}");
    }

    #[test]
    fn the_front_is_named_and_many_runs_stay_small() {
        let cloud = |index: u32| {
            let (cost, quality) = (f64::from(index) + 1.0, 100.0 / (f64::from(index) + 1.0));
            Cloud {
                name: format!("way {index}"),
                points: vec![(cost, quality); 1000],
                median: (cost, quality),
                is_on_front: index < 3,
            }
        };
        let clouds: Vec<Cloud> = (0..100).map(cloud).collect();
        let picture =
            pareto(&clouds, "F", "seconds", &Palette::new(clouds.iter().map(|cloud| cloud.name.as_str())));
        assert!(
            picture.contains("3 of 100 on the front") && picture.contains("way 2: median 33.3, on the front")
        );
        assert!(picture.contains(">94 others<"), "{picture}");
        assert!(picture.len() < 700_000, "{} bytes", picture.len());
    }
}
