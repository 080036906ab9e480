//! A machine as a tree of hosts and switches, or as the grid or the circle that its hosts form.

pub(crate) mod direct;
mod layout;
pub(crate) mod lines;
mod network;

use hopmap_model::{Mapping, NodeKind, NodeState, SystemGraph};
use hopmap_text::grouped;

use crate::human::count_of;
use crate::svg::{Path, Svg, shortened, shortened_inside, text_width};
use layout::{BOX_HEIGHT, Layout, READABLE, bow, rank_lines};
use lines::{Line, Styles, draw_down, draw_line};
use network::{Drawing, NodeBox};

/// Links that are drawn at most, the busiest ones.
const MOST_LINES: usize = 3000;
/// Links have tooltips up to this number.
const MOST_TOOLTIPS: usize = 600;

/// The hosts and switches of a machine with the links between them, hosts at the bottom.
///
/// `loads` are the bytes over every directed link; a line shows the busier direction, of parallel cables the busiest one. Without them
/// its colour shows the bandwidth and its width how many cables there are. `placement` writes ranks below hosts. More than 64
/// hosts are cells below their switches; more than 1500, and layers of more than 64 other boxes, are not drawn but counted in the boxes above.
/// Hosts that are linked to each other without switches are drawn as a grid if they form a mesh or a torus, else as a circle.
/// A machine without links is drawn by its cost levels. Dashed is what is down.
#[must_use]
pub fn topology(system: &SystemGraph, loads: Option<&[u64]>, placement: Option<&Mapping>) -> String {
    scaled_topology(system, loads, placement, "Machine", None)
}

/// The same with a title, and with the load that looks the busiest if that is one of another picture.
#[must_use]
pub fn scaled_topology(
    system: &SystemGraph,
    loads: Option<&[u64]>,
    placement: Option<&Mapping>,
    title: &str,
    busiest: Option<u64>,
) -> String {
    let mut svg = Svg::new(title, &subtitle(system));
    if let Some(size) = direct::draw(&mut svg, system, loads, placement, busiest) {
        return svg.finish(size.0, size.1);
    }
    let drawing = Drawing::new(system, loads, placement);
    if drawing.boxes.is_empty() {
        return svg.finish(420.0, 40.0);
    }
    let layout = Layout::new(&drawing);
    let own = drawing.boxes.iter().filter_map(|node| node.own.as_ref());
    let hidden = drawing.boxes.iter().filter_map(|node| node.hidden_load).chain(busiest).max();
    let styles = Styles::new(drawing.lines.values().chain(own), hidden, drawing.lines.len());
    draw_lines(&mut svg, &drawing, &layout, &styles);
    for (depth, layer) in drawing.layers.iter().rev().enumerate() {
        for &node in layer {
            draw_box(&mut svg, &drawing.boxes[node], &layout, node, depth);
            draw_cells(&mut svg, &drawing, &layout, &styles, node);
        }
    }
    let mut height = layout.bottom(&drawing);
    draw_groups(&mut svg, &layout, height);
    let has_down = system.nodes.iter().any(|node| node.state == NodeState::Down);
    height += styles.legend(&mut svg, height + 8.0, has_down);
    if placement.is_some() {
        svg.rectangle(0.0, height + 8.0, (18.0, 4.0), 2.0, "fk0");
        svg.text(26.0, height + 13.0, "q n", "hosts with ranks");
        height += 20.0;
    }
    if drawing.lines.len() > MOST_LINES {
        let (drawn, all) = (grouped(MOST_LINES), grouped(drawing.lines.len()));
        let text = format!("the busiest {drawn} of {all} links");
        svg.text(0.0, height + 12.0, "q n", &text);
        height += 20.0;
    }
    svg.finish(layout.width.max(420.0), height)
}

fn subtitle(system: &SystemGraph) -> String {
    let of_kind = |kind| system.nodes.iter().filter(move |node| node.kind == kind);
    let (hosts, switches) = (of_kind(NodeKind::Host).count(), of_kind(NodeKind::Switch).count());
    let down = of_kind(NodeKind::Host).filter(|node| node.state == NodeState::Down).count();
    let mut parts = vec![count_of(hosts, "host")];
    if down > 0 {
        parts.push(format!("{} of them down", grouped(down)));
    }
    if switches > 0 {
        parts.push(count_of(switches, "switch"));
    }
    parts.push(count_of(system.slots.len(), "slot"));
    if system.links.is_empty() && !system.nodes.is_empty() {
        parts.push("links not known: grouped by cost".into());
    }
    parts.join(" · ")
}

fn draw_lines(svg: &mut Svg, drawing: &Drawing, layout: &Layout, styles: &Styles) {
    let mut depth_of = vec![0; drawing.boxes.len()];
    for (depth, layer) in drawing.layers.iter().rev().enumerate() {
        for &node in layer {
            depth_of[node] = depth;
        }
    }
    let is_only_layer = drawing.layers.len() == 1;
    let mut lines: Vec<_> = drawing.lines.iter().collect();
    // Busy links on top of idle ones.
    lines.sort_by_key(|(_, line)| line.load);
    lines.drain(..lines.len().saturating_sub(MOST_LINES));
    let tooltips = lines.len() <= MOST_TOOLTIPS;
    for (&(lower, upper), line) in lines {
        let (x1, x2) = (layout.columns[lower].0, layout.columns[upper].0);
        let (from, to) = (layout.tops[depth_of[lower]], layout.tops[depth_of[upper]]);
        let mut path = Path::from(x1, from);
        if depth_of[lower] == depth_of[upper] {
            // Between neighbours in a layer the line makes a bow above them.
            let height = bow((x2 - x1).abs(), is_only_layer);
            path.curve_to((x1, from - height), (x2, from - height), (x2, from));
        } else {
            let end = to + layout.heights[depth_of[upper]];
            let middle = f64::midpoint(from, end);
            path.curve_to((x1, middle), (x2, middle), (x2, end));
        }
        let ends = tooltips.then(|| format!("{} – {}", drawing.boxes[lower].name, drawing.boxes[upper].name));
        draw_line(svg, &path, line, styles, ends.as_deref());
    }
}

