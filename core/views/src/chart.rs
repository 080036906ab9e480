//! A plane with two axes, and names of what is drawn on it.

use crate::human::{Unit, quantity};
use crate::scale::Axis;
use crate::svg::{Path, Svg, shortened_inside, text_width};
use crate::theme::KINDS;

const LEFT: f64 = 68.0;
const TOP: f64 = 70.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 280.0;
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
    pub(crate) fn draw_axes(&self, svg: &mut Svg, (x_name, x_unit): (&str, Unit), y_name: &str) {
        for tick in self.y.ticks(5) {
            let y = self.down(tick);
            svg.line(LEFT, y, LEFT + WIDTH, y, "l");
            svg.text(LEFT - 8.0, y + 4.0, "q n e", &quantity(tick, Unit::Count));
        }
        for tick in self.x.ticks(7) {
            let x = self.across(tick);
            svg.line(x, TOP + HEIGHT, x, TOP + HEIGHT + 5.0, "a");
            svg.text(x, TOP + HEIGHT + 18.0, "q n m", &quantity(tick, x_unit));
        }
        svg.line(LEFT, TOP + HEIGHT, LEFT + WIDTH, TOP + HEIGHT, "a");
        svg.text(LEFT + WIDTH, TOP + HEIGHT + 36.0, "q n e", &format!("{x_name} →"));
        svg.text(LEFT, TOP - 12.0, "q n", &format!("↑ {y_name}"));
    }

    /// The right end of the plane.
    pub(crate) fn right() -> f64 {
        LEFT + WIDTH
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
        svg.add(format_args!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"5\" class=\"fk{colour}\"/>",
            LEFT + 5.0,
            y - 4.0
        ));
        svg.text(LEFT + 18.0, y, "n", &shortened_inside(name, WIDTH - 20.0));
    }
    svg.finish(LEFT + WIDTH + 16.0, top + LINE * names.len() as f64)
}

/// Draws a name beside a point, on the side that has room for it.
pub(crate) fn label(svg: &mut Svg, (x, y): (f64, f64), name: &str) {
    let is_left = x + 10.0 + text_width(name) > Chart::right();
    let (x, class) = if is_left { (x - 9.0, "n e w") } else { (x + 9.0, "n w") };
    svg.text(x, y - 7.0, class, name);
}
