//! A machine as a tree of hosts and switches.

mod network;

use hopmap_model::{Mapping, SystemGraph};

use crate::human::{Unit, count_of, quantity, ranges, whole};
use crate::svg::{Number, Path, Svg, shortened, text_width};
use crate::theme::{RAMP, ramp_index};
use network::{Drawing, NodeBox};

const TOP: f64 = 62.0;
const BOX_HEIGHT: f64 = 42.0;
const LAYER_HEIGHT: f64 = 108.0;
const GAP: f64 = 8.0;
/// Width of a column from which a host has its name and its ranks written in full.
const READABLE: f64 = 40.0;
/// Lines of ranks below a host.
const RANK_LINES: usize = 3;
/// Ranges of ranks in a tooltip.
const MOST_RANGES: usize = 40;
/// Links that are drawn at most, the busiest ones.
const MOST_LINES: usize = 3000;
/// Links have tooltips up to this number.
const MOST_TOOLTIPS: usize = 600;

/// The hosts and switches of a machine with the links between them, hosts at the bottom.
///
/// `loads` are the bytes over every directed link; a line shows the busier direction. `placement` writes ranks below
/// hosts. Layers of more than 64 boxes are not drawn but counted in the boxes above. A machine without links is drawn
/// by its cost levels.
#[must_use]
pub fn topology(system: &SystemGraph, loads: Option<&[u64]>, placement: Option<&Mapping>) -> String {
    let drawing = Drawing::new(system, loads, placement);
    let mut svg = Svg::new("Machine", &subtitle(system, placement));
    if drawing.boxes.is_empty() {
        return svg.finish(420.0, 40.0);
    }
    let layout = Layout::new(&drawing);
    let busiest =
        drawing.lines.values().chain(drawing.boxes.iter().map(|node| &node.hidden_load)).flatten().max();
    draw_lines(&mut svg, &drawing, &layout, busiest.copied());
    for (depth, layer) in drawing.layers.iter().rev().enumerate() {
        for &node in layer {
            draw_box(&mut svg, &drawing.boxes[node], &layout, node, depth);
        }
    }
    let mut height = layout.bottom(&drawing);
    if let Some(&busiest) = busiest {
        draw_legend(&mut svg, busiest, height + 8.0);
        height += 44.0;
    }
    if drawing.lines.len() > MOST_LINES {
        let text = format!(
            "the busiest {} of {} links",
            whole(MOST_LINES as u64),
            whole(drawing.lines.len() as u64)
        );
        svg.text(0.0, height + 12.0, "q n", &text);
        height += 20.0;
    }
    svg.finish(layout.width.max(420.0), height)
}

fn subtitle(system: &SystemGraph, placement: Option<&Mapping>) -> String {
    let hosts = system.nodes.iter().filter(|node| node.kind == hopmap_model::NodeKind::Host).count();
    let mut parts = vec![count_of(hosts, "host")];
    if hosts < system.nodes.len() {
        parts.push(count_of(system.nodes.len() - hosts, "switch"));
    }
    parts.push(count_of(system.slots.len(), "slot"));
    if let Some(mapping) = placement {
        parts.push(format!("{} below their hosts", count_of(mapping.ranks.len(), "rank")));
    }
    if system.links.is_empty() && !system.nodes.is_empty() {
        parts.push("links not known: grouped by cost".into());
    }
    parts.join(" · ")
}

/// Where boxes stand.
struct Layout {
    width: f64,
    /// Middle and width of every box.
    columns: Vec<(f64, f64)>,
    /// From the top layer down, the upper edge of every layer.
    tops: Vec<f64>,
}

impl Layout {
    fn new(drawing: &Drawing) -> Self {
        let most = drawing.layers.iter().map(Vec::len).max().unwrap_or(1);
        let width = (most as f64 * 96.0).clamp(480.0, 1180.0);
        let mut columns = vec![(0.0, 0.0); drawing.boxes.len()];
        for (index, layer) in drawing.layers.iter().enumerate() {
            let column = width / layer.len() as f64;
            let gap = if column > READABLE { GAP } else { 2.0 };
            let box_width = (column - gap).min(130.0);
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
            for (&node, middle) in layer.iter().zip(spread(&wanted, box_width + gap, width)) {
                columns[node] = (middle, box_width);
            }
        }
        let tops = (0..drawing.layers.len()).map(|depth| TOP + LAYER_HEIGHT * depth as f64).collect();
        Self { width, columns, tops }
    }

