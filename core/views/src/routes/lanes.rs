//! Links as lanes of cables: one per direction, on its right-hand side.

use std::collections::BTreeMap;

use hopmap_model::{NodeKind, NodeState};

use super::geometry::{Area, Curve, Point};
use super::layout::{Layout, Sizes};
use super::network::{Facts, Network, Use, and_more, rate};
use crate::human::{count_of, six_digits};
use crate::svg::{Number, RAMP, Svg, ramp_index, shortened_inside, text_width};
use crate::topology::lines::draw_down;

/// Links that are drawn at most, the busiest ones.
const MOST_LANES: usize = 2000;
/// Links have tooltips up to this number, and wide areas to point at up to that one.
const MOST_TOOLTIPS: usize = 1000;
const MOST_WIDE: usize = 400;
/// Lanes of one cable in one direction; of more links the busiest are drawn.
const MOST_PARALLEL: usize = 3;

/// A link in the picture.
pub(super) struct Lane {
    pub(super) link: usize,
    /// Other links between the same nodes that are not drawn.
    hidden: Vec<usize>,
    is_parallel: bool,
    pub(super) usage: Use,
    /// Its middle, in two parts if it leads around.
    pub(super) curves: Vec<Curve>,
    /// How far it is from the middle of the cable, and how far the edge of the cable.
    pub(super) middle: f64,
    pub(super) edge: f64,
    pub(super) ends: (usize, usize),
}

/// All links of the picture.
pub(super) struct Lanes {
    pub(super) drawn: Vec<Lane>,
    /// The lane of a link.
    of_link: BTreeMap<usize, usize>,
    widest: f64,
    /// Links of the machine between boxes, drawn or not.
    pub(super) all: usize,
}

impl Lanes {
    pub(super) fn new(facts: &Facts<'_>, network: &Network, layout: &Layout) -> Self {
        let drawn: Vec<_> = network
            .cables
            .iter()
            .filter(|((a, b), _)| layout.areas.contains_key(a) && layout.areas.contains_key(b))
            .collect();
        let widest = match drawn.len() {
            0..=60 => 5.5,
            61..=300 => 4.0,
            _ => 2.6,
        };
        let mut lanes = Vec::new();
        for (&(a, b), cable) in drawn {
            for (links, ends) in [(&cable.forth, (a, b)), (&cable.back, (b, a))] {
                lanes.extend(parallel(facts, layout, links, ends, widest * 1.2));
            }
        }
        let all = lanes.iter().map(|lane| 1 + lane.hidden.len()).sum();
        // Busy links on top of idle ones.
        lanes.sort_by(|a, b| order(a.usage).total_cmp(&order(b.usage)).then(a.link.cmp(&b.link)));
        lanes.drain(..lanes.len().saturating_sub(MOST_LANES));
        let links = |(index, lane): (usize, &Lane)| {
            let all: Vec<usize> = std::iter::once(lane.link).chain(lane.hidden.iter().copied()).collect();
            all.into_iter().map(move |link| (link, index))
        };
        Self { of_link: lanes.iter().enumerate().flat_map(links).collect(), drawn: lanes, widest, all }
    }

    /// The lane of a link, if it is drawn.
    pub(super) fn of(&self, link: usize) -> Option<&Lane> {
        self.of_link.get(&link).map(|&lane| &self.drawn[lane])
    }

    pub(super) fn draw(&self, svg: &mut Svg, facts: &Facts<'_>) {
        for lane in &self.drawn {
            match self.drawn.len() <= MOST_TOOLTIPS {
                true => svg.group(&tooltip(facts, lane), |svg| self.draw_lane(svg, lane)),
                false => self.draw_lane(svg, lane),
            }
        }
    }

    fn draw_lane(&self, svg: &mut Svg, lane: &Lane) {
        let (class, width) = self.look(lane.usage);
        let is_busy = matches!(lane.usage, Use::Part(_) | Use::Unknown(_));
        let length = lane.curves.last().map_or(0.0, Curve::length);
        let head = if is_busy { (width * 0.9 + 4.0).min(length * 0.5) } else { 0.0 };
        let mut course = String::new();
        for (place, curve) in lane.curves.iter().enumerate() {
            let is_last = place + 1 == lane.curves.len();
            let cut = if is_last { 1.0 - head / curve.length().max(1.0) } else { 1.0 };
            course.push_str(&curve.between(0.0, cut.clamp(0.0, 1.0)).markup());
        }
        let more = match lane.usage {
            Use::Down => " stroke-dasharray=\"3 3\"",
            Use::Idle => " opacity=\".6\"",
            _ => "",
        };
        let look = format!("class=\"{class}\" fill=\"none\" stroke-width=\"{}\"{more}", Number(width));
        svg.add(format_args!("<path d=\"{course}\" {look}/>"));
        if let Some(curve) = lane.curves.last().filter(|_| is_busy) {
            draw_head(svg, curve, head, width / 2.0 + 1.8, &class.replacen('s', "f", 1));
        }
        if self.drawn.len() <= MOST_WIDE {
            let whole: String = lane.curves.iter().map(Curve::markup).collect();
            let width = Number(self.widest * 1.2);
            svg.add(format_args!(
                "<path d=\"{whole}\" fill=\"none\" stroke=\"transparent\" stroke-width=\"{width}\"/>"
            ));
        }
    }

