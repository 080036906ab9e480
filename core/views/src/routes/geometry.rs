//! Points, boxes and curves.

use crate::svg::Number;

/// A place in a picture, or a way between two.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Point {
    pub(super) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor)
    }

    pub(super) fn length(self) -> f64 {
        libm::hypot(self.x, self.y)
    }

    /// The same direction with length one; to the right if there is no direction.
    pub(super) fn unit(self) -> Self {
        let length = self.length();
        if length > 1e-9 { self.times(1.0 / length) } else { Self::new(1.0, 0.0) }
    }

    /// What is on the right of one who goes this way.
    pub(super) fn right(self) -> Self {
        Self::new(-self.y, self.x)
    }

    pub(super) fn angle(self) -> f64 {
        libm::atan2(self.y, self.x)
    }

    pub(super) fn at_angle(angle: f64) -> Self {
        Self::new(libm::cos(angle), libm::sin(angle))
    }
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) middle: Point,
    /// Half of its width and height.
    pub(super) half: Point,
}

impl Area {
    pub(super) fn new(middle: Point, width: f64, height: f64) -> Self {
        Self { middle, half: Point::new(width / 2.0, height / 2.0) }
    }

    pub(super) fn left(&self) -> f64 {
        self.middle.x - self.half.x
    }

    pub(super) fn right(&self) -> f64 {
        self.middle.x + self.half.x
    }

    pub(super) fn top(&self) -> f64 {
        self.middle.y - self.half.y
    }

    pub(super) fn bottom(&self) -> f64 {
        self.middle.y + self.half.y
    }

    pub(super) fn moved(self, by: Point) -> Self {
        Self { middle: self.middle.plus(by), ..self }
    }

    /// Whether less than `room` is between two of them.
    pub(super) fn is_near(&self, other: &Self, room: f64) -> bool {
        let far = self.middle.minus(other.middle);
        far.x.abs() < self.half.x + other.half.x + room && far.y.abs() < self.half.y + other.half.y + room
    }

    pub(super) fn holds(&self, point: Point, room: f64) -> bool {
        let far = point.minus(self.middle);
        far.x.abs() < self.half.x + room && far.y.abs() < self.half.y + room
    }

    /// Whether a straight line comes nearer than `room`.
    pub(super) fn is_crossed(&self, from: Point, to: Point, room: f64) -> bool {
        let way = to.minus(from);
        let (mut first, mut last) = (0.0, 1.0);
        for (start, step, low, high) in [
            (from.x, way.x, self.left() - room, self.right() + room),
            (from.y, way.y, self.top() - room, self.bottom() + room),
        ] {
            if step.abs() < 1e-9 {
                if start <= low || start >= high {
                    return false;
                }
                continue;
            }
            let (a, b) = ((low - start) / step, (high - start) / step);
            first = f64::max(first, a.min(b));
            last = f64::min(last, a.max(b));
        }
        first < last
    }
}

/// A line that is bent towards a point, by a parabola.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub(super) from: Point,
    pub(super) towards: Point,
    pub(super) to: Point,
}

impl Curve {
    pub(super) fn straight(from: Point, to: Point) -> Self {
        Self { from, towards: from.plus(to).times(0.5), to }
    }

    /// A line whose middle is so far to the right of the straight one.
    pub(super) fn bent(from: Point, to: Point, by: f64) -> Self {
        let straight = Self::straight(from, to);
        let aside = to.minus(from).unit().right().times(2.0 * by);
        Self { towards: straight.towards.plus(aside), ..straight }
    }

    pub(super) fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }

    pub(super) fn at(&self, part: f64) -> Point {
        self.blossom(part, part)
    }

    fn blossom(&self, a: f64, b: f64) -> Point {
        let middle = (1.0 - a) * b + a * (1.0 - b);
        self.from.times((1.0 - a) * (1.0 - b)).plus(self.towards.times(middle)).plus(self.to.times(a * b))
    }

    /// The direction at a part of the way, of length one.
    pub(super) fn direction(&self, part: f64) -> Point {
        let (first, second) = (self.towards.minus(self.from), self.to.minus(self.towards));
        first.times(1.0 - part).plus(second.times(part)).unit()
    }

    /// What lies between two parts of the way.
    pub(super) fn between(&self, first: f64, last: f64) -> Self {
        Self { from: self.at(first), towards: self.blossom(first, last), to: self.at(last) }
    }

    /// The same so far to the right.
    pub(super) fn aside(&self, by: f64) -> Self {
        let moved = |point: Point, part: f64| point.plus(self.direction(part).right().times(by));
        Self { from: moved(self.from, 0.0), towards: moved(self.towards, 0.5), to: moved(self.to, 1.0) }
    }

    pub(super) fn length(&self) -> f64 {
        self.to.minus(self.from).length()
    }

    /// The part outside of two boxes, one at each end.
    pub(super) fn outside(&self, first: Option<&Area>, last: Option<&Area>) -> Self {
        const STEPS: usize = 64;
        let inside = |area: Option<&Area>, part: f64| area.is_some_and(|area| area.holds(self.at(part), 1.0));
        let edge = |area: Option<&Area>, of: &dyn Fn(f64) -> f64| {
            let steps = (0..=STEPS).map(|step| step as f64 / STEPS as f64);
            let Some(beyond) = steps.into_iter().find(|&step| !inside(area, of(step))) else { return 0.0 };
            let (mut low, mut high) = ((beyond - 1.0 / STEPS as f64).max(0.0), beyond);
            for _ in 0..10 {
                let middle = f64::midpoint(low, high);
                if inside(area, of(middle)) { low = middle } else { high = middle }
            }
            high
        };
        let (begin, end) = (edge(first, &|part| part), 1.0 - edge(last, &|part| 1.0 - part));
        if begin < end { self.between(begin, end) } else { *self }
    }

    fn is_straight(&self) -> bool {
        self.towards.minus(self.from.plus(self.to).times(0.5)).length() < 0.1
    }

    /// Its course as path data.
    pub(super) fn markup(&self) -> String {
        let [x1, y1, x2, y2] = [self.from.x, self.from.y, self.to.x, self.to.y].map(Number);
        match self.is_straight() {
            true => format!("M{x1} {y1}L{x2} {y2}"),
            false => {
                let [x, y] = [self.towards.x, self.towards.y].map(Number);
                format!("M{x1} {y1}Q{x} {y} {x2} {y2}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_boxes() {
        let area = |x| Area::new(Point::new(x, 0.0), 20.0, 10.0);
        let line = Curve::straight(Point::new(0.0, 0.0), Point::new(100.0, 0.0));
        let between = line.outside(Some(&area(0.0)), Some(&area(100.0)));
        assert!((between.from.x - 11.0).abs() < 0.1 && (between.to.x - 89.0).abs() < 0.1, "{between:?}");
        assert!(area(50.0).is_crossed(line.from, line.to, 0.0));
        assert!(!area(50.0).is_crossed(line.from, Point::new(30.0, 0.0), 0.0));
        let aside = line.aside(3.0);
        assert!((aside.from.y - 3.0).abs() < 1e-9 && (aside.towards.y - 3.0).abs() < 1e-9);
    }
}
