//! Hosts that are linked to each other without switches: a grid if they form a mesh or a torus, else a circle.

use hopmap_model::{Mapping, NodeKind, NodeState, SystemGraph};

use super::lines::{Line, Styles, draw_down, draw_line};
use super::network::{Drawing, NodeBox};
use crate::human::ranges;
use crate::svg::{Escaped, Number, Path, Svg, shortened, text_width};

/// Hosts that are drawn.
const MOST: usize = 1024;
/// Links that have tooltips.
const MOST_TOOLTIPS: usize = 3000;
const TOP: f64 = 66.0;
const WIDTH: f64 = 1180.0;
/// Length of the rest of a link that leads around, or to another plane.
const STUB: f64 = 11.0;

/// Draws the machine if it is such a one; width and height of the picture.
pub(super) fn draw(
    svg: &mut Svg,
    system: &SystemGraph,
    loads: Option<&[u64]>,
    placement: Option<&Mapping>,
    busiest: Option<u64>,
) -> Option<(f64, f64)> {
    let is_direct = system.nodes.iter().all(|node| node.kind == NodeKind::Host)
        && !system.links.is_empty()
        && (2..=MOST).contains(&system.nodes.len());
    if !is_direct {
        return None;
    }
    let drawing = Drawing::whole(system, loads, placement);
    let styles = Styles::new(drawing.lines.values(), busiest, 0);
    let pairs: Vec<(usize, usize)> = drawing.lines.keys().copied().collect();
    let (width, height) = match Grid::of(drawing.boxes.len(), &pairs) {
        Some(grid) => grid.draw(svg, &drawing, &styles),
        None => circular_layout(svg, &drawing, &styles),
    };
    let has_down = system.nodes.iter().any(|node| node.state == NodeState::Down);
    let legend = styles.legend(svg, height + 8.0, has_down);
    Some((width.max(560.0), height + legend + 4.0))
}

/// Sizes of a mesh or torus whose nodes are in order, the first dimension first.
pub(crate) struct Grid {
    pub(crate) sizes: [usize; 3],
}

/// How a link leads from one node to another: along which dimension, and whether around.
pub(crate) struct Step {
    pub(crate) dimension: usize,
    pub(crate) is_around: bool,
}

impl Grid {
    /// The sizes with which every pair of `count` nodes are neighbours, if there are any.
    pub(crate) fn of(count: usize, pairs: &[(usize, usize)]) -> Option<Self> {
        let divisors: Vec<usize> = (2..=count / 2).filter(|size| count.is_multiple_of(*size)).collect();
        let flat = divisors.iter().map(|&first| [first, count / first, 1]);
        let solid = divisors.iter().flat_map(|&first| {
            let rest = count / first;
            divisors
                .iter()
                .filter(move |&&second| rest.is_multiple_of(second) && rest / second > 1)
                .map(move |&second| [first, second, rest / second])
        });
        let line = (count <= 16).then_some([count, 1, 1]);
        let fits = |sizes: &[usize; 3]| {
            let grid = Self { sizes: *sizes };
            let is_around = |&(a, b): &(usize, usize)| grid.step(a, b).is_none_or(|step| step.is_around);
            match sizes[1] {
                1 => !pairs.iter().any(is_around),
                _ => pairs.iter().all(|&(a, b)| grid.step(a, b).is_some()),
            }
        };
        line.into_iter().chain(flat).chain(solid).find(fits).map(|sizes| Self { sizes })
    }

    pub(crate) fn place(&self, node: usize) -> [usize; 3] {
        let [first, second, _] = self.sizes;
        [node % first, node / first % second, node / first / second]
    }

    pub(crate) fn step(&self, a: usize, b: usize) -> Option<Step> {
        let (from, to) = (self.place(a), self.place(b));
        let mut differ = (0..3).filter(|&dimension| from[dimension] != to[dimension]);
        let dimension = differ.next()?;
        let far = from[dimension].abs_diff(to[dimension]);
        let is_around = far > 1;
        (differ.next().is_none() && (far == 1 || far + 1 == self.sizes[dimension]))
            .then_some(Step { dimension, is_around })
    }