    /// Class and width of a lane.
    pub(super) fn look(&self, usage: Use) -> (String, f64) {
        let width = |part: f64| 1.6 + (self.widest - 1.6) * part.clamp(0.0, 1.0);
        match usage {
            Use::Down => ("sk1".into(), 1.5),
            Use::Idle => ("a".into(), 0.8),
            Use::Part(part) if Facts::is_over(part) => ("sk1".into(), self.widest),
            Use::Part(part) => (format!("s{}", colour(part)), width(part)),
            Use::Unknown(part) => ("sk6".into(), width(part)),
        }
    }

    /// The course of a route as path data.
    pub(super) fn path_data(&self, links: &[u32]) -> String {
        let lanes = links.iter().filter_map(|&link| self.of(link as usize));
        lanes.flat_map(|lane| &lane.curves).map(Curve::markup).collect()
    }
}

/// The colour of a part on the ramp; the two palest colours are hard to see as lines.
pub(super) fn colour(part: f64) -> usize {
    2 + ramp_index(part.clamp(0.0, 1.0)) * (RAMP - 3) / (RAMP - 1)
}

/// Parallel links from a node to another.
fn parallel(
    facts: &Facts<'_>,
    layout: &Layout,
    links: &[usize],
    ends: (usize, usize),
    pitch: f64,
) -> Vec<Lane> {
    let mut drawn = links.to_vec();
    drawn.sort_by(|&a, &b| order(facts.usage(b)).total_cmp(&order(facts.usage(a))).then(a.cmp(&b)));
    let hidden = drawn.split_off(drawn.len().min(MOST_PARALLEL));
    let edge = pitch * drawn.len() as f64;
    let lane = |(place, &link): (usize, &usize)| Lane {
        link,
        hidden: if place == 0 { hidden.clone() } else { Vec::new() },
        is_parallel: links.len() > 1,
        usage: facts.usage(link),
        curves: layout.course(ends.0, ends.1, pitch * (place as f64 + 0.5)),
        middle: pitch * (place as f64 + 0.5),
        edge,
        ends,
    };
    drawn.iter().enumerate().map(lane).collect()
}

/// The busier, the larger.
fn order(usage: Use) -> f64 {
    match usage {
        Use::Idle => 0.0,
        Use::Down => 1e-9,
        Use::Part(part) | Use::Unknown(part) => part,
    }
}

/// The head of an arrow at the end of a curve.
fn draw_head(svg: &mut Svg, curve: &Curve, length: f64, half: f64, class: &str) {
    let direction = curve.direction(1.0);
    let back = curve.to.minus(direction.times(length));
    let side = direction.right().times(half);
    let corners: [Point; 3] = [curve.to, back.plus(side), back.minus(side)];
    let [a, b, c] = corners.map(|corner| format!("{} {}", Number(corner.x), Number(corner.y)));
    svg.add(format_args!("<path d=\"M{a}L{b}L{c}z\" class=\"{class}\"/>"));
}

fn tooltip(facts: &Facts<'_>, lane: &Lane) -> String {
    const MOST: usize = 5;
    let mut tooltip = facts.description(lane.link, lane.is_parallel);
    for &link in lane.hidden.iter().take(MOST) {
        tooltip.push_str(&format!("\u{2003}{}", facts.description(link, true)));
    }
    if lane.hidden.len() > MOST {
        tooltip.push_str(&format!("\u{2003}and {} more", lane.hidden.len() - MOST));
    }
    tooltip
}

/// Width of type of 11 px against that of 12 px.
pub(super) const SMALL: f64 = 0.92;
/// Width above which names are shortened.
const WIDEST_BOX: f64 = 260.0;
/// Hops of the routes that are drawn to be shown while the pointer is on their hosts.
const MOST_HOPS: usize = 4000;
/// Processes that are named in a tooltip.
const MOST_NAMED: usize = 24;

