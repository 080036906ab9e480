//! Positions of the boxes of a machine drawn in layers.

use super::network::{Drawing, NodeBox};
use crate::human::{count_of, ranges};
use crate::layered::{apart, mean};
use crate::svg::{shortened, text_width};

pub(super) const TOP: f64 = 62.0;
pub(super) const BOX_HEIGHT: f64 = 42.0;
/// Between the layers.
const BETWEEN: f64 = 66.0;
/// Lines from which on there is more room between the layers.
const MANY_LINES: usize = 40;
const GAP: f64 = 8.0;
/// Between blocks of hosts.
const BLOCK_GAP: f64 = 8.0;
/// Between groups of blocks.
const GROUP_GAP: f64 = 22.0;
/// Width of a column from which a host has its name and its ranks written in full.
pub(super) const READABLE: f64 = 40.0;
/// Width of a box from which a switch has its name written across.
const ACROSS: f64 = 72.0;
/// Longest name that is written upright.
const UPRIGHT: f64 = 118.0;
/// Lines of ranks below a host.
const RANK_LINES: usize = 3;
/// Most width of a picture with blocks of hosts.
const WIDEST: f64 = 1400.0;
/// Most rows of cells with names.
const MOST_NAMED_ROWS: usize = 40;
/// Width of type of 11 px against that of 12 px.
const SMALL: f64 = 0.92;

/// Positions of boxes.
pub(super) struct Layout {
    pub(super) width: f64,
    /// Middle and width of every box.
    pub(super) columns: Vec<(f64, f64)>,
    /// From the top layer down, the upper edge of every layer.
    pub(super) tops: Vec<f64>,
    /// From the top layer down, the height of boxes.
    pub(super) heights: Vec<f64>,
    /// From the top layer down, whether names in boxes are upright.
    pub(super) upright: Vec<bool>,
    /// How hosts are drawn as cells, if they are.
    pub(super) cells: Option<Cells>,
    /// Groups of blocks from left to right: left and right edge.
    pub(super) groups: Vec<(f64, f64)>,
}

/// Cells of hosts below switches.
#[derive(Clone, Copy)]
pub(super) struct Cells {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Rows of the largest block at least; blocks with more hosts have more columns.
    pub(super) rows: usize,
    pub(super) is_named: bool,
}

impl Cells {
    /// The narrowest cells that hold names, if there is room for them, else small ones.
    fn new(drawing: &Drawing, blocks: &[usize]) -> Self {
        let counts: Vec<usize> = blocks.iter().map(|&node| drawing.boxes[node].cells.len()).collect();
        let all = || blocks.iter().flat_map(|&node| &drawing.boxes[node].cells);
        // Few names that are longer than the others are shortened.
        let mut names: Vec<f64> = all().map(|&host| text_width(&drawing.boxes[host].name)).collect();
        names.sort_by(f64::total_cmp);
        let name = names.get(names.len() * 9 / 10).copied().unwrap_or(0.0);
        let width_of_name = (name * SMALL + 12.0).clamp(24.0, 96.0);
        let rows = |width: f64, most: f64| {
            let needs = |rows: usize| {
                let columns = |count: &usize| count.div_ceil(rows).max(1) as f64;
                counts.iter().map(|count| columns(count) * width + BLOCK_GAP).sum::<f64>()
            };
            let largest = counts.iter().copied().max().unwrap_or(1).max(1);
            (1..=largest).find(|&rows| needs(rows) <= most)
        };
        match rows(width_of_name, WIDEST) {
            Some(rows) if rows <= MOST_NAMED_ROWS => {
                Self { width: width_of_name, height: 15.0, rows, is_named: true }
            }
            _ => Self {
                width: 13.0,
                height: 13.0,
                rows: rows(13.0, 1180.0).unwrap_or(usize::MAX),
                is_named: false,
            },
        }
    }

    pub(super) fn columns(&self, count: usize) -> usize {
        count.div_ceil(self.rows).max(1)
    }

    /// Rows of a block.
    pub(super) fn rows_of(&self, count: usize) -> usize {
        count.div_ceil(self.columns(count))
    }
}