    fn draw(&self, svg: &mut Svg, drawing: &Drawing, styles: &Styles) -> (f64, f64) {
        let [across, down, planes] = self.sizes;
        let longest = drawing.boxes.iter().map(|node| text_width(&node.name)).fold(0.0, f64::max) * 0.92;
        let has_ranks = drawing.boxes.iter().any(|node| !node.ranks.is_empty());
        let between = 22.0;
        let planes_in_row = ((WIDTH / (across as f64 * 66.0 + 40.0)) as usize).clamp(1, planes);
        let room = WIDTH / planes_in_row as f64 - 40.0;
        let wide = (longest + 12.0).clamp(26.0, 110.0).min((room / across as f64 - between).max(12.0));
        let high = if has_ranks && wide > 30.0 { 34.0 } else { 22.0 };
        let pitch = (wide + between, high + between);
        let plane = (across as f64 * pitch.0 + 36.0, down as f64 * pitch.1 + 36.0);
        let corner = |host: usize| {
            let [column, row, level] = self.place(host);
            let (right, below) = (level % planes_in_row, level / planes_in_row);
            let x = 16.0 + right as f64 * plane.0 + column as f64 * pitch.0;
            (x, TOP + 8.0 + below as f64 * plane.1 + row as f64 * pitch.1)
        };
        let size = (wide, high);
        self.draw_links(svg, drawing, styles, &corner, size);
        for (host, node) in drawing.boxes.iter().enumerate() {
            draw_host(svg, node, corner(host), size);
        }
        let rows = planes.div_ceil(planes_in_row);
        let mut height = TOP + rows as f64 * plane.1 - 8.0;
        let is_around = |&(a, b): &(usize, usize)| self.step(a, b).is_some_and(|step| step.is_around);
        let mut notes = Vec::new();
        if drawing.lines.keys().any(is_around) {
            notes.push("short lines at the edges lead around to the other edge");
        }
        if planes > 1 {
            notes.push("slanting ones to the next plane");
        }
        if !notes.is_empty() {
            svg.text(0.0, height + 8.0, "q n", &notes.join(", "));
            height += 18.0;
        }
        (planes_in_row as f64 * plane.0 + 8.0, height)
    }

    fn draw_links(
        &self,
        svg: &mut Svg,
        drawing: &Drawing,
        styles: &Styles,
        corner: &impl Fn(usize) -> (f64, f64),
        (wide, high): (f64, f64),
    ) {
        let mut lines: Vec<_> = drawing.lines.iter().collect();
        lines.sort_by_key(|(_, line)| line.load);
        let has_tooltips = lines.len() <= MOST_TOOLTIPS;
        for (&(a, b), line) in lines {
            let Some(step) = self.step(a, b) else { continue };
            // The one that is first along the dimension.
            let (low, high_end) = if self.place(a) <= self.place(b) { (a, b) } else { (b, a) };
            let (x1, y1) = corner(low);
            let (x2, y2) = corner(high_end);
            let (half, middle) = (wide / 2.0, high / 2.0);
            let mut path = Path::default();
            match (step.dimension, step.is_around) {
                (0, false) => path.line(x1 + wide, y1 + middle, x2, y2 + middle),
                (1, false) => path.line(x1 + half, y1 + high, x2 + half, y2),
                (0, true) => {
                    path.line(x1, y1 + middle, x1 - STUB, y1 + middle);
                    path.line(x2 + wide, y2 + middle, x2 + wide + STUB, y2 + middle);
                }
                (1, true) => {
                    path.line(x1 + half, y1, x1 + half, y1 - STUB);
                    path.line(x2 + half, y2 + high, x2 + half, y2 + high + STUB);
                }
                (_, is_around) => {
                    // Upwards to the right is on, downwards to the left is back.
                    let (on, back) = if is_around { (high_end, low) } else { (low, high_end) };
                    let ((x1, y1), (x2, y2)) = (corner(on), corner(back));
                    path.line(x1 + wide - 3.0, y1, x1 + wide + STUB * 0.7, y1 - STUB * 0.8);
                    path.line(x2 + 3.0, y2 + high, x2 - STUB * 0.7, y2 + high + STUB * 0.8);
                }
            }
            let name = has_tooltips
                .then(|| format!("{} – {}", drawing.boxes[low].name, drawing.boxes[high_end].name));
            draw_line(svg, &path, line, styles, name.as_deref());
        }
    }
}