/// Contents of the boxes of nodes.
pub(super) struct Nodes<'a> {
    facts: &'a Facts<'a>,
    /// Of every switch, its hosts, if they have no boxes of their own.
    hidden: Vec<Vec<usize>>,
    has_processes: bool,
    /// Of switches and hosts.
    pub(super) sizes: Sizes,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(facts: &'a Facts<'a>, network: &Network, has_hosts: bool) -> Self {
        let nodes = &facts.routed.system.nodes;
        let hidden = if has_hosts { vec![Vec::new(); nodes.len()] } else { network.hosts_at() };
        let has_processes = facts.processes.iter().any(|names| !names.is_empty());
        let mut nodes = Self { facts, hidden, has_processes, sizes: Sizes::default() };
        nodes.sizes = nodes.sizes(network);
        nodes
    }

    /// Whether there are hosts without boxes.
    pub(super) fn has_hidden(&self) -> bool {
        self.hidden.iter().any(|hosts| !hosts.is_empty())
    }

    /// Sizes that hold the names.
    fn sizes(&self, network: &Network) -> Sizes {
        let (hosts, switches): (Vec<usize>, Vec<usize>) =
            (0..network.home.len()).partition(|&node| network.is_host[node]);
        let widest = |nodes: &[usize], lines: &dyn Fn(usize) -> Vec<String>| {
            let all = nodes.iter().flat_map(|&node| lines(node));
            all.map(|line| text_width(&line)).fold(0.0, f64::max) * SMALL
        };
        let of_switch = widest(&switches, &|node| self.lines(node));
        let of_host = widest(&hosts, &|node| self.lines(node));
        let of_name = widest(&hosts, &|node| self.lines(node).into_iter().take(1).collect());
        let high = if self.has_processes { 37.0 } else { 22.0 };
        let lines = switches.iter().map(|&node| self.lines(node).len()).max().unwrap_or(1) as f64;
        Sizes {
            switch: Point::new((of_switch * 1.06 + 14.0).clamp(36.0, WIDEST_BOX), 12.0 + 14.0 * lines),
            // Lists of processes are shortened, names are not.
            host: Point::new((of_host.min(80.0).max(of_name * 1.06) + 12.0).clamp(38.0, WIDEST_BOX), high),
            upright: Point::new(18.0, (of_name + 14.0).clamp(28.0, WIDEST_BOX)),
        }
    }

    /// The text in a box.
    fn lines(&self, node: usize) -> Vec<String> {
        let facts = self.facts;
        let content = &facts.routed.system.nodes[node];
        let mut lines = vec![content.name.clone()];
        if content.kind == NodeKind::Host {
            let processes = facts.processes[node].join(", ");
            lines.extend((!processes.is_empty()).then_some(processes));
            return lines;
        }
        lines.extend(content.traits.switch_type.map(|kind| format!("type {}", kind.number())));
        match (self.hidden[node].len(), &facts.entries) {
            (0, Some(entries)) => lines.push(entries_of(entries[node])),
            (0, None) => {}
            (hosts, _) => lines.push(count_of(hosts, "host")),
        }
        lines
    }

    pub(super) fn draw(&self, svg: &mut Svg, layout: &Layout, lanes: &Lanes) {
        let mut hops = 0;
        for (&node, area) in &layout.areas {
            let class = if self.is_host(node) { "h" } else { "" };
            svg.open_group(class, &self.tooltip(node));
            self.draw_box(svg, node, area);
            if self.is_host(node) {
                let paths = self.paths(node, lanes, &mut hops);
                if !paths.is_empty() {
                    svg.add(format_args!("<path d=\"{paths}\" class=\"p sk3\"/>"));
                }
            }
            svg.close_group();
        }
    }

    fn is_host(&self, node: usize) -> bool {
        self.facts.routed.system.nodes[node].kind == NodeKind::Host
    }

    fn draw_box(&self, svg: &mut Svg, node: usize, area: &Area) {
        let size = (2.0 * area.half.x, 2.0 * area.half.y);
        let is_host = self.is_host(node);
        svg.rectangle(area.left(), area.top(), size, if is_host { 9.0 } else { 3.0 }, "b");
        let is_down = self.facts.routed.system.nodes[node].state == NodeState::Down;
        if is_down {
            draw_down(svg, (area.left(), area.top()), size);
        }
        if let Some(class) = self.strip(node) {
            let inset = (size.0 / 4.0).min(7.0);
            svg.rectangle(area.left() + inset, area.bottom() - 3.5, (size.0 - 2.0 * inset, 3.5), 1.5, &class);
        }
        let lines = self.lines(node);
        if is_host && size.0 < self.sizes.host.x {
            let name = shortened_inside(&lines[0], (size.1 - 8.0) / SMALL);
            svg.upright_text(area.middle.x + 4.0, area.bottom() - 7.0, "n", &name);
            return;
        }
        let first = area.middle.y + if is_host { 3.0 } else { 4.0 } - 7.0 * (lines.len() as f64 - 1.0);
        for (line, text) in lines.iter().enumerate() {
            let class = match (line, is_host, is_down) {
                (0, false, _) => "n m w",
                (0, true, false) => "n m",
                _ => "n m q",
            };
            let text = shortened_inside(text, (size.0 - 8.0) / SMALL / if line == 0 { 1.06 } else { 1.0 });
            svg.text(area.middle.x, first + 14.0 * line as f64, class, &text);
        }
    }

    /// The colour at the bottom of a box: that there are processes, or how busy the links of hosts are that have no boxes.
    fn strip(&self, node: usize) -> Option<String> {
        if self.is_host(node) {
            return (!self.facts.processes[node].is_empty()).then(|| "fk0".into());
        }
        match self.busiest(node)?.1 {
            Use::Part(part) if Facts::is_over(part) => Some("fk1".into()),
            Use::Part(part) => Some(format!("f{}", colour(part))),
            _ => None,
        }
    }

    /// The busiest link between a switch and its hosts that have no boxes.
    fn busiest(&self, switch: usize) -> Option<(usize, Use)> {
        let facts = self.facts;
        let is_hidden = |node: u32| self.hidden[switch].binary_search(&(node as usize)).is_ok();
        let links = facts.routed.system.links.iter().enumerate().filter(|(_, link)| {
            (link.source as usize == switch && is_hidden(link.destination))
                || (link.destination as usize == switch && is_hidden(link.source))
        });
        let part = |usage: Use| if let Use::Part(part) = usage { part } else { -1.0 };
        let of_link = |(link, _): (usize, &hopmap_model::Link)| (link, facts.usage(link));
        if self.hidden[switch].is_empty() {
            return None;
        }
        links.map(of_link).reduce(|best, next| if part(next.1) > part(best.1) { next } else { best })
    }

    fn tooltip(&self, node: usize) -> String {
        let facts = self.facts;
        let content = &facts.routed.system.nodes[node];
        let mut parts = vec![content.name.clone()];
        if content.state == NodeState::Down {
            parts.push("down".into());
        }
        if content.kind == NodeKind::Host {
            parts
                .extend(content.traits.performance.map(|there| format!("performance {}", six_digits(there))));
            let names = &facts.processes[node];
            if !names.is_empty() {
                let shown = names.len().min(MOST_NAMED);
                parts.push(format!("runs {}{}", names[..shown].join(", "), and_more(names.len(), shown)));
            }
            parts.push(self.sends(node));
            return parts.join(" · ");
        }
        parts.extend(content.traits.switch_type.map(|kind| match kind.number() {
            1 => "type 1: one table".into(),
            number => format!("type {number}: a table for every port"),
        }));
        parts.extend(facts.entries.as_ref().map(|entries| entries_of(entries[node])));
        parts.push(format!("load {}", rate(facts.arriving[node])));
        if !self.hidden[node].is_empty() {
            parts.push(count_of(self.hidden[node].len(), "host"));
            let busiest = self.busiest(node).filter(|(_, usage)| *usage != Use::Idle);
            parts.extend(
                busiest.map(|(link, _)| format!("busiest link of a host {}", facts.description(link, false))),
            );
        }
        parts.join(" · ")
    }

    /// How much a host sends and receives.
    fn sends(&self, node: usize) -> String {
        let routes = || self.facts.routed.routes.routes.iter().filter(|route| !route.links.is_empty());
        let sends = routes().filter(|route| route.source as usize == node);
        let receives = routes().filter(|route| route.destination as usize == node);
        let sum = |bandwidths: &mut dyn Iterator<Item = f64>| rate(bandwidths.sum());
        let sent = sum(&mut sends.map(|route| route.bandwidth_bytes_per_s));
        format!("sends {sent}, receives {}", sum(&mut receives.map(|route| route.bandwidth_bytes_per_s)))
    }

    /// The routes that begin or end at a host.
    fn paths(&self, node: usize, lanes: &Lanes, hops: &mut usize) -> String {
        let mut paths = String::new();
        for route in &self.facts.routed.routes.routes {
            if route.source as usize == node || route.destination as usize == node {
                *hops += route.links.len();
                if *hops > MOST_HOPS {
                    return String::new();
                }
                paths.push_str(&lanes.path_data(&route.links));
            }
        }
        paths
    }
}

fn entries_of(count: usize) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}

/// Look of a route while the pointer is on its host or its row of the table.
pub(super) fn add_style(svg: &mut Svg) {
    svg.add(format_args!(
        "<style>.hopmap .p{{display:none;pointer-events:none;fill:none;stroke-width:{};stroke-linecap:round}}\
         .hopmap .h:hover .p{{display:inline}}.hopmap .z{{fill:#808080;fill-opacity:0}}.hopmap .h:hover .z{{fill-opacity:.12}}.hopmap .x{{font-size:10px}}</style>",
        Number(6.0)
    ));
}
