//! A plot with two axes and a legend.

use crate::human::{MOST_DIGITS, Unit, quantity_of};
use crate::svg::{KINDS, Path, Svg, shortened_inside, text_width};

pub(crate) const LEFT: f64 = 68.0;
pub(crate) const TOP: f64 = 70.0;
pub(crate) const WIDTH: f64 = 560.0;
pub(crate) const HEIGHT: f64 = 280.0;
/// Room on the right of a plot without labels there.
pub(crate) const MARGIN: f64 = 16.0;
const LINE: f64 = 18.0;
/// Ratio of the ends of an axis above which it is logarithmic.
const FACTOR: f64 = 20.0;

/// Number of names with their own colour.
pub(crate) const MOST_COLOURS: usize = KINDS - 1;
/// The colour of all other names.
pub(crate) const GREY: usize = KINDS - 1;

/// A plane.
pub(crate) struct Chart {
    x: Axis,
    y: Axis,
}

impl Chart {
    /// A plane that shows these points.
    pub(crate) fn around(points: impl Iterator<Item = (f64, f64)> + Clone, is_x_logarithmic: bool) -> Self {
        let x = axis(points.clone().map(|point| point.0), is_x_logarithmic);
        Self { x, y: axis(points.map(|point| point.1), false) }
    }

    pub(crate) fn across(&self, x: f64) -> f64 {
        LEFT + WIDTH * self.x.at(x)
    }

    pub(crate) fn down(&self, y: f64) -> f64 {
        TOP + HEIGHT * (1.0 - self.y.at(y))
    }

    /// Draws both axes with their names.
    pub(crate) fn draw_axes(
        &self,
        svg: &mut Svg,
        (x_name, x_unit): (&str, Unit),
        (y_name, y_text): (&str, fn(f64, usize) -> String),
    ) {
        self.y.draw_scale(svg, 5, (LEFT, WIDTH), (TOP + HEIGHT, HEIGHT), y_text);
        for (tick, text) in self.x.labelled_ticks(7, |value, digits| quantity_of(value, x_unit, digits)) {
            let x = self.across(tick);
            svg.line(x, TOP + HEIGHT, x, TOP + HEIGHT + 5.0, "a");
            svg.text(x, TOP + HEIGHT + 18.0, "q n m", &text);
        }
        svg.line(LEFT, TOP + HEIGHT, LEFT + WIDTH, TOP + HEIGHT, "a");
        svg.text(LEFT + WIDTH, TOP + HEIGHT + 36.0, "q n e", &format!("{x_name} →"));
        svg.text(LEFT, TOP - 12.0, "q n", &format!("↑ {y_name}"));
    }

    /// Straight lines from point to point.
    pub(crate) fn lines(&self, points: impl Iterator<Item = (f64, f64)>) -> Path {
        let mut points = points.map(|(x, y)| (self.across(x), self.down(y)));
        let Some(first) = points.next() else { return Path::default() };
        let mut path = Path::from(first.0, first.1);
        points.for_each(|(x, y)| path.line_to(x, y));
        path
    }

    /// A stair that falls from point to point.
    pub(crate) fn stair(&self, points: &[(f64, f64)]) -> Path {
        let Some(first) = points.first() else { return Path::default() };
        let mut path = Path::from(self.across(first.0), self.down(first.1));
        for point in &points[1..] {
            path.across_to(self.across(point.0));
            path.down_to(self.down(point.1));
        }
        path
    }
}

/// An axis that shows these values.
pub(crate) fn axis(values: impl Iterator<Item = f64> + Clone, is_logarithmic: bool) -> Axis {
    let values = values.filter(|value| value.is_finite());
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() {
        return Axis::linear(0.0, 1.0);
    }
    Axis { only: Some(low).filter(|_| low >= high), ..axis_between(low, high, is_logarithmic) }
}

fn axis_between(low: f64, high: f64, is_logarithmic: bool) -> Axis {
    if low > 0.0 && (is_logarithmic || high > FACTOR * low) {
        let margin = libm::pow(high / low, 0.04).max(1.01);
        return Axis::logarithmic(low / margin, high * margin);
    }
    let margin = if low < high { (high - low) * 0.06 } else { low.abs() * 0.1 };
    // No negative axis for values that cannot be negative.
    let floor = if low < 0.0 { f64::NEG_INFINITY } else { 0.0 };
    let top = if margin > 0.0 { high + margin } else { 1.0 };
    Axis::linear((low - margin).max(floor), top)
}

