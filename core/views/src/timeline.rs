//! Timeline of the cells of a run.

use crate::chart::{Axis, GREY, MOST_COLOURS};
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::svg::{Svg, place, shortened_inside, text_width};

const LEFT: f64 = 8.0;
const TOP: f64 = 54.0;
const WIDTH: f64 = 860.0;
/// Slices that are drawn at most, the longest ones.
const MOST_SLICES: usize = 3000;
/// Lanes that are drawn at most.
const MOST_LANES: usize = 64;

/// Something that ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slice {
    /// Its name.
    pub name: String,
    /// Its group, which determines the colour.
    pub group: String,
    /// Its lane; slices of a lane do not overlap.
    pub lane: usize,
    /// When it began, in seconds.
    pub begin_s: f64,
    /// When it ended, in seconds.
    pub end_s: f64,
    /// Whether it failed.
    pub failed: bool,
}

/// Slices in lanes over time, a colour for each of the groups that took longest.
#[must_use]
pub fn timeline(slices: &[Slice]) -> String {
    let lanes = slices.iter().map(|slice| slice.lane + 1).max().unwrap_or(0);
    let end = slices.iter().map(|slice| slice.end_s).fold(0.0, f64::max);
    let shown = shown(slices);
    let longest = match shown.len() < slices.len() {
        true => format!(" · the longest {} are drawn", count_of(shown.len(), "cell")),
        false => String::new(),
    };
    let (cells, time) = (count_of(slices.len(), "cell"), quantity(end, Unit::Seconds));
    let subtitle = format!("{cells} in {time}, up to {lanes} at once{longest}");
    let mut svg = Svg::new("Timeline", &subtitle);
    let rows = lanes.clamp(1, MOST_LANES);
    let row = if rows > 16 { 12.0 } else { 24.0 };
    let axis = Axis::linear(0.0, if end > 0.0 { end } else { 1.0 });
    let bottom = TOP + row * rows as f64;
    for (tick, text) in axis.labelled_ticks(8, |tick, digits| quantity_of(tick, Unit::Seconds, digits)) {
        let x = LEFT + WIDTH * axis.at(tick);
        svg.line(x, TOP, x, bottom + 5.0, "l");
        svg.text(x, bottom + 19.0, "q n m", &text);
    }
    let groups = groups(slices);
    for slice in shown {
        let colour = groups.iter().position(|(group, _)| *group == slice.group).unwrap_or(GREY).min(GREY);
        draw_slice(&mut svg, &axis, slice, (TOP + row * slice.lane as f64, row), colour);
    }
    let height = draw_names(&mut svg, &groups, bottom + 44.0);
    svg.finish(LEFT + WIDTH + 24.0, height)
}

fn shown(slices: &[Slice]) -> Vec<&Slice> {
    let mut shown: Vec<&Slice> = slices.iter().filter(|slice| slice.lane < MOST_LANES).collect();
    let time = |slice: &Slice| slice.end_s - slice.begin_s;
    shown.sort_by(|a, b| time(b).total_cmp(&time(a)).then_with(|| a.name.cmp(&b.name)));
    shown.truncate(MOST_SLICES);
    shown
}

/// Groups and the seconds of all their slices, the longest first.
fn groups(slices: &[Slice]) -> Vec<(&str, f64)> {
    let mut groups: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    for slice in slices {
        *groups.entry(&slice.group).or_default() += slice.end_s - slice.begin_s;
    }
    let mut groups: Vec<(&str, f64)> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    groups
}

fn draw_slice(svg: &mut Svg, axis: &Axis, slice: &Slice, (y, row): (f64, f64), colour: usize) {
    let x = LEFT + WIDTH * axis.at(slice.begin_s);
    let width = (LEFT + WIDTH * axis.at(slice.end_s) - x).max(0.6);
    let failed = if slice.failed { ", failed" } else { "" };
    let time = quantity(slice.end_s - slice.begin_s, Unit::Seconds);
    svg.open_group("", &format!("{}: {time}{failed}", slice.name));
    let opacity = if slice.failed { 0.25 } else { 0.85 };
    let size = (if width > 3.0 { width - 1.0 } else { width }, row - 2.0);
    let place = place(x, y + 1.0, size);
    svg.add(format_args!("<rect {place} class=\"fk{colour}\" fill-opacity=\"{opacity}\"/>"));
    if slice.failed {
        svg.outline(x, y + 1.0, (width, row - 2.0), &format!("g sk{colour}"));
    }
    svg.close_group();
}

/// Names of the groups in as many lines as they need. Gives where they end.
fn draw_names(svg: &mut Svg, groups: &[(&str, f64)], top: f64) -> f64 {
    let (mut x, mut y) = (LEFT, top);
    let coloured = groups.iter().take(MOST_COLOURS).map(|(group, seconds)| (*group, *seconds));
    let others: f64 = groups.iter().skip(MOST_COLOURS).map(|(_, seconds)| seconds).sum();
    let others = (groups.len() > MOST_COLOURS).then_some(("others", others));
    for (colour, (group, seconds)) in coloured.chain(others).enumerate() {
        let text = format!("{}, {}", shortened_inside(group, 240.0), quantity(seconds, Unit::Seconds));
        let width = text_width(&text) + 40.0;
        if x + width > LEFT + WIDTH {
            (x, y) = (LEFT, y + 18.0);
        }
        svg.rectangle(x, y - 9.0, (14.0, 10.0), 0.0, &format!("fk{}", colour.min(GREY)));
        svg.text(x + 20.0, y, "n", &text);
        x += width;
    }
    y + 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_has_its_place_and_large_runs_stay_small() {
        let slice = |index: usize| Slice {
            name: format!("a[seed={index}]"),
            group: "a".into(),
            lane: index % 3,
            begin_s: (index / 3) as f64,
            end_s: (index / 3) as f64 + 1.0,
            failed: index == 4,
        };
        let few: Vec<Slice> = (0..6).map(slice).collect();
        let picture = timeline(&few);
        assert!(picture.contains("6 cells in 2 s, up to 3 at once"), "{picture}");
        assert!(picture.contains("a[seed=4]: 1 s, failed"));
        let many: Vec<Slice> = (0..100_000).map(slice).collect();
        let picture = timeline(&many);
        assert!(picture.contains("the longest 3,000 cells are drawn"));
        assert!(picture.len() < 800_000, "{} bytes", picture.len());
    }
}
