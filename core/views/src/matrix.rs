//! The communication matrix as a heat map.

use std::fmt::Write;
use std::ops::Range;

use hopmap_model::{CostModel, SystemGraph, TaskGraph, Weight};

use crate::chart::{Axis, labelled, nice_step};
use crate::human::{Unit, count_of, quantity, quantity_of};
use crate::svg::{Number, RAMP, Svg, ramp_index, shortened_inside, text_width};

/// Rows and columns that are drawn at most; more ranks share cells.
pub(crate) const MOST_CELLS: usize = 200;
/// Cells have tooltips up to this number of ranks.
const MOST_TOOLTIPS: usize = 64;
/// Ranks that have their number along the axes in another order than their own.
const MOST_NUMBERS: usize = 32;
const PLOT: usize = 460;
/// Groups of the machine are drawn if they are so large on average.
const SMALLEST_BLOCK: f64 = 6.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 84.0;

/// The communication matrix as a heat map on a logarithmic scale: senders down, receivers across.
///
/// Ranks are in rank order, or in `order`, which may leave out ranks. Above 200 ranks several share
/// a cell, which shows the sum. Up to 64 ranks every cell has a tooltip.
#[must_use]
pub fn matrix(graph: &TaskGraph, weight: Weight, title: &str, order: Option<&RankOrder>) -> String {
    let cells = Cells::new(graph, weight, order, MOST_CELLS);
    picture(graph, weight, title, order, &cells, cells.range())
}

/// The same matrix in two orders, in which the same colour is the same amount.
#[must_use]
pub fn matrices(graph: &TaskGraph, weight: Weight, both: [(&str, &RankOrder); 2]) -> [String; 2] {
    let cells = both.map(|(_, order)| Cells::new(graph, weight, Some(order), MOST_CELLS));
    let ranges = cells.iter().filter_map(Cells::range);
    let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    [0, 1].map(|index| {
        let ((title, order), cells) = (both[index], &cells[index]);
        picture(graph, weight, title, Some(order), cells, cells.range().and(range))
    })
}

/// The picture of cells, with colours for values in a range; none if there are no messages.
fn picture(
    graph: &TaskGraph,
    weight: Weight,
    title: &str,
    order: Option<&RankOrder>,
    cells: &Cells,
    range: Option<(f64, f64)>,
) -> String {
    let mut svg = Svg::new(title, &subtitle(graph, cells, order.is_some()));
    let plot = cells.pixels();
    draw_axes(&mut svg, cells, order);
    svg.rectangle(LEFT, TOP, (plot, plot), 0.0, "b");
    match range {
        None => svg.text(LEFT + 8.0, TOP + plot + 18.0, "q", "no messages"),
        Some((low, high)) => {
            let axis = Axis::logarithmic(low, high);
            draw_cells(&mut svg, cells, &axis, graph, weight, order);
            draw_legend(&mut svg, (LEFT + plot + 26.0, TOP), &axis, (low, high), unit_of(weight));
        }
    }
    if let Some(order) = order {
        draw_blocks(&mut svg, (LEFT, TOP), cells, &order.levels);
    }
    let legend = if range.is_some() { 175.0 } else { 0.0 };
    svg.finish((LEFT + plot + 120.0).max(420.0), TOP + plot.max(legend) + 24.0)
}

/// Amounts, row by row; nothing is drawn where there is none.
pub(crate) struct Cells {
    pub(crate) values: Vec<f64>,
    /// Rows, and columns.
    pub(crate) side: usize,
    /// Ranks, or whatever else there is a row for, that share a row.
    pub(crate) ranks_per_cell: usize,
    pub(crate) positions: usize,
}

impl Cells {
    fn new(graph: &TaskGraph, weight: Weight, order: Option<&RankOrder>, most: usize) -> Self {
        let positions = order.map_or(graph.ranks(), |order| order.ranks.len());
        let ranks_per_cell = positions.div_ceil(most).max(1);
        let side = positions.div_ceil(ranks_per_cell);
        let mut values = vec![0.0; side * side];
        let cell_of = cell_of_ranks(graph.ranks(), order, ranks_per_cell);
        for edge in &graph.edges {
            let cell = |rank: u32| cell_of.get(rank as usize).copied().flatten();
            if let (Some(row), Some(column)) = (cell(edge.source), cell(edge.destination)) {
                values[row * side + column] += weight.of(edge);
            }
        }
        Self { values, side, ranks_per_cell, positions }
    }