/// Draws the legend below the plot and returns the whole picture, with some room on the right of the plot.
pub(crate) fn finish(mut svg: Svg, names: &[(usize, String)], right: f64) -> String {
    let top = TOP + HEIGHT + 62.0;
    for (line, (colour, name)) in names.iter().enumerate() {
        let y = top + LINE * line as f64;
        svg.disc(LEFT + 5.0, y - 4.0, 5.0, &format!("fk{colour}"), 1.0);
        svg.text(LEFT + 18.0, y, "n", &shortened_inside(name, WIDTH - 20.0));
    }
    svg.finish(LEFT + WIDTH + right, top + LINE * names.len() as f64)
}

/// Draws a name next to a point, on the side that has room for it.
pub(crate) fn label(svg: &mut Svg, (x, y): (f64, f64), name: &str) {
    let is_left = x + 10.0 + text_width(name) > LEFT + WIDTH;
    let (x, class) = if is_left { (x - 9.0, "n e w") } else { (x + 9.0, "n w") };
    svg.text(x, y - 7.0, class, name);
}

/// A linear or logarithmic axis from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// The value that all points share, which is then the only tick: round values around it would mean nothing.
    only: Option<f64>,
}

impl Axis {
    /// Linear. An axis without extent is widened.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { low, high, logarithmic: false, only: None }
    }

    /// Logarithmic; both ends are positive. An axis without extent is widened.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let (low, high) = if low < high { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { low, high, logarithmic: true, only: None }
    }

    /// The values at its ends.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Position of a value: 0 at the low end, 1 at the high end, clamped.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let low = libm::log10(self.low);
            (libm::log10(value.max(self.low)) - low) / (libm::log10(self.high) - low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Draws grid lines at round values, with labels on the left of the plane: an upright axis from `floor` up.
    pub(crate) fn draw_scale(
        &self,
        svg: &mut Svg,
        target: usize,
        (left, width): (f64, f64),
        (floor, height): (f64, f64),
        text: impl Fn(f64, usize) -> String,
    ) {
        for (tick, text) in self.labelled_ticks(target, text) {
            let y = floor - height * self.at(tick);
            svg.line(left, y, left + width, y, "l");
            svg.text(left - 8.0, y + 4.0, "q n e", &text);
        }
    }

    /// About `target` round values with labels that differ.
    pub(crate) fn labelled_ticks(
        &self,
        target: usize,
        text: impl Fn(f64, usize) -> String,
    ) -> Vec<(f64, String)> {
        labelled(&self.ticks(target), text)
    }

    /// About `target` round values on the axis in rising order.
    pub(crate) fn ticks(&self, target: usize) -> Vec<f64> {
        if let Some(only) = self.only {
            return vec![only];
        }
        let inside = |tick: &f64| *tick >= self.low * (1.0 - 1e-9) && *tick <= self.high * (1.0 + 1e-9);
        if self.logarithmic {
            let decades: Vec<f64> = self.decades(&[1.0]).into_iter().filter(inside).collect();
            let thinned: Vec<f64> =
                decades.iter().copied().step_by(decades.len().div_ceil(target.max(1)).max(1)).collect();
            if thinned.len() > 2 {
                return thinned;
            }
            let finer: Vec<f64> = self.decades(&[1.0, 2.0, 5.0]).into_iter().filter(inside).collect();
            if finer.len() > 1 {
                return finer;
            }
        }
        linear_ticks(self.low, self.high, target)
    }

    fn decades(&self, factors: &[f64]) -> Vec<f64> {
        let first = libm::floor(libm::log10(self.low)) as i32;
        let last = libm::ceil(libm::log10(self.high)) as i32;
        (first..=last)
            .flat_map(|decade| factors.iter().map(move |factor| factor * libm::exp10(f64::from(decade))))
            .collect()
    }
}

/// Rising values with labels that differ: `text` writes a value with a number of significant digits, of which labels have three, or as
/// many more as they need.
pub(crate) fn labelled(ticks: &[f64], text: impl Fn(f64, usize) -> String) -> Vec<(f64, String)> {
    let labelled = |digits| ticks.iter().map(|&tick| (tick, text(tick, digits))).collect::<Vec<_>>();
    let differ = |labelled: &Vec<(f64, String)>| labelled.windows(2).all(|pair| pair[0].1 != pair[1].1);
    let mut labels = (3..=MOST_DIGITS).map(labelled).find(differ).unwrap_or_else(|| labelled(MOST_DIGITS));
    labels.dedup_by(|a, b| a.1 == b.1);
    labels
}

