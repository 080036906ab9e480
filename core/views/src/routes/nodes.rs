//! Hosts and switches in a picture of routes.

use hopmap_model::{NodeKind, NodeState};

use super::facts::{Facts, Use, amount, and_more};
use super::geometry::{Area, Point};
use super::lanes::{Lanes, colour};
use super::network::Network;
use super::standing::{Sizes, Standing};
use crate::human::{count_of, six_digits};
use crate::svg::{Number, Svg, shortened_inside, text_width};
use crate::topology::draw_down;

/// Width of type of 11 px against that of 12 px.
const SMALL: f64 = 0.92;
/// Hops of ways that are drawn to be shown where somebody points at their hosts.
const MOST_HOPS: usize = 4000;
/// Processes that are named in a tooltip.
const MOST_NAMED: usize = 24;

/// What is drawn of nodes.
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
        let mut nodes = Self { facts, hidden, has_processes, sizes: NO_SIZES };
        nodes.sizes = nodes.sizes(network);
        nodes
    }

    /// Whether there are hosts without boxes.
    pub(super) fn has_hidden(&self) -> bool {
        self.hidden.iter().any(|hosts| !hosts.is_empty())
    }

    /// Sizes that hold most names.
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
            switch: Point::new((of_switch * 1.06 + 14.0).clamp(36.0, 130.0), 12.0 + 14.0 * lines),
            host: Point::new((of_host + 12.0).clamp(38.0, 92.0), high),
            upright: Point::new(18.0, (of_name + 14.0).clamp(28.0, 110.0)),
        }
    }

    /// What stands in a box.
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

    pub(super) fn draw(&self, svg: &mut Svg, standing: &Standing, lanes: &Lanes) {
        let mut hops = 0;
        for (&node, area) in &standing.areas {
            let class = if self.is_host(node) { "h" } else { "" };
            svg.open_group(class, &self.tooltip(node));
            self.draw_box(svg, node, area);
            if self.is_host(node) {
                let way = self.ways(node, lanes, &mut hops);
                if !way.is_empty() {
                    svg.add(format_args!("<path d=\"{way}\" class=\"p\"/>"));
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
        parts.push(format!("load {}", amount(facts.arriving[node])));
        if !self.hidden[node].is_empty() {
            parts.push(count_of(self.hidden[node].len(), "host"));
            let busiest = self.busiest(node).filter(|(_, usage)| *usage != Use::Idle);
            parts.extend(
                busiest.map(|(link, _)| format!("busiest link of a host {}", facts.says(link, false))),
            );
        }
        parts.join(" · ")
    }

    /// How much a host sends and receives.
    fn sends(&self, node: usize) -> String {
        let routes = || self.facts.routed.routes.routes.iter().filter(|route| !route.links.is_empty());
        let sends = routes().filter(|route| route.source as usize == node);
        let receives = routes().filter(|route| route.destination as usize == node);
        let sum = |bandwidths: &mut dyn Iterator<Item = f64>| amount(bandwidths.sum());
        format!(
            "sends {}, receives {}",
            sum(&mut sends.map(|route| route.bandwidth_bytes_per_s)),
            sum(&mut receives.map(|route| route.bandwidth_bytes_per_s))
        )
    }

    /// The ways that begin or end at a host.
    fn ways(&self, node: usize, lanes: &Lanes, hops: &mut usize) -> String {
        let mut ways = String::new();
        for route in &self.facts.routed.routes.routes {
            if route.source as usize == node || route.destination as usize == node {
                *hops += route.links.len();
                if *hops > MOST_HOPS {
                    return String::new();
                }
                ways.push_str(&lanes.way(&route.links));
            }
        }
        ways
    }
}

const NO_SIZES: Sizes = Sizes {
    switch: Point { x: 0.0, y: 0.0 },
    host: Point { x: 0.0, y: 0.0 },
    upright: Point { x: 0.0, y: 0.0 },
};

fn entries_of(count: usize) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}

/// How a way is drawn where somebody points at a host or a row of the table.
pub(super) fn add_style(svg: &mut Svg) {
    svg.add(format_args!(
        "<style>.hopmap .p{{display:none;pointer-events:none;fill:none;stroke:var(--k3);stroke-width:{};stroke-linecap:round}}\
         .hopmap .h:hover .p{{display:inline}}.hopmap .z{{fill:transparent}}.hopmap .h:hover .z{{fill:var(--b)}}.hopmap .x{{font-size:10px}}</style>",
        Number(6.0)
    ));
}