impl Layout {
    pub(super) fn new(drawing: &Drawing) -> Self {
        let bottom = drawing.layers.first().map_or(&[][..], Vec::as_slice);
        let has_cells = bottom.iter().any(|&node| !drawing.boxes[node].cells.is_empty());
        let cells = has_cells.then(|| Cells::new(drawing, bottom));
        let most = drawing.layers.iter().map(Vec::len).max().unwrap_or(1);
        let mut width = (most as f64 * 96.0).clamp(480.0, 1180.0);
        let mut columns = vec![(0.0, 0.0); drawing.boxes.len()];
        let mut groups = Vec::new();
        if let Some(cells) = &cells {
            width = width.min(1180.0).max(blocks(drawing, cells, width, &mut columns, &mut groups));
        }
        let mut wide = vec![0.0; drawing.layers.len()];
        for (index, layer) in drawing.layers.iter().enumerate() {
            let column = width / layer.len() as f64;
            let gap = if column > READABLE { GAP } else { 2.0 };
            let box_width = (column - gap).min(130.0);
            wide[index] = box_width;
            if index == 0 && has_cells {
                let widths = layer.iter().map(|&node| columns[node].1);
                wide[index] = widths.fold(f64::INFINITY, f64::min);
                continue;
            }
            let wanted: Vec<f64> = layer
                .iter()
                .enumerate()
                .map(|(place, &node)| {
                    let even = column * (place as f64 + 0.5);
                    if index == 0 {
                        even
                    } else {
                        middle_of_children(drawing, &columns, node).unwrap_or(even)
                    }
                })
                .collect();
            // Boxes that are all linked to the same ones are spread out, so that their lines do not overlap.
            let ends = wanted
                .iter()
                .fold((f64::INFINITY, 0.0_f64), |(low, high), &place| (low.min(place), high.max(place)));
            let wanted = match layer.len() > 1 && ends.1 - ends.0 < column {
                true => (0..layer.len()).map(|place| column * (place as f64 + 0.5)).collect(),
                false => wanted,
            };
            for (&node, middle) in layer.iter().zip(spread(&wanted, box_width + gap, width)) {
                columns[node] = (middle, box_width);
            }
        }
        let mut layout = Self {
            width,
            columns,
            tops: Vec::new(),
            heights: Vec::new(),
            upright: Vec::new(),
            cells,
            groups,
        };
        layout.stack(drawing, &wide);
        layout
    }

    /// Sets how high layers are and where they begin.
    fn stack(&mut self, drawing: &Drawing, wide: &[f64]) {
        let mut top = TOP + self.room_for_bows(drawing);
        let is_dense = self.cells.is_some() && drawing.lines.len() > MANY_LINES;
        let between = if is_dense { 2.0 * BETWEEN } else { BETWEEN };
        for (index, layer) in drawing.layers.iter().enumerate().rev() {
            let longest =
                layer.iter().map(|&node| text_width(&drawing.boxes[node].name)).fold(0.0, f64::max) * SMALL;
            let is_narrow = wide[index] < READABLE || (wide[index] < ACROSS && longest > wide[index] - 6.0);
            // Below narrow boxes of the lowest layer there is room for names.
            let upright = is_narrow && longest > 0.0 && (index > 0 || self.cells.is_some());
            let height =
                if upright { (longest + 14.0).clamp(BOX_HEIGHT, UPRIGHT + 14.0) } else { BOX_HEIGHT };
            self.tops.push(top);
            self.heights.push(height);
            self.upright.push(upright);
            top += height + between;
        }
    }

    /// Height of the bows above the only layer.
    fn room_for_bows(&self, drawing: &Drawing) -> f64 {
        if drawing.layers.len() != 1 {
            return 0.0;
        }
        let far = |(a, b): &(usize, usize)| (self.columns[*a].0 - self.columns[*b].0).abs();
        let farthest = drawing.lines.keys().map(far).fold(0.0, f64::max);
        if farthest > 0.0 { (bow(farthest, true) * 0.75 + 8.0 - 20.0).max(0.0) } else { 0.0 }
    }