    /// Smallest and largest value above zero.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let positive = || self.values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let low = positive().fold(f64::INFINITY, f64::min);
        low.is_finite().then(|| (low, positive().fold(low, f64::max)))
    }

    /// Width of a cell on the screen; whole, so that all cells look alike.
    pub(crate) fn cell_pixels(&self) -> f64 {
        (PLOT / self.side.max(1)).clamp(1, 48) as f64
    }

    pub(crate) fn pixels(&self) -> f64 {
        self.cell_pixels() * self.side.max(1) as f64
    }

    /// Where a position begins on the screen, from the edge of the plot.
    pub(crate) fn offset(&self, position: f64) -> f64 {
        position / self.ranks_per_cell as f64 * self.cell_pixels()
    }
}

fn cell_of_ranks(ranks: usize, order: Option<&RankOrder>, ranks_per_cell: usize) -> Vec<Option<usize>> {
    let Some(order) = order else {
        return (0..ranks).map(|rank| Some(rank / ranks_per_cell)).collect();
    };
    let mut cells = vec![None; ranks];
    for (position, &rank) in order.ranks.iter().enumerate() {
        if let Some(cell) = cells.get_mut(rank as usize) {
            *cell = Some(position / ranks_per_cell);
        }
    }
    cells
}

fn subtitle(graph: &TaskGraph, cells: &Cells, slot_order: bool) -> String {
    let order = if slot_order { "slot" } else { "rank" };
    let bytes = quantity(graph.bytes() as f64, Unit::Bytes);
    let messages = quantity(graph.messages() as f64, Unit::Count);
    let mut parts = vec![
        format!("{} in {order} order", count_of(cells.positions, "rank")),
        format!("{bytes} in {messages} messages"),
    ];
    if cells.ranks_per_cell > 1 {
        parts.push(format!("{0} × {0} ranks in a cell", cells.ranks_per_cell));
    }
    parts.join(" · ")
}

fn unit_of(weight: Weight) -> (Unit, &'static str) {
    match weight {
        Weight::Bytes => (Unit::Bytes, "bytes"),
        Weight::Messages => (Unit::Count, "messages"),
        Weight::Time { .. } => (Unit::Seconds, "time"),
    }
}

fn draw_axes(svg: &mut Svg, cells: &Cells, order: Option<&RankOrder>) {
    let plot = cells.pixels();
    svg.text(LEFT, TOP - 28.0, "q n", "receiver →");
    svg.upright_text(11.0, TOP + 52.0, "q n", "← sender");
    // Numbers of many ranks in another order say nothing.
    let is_in_order = order.is_none_or(|order| order.ranks.is_sorted());
    if !is_in_order && cells.positions > MOST_NUMBERS {
        return;
    }
    let widest = text_width(&cells.positions.to_string()) + 8.0;
    let step = nice_step(cells.positions as f64 * widest.max(20.0) / plot).max(1.0) as usize;
    for position in (0..cells.positions).step_by(step) {
        let rank = order.map_or(position as u32, |order| order.ranks[position]);
        let middle = cells.offset(position as f64) + cells.cell_pixels() / 2.0;
        let label = rank.to_string();
        svg.line(LEFT + middle, TOP - 5.0, LEFT + middle, TOP - 1.0, "a");
        svg.text(LEFT + middle, TOP - 9.0, "q n m", &label);
        svg.line(LEFT - 5.0, TOP + middle, LEFT - 1.0, TOP + middle, "a");
        svg.text(LEFT - 9.0, TOP + middle + 4.0, "q n e", &label);
    }
}

fn draw_cells(
    svg: &mut Svg,
    cells: &Cells,
    axis: &Axis,
    graph: &TaskGraph,
    weight: Weight,
    order: Option<&RankOrder>,
) {
    open_cells(svg, (LEFT, TOP), cells);
    if cells.positions <= MOST_TOOLTIPS {
        draw_single_cells(svg, cells, axis, graph, weight, order);
    } else {
        draw_paths(svg, cells, axis);
    }
    svg.close_group();
}

fn draw_single_cells(
    svg: &mut Svg,
    cells: &Cells,
    axis: &Axis,
    graph: &TaskGraph,
    weight: Weight,
    order: Option<&RankOrder>,
) {
    let cell_of = cell_of_ranks(graph.ranks(), order, 1);
    let cell = |rank: u32| cell_of.get(rank as usize).copied().flatten();
    for edge in &graph.edges {
        let (Some(row), Some(column)) = (cell(edge.source), cell(edge.destination)) else { continue };
        let value = cells.values[row * cells.side + column];
        if value <= 0.0 {
            continue;
        }
        let (bytes, messages) = (quantity(edge.bytes as f64, Unit::Bytes), edge.messages as usize);
        let messages = count_of(messages, "message");
        let mut tooltip = format!("{} → {}: {bytes} in {messages}", edge.source, edge.destination);
        if matches!(weight, Weight::Time { .. }) {
            // Writing to a string does not fail.
            let _ = write!(tooltip, ", {}", quantity(value, Unit::Seconds));
        }
        let colour = ramp_index(axis.at(value));
        svg.add(format_args!(
            "<path class=\"s{colour}\" d=\"M{column} {row}h1\"><title>{tooltip}</title></path>"
        ));
    }
}