fn linear_ticks(low: f64, high: f64, target: usize) -> Vec<f64> {
    let step = nice_step((high - low) / target.max(1) as f64);
    let first = libm::ceil(low / step - 1e-9);
    let last = libm::floor(high / step + 1e-9);
    let count = (last - first).clamp(0.0, 1000.0) as usize;
    // Adding zero makes zero of minus zero.
    (0..=count).map(|index| (first + index as f64) * step + 0.0).collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
pub(crate) fn nice_step(step: f64) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let power = libm::exp10(libm::floor(libm::log10(step)));
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(Axis::linear(0.0, 100.0).ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Axis::logarithmic(5.0, 20_000.0).ticks(6), [10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(Axis::logarithmic(0.4, 6.0).ticks(6), [0.5, 1.0, 2.0, 5.0]);
        assert!((Axis::linear(3.0, 3.0).at(3.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn equal_values_are_the_only_tick_of_an_axis_around_them_and_zeros_of_one_above() {
        let zeros = axis([0.0, 0.0].into_iter(), false);
        assert_eq!(zeros, Axis { only: Some(0.0), ..Axis::linear(0.0, 1.0) });
        // Once the ticks of an axis of evaluations were 0.99, 0.995, 1, 1.005 and 1.01.
        for is_logarithmic in [false, true] {
            assert_eq!(axis([672.0, 672.0].into_iter(), is_logarithmic).ticks(5), [672.0]);
        }
        assert_eq!(axis([-5.0, 5.0].into_iter(), false).ticks(4), [-5.0, 0.0, 5.0]);
    }

    #[test]
    fn labels_have_as_many_digits_as_they_need() {
        let labels = |low, high| {
            let ticks = Axis::linear(low, high)
                .labelled_ticks(5, |value, digits| quantity_of(value, Unit::Count, digits));
            ticks.into_iter().map(|tick| tick.1).collect::<Vec<_>>()
        };
        assert_eq!(labels(36.40e6, 36.44e6), ["36.4 M", "36.41 M", "36.42 M", "36.43 M", "36.44 M"]);
        assert_eq!(labels(0.0, 5e9), ["0", "1 G", "2 G", "3 G", "4 G", "5 G"]);
    }

    proptest! {
        #[test]
        fn axes_of_values_have_different_labels_and_no_sign_that_the_values_lack(
            size in -3_i32..16,
            values in prop::collection::vec((0_u32..1000, 0_u32..3), 1..20),
            is_logarithmic in any::<bool>(),
        ) {
            // Values of one size, and values that hardly differ.
            let value = |&(digits, kind): &(u32, u32)| {
                let near = if kind == 0 { f64::from(digits) } else { 1.0 + f64::from(digits) * 1e-6 };
                near * libm::exp10(f64::from(size))
            };
            let values: Vec<f64> = values.iter().map(value).collect();
            let axis = axis(values.iter().copied(), is_logarithmic);
            prop_assert!(axis.low >= 0.0 && axis.low < axis.high);
            prop_assert!(values.iter().all(|value| axis.low <= *value && *value <= axis.high));
            let labelled = axis.labelled_ticks(5, |value, digits| quantity_of(value, Unit::Count, digits));
            prop_assert!(!labelled.is_empty());
            let (low, high) = (axis.low * (1.0 - 1e-8), axis.high * (1.0 + 1e-8));
            prop_assert!(labelled.iter().all(|tick| low <= tick.0 && tick.0 <= high), "{labelled:?} {axis:?}");
            let mut labels: Vec<&String> = labelled.iter().map(|tick| &tick.1).collect();
            prop_assert!(labels.iter().all(|label| !label.starts_with('-')), "{labelled:?}");
            labels.sort();
            labels.dedup();
            prop_assert_eq!(labels.len(), labelled.len(), "{:?}", labelled);
        }

        #[test]
        fn places_and_ticks_stay_on_the_axis(low in 1e-9_f64..1e9, factor in 1.0_f64..1e6, value in -1e12_f64..1e12) {
            for axis in [Axis::linear(low, low * factor), Axis::logarithmic(low, low * factor)] {
                prop_assert!((0.0..=1.0).contains(&axis.at(value)));
                let ticks = axis.ticks(6);
                prop_assert!(ticks.len() < 40, "{} ticks", ticks.len());
                prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
