//! Run times of mappings against their metrics and predictions, a panel for each.

use hopmap_model::{MEASURED, MEASURED_HIGH, MEASURED_LOW, Metrics, PREDICTED, PlacementMetrics};

use crate::chart::{Axis, axis};
use crate::comparison::unit_of;
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::svg::Svg;

const LEFT: f64 = 76.0;
const TOP: f64 = 84.0;
/// A panel, and the distance from one to the next.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 150.0;
const ACROSS: f64 = 246.0;
const DOWN: f64 = 226.0;
const PER_ROW: usize = 3;
/// Dots of a panel.
const MOST_DOTS: usize = 1000;
/// The colours of predictions and of metrics.
const COLOURS: [usize; 2] = [1, 0];

/// Measured seconds of mappings, upwards, against every metric, with the shortest and the longest of the runs or the interval of their
/// median as a line. The panel of the predictions has the line on which both are equal.
#[must_use]
pub fn correlation(metrics: &Metrics) -> String {
    let rows: Vec<&PlacementMetrics> =
        metrics.placements.iter().filter(|row| row.values.contains_key(MEASURED)).collect();
    let names = names(&rows);
    let mut svg = Svg::new(
        "Run time against metrics",
        &format!(
            "{} · τ: Kendall's, of pairs that differ by more than the noise",
            count_of(rows.len(), "mapping")
        ),
    );
    let seconds =
        |row: &&PlacementMetrics| [MEASURED, MEASURED_LOW, MEASURED_HIGH].map(|name| value(row, name));
    let upright = axis(rows.iter().flat_map(seconds), false);
    let step = rows.len().div_ceil(MOST_DOTS).max(1);
    for (place, name) in names.iter().enumerate() {
        let (column, row) = (place % PER_ROW, place / PER_ROW);
        let (left, top) = (LEFT + ACROSS * column as f64, TOP + DOWN * row as f64);
        let level = axis(rows.iter().map(|row| value(row, name)), false);
        let panel = Panel { left, top, level, upright };
        panel.draw_frame(&mut svg, name, tau(metrics, name).as_deref());
        if *name == PREDICTED {
            panel.draw_equality(&mut svg);
        }
        rows.iter().step_by(step).for_each(|row| panel.draw_dot(&mut svg, row, name));
    }
    let (columns, lines) = (names.len().clamp(1, PER_ROW), names.len().div_ceil(PER_ROW));
    svg.finish(LEFT + ACROSS * columns as f64 - 30.0, TOP + DOWN * lines as f64 - 16.0)
}

/// The values that all mappings have, predictions first.
fn names<'a>(rows: &[&'a PlacementMetrics]) -> Vec<&'a str> {
    let Some(first) = rows.first() else { return Vec::new() };
    let is_metric = |name: &&str| ![MEASURED, MEASURED_LOW, MEASURED_HIGH].contains(name);
    let everywhere = |name: &&str| rows.iter().all(|row| row.values.contains_key(*name));
    let mut names: Vec<&str> =
        first.values.keys().map(String::as_str).filter(is_metric).filter(everywhere).collect();
    names.sort_by_key(|name| *name != PREDICTED);
    names
}

fn value(row: &PlacementMetrics, name: &str) -> f64 {
    row.values.get(name).copied().unwrap_or(f64::NAN)
}

fn tau(metrics: &Metrics, name: &str) -> Option<String> {
    let tau = metrics.summary.get(&format!("kendall_beyond_noise_{name}"))?;
    Some(format!("τ {tau:.2}"))
}

/// A plane of its own scale to the right, and a shared one upwards.
struct Panel {
    left: f64,
    top: f64,
    level: Axis,
    upright: Axis,
}

impl Panel {
    fn across(&self, value: f64) -> f64 {
        self.left + WIDTH * self.level.at(value)
    }

    fn down(&self, seconds: f64) -> f64 {
        self.top + HEIGHT * (1.0 - self.upright.at(seconds))
    }

    fn draw_frame(&self, svg: &mut Svg, name: &str, tau: Option<&str>) {
        let (left, floor) = (self.left, self.top + HEIGHT);
        let seconds = |value, digits| quantity_of(value, Unit::Seconds, digits);
        self.upright.draw_scale(svg, 4, (left, WIDTH), (floor, HEIGHT), seconds);
        let unit = unit_of(name);
        for (tick, text) in self.level.labelled_ticks(3, |value, digits| quantity_of(value, unit, digits)) {
            let x = self.across(tick);
            svg.line(x, floor, x, floor + 5.0, "a");
            svg.text(x, floor + 18.0, "q n m", &text);
        }
        svg.line(left, floor, left + WIDTH, floor, "a");
        svg.text(left, self.top - 12.0, "w", name);
        svg.text(left + WIDTH, self.top - 12.0, "q n e", tau.unwrap_or("τ –"));
    }

    /// The part of the line on which prediction and measurement are equal that both axes show.
    fn draw_equality(&self, svg: &mut Svg) {
        let ((left, right), (bottom, top)) = (self.level.ends(), self.upright.ends());
        let (low, high) = (left.max(bottom), right.min(top));
        if low < high {
            svg.line(self.across(low), self.down(low), self.across(high), self.down(high), "a");
        }
    }

    fn draw_dot(&self, svg: &mut Svg, row: &PlacementMetrics, name: &str) {
        let (metric, seconds) = (value(row, name), value(row, MEASURED));
        let (x, y) = (self.across(metric), self.down(seconds));
        let colour = COLOURS[usize::from(name != PREDICTED)];
        let [time, amount] = [quantity(seconds, Unit::Seconds), quantity(metric, unit_of(name))];
        svg.group(&format!("mapping {}: measured {time}, {name} {amount}", row.sample), |svg| {
            let (low, high) = (self.down(value(row, MEASURED_LOW)), self.down(value(row, MEASURED_HIGH)));
            if low - high > 1.0 {
                svg.line(x, low, x, high, &format!("sk{colour}"));
            }
            svg.disc(x, y, 3.5, &format!("fk{colour}"), 0.7);
        });
    }
}