    fn bottom(&self, drawing: &Drawing) -> f64 {
        let last = self.tops.last().copied().unwrap_or(TOP) + BOX_HEIGHT;
        let below = |&node: &usize| match self.columns[node].1 {
            width if width < READABLE => 8.0 + text_width(&drawing.boxes[node].name).min(120.0),
            width => 16.0 * rank_lines(&drawing.boxes[node], width).len() as f64 + 8.0,
        };
        last + drawing.layers[0].iter().map(below).fold(0.0, f64::max) + 8.0
    }
}

fn middle_of_children(drawing: &Drawing, columns: &[(f64, f64)], node: usize) -> Option<f64> {
    let children: Vec<f64> = drawing
        .lines
        .keys()
        .filter(|(lower, upper)| *upper == node && columns[*lower].1 > 0.0)
        .map(|(lower, _)| columns[*lower].0)
        .collect();
    (!children.is_empty()).then(|| children.iter().sum::<f64>() / children.len() as f64)
}

/// Moves boxes, which are in order, as little apart as needed to keep their distance, and inside the width.
fn spread(wanted: &[f64], distance: f64, width: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + distance);
    }
    // Half of what the row was pushed to the right comes back.
    let pushed: f64 = places.iter().zip(wanted).map(|(place, wanted)| place - wanted).sum();
    let back = pushed / places.len().max(1) as f64;
    for place in &mut places {
        *place -= back;
    }
    let mut limit = width - distance / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - distance;
    }
    let mut limit = distance / 2.0;
    for place in &mut places {
        *place = place.max(limit);
        limit = *place + distance;
    }
    places
}

fn draw_lines(svg: &mut Svg, drawing: &Drawing, layout: &Layout, busiest: Option<u64>) {
    let mut depth_of = vec![0; drawing.boxes.len()];
    for (depth, layer) in drawing.layers.iter().rev().enumerate() {
        for &node in layer {
            depth_of[node] = depth;
        }
    }
    let mut lines: Vec<_> = drawing.lines.iter().collect();
    // Busy links on top of idle ones.
    lines.sort_by_key(|(_, load)| **load);
    lines.drain(..lines.len().saturating_sub(MOST_LINES));
    let tooltips = lines.len() <= MOST_TOOLTIPS;
    for (&(lower, upper), &load) in lines {
        let (x1, x2) = (layout.columns[lower].0, layout.columns[upper].0);
        let (from, to) = (layout.tops[depth_of[lower]], layout.tops[depth_of[upper]]);
        let mut path = Path::from(x1, from);
        if depth_of[lower] == depth_of[upper] {
            // Between neighbours in a layer the line makes a bow above them.
            let height = 14.0 + (x2 - x1).abs().min(200.0) * 0.15;
            path.curve_to((x1, from - height), (x2, from - height), (x2, from));
        } else {
            let end = to + BOX_HEIGHT;
            let middle = f64::midpoint(from, end);
            path.curve_to((x1, middle), (x2, middle), (x2, end));
        }
        match (load, busiest) {
            (Some(load), Some(busiest)) => {
                let (colour, width) = line_style(load, busiest);
                if tooltips {
                    let load = quantity(load as f64, Unit::Bytes);
                    svg.open_group("", &format!("{}: {load}", ends(drawing, lower, upper)));
                }
                svg.add(format_args!(
                    "<path d=\"{path}\" fill=\"none\" class=\"{colour}\" stroke-width=\"{}\"/>",
                    Number(width)
                ));
                if tooltips {
                    svg.close_group();
                }
            }
            _ => svg.add(format_args!("<path d=\"{path}\" class=\"a\" opacity=\"0.7\"/>")),
        }
    }
}

fn ends(drawing: &Drawing, lower: usize, upper: usize) -> String {
    format!("{} – {}", drawing.boxes[lower].name, drawing.boxes[upper].name)
}