/// Opens a group in which cells are strokes one unit thick, whose middle has integer coordinates.
pub(crate) fn open_cells(svg: &mut Svg, (left, top): (f64, f64), cells: &Cells) {
    let pixels = cells.cell_pixels();
    let middle = Number(top + pixels / 2.0);
    svg.add(format_args!("<g class=\"c\" transform=\"translate({left} {middle})scale({pixels})\">"));
}

/// Draws the cells of every colour.
pub(crate) fn draw_paths(svg: &mut Svg, cells: &Cells, axis: &Axis) {
    let paths = paths_by_colour(cells, axis);
    for (colour, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        svg.add(format_args!("<path class=\"s{colour}\" d=\"{path}\"/>"));
    }
}

/// For every colour the cells that have it, neighbours in a row as one stroke.
fn paths_by_colour(cells: &Cells, axis: &Axis) -> Vec<String> {
    let mut paths = vec![String::new(); RAMP];
    let colour = |value: f64| (value > 0.0).then(|| ramp_index(axis.at(value)));
    for (row, values) in cells.values.chunks(cells.side.max(1)).enumerate() {
        // Position of the pen of every colour in this row.
        let mut pens: Vec<Option<usize>> = vec![None; RAMP];
        let mut column = 0;
        for run in values.chunk_by(|a, b| colour(*a) == colour(*b)) {
            if let Some(colour) = colour(run[0]) {
                // Writing to a string does not fail.
                let _ = match pens[colour] {
                    Some(pen) => write!(paths[colour], "m{} 0h{}", column - pen, run.len()),
                    None => write!(paths[colour], "M{column} {row}h{}", run.len()),
                };
                pens[colour] = Some(column + run.len());
            }
            column += run.len();
        }
    }
    paths
}

/// The groups of the machine as squares on the diagonal, outer ones on top and thicker; inside them is the traffic that stays.
/// Levels whose squares would be too small to see are left out.
pub(crate) fn draw_blocks(
    svg: &mut Svg,
    (left, top): (f64, f64),
    cells: &Cells,
    levels: &[Vec<Range<usize>>],
) {
    let plot = cells.pixels();
    for (level, blocks) in levels.iter().enumerate().filter(|(_, b)| b.len() as f64 <= plot / SMALLEST_BLOCK)
    {
        let width = 1.0 + level as f64 / 2.0;
        svg.add(format_args!("<g stroke-width=\"{width}\" opacity=\"0.6\">"));
        for block in blocks.iter().filter(|block| block.len() < cells.positions) {
            let [begin, end] = [block.start, block.end].map(|at| cells.offset(at as f64).min(plot));
            svg.outline(left + begin, top + begin, (end - begin, end - begin), "a");
        }
        svg.close_group();
    }
}

/// The colours from top to bottom with their values.
pub(crate) fn draw_legend(
    svg: &mut Svg,
    (x, top): (f64, f64),
    axis: &Axis,
    range: (f64, f64),
    (unit, name): (Unit, &str),
) {
    const STEP: f64 = 14.0;
    const WIDTH: f64 = 14.0;
    let height = STEP * RAMP as f64;
    svg.text(x, top - 9.0, "q n", name);
    for index in 0..RAMP {
        let y = top + height - STEP * (index + 1) as f64;
        svg.rectangle(x, y, (WIDTH, STEP), 0.0, &format!("f{index}"));
    }
    let mut ticks = vec![range.0];
    if range.0 < range.1 {
        let apart = |tick: &f64| (0.07..0.93).contains(&axis.at(*tick));
        ticks.extend(axis.ticks(6).into_iter().filter(apart));
        ticks.push(range.1);
    }
    for (tick, label) in labelled(&ticks, |tick, digits| quantity_of(tick, unit, digits)) {
        let y = top + height * (1.0 - axis.at(tick));
        svg.line(x + WIDTH, y, x + WIDTH + 4.0, y, "a");
        svg.text(x + WIDTH + 8.0, y + 4.0, "n", &label);
    }
}

