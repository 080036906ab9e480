//! A plane with two axes, and names of what is drawn on it.

use crate::human::{Unit, quantity};
use crate::svg::{KINDS, Path, Svg, shortened_inside, text_width};

pub(crate) const LEFT: f64 = 68.0;
pub(crate) const TOP: f64 = 70.0;
pub(crate) const WIDTH: f64 = 560.0;
pub(crate) const HEIGHT: f64 = 280.0;
const LINE: f64 = 18.0;
/// An axis has equal factors where its ends are further apart.
const FACTOR: f64 = 20.0;

/// Number of names that have a colour of their own.
pub(crate) const MOST_COLOURS: usize = KINDS - 1;
/// The colour of what has none of its own.
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
        (y_name, y_text): (&str, fn(f64) -> String),
    ) {
        self.y.draw_scale(svg, 5, (LEFT, WIDTH), (TOP + HEIGHT, HEIGHT), y_text);
        for tick in self.x.ticks(7) {
            let x = self.across(tick);
            svg.line(x, TOP + HEIGHT, x, TOP + HEIGHT + 5.0, "a");
            svg.text(x, TOP + HEIGHT + 18.0, "q n m", &quantity(tick, x_unit));
        }
        svg.line(LEFT, TOP + HEIGHT, LEFT + WIDTH, TOP + HEIGHT, "a");
        svg.text(LEFT + WIDTH, TOP + HEIGHT + 36.0, "q n e", &format!("{x_name} →"));
        svg.text(LEFT, TOP - 12.0, "q n", &format!("↑ {y_name}"));
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

fn axis(values: impl Iterator<Item = f64> + Clone, is_logarithmic: bool) -> Axis {
    let values = values.filter(|value| value.is_finite());
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() {
        return Axis::linear(0.0, 1.0);
    }
    if low > 0.0 && (is_logarithmic || high > FACTOR * low) {
        let margin = libm::pow(high / low, 0.04).max(1.01);
        return Axis::logarithmic(low / margin, high * margin);
    }
    let margin = (high - low) * 0.06;
    Axis::linear(low - margin, high + margin)
}

/// Draws names below each other under the plane, each with a sign of its colour, and gives the whole picture.
pub(crate) fn finish(mut svg: Svg, names: &[(usize, String)]) -> String {
    let top = TOP + HEIGHT + 62.0;
    for (line, (colour, name)) in names.iter().enumerate() {
        let y = top + LINE * line as f64;
        svg.disc(LEFT + 5.0, y - 4.0, 5.0, &format!("fk{colour}"), 1.0);
        svg.text(LEFT + 18.0, y, "n", &shortened_inside(name, WIDTH - 20.0));
    }
    svg.finish(LEFT + WIDTH + 16.0, top + LINE * names.len() as f64)
}

/// Draws a name beside a point, on the side that has room for it.
pub(crate) fn label(svg: &mut Svg, (x, y): (f64, f64), name: &str) {
    let is_left = x + 10.0 + text_width(name) > LEFT + WIDTH;
    let (x, class) = if is_left { (x - 9.0, "n e w") } else { (x + 9.0, "n w") };
    svg.text(x, y - 7.0, class, name);
}

/// An axis from `low` to `high`, equal or logarithmic steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// Equal steps. An axis without extent is widened.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { low, high, logarithmic: false }
    }

    /// Equal factors; both ends are positive. An axis without extent is widened.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let (low, high) = if low < high { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { low, high, logarithmic: true }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end, kept in between.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let low = libm::log10(self.low);
            (libm::log10(value.max(self.low)) - low) / (libm::log10(self.high) - low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Draws lines across a plane at round values, with what they are on the left of it: an upright axis from `floor` up.
    pub(crate) fn draw_scale(
        &self,
        svg: &mut Svg,
        target: usize,
        (left, width): (f64, f64),
        (floor, height): (f64, f64),
        text: impl Fn(f64) -> String,
    ) {
        for tick in self.ticks(target) {
            let y = floor - height * self.at(tick);
            svg.line(left, y, left + width, y, "l");
            svg.text(left - 8.0, y + 4.0, "q n e", &text(tick));
        }
    }

    /// About `target` round values on the axis in rising order.
    pub(crate) fn ticks(&self, target: usize) -> Vec<f64> {
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

fn linear_ticks(low: f64, high: f64, target: usize) -> Vec<f64> {
    let step = nice_step((high - low) / target.max(1) as f64);
    let first = libm::ceil(low / step - 1e-9);
    let last = libm::floor(high / step + 1e-9);
    let count = (last - first).clamp(0.0, 1000.0) as usize;
    (0..=count).map(|index| (first + index as f64) * step).collect()
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

    proptest! {
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