fn draw_host(svg: &mut Svg, node: &NodeBox, (x, y): (f64, f64), (wide, high): (f64, f64)) {
    svg.open_group("", &node.tooltip());
    svg.rectangle(x, y, (wide, high), 4.0, "b");
    if node.is_down {
        draw_down(svg, (x, y), (wide, high));
    }
    let has_ranks = !node.ranks.is_empty();
    if has_ranks {
        svg.rectangle(x, y + high - 3.0, (wide, 3.0), 1.5, "fk0");
    }
    let room = (wide - 6.0) / 0.92;
    if room >= text_width(&node.name).min(24.0) {
        let class = if node.is_down { "n m q" } else { "n m" };
        svg.text(x + wide / 2.0, y + 14.0, class, &shortened(&node.name, room));
        if has_ranks && high > 30.0 {
            svg.text(x + wide / 2.0, y + 27.0, "n m q", &shortened(&ranges(&node.ranks).join(", "), room));
        }
    }
    svg.close_group();
}

/// All hosts on a circle in their order, links across it.
fn circular_layout(svg: &mut Svg, drawing: &Drawing, styles: &Styles) -> (f64, f64) {
    let count = drawing.boxes.len();
    let longest =
        drawing.boxes.iter().map(|node| text_width(&node.name)).fold(0.0, f64::max).min(120.0) * 0.92;
    let full = std::f64::consts::TAU;
    let radius = (count as f64 * 18.0 / full).clamp(90.0, 520.0);
    let between = radius * full / count as f64;
    let is_named = between > 11.0;
    let margin = if is_named { longest + 22.0 } else { 14.0 };
    let centre = (radius + margin, TOP + radius + margin - 10.0);
    let angle = |host: usize| full * (host as f64 / count as f64 - 0.25);
    let at = |host: usize, share: f64| {
        let angle = angle(host);
        (centre.0 + radius * share * libm::cos(angle), centre.1 + radius * share * libm::sin(angle))
    };
    let mut lines: Vec<_> = drawing.lines.iter().collect();
    lines.sort_by_key(|(_, line): &(_, &Line)| line.load);
    let has_tooltips = lines.len() <= MOST_TOOLTIPS;
    for (&(a, b), line) in lines {
        let mut path = Path::from(at(a, 1.0).0, at(a, 1.0).1);
        let far = a.abs_diff(b).min(count - a.abs_diff(b));
        // Neighbours are joined on the circle, others the nearer to its middle the farther they are apart.
        let share = if far <= 1 { 1.0 } else { 0.9 - 0.8 * (far as f64 / count as f64 * 2.0) };
        let end = at(b, 1.0);
        if far <= 1 {
            path.line_to(end.0, end.1);
        } else {
            path.curve_to(at(a, share), at(b, share), end);
        }
        let name = has_tooltips.then(|| format!("{} – {}", drawing.boxes[a].name, drawing.boxes[b].name));
        draw_line(svg, &path, line, styles, name.as_deref());
    }
    let size = (between * 0.62).clamp(4.0, 13.0);
    for (host, node) in drawing.boxes.iter().enumerate() {
        svg.open_group("", &node.tooltip());
        let (x, y) = at(host, 1.0);
        svg.rectangle(x - size / 2.0, y - size / 2.0, (size, size), 2.0, "b");
        if !node.ranks.is_empty() {
            svg.rectangle(x - size / 2.0, y - size / 2.0, (size, size), 2.0, "fk0");
        }
        if node.is_down {
            draw_down(svg, (x - size / 2.0, y - size / 2.0), (size, size));
        }
        if is_named {
            draw_name(svg, &node.name, centre, radius + size / 2.0 + 5.0, angle(host));
        }
        svg.close_group();
    }
    (2.0 * (radius + margin), centre.1 + radius + margin)
}

/// A name that leads outwards from the circle, never upside down.
fn draw_name(svg: &mut Svg, name: &str, centre: (f64, f64), radius: f64, angle: f64) {
    let is_left = libm::cos(angle) < -1e-9;
    let (x, y) = (centre.0 + radius * libm::cos(angle), centre.1 + radius * libm::sin(angle));
    let degrees = angle.to_degrees() + if is_left { 180.0 } else { 0.0 };
    let ([x, y, degrees], class) = ([x, y, degrees].map(Number), if is_left { "n e" } else { "n" });
    let (turn, name) = (format!("translate({x},{y})rotate({degrees})"), shortened(name, 120.0));
    let name = Escaped(&name);
    svg.add(format_args!("<text transform=\"{turn}\" dy=\"3.5\" class=\"{class}\">{name}</text>"));
}
