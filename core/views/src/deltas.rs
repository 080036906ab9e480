//! Bytes that each base rule of a delta store needs for a series of checkpoints.

use hopmap_model::{CheckpointDelta, CheckpointStore, Deltas, RuleTotals, StoredCheckpoint};

use crate::chart::Axis;
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::svg::{Path, Svg, shortened};

const LEFT: f64 = 64.0;
const WIDTH: f64 = 560.0;
const TOP: f64 = 62.0;
/// A rule: its name, its bars, and below them arcs to the bases.
const NAME: f64 = 16.0;
const BARS: f64 = 62.0;
const ARCS: f64 = 46.0;
const RULE: f64 = NAME + BARS + ARCS;
/// The lines at the bottom.
const LINES: f64 = 130.0;
/// Bars of a rule; of more checkpoints each bar is the largest of several.
const MOST_BARS: usize = 140;
/// Checkpoints whose arcs are drawn.
const MOST_ARCS: usize = 140;

/// Bytes that every rule stores of each checkpoint with one block length, with arcs to the bases; below, the cumulative time to write
/// the checkpoints.
#[must_use]
pub fn deltas(deltas: &Deltas, block: u32) -> String {
    let rules: Vec<Shown<'_>> = deltas
        .rules
        .iter()
        .filter(|rule| rule.block == block)
        .map(|totals| Shown::new(deltas, totals))
        .collect();
    let checkpoints = rules.iter().map(|rule| rule.rows.len()).max().unwrap_or(0);
    let subtitle = format!("{} · blocks of {block} bytes", count_of(checkpoints, "checkpoint"));
    let mut svg = Svg::new("Bytes stored by delta rules", &subtitle);
    if checkpoints == 0 {
        return svg.finish(420.0, 40.0);
    }
    let chart = Chart::new(&rules, checkpoints);
    let mut top = TOP;
    for (colour, rule) in rules.iter().enumerate() {
        chart.draw_rule(&mut svg, rule, colour, top);
        top += RULE;
    }
    chart.draw_lines(&mut svg, &rules, top + 14.0);
    svg.finish(LEFT + WIDTH + 160.0, top + 14.0 + LINES + 40.0)
}

/// A rule and the bytes it stores.
struct Shown<'a> {
    totals: &'a RuleTotals,
    rows: Vec<&'a CheckpointDelta>,
}

impl<'a> Shown<'a> {
    fn new(deltas: &'a Deltas, totals: &'a RuleTotals) -> Self {
        let of_rule = |row: &&CheckpointDelta| (row.rule, row.block) == (totals.rule, totals.block);
        Self { totals, rows: deltas.checkpoints.iter().filter(of_rule).collect() }
    }

    /// Cumulative seconds of writing up to each checkpoint.
    fn sums(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().scan(0.0, |sum, row| {
            *sum += row.write_s;
            Some(*sum)
        })
    }

    fn words(&self) -> String {
        let RuleTotals { rule, stored_bytes, depth, sum_of_bases, base_changes, .. } = self.totals;
        let stored = quantity(*stored_bytes as f64, Unit::Bytes);
        let changes = count_of(*base_changes as usize, "base change");
        format!("{}: {stored}, depth {depth}, Σ b {sum_of_bases}, {changes}", rule.name())
    }
}

struct Chart {
    checkpoints: usize,
    bytes: Axis,
    seconds: Axis,
}