/// Rows and columns of a small matrix at most.
const MULTIPLES_MOST_CELLS: usize = 48;
const SIDE: f64 = 128.0;
const GAP: f64 = 22.0;
const COLUMNS: usize = 6;
const MULTIPLES_TOP: f64 = 54.0;
/// Lines of text below a matrix.
const TEXT: f64 = 40.0;

/// A small matrix.
#[derive(Debug)]
pub struct SmallMatrix<'a> {
    /// The text below it.
    pub name: &'a str,
    /// The program.
    pub graph: &'a TaskGraph,
    /// The order of its ranks, if it is another one than that of their numbers.
    pub order: Option<&'a RankOrder>,
}

/// Matrices of bytes side by side, senders down and receivers across, each on its own logarithmic scale.
#[must_use]
pub fn small_matrices(matrices: &[SmallMatrix<'_>], title: &str) -> String {
    let mut svg = Svg::new(title, "bytes; senders down, receivers across; each on its own scale");
    for (index, matrix) in matrices.iter().enumerate() {
        let x = (SIDE + GAP) * (index % COLUMNS) as f64;
        let y = MULTIPLES_TOP + (SIDE + TEXT) * (index / COLUMNS) as f64;
        // Long names are shortened.
        svg.group(matrix.name, |svg| draw(svg, (x, y), matrix));
    }
    let columns = matrices.len().clamp(3, COLUMNS);
    let rows = matrices.len().div_ceil(COLUMNS);
    svg.finish((SIDE + GAP) * columns as f64, MULTIPLES_TOP + (SIDE + TEXT) * rows as f64)
}

fn draw(svg: &mut Svg, (x, y): (f64, f64), matrix: &SmallMatrix<'_>) {
    let cells = Cells::new(matrix.graph, Weight::Bytes, matrix.order, MULTIPLES_MOST_CELLS);
    svg.rectangle(x, y, (SIDE, SIDE), 0.0, "b");
    if let Some((low, high)) = cells.range() {
        let scale = SIDE / cells.side as f64;
        let middle = y + scale / 2.0;
        svg.add(format_args!("<g fill=\"none\" transform=\"translate({x},{middle})scale({scale})\">"));
        draw_paths(svg, &cells, &Axis::logarithmic(low, high));
        svg.close_group();
    }
    svg.text(x, y + SIDE + 14.0, "n w", &shortened_inside(matrix.name, SIDE + 6.0));
    let bytes = quantity(matrix.graph.bytes() as f64, Unit::Bytes);
    svg.text(x, y + SIDE + 27.0, "q n", &format!("{} ranks, {bytes}", matrix.graph.ranks()));
}

/// The order of ranks along the axes of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankOrder {
    /// The rank at every position.
    pub ranks: Vec<u32>,
    /// Positions of the ranks of every group of the machine, on every level that is drawn, innermost first.
    pub levels: Vec<Vec<Range<usize>>>,
}

impl RankOrder {
    /// Rank `i` on `slots[i]` in the order of the tree of a machine: the ranks of every group on every level together. Of a
    /// machine that is not a tree, in the order of its slots, those of one host together.
    #[must_use]
    pub fn in_machine(slots: &[u32], system: &SystemGraph) -> Self {
        let slot = |rank: u32| slots[rank as usize];
        let mut ranks: Vec<u32> = (0..slots.len() as u32).collect();
        // Of costs that follow from routes the tree that they are, if they are one.
        let explicit = system.explicit(0);
        let Some(CostModel::Levels(levels)) = explicit.as_ref().ok().map(|system| &system.cost) else {
            ranks.sort_by_key(|&rank| slot(rank));
            let hosts = runs(&ranks, |rank| system.slots[slot(rank) as usize].host);
            return Self { ranks, levels: vec![hosts] };
        };
        // Groups in the order of their first slots, whatever their numbers.
        let firsts: Vec<Vec<u32>> = levels.groups.iter().map(|groups| first_slots(groups)).collect();
        let place =
            |rank: u32, level: usize| firsts[level][levels.groups[level][slot(rank) as usize] as usize];
        ranks.sort_by(|&a, &b| {
            let outermost_first = (0..firsts.len()).rev().map(|level| place(a, level).cmp(&place(b, level)));
            outermost_first
                .fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
                .then(slot(a).cmp(&slot(b)))
        });
        let levels = (0..firsts.len()).map(|level| runs(&ranks, |rank| place(rank, level))).collect();
        Self { ranks, levels }
    }
}

/// Positions of neighbours that have something in common.
fn runs(ranks: &[u32], group: impl Fn(u32) -> u32) -> Vec<Range<usize>> {
    let mut begin = 0;
    let runs = ranks.chunk_by(|&a, &b| group(a) == group(b)).map(|run| {
        begin += run.len();
        begin - run.len()..begin
    });
    runs.collect()
}