fn draw_box(svg: &mut Svg, node: &NodeBox, layout: &Layout, index: usize, depth: usize) {
    let (middle, width) = layout.columns[index];
    let (top, height) = (layout.tops[depth], layout.heights[depth]);
    svg.open_group("", &node.tooltip());
    let used = !node.ranks.is_empty() || node.hidden_ranks > 0;
    svg.rectangle(middle - width / 2.0, top, (width, height), 5.0_f64.min(width / 3.0), "b");
    if node.is_down {
        draw_down(svg, (middle - width / 2.0, top), (width, height));
    }
    if used {
        svg.rectangle(middle - width / 2.0, top + height - 4.0, (width, 4.0), 2.0, "fk0");
    }
    let lines = node.inside();
    let name = lines.first().map_or("", String::as_str);
    if layout.upright[depth] {
        // Type of 11 px is narrower than what is measured.
        let name = shortened_inside(name, (height - 12.0) / 0.92);
        svg.upright_text(middle + 4.0, top + height - 7.0, "n", &name);
    } else if width < READABLE {
        let name = shortened(name, 120.0);
        svg.upright_text(middle + 4.0, top + BOX_HEIGHT + 8.0 + text_width(&name), "n", &name);
    } else {
        let first = top + height / 2.0 + 3.0 - 7.0 * (lines.len().min(2) as f64 - 1.0);
        for (line, text) in lines.iter().take(2).enumerate() {
            let class = if line == 0 { "n m w" } else { "n m q" };
            // Names of switches often differ at their ends; bold type is wider than what is measured.
            svg.text(middle, first + 14.0 * line as f64, class, &shortened_inside(text, width - 14.0));
        }
        for (line, text) in rank_lines(node, width).iter().enumerate() {
            svg.text(middle, top + height + 16.0 * (line + 1) as f64, "n m q", text);
        }
    }
    svg.close_group();
}

/// The hosts of a switch below it.
fn draw_cells(svg: &mut Svg, drawing: &Drawing, layout: &Layout, styles: &Styles, node: usize) {
    let Some(cells) = &layout.cells else { return };
    let hosts = &drawing.boxes[node].cells;
    let (middle, _) = layout.columns[node];
    let columns = cells.columns(hosts.len());
    let rows = cells.rows_of(hosts.len()).max(1);
    let left = middle - columns as f64 * cells.width / 2.0;
    let top = layout.tops.last().zip(layout.heights.last()).map_or(0.0, |(top, height)| top + height + 4.0);
    for (place, &host) in hosts.iter().enumerate() {
        let x = left + (place / rows) as f64 * cells.width;
        let y = top + (place % rows) as f64 * cells.height;
        draw_cell(svg, drawing, styles, host, (x, y), cells);
    }
}

fn draw_cell(
    svg: &mut Svg,
    drawing: &Drawing,
    styles: &Styles,
    host: usize,
    (x, y): (f64, f64),
    cells: &layout::Cells,
) {
    let content = &drawing.boxes[host];
    let mut tooltip = vec![content.tooltip()];
    if let Some(line) = content.own.as_ref().map(Line::description).filter(|tooltip| !tooltip.is_empty()) {
        tooltip.push(format!("link: {line}"));
    }
    for &other in &content.elsewhere {
        tooltip.push(format!("also on {}", drawing.boxes[other].name));
    }
    svg.open_group("", &tooltip.join(" · "));
    let size = (cells.width - 1.5, cells.height - 1.5);
    svg.rectangle(x, y, size, 2.0, "b");
    let load = content.own.as_ref().and_then(|line| styles.fill(line));
    let is_down = content.is_down || content.own.as_ref().is_some_and(Line::is_down);
    let mark = if cells.is_named { 4.0 } else { size.0 };
    if let Some(class) = load {
        svg.rectangle(x, y, (mark, size.1), 2.0, &class);
    }
    if !content.ranks.is_empty() {
        svg.rectangle(x, y + size.1 - 2.5, (size.0, 2.5), 1.0, "fk0");
    }
    if cells.is_named {
        let class = if is_down { "n q" } else { "n" };
        svg.text(x + 7.0, y + 10.5, class, &shortened_inside(&content.name, (size.0 - 8.0) / 0.92));
    }
    if is_down {
        draw_down(svg, (x, y), size);
    }
    svg.close_group();
}

/// Brackets below groups of switches that are all linked to each other.
fn draw_groups(svg: &mut Svg, layout: &Layout, bottom: f64) {
    if layout.groups.len() < 2 {
        return;
    }
    for (index, &(left, right)) in layout.groups.iter().enumerate() {
        svg.line(left, bottom - 22.0, right, bottom - 22.0, "a");
        let text = if right - left > 56.0 { format!("group {}", index + 1) } else { (index + 1).to_string() };
        svg.text(f64::midpoint(left, right), bottom - 9.0, "n m q", &text);
    }
}
