//! What the checkpoints of a store consist of, and what they take on disk.

use hopmap_model::{CheckpointStore, StoredCheckpoint};

use crate::human::{Unit, count_of, quantity};
use crate::scale::Axis;
use crate::svg::Svg;

const LEFT: f64 = 64.0;
const WIDTH: f64 = 560.0;
const TOP: f64 = 76.0;
const BARS: f64 = 150.0;
const GAP: f64 = 44.0;
/// Bars of a chart; of more checkpoints each bar is the largest of several.
const MOST_BARS: usize = 140;

/// Bytes of every checkpoint by what was known of them, and below what each took on disk.
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
    chart(&mut svg, rows, TOP, |row| parts(row).to_vec());
    let top = TOP + BARS + GAP;
    svg.text(LEFT, top - 8.0, "n w", "Bytes on disk");
    chart(&mut svg, rows, top, |row| vec![row.stored_bytes]);
    svg.text(LEFT + WIDTH, top + BARS + 32.0, "q n e", "checkpoint →");
    svg.finish(LEFT + WIDTH + 20.0, top + BARS + 44.0)
}

const PARTS: [&str; 4] = ["new", "known from elsewhere", "unchanged", "zeros"];

fn parts(row: &StoredCheckpoint) -> [u64; 4] {
    [row.new_bytes, row.known_bytes, row.unchanged_bytes, row.zero_bytes]
}

fn legend(svg: &mut Svg) {
    let mut left = LEFT;
    for (colour, name) in PARTS.iter().enumerate() {
        svg.rectangle(left, TOP - 24.0, (10.0, 10.0), 0.0, &format!("fk{colour}"));
        svg.text(left + 14.0, TOP - 15.0, "n", name);
        left += 36.0 + 6.4 * name.len() as f64;
    }
}

/// Bars of parts on each other, the first one at the bottom.
fn chart(svg: &mut Svg, rows: &[StoredCheckpoint], top: f64, parts: impl Fn(&StoredCheckpoint) -> Vec<u64>) {
    let height = |row: &StoredCheckpoint| parts(row).iter().sum::<u64>();
    let largest = rows.iter().map(height).max().unwrap_or(0).max(1);
    let axis = Axis::linear(0.0, largest as f64);
    let floor = top + BARS;
    for tick in axis.ticks(3) {
        let y = floor - BARS * axis.at(tick);
        svg.line(LEFT, y, LEFT + WIDTH, y, "l");
        svg.text(LEFT - 8.0, y + 4.0, "q n e", &quantity(tick, Unit::Bytes));
    }
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
            let part = BARS * axis.at(part as f64);
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
    use std::collections::BTreeMap;

    use super::*;

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