    pub(super) fn bottom(&self, drawing: &Drawing) -> f64 {
        let last =
            self.tops.last().copied().unwrap_or(TOP) + self.heights.last().copied().unwrap_or(BOX_HEIGHT);
        let below = |&node: &usize| {
            let content = &drawing.boxes[node];
            if let Some(cells) = &self.cells {
                return cells.rows_of(content.cells.len().max(1)) as f64 * cells.height + 10.0;
            }
            match self.columns[node].1 {
                width if width < READABLE => 8.0 + text_width(&content.name).min(120.0),
                width => 16.0 * rank_lines(content, width).len() as f64 + 8.0,
            }
        };
        let groups = if self.groups.len() > 1 { 20.0 } else { 0.0 };
        let lowest = drawing.layers.first().map_or(&[][..], Vec::as_slice);
        last + lowest.iter().map(below).fold(0.0, f64::max) + 8.0 + groups
    }
}

/// Puts blocks of hosts next to each other; how wide they are together.
fn blocks(
    drawing: &Drawing,
    cells: &Cells,
    width: f64,
    columns: &mut [(f64, f64)],
    groups: &mut Vec<(f64, f64)>,
) -> f64 {
    let layer = &drawing.layers[0];
    let own = |&node: &usize| cells.columns(drawing.boxes[node].cells.len()) as f64 * cells.width;
    let is_first = |place: usize| place > 0 && drawing.groups.get(place) != drawing.groups.get(place - 1);
    let breaks = (0..layer.len()).filter(|&place| is_first(place)).count();
    let sum = layer.iter().map(own).sum::<f64>()
        + BLOCK_GAP * layer.len() as f64
        + (GROUP_GAP - BLOCK_GAP) * breaks as f64;
    // What is left of the width goes between the blocks.
    let more = ((width - sum) / layer.len() as f64).clamp(0.0, 60.0);
    let mut x = (width - sum - more * layer.len() as f64).max(0.0) / 2.0;
    let mut begin = x;
    for (place, node) in layer.iter().enumerate() {
        if is_first(place) {
            groups.push((begin, x - BLOCK_GAP - more));
            x += GROUP_GAP - BLOCK_GAP;
            begin = x;
        }
        let own = own(node);
        columns[*node] = (x + own / 2.0, own.max(13.0));
        x += own + BLOCK_GAP + more;
    }
    groups.push((begin, x - BLOCK_GAP - more));
    x
}

/// How far a line between neighbours in a layer leads above them.
pub(super) fn bow(far: f64, is_only_layer: bool) -> f64 {
    if is_only_layer { 18.0 + far.min(1000.0) * 0.3 } else { 14.0 + far.min(200.0) * 0.15 }
}

fn middle_of_children(drawing: &Drawing, columns: &[(f64, f64)], node: usize) -> Option<f64> {
    let below = drawing.lines.keys().filter(|(lower, upper)| *upper == node && columns[*lower].1 > 0.0);
    mean(below.map(|(lower, _)| columns[*lower].0))
}

/// Moves boxes, which are in order, as little apart as needed to keep their distance, and inside the width.
fn spread(wanted: &[f64], distance: f64, width: f64) -> Vec<f64> {
    let offsets: Vec<f64> = (0..wanted.len()).map(|place| distance * (place as f64 + 0.5)).collect();
    let room = (width - distance * wanted.len() as f64).max(0.0);
    let moved = apart(wanted, &offsets).into_iter().zip(offsets);
    moved.map(|(place, offset)| offset + (place - offset).clamp(0.0, room)).collect()
}

/// The ranks of a host in lines that fit below it; the last one ends in an ellipsis when there are more.
pub(super) fn rank_lines(node: &NodeBox, width: f64) -> Vec<String> {
    if node.hidden_ranks > 0 {
        return vec![shortened(&count_of(node.hidden_ranks, "rank"), width)];
    }
    let mut lines: Vec<String> = Vec::new();
    for range in ranges(&node.ranks) {
        let full = lines.len() == RANK_LINES;
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(&range) + 9.0 <= width => {
                line.push_str(", ");
                line.push_str(&range);
            }
            Some(line) if full => {
                line.push('…');
                break;
            }
            _ => lines.push(range),
        }
    }
    lines
}