impl Chart {
    fn new(rules: &[Shown<'_>], checkpoints: usize) -> Self {
        // The first checkpoint is stored in full and would dwarf all other bars: the axis ends at the largest delta.
        let deltas = || rules.iter().flat_map(|rule| rule.rows.iter().skip(1));
        let largest = deltas().map(|row| row.stored_bytes).max().unwrap_or(0).max(1);
        let longest = rules.iter().flat_map(Shown::sums).filter(|sum| sum.is_finite()).fold(0.0, f64::max);
        Self {
            checkpoints,
            bytes: Axis::linear(0.0, largest as f64),
            seconds: Axis::linear(0.0, if longest > 0.0 { longest } else { 1.0 }),
        }
    }

    fn step(&self) -> f64 {
        WIDTH / self.checkpoints as f64
    }

    /// The middle of checkpoint `number`, from 1.
    fn x(&self, number: u32) -> f64 {
        LEFT + self.step() * (f64::from(number) - 0.5)
    }

    fn draw_rule(&self, svg: &mut Svg, rule: &Shown<'_>, colour: usize, top: f64) {
        let floor = top + NAME + BARS;
        svg.text(LEFT, top, "n w", &rule.words());
        // Not zero: the label of the bases is there.
        let bytes = |tick, digits| quantity_of(tick, Unit::Bytes, digits);
        for (tick, text) in self.bytes.labelled_ticks(2, bytes).into_iter().filter(|tick| tick.0 > 0.0) {
            let y = floor - BARS * self.bytes.at(tick);
            svg.line(LEFT, y, LEFT + WIDTH, y, "l");
            svg.text(LEFT - 8.0, y + 4.0, "q n e", &text);
        }
        let bundle = self.checkpoints.div_ceil(MOST_BARS).max(1);
        for rows in rule.rows.chunks(bundle) {
            self.draw_bar(svg, rows, colour, floor);
        }
        svg.line(LEFT, floor, LEFT + WIDTH, floor, "a");
        self.draw_bases(svg, rule, colour, floor);
    }

    /// The largest of some checkpoints that follow each other.
    fn draw_bar(&self, svg: &mut Svg, rows: &[&CheckpointDelta], colour: usize, floor: f64) {
        let Some((first, largest)) = rows.first().zip(rows.iter().max_by_key(|row| row.stored_bytes)) else {
            return;
        };
        let height = BARS * self.bytes.at(largest.stored_bytes as f64);
        let left = self.x(first.checkpoint) - self.step() * 0.5;
        let width = self.step() * rows.len() as f64;
        let base = largest.base.map_or_else(|| "full".to_owned(), |base| format!("delta against {base}"));
        let stored = quantity(largest.stored_bytes as f64, Unit::Bytes);
        svg.group(&format!("{} {}: {stored}, {base}", largest.checkpoint, largest.name), |svg| {
            let place = (left + width * 0.1, floor - height);
            svg.rectangle(place.0, place.1, (width * 0.8, height), 0.0, &format!("fk{colour}"));
        });
    }

    fn draw_bases(&self, svg: &mut Svg, rule: &Shown<'_>, colour: usize, floor: f64) {
        let every = libm::ceil(28.0 / self.step()).max(1.0) as usize;
        for (index, row) in rule.rows.iter().enumerate() {
            let Some(base) = row.base else { continue };
            if index % every == 0 || every == 1 {
                svg.text(self.x(row.checkpoint), floor + 12.0, "q n m", &base.to_string());
            }
            if self.checkpoints > MOST_ARCS {
                continue;
            }
            let (from, to) = (self.x(row.checkpoint), self.x(base));
            let down = floor + 16.0 + (6.0 + (from - to) * 0.06).min(ARCS - 28.0);
            let mut arc = Path::from(from, floor + 16.0);
            arc.curve_to((from, down), (to, down), (to, floor + 16.0));
            svg.add(format_args!("<path d=\"{arc}\" class=\"g sk{colour}\" style=\"stroke-width:1\"/>"));
        }
        svg.text(LEFT - 8.0, floor + 12.0, "q n e", "base");
    }

    fn draw_lines(&self, svg: &mut Svg, rules: &[Shown<'_>], top: f64) {
        let floor = top + LINES;
        svg.text(LEFT, top - 8.0, "n w", "Time to write all checkpoints so far");
        let seconds = |tick, digits| quantity_of(tick, Unit::Seconds, digits);
        self.seconds.draw_scale(svg, 4, (LEFT, WIDTH), (floor, LINES), seconds);
        let mut labels = Vec::new();
        for (colour, rule) in rules.iter().enumerate() {
            let points = (1..).zip(rule.sums());
            let points: Vec<(f64, f64)> =
                points.map(|(number, sum)| (self.x(number), floor - LINES * self.seconds.at(sum))).collect();
            let Some((&(x, y), rest)) = points.split_first() else { continue };
            let mut path = Path::from(x, y);
            let bundle = points.len().div_ceil(WIDTH as usize).max(1);
            rest.iter().rev().step_by(bundle).rev().for_each(|&(x, y)| path.line_to(x, y));
            let name = rule.totals.rule.name();
            let seconds = quantity(rule.totals.write_s, Unit::Seconds);
            svg.group(&format!("{name}: {seconds}"), |svg| {
                svg.add(format_args!("<path class=\"g sk{colour}\" d=\"{path}\"/>"));
            });
            let last = rest.last().map_or(y, |point| point.1);
            labels.push((last, shortened(&format!("{name} {seconds}"), 156.0)));
        }
        draw_labels(svg, labels);
        let every = libm::ceil(28.0 / self.step()).max(1.0) as usize;
        for number in (1..=self.checkpoints).step_by(every) {
            svg.text(self.x(number as u32), floor + 16.0, "q n m", &number.to_string());
        }
        svg.line(LEFT, floor, LEFT + WIDTH, floor, "a");
        svg.text(LEFT + WIDTH, floor + 32.0, "q n e", "checkpoint →");
    }
}

/// Names at the ends of lines, moved apart where they would cover each other.
fn draw_labels(svg: &mut Svg, mut labels: Vec<(f64, String)>) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    for (y, text) in labels {
        let y = y.max(free);
        svg.text(LEFT + WIDTH + 6.0, y + 4.0, "n", &text);
        free = y + 13.0;
    }
}

const STORED_TOP: f64 = 76.0;
const STORED_BARS: f64 = 150.0;
const GAP: f64 = 44.0;

/// Bytes of every checkpoint by kind; below, the space it took on disk.
#[must_use]
pub fn stored(store: &CheckpointStore) -> String {
    let rows = &store.checkpoints;
    let sum = |bytes: fn(&StoredCheckpoint) -> u64| rows.iter().map(bytes).sum::<u64>() as f64;
    let (whole, taken) = (sum(|row| row.bytes), sum(|row| row.stored_bytes));
    let (whole, taken) = (quantity(whole, Unit::Bytes), quantity(taken, Unit::Bytes));
    let subtitle = format!("{} · {whole} in {taken}", count_of(rows.len(), "checkpoint"));
    let mut svg = Svg::new("A store of checkpoints", &subtitle);
    if rows.is_empty() {
        return svg.finish(420.0, 40.0);
    }
    legend(&mut svg);
    chart(&mut svg, rows, STORED_TOP, |row| parts(row).to_vec());
    let top = STORED_TOP + STORED_BARS + GAP;
    svg.text(LEFT, top - 8.0, "n w", "Bytes on disk");
    chart(&mut svg, rows, top, |row| vec![row.stored_bytes]);
    svg.text(LEFT + WIDTH, top + STORED_BARS + 32.0, "q n e", "checkpoint →");
    svg.finish(LEFT + WIDTH + 20.0, top + STORED_BARS + 44.0)
}

const PARTS: [&str; 4] = ["new", "known from elsewhere", "unchanged", "zeros"];

fn parts(row: &StoredCheckpoint) -> [u64; 4] {
    [row.new_bytes, row.known_bytes, row.unchanged_bytes, row.zero_bytes]
}

fn legend(svg: &mut Svg) {
    let mut left = LEFT;
    for (colour, name) in PARTS.iter().enumerate() {
        svg.rectangle(left, STORED_TOP - 24.0, (10.0, 10.0), 0.0, &format!("fk{colour}"));
        svg.text(left + 14.0, STORED_TOP - 15.0, "n", name);
        left += 36.0 + 6.4 * name.len() as f64;
    }
}

/// Bars of parts on each other, the first one at the bottom.
fn chart(svg: &mut Svg, rows: &[StoredCheckpoint], top: f64, parts: impl Fn(&StoredCheckpoint) -> Vec<u64>) {
    let height = |row: &StoredCheckpoint| parts(row).iter().sum::<u64>();
    let largest = rows.iter().map(height).max().unwrap_or(0).max(1);
    let axis = Axis::linear(0.0, largest as f64);
    let floor = top + STORED_BARS;
    let bytes = |tick, digits| quantity_of(tick, Unit::Bytes, digits);
    axis.draw_scale(svg, 3, (LEFT, WIDTH), (floor, STORED_BARS), bytes);
    let bundle = rows.len().div_ceil(MOST_BARS).max(1);
    let bars: Vec<&StoredCheckpoint> =
        rows.chunks(bundle).filter_map(|rows| rows.iter().max_by_key(|row| height(row))).collect();
    let step = WIDTH / bars.len() as f64;
    let every = libm::ceil(28.0 / step).max(1.0) as usize;
    for (place, row) in bars.into_iter().enumerate() {
        let left = LEFT + step * place as f64;
        svg.open_group("", &format!("{} {}: {}", row.checkpoint, row.name, words(row)));
        let mut bottom = floor;
        for (colour, part) in parts(row).into_iter().enumerate() {
            let part = STORED_BARS * axis.at(part as f64);
            bottom -= part;
            svg.rectangle(left + step * 0.1, bottom, (step * 0.8, part), 0.0, &format!("fk{colour}"));
        }
        svg.close_group();
        if place % every == 0 {
            svg.text(left + step * 0.5, floor + 14.0, "q n m", &row.checkpoint.to_string());
        }
    }
    svg.line(LEFT, floor, LEFT + WIDTH, floor, "a");
}

fn words(row: &StoredCheckpoint) -> String {
    let bytes = |bytes: u64| quantity(bytes as f64, Unit::Bytes);
    format!("{}, {} new, {} on disk", bytes(row.bytes), bytes(row.new_bytes), bytes(row.stored_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_checkpoint_has_a_bar_of_its_parts_and_one_of_its_bytes_on_disk() {
        let row = |checkpoint| StoredCheckpoint {
            checkpoint,
            name: format!("0{checkpoint}"),
            files: 1,
            bytes: 1000,
            zero_bytes: 100,
            unchanged_bytes: 500,
            known_bytes: 100,
            new_bytes: 300,
            stored_bytes: 120,
        };
        let store = CheckpointStore::new((1..=3).map(row).collect(), BTreeMap::new());
        let svg = stored(&store);
        assert_eq!(svg.matches("300 B new, 120 B on disk").count(), 6);
        assert!(svg.contains("3 checkpoints · 3 kB in 360 B"), "{svg}");
        assert!(stored(&CheckpointStore::default()).contains("0 checkpoints"));
    }
}