/// Class and width of a line with this load.
fn line_style(load: u64, busiest: u64) -> (String, f64) {
    if load == 0 || busiest == 0 {
        return ("l".into(), 1.0);
    }
    let share = load as f64 / busiest as f64;
    // The two palest colours are hard to see as lines.
    (format!("s{}", 2 + ramp_index(share) * (RAMP - 3) / (RAMP - 1)), 1.5 + 6.0 * share)
}

fn draw_box(svg: &mut Svg, node: &NodeBox, layout: &Layout, index: usize, depth: usize) {
    let (middle, width) = layout.columns[index];
    let top = layout.tops[depth];
    svg.open_group("", &tooltip(node));
    let used = !node.ranks.is_empty() || node.hidden_ranks > 0;
    svg.rectangle(middle - width / 2.0, top, (width, BOX_HEIGHT), 5.0, "b");
    if used {
        svg.add(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"4\" rx=\"2\" class=\"fk0\"/>",
            Number(middle - width / 2.0),
            Number(top + BOX_HEIGHT - 4.0),
            Number(width)
        ));
    }
    let lines = inside(node);
    if width < READABLE {
        let name = shortened(lines.first().map_or("", String::as_str), 120.0);
        svg.upright_text(middle + 4.0, top + BOX_HEIGHT + 8.0 + text_width(&name), "n", &name);
    } else {
        let first = top + BOX_HEIGHT / 2.0 + 3.0 - 7.0 * (lines.len().min(2) as f64 - 1.0);
        for (line, text) in lines.iter().take(2).enumerate() {
            let class = if line == 0 { "n m w" } else { "n m q" };
            svg.text(middle, first + 14.0 * line as f64, class, &shortened(text, width - 6.0));
        }
        for (line, text) in rank_lines(node, width).iter().enumerate() {
            svg.text(middle, top + BOX_HEIGHT + 16.0 * (line + 1) as f64, "n m q", text);
        }
    }
    svg.close_group();
}

/// What stands in a box.
fn inside(node: &NodeBox) -> Vec<String> {
    let hidden = match (node.hidden_hosts, node.hidden_switches) {
        (0, 0) => String::new(),
        (hosts, 0) => count_of(hosts, "host"),
        (0, switches) => count_of(switches, "switch"),
        (hosts, switches) => format!("{}, {}", count_of(hosts, "host"), count_of(switches, "switch")),
    };
    [node.name.clone(), hidden].into_iter().filter(|line| !line.is_empty()).collect()
}

fn tooltip(node: &NodeBox) -> String {
    let mut parts = inside(node);
    if node.slots > 0 {
        parts.push(format!("{} of {} in use", node.ranks.len(), count_of(node.slots as usize, "slot")));
    }
    if !node.ranks.is_empty() {
        let ranges = ranges(&node.ranks);
        let more = if ranges.len() > MOST_RANGES { ", …" } else { "" };
        parts.push(format!("ranks {}{more}", ranges[..ranges.len().min(MOST_RANGES)].join(", ")));
    }
    if node.hidden_ranks > 0 {
        parts.push(format!("{} ranks", whole(node.hidden_ranks as u64)));
    }
    if let Some(load) = node.hidden_load {
        parts.push(format!("busiest link inside: {}", quantity(load as f64, Unit::Bytes)));
    }
    parts.join(" · ")
}

/// The ranks of a host in lines that fit below it; the last one ends in an ellipsis when there are more.
fn rank_lines(node: &NodeBox, width: f64) -> Vec<String> {
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

fn draw_legend(svg: &mut Svg, busiest: u64, y: f64) {
    const STEPS: usize = 6;
    const STEP: f64 = 34.0;
    svg.text(0.0, y + 12.0, "q n", "bytes over a link");
    let left = 112.0;
    for step in 0..STEPS {
        let load = busiest as f64 * (step + 1) as f64 / STEPS as f64;
        let (colour, width) = line_style(load as u64, busiest);
        let x = left + STEP * step as f64;
        svg.add(format_args!(
            "<path d=\"M{} {1}H{2}\" class=\"{colour}\" stroke-width=\"{3}\"/>",
            Number(x),
            Number(y + 8.0),
            Number(x + STEP - 2.0),
            Number(width)
        ));
    }
    svg.text(left, y + 28.0, "q n", "0 B");
    svg.text(left + STEP * STEPS as f64, y + 28.0, "q n e", &quantity(busiest as f64, Unit::Bytes));
}