/// The first slot of every group.
fn first_slots(groups: &[u32]) -> Vec<u32> {
    let mut first = vec![u32::MAX; groups.iter().map(|&group| group as usize + 1).max().unwrap_or(0)];
    for (slot, &group) in (0..).zip(groups) {
        first[group as usize] = first[group as usize].min(slot);
    }
    first
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a level with one group")]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Levels, Matrix, Process, Slot};

    fn ring(ranks: u32) -> TaskGraph {
        let mut edges: Vec<Edge> = (0..ranks)
            .map(|source| Edge {
                source,
                destination: (source + 1) % ranks,
                messages: 2,
                bytes: 1000 + u64::from(source),
            })
            .collect();
        edges.sort_by_key(Edge::pair);
        TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() }
    }

    #[test]
    fn few_ranks_have_a_tooltip_in_every_cell() {
        let picture = matrix(&ring(4), Weight::Bytes, "ring", None);
        assert_eq!(picture.matches(" in 2 messages</title>").count(), 4);
        assert!(picture.contains("3 → 0: 1 kB in 2 messages"));
    }

    #[test]
    fn many_ranks_share_cells() {
        let cells = Cells::new(&ring(65_536), Weight::Messages, None, MOST_CELLS);
        assert_eq!((cells.side, cells.ranks_per_cell), (200, 328));
        assert!((cells.values.iter().sum::<f64>() - 131_072.0).abs() < 1e-9);
    }

    #[test]
    fn the_order_moves_cells_and_leaves_ranks_out() {
        let order = RankOrder { ranks: vec![3, 2, 9], levels: vec![vec![0..1, 1..3]] };
        let cells = Cells::new(&ring(4), Weight::Messages, Some(&order), MOST_CELLS);
        assert_eq!(cells.values, [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    /// Once the same colour was 164 kB before and 262 kB after, as the ranks that share cells differ.
    #[test]
    fn two_orders_have_one_scale() {
        let graph = ring(512);
        let own = RankOrder { ranks: (0..512).collect(), levels: Vec::new() };
        let strided =
            RankOrder { ranks: (0..512).map(|at| at % 2 * 256 + at / 2).collect(), levels: Vec::new() };
        let legend = |picture: &str| picture.split(">bytes<").nth(1).map(str::to_owned);
        let [before, after] = matrices(&graph, Weight::Bytes, [("a", &own), ("b", &strided)]);
        assert_eq!(legend(&before), legend(&after));
        let alone = [("a", &own), ("b", &strided)]
            .map(|(title, order)| legend(&matrix(&graph, Weight::Bytes, title, Some(order))));
        assert_ne!(alone[0], alone[1]);
    }

    #[test]
    fn neighbours_of_one_colour_are_one_stroke() {
        let cells = Cells {
            values: vec![1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 100.0],
            side: 3,
            ranks_per_cell: 1,
            positions: 3,
        };
        let paths = paths_by_colour(&cells, &Axis::logarithmic(1.0, 100.0));
        assert_eq!(paths[0], "M0 0h2M0 1h1");
        assert_eq!(paths[RAMP - 1], "M2 2h1");
    }

    /// Four hosts of two cores; hosts 0 and 2 share a switch, and so do 1 and 3.
    fn machine() -> SystemGraph {
        SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 10.0, 100.0],
                groups: vec![vec![3, 3, 1, 1, 0, 0, 2, 2], vec![1, 1, 0, 0, 1, 1, 0, 0], vec![0; 8]],
            }),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
        }
    }

    #[test]
    fn ranks_of_a_group_are_together_on_every_level() {
        let order = RankOrder::in_machine(&[0, 1, 2, 3, 4, 5, 6, 7], &machine());
        assert_eq!(order.ranks, [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!(order.levels, [vec![0..2, 2..4, 4..6, 6..8], vec![0..4, 4..8], vec![0..8]]);
    }

    #[test]
    fn empty_groups_are_left_out() {
        let order = RankOrder::in_machine(&[7, 2, 6], &machine());
        assert_eq!(order.ranks, [1, 2, 0]);
        assert_eq!(order.levels, [vec![0..1, 1..3], vec![0..3], vec![0..3]]);
    }

    #[test]
    fn a_machine_without_a_tree_has_hosts() {
        let machine = SystemGraph { cost: CostModel::Matrix(Matrix { costs: vec![0.0; 64] }), ..machine() };
        let order = RankOrder::in_machine(&[3, 0, 2], &machine);
        assert_eq!((order.ranks, order.levels), (vec![1, 2, 0], vec![vec![0..1, 1..3]]));
    }
}
