//! Routes of streams through a network, the load of links, and the busiest ones.

mod embedding;
mod geometry;
mod lanes;
mod layout;
mod network;
mod table;

use std::collections::BTreeMap;

use hopmap_model::{Route, Routes};
use hopmap_text::grouped;

use crate::human::count_of;
use crate::svg::{Number, Svg, shortened_inside, text_width};
use geometry::{Area, Point};
use lanes::{Lane, Lanes, Nodes, SMALL, colour};
use layout::Layout;
use network::{Facts, Network, Use, percent};
use table::{Table, WIDEST_NAME};

pub use network::Routed;

const TOP: f64 = 58.0;
const LEFT: f64 = 6.0;

/// The hosts and switches of a machine, each direction of every cable with its load as a part of its bandwidth, and below it the streams
/// with the longest routes.
///
/// The longest route and a cycle of links that can wait for each other are marked. While the pointer is on a host or a row of the
/// table, its routes are shown. Switches are on a grid if they form a mesh or a torus in the order of their numbers, on a circle if they
/// form a ring, in layers if every cable joins one layer with the next, else as far apart as they are in the network. Above 128 nodes
/// only switches are drawn, with the number of their hosts; more than 400 switches are not drawn.
#[must_use]
pub fn routes(routed: &Routed<'_>) -> String {
    let facts = Facts::new(*routed);
    let subtitle = facts.subtitle();
    let mut svg = Svg::new("Routes", &subtitle);
    let table = Table::new(&facts);
    let least = table.width.max(text_width(&subtitle));
    let has_hosts = layout::has_hosts(routed.system);
    let network = Network::new(routed.system, has_hosts);
    let nodes = Nodes::new(&facts, &network, has_hosts);
    let Some(layout) = Layout::new(&network, &nodes.sizes, has_hosts) else {
        let mut height = 40.0;
        if !routed.system.nodes.is_empty() {
            svg.text(0.0, TOP, "q", "The network is too large to be drawn.");
            height += 30.0;
        }
        height += table.draw(&mut svg, None, height);
        return svg.finish(least, height);
    };
    let left = LEFT.max((table.width - layout.width) / 2.0);
    let layout = layout.shifted(Point::new(left, TOP));
    let lanes = Lanes::new(&facts, &network, &layout);
    lanes::add_style(&mut svg);
    lanes.draw(&mut svg, &facts);
    draw(&mut svg, &facts, &layout, &lanes);
    draw_labels(&mut svg, &facts, &layout, (&lanes, table.width));
    nodes.draw(&mut svg, &layout, &lanes);
    let mut height = TOP + layout.height + 22.0;
    for note in notes(&layout, &lanes, &nodes) {
        svg.text(0.0, height + 4.0, "q n", &note);
        height += 18.0;
    }
    if !lanes.drawn.is_empty() {
        height += legend(&mut svg, &facts, &lanes, height) + 8.0;
    }
    height += table.draw(&mut svg, Some(&lanes), height);
    svg.finish((LEFT + layout.width).max(least), height)
}

fn notes(layout: &Layout, lanes: &Lanes, nodes: &Nodes<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    if nodes.has_hidden() {
        sentences.push("at the bottom of a switch: the busiest link of its hosts".to_owned());
    }
    if !layout.around.is_empty() {
        sentences.push("short lines at the edges lead around to the other edge".to_owned());
    }
    if lanes.all > lanes.drawn.len() {
        let (drawn, all) = (grouped(lanes.drawn.len()), grouped(lanes.all));
        sentences.push(format!(
            "the busiest {drawn} of {all} links; others between the same nodes are in their tooltips"
        ));
    }
    sentences
}

/// Between the edge of a cable and the line next to it that marks the longest route or the cycle.
const LONGEST: f64 = 2.2;
const CYCLE: f64 = 5.6;
/// Links that are marked.
const MOST_MARKED: usize = 400;
/// Number of busy links above which none is labelled.
const MOST_LABELS: usize = 64;
/// Width of a row of the legend.
const WIDE: f64 = 760.0;
const SAMPLE: f64 = 26.0;

/// The route with most links, of several the one with the largest bandwidth; nothing if all have as many.
fn longest(routes: &Routes) -> Option<&Route> {
    let lengths = || routes.routes.iter().map(|route| route.links.len()).filter(|&length| length > 0);
    let most = lengths().max()?;
    let bandwidth = |route: &&Route| route.bandwidth_bytes_per_s;
    let of_most = routes.routes.iter().filter(|route| route.links.len() == most);
    let first = of_most.reduce(|best, next| if bandwidth(&next) > bandwidth(&best) { next } else { best });
    first.filter(|_| lengths().count() == 1 || lengths().any(|length| length < most))
}

/// Lines next to the cables of the longest route and of the cycle.
fn draw(svg: &mut Svg, facts: &Facts<'_>, layout: &Layout, lanes: &Lanes) {
    let routes = facts.routed.routes;
    let longest_links = longest(routes).map(|route| &route.links[..]).unwrap_or_default();
    for (links, by, look) in [
        (longest_links, LONGEST, "class=\"i\" stroke-width=\"1.3\" stroke-dasharray=\"6 3\""),
        (&routes.cycle[..], CYCLE, "class=\"sk3\" stroke-width=\"2.4\" stroke-dasharray=\"2 3\""),
    ] {
        let mut course = String::new();
        for lane in links.iter().take(MOST_MARKED).filter_map(|&link| lanes.of(link as usize)) {
            for curve in layout.course(lane.ends.0, lane.ends.1, lane.edge + by) {
                course.push_str(&curve.markup());
            }
        }
        if !course.is_empty() {
            svg.add(format_args!("<path d=\"{course}\" fill=\"none\" {look}/>"));
        }
    }
}

/// Writes the load next to busy links, where there is room.
fn draw_labels(svg: &mut Svg, facts: &Facts<'_>, layout: &Layout, (lanes, width): (&Lanes, f64)) {
    let busy: Vec<&Lane> =
        lanes.drawn.iter().rev().filter(|lane| matches!(lane.usage, Use::Part(_))).collect();
    if busy.len() > MOST_LABELS {
        return;
    }
    let marked = longest(facts.routed.routes).map(|route| &route.links[..]).unwrap_or_default();
    let mut taken: Vec<Area> = layout.areas.values().copied().collect();
    for lane in busy {
        let Use::Part(part) = lane.usage else { continue };
        let text = percent(part);
        let is_in = |links: &[u32]| links.contains(&(lane.link as u32));
        let next_to = match (is_in(&facts.routed.routes.cycle), is_in(marked)) {
            (true, _) => CYCLE + 2.0,
            (_, true) => LONGEST + 2.0,
            _ => 1.0,
        };
        let size = Point::new(text_width(&text) * 0.84 + 2.0, 11.0);
        let place = [0.5, 0.36, 0.64, 0.25, 0.75]
            .into_iter()
            .filter_map(|along| place(lane, along, next_to, size))
            .find(|area| is_free(area, (layout, width), lanes, lane, &taken));
        if let Some(area) = place {
            svg.text(area.middle.x, area.middle.y + 3.6, "x m q", &text);
            taken.push(area);
        }
    }
}

/// Position of a text of a size next to a lane.
fn place(lane: &Lane, along: f64, next_to: f64, size: Point) -> Option<Area> {
    let curve = lane.curves.first()?;
    let right = curve.direction(along).right();
    let centre = lane.curves.first()?.at(along);
    let half = size.times(0.5);
    let reach = right.x.abs() * half.x + right.y.abs() * half.y;
    let by = lane.edge - lane.middle + next_to + reach;
    Some(Area::new(centre.plus(right.times(by)), size.x, size.y))
}

fn is_free(area: &Area, (layout, width): (&Layout, f64), lanes: &Lanes, own: &Lane, taken: &[Area]) -> bool {
    let inside = area.left() >= 0.0 && area.right() <= layout.width.max(width);
    let meets = |lane: &Lane| {
        let others = lane.ends != own.ends;
        others
            && lane.curves.iter().any(|curve| {
                (0..8).any(|step| {
                    let [from, to] = [step, step + 1].map(|step| curve.at(f64::from(step) / 8.0));
                    area.is_crossed(from, to, 1.5)
                })
            })
    };
    inside && !taken.iter().any(|other| other.is_near(area, 1.0)) && !lanes.drawn.iter().any(meets)
}

/// What colours and lines mean; its height.
fn legend(svg: &mut Svg, facts: &Facts<'_>, lanes: &Lanes, y: f64) -> f64 {
    let has = |wanted: &dyn Fn(Use) -> bool| lanes.drawn.iter().any(|lane| wanted(lane.usage));
    scale(svg, lanes, y);
    let mut items: Vec<(String, String)> = Vec::new();
    let line = |class: &str, width: f64, more: &str| {
        format!("class=\"{class}\" stroke-width=\"{}\"{more}", Number(width))
    };
    if has(&|usage| matches!(usage, Use::Part(part) if Facts::is_over(part))) {
        let (class, width) = lanes.look(Use::Part(2.0));
        items.push((line(&class, width, ""), "overloaded".into()));
    }
    if has(&|usage| matches!(usage, Use::Unknown(_))) {
        items.push((line("sk6", 3.0, ""), "bandwidth not known, the wider the busier".into()));
    }
    if has(&|usage| usage == Use::Idle) {
        items.push((line("a", 0.8, " opacity=\".6\""), "idle".into()));
    }
    if has(&|usage| usage == Use::Down) {
        items.push((line("sk1", 1.5, " stroke-dasharray=\"3 3\""), "down".into()));
    }
    if let Some(route) = longest(facts.routed.routes) {
        let look = "class=\"i\" stroke-width=\"1.3\" stroke-dasharray=\"6 3\"";
        items.push((look.into(), longest_text(facts, route)));
    }
    if !facts.routed.routes.cycle.is_empty() {
        let text =
            format!("possible deadlock: cycle of {}", count_of(facts.routed.routes.cycle.len(), "link"));
        items.push((line("sk3", 2.4, " stroke-dasharray=\"2 3\""), text));
    }
    let (mut x, mut down) = (0.0, y + 40.0);
    for (look, text) in items {
        let width = SAMPLE + 6.0 + text_width(&text) * 0.92 + 18.0;
        if x > 0.0 && x + width > WIDE {
            (x, down) = (0.0, down + 18.0);
        }
        let [left, right, middle] = [x, x + SAMPLE, down].map(Number);
        svg.add(format_args!("<path d=\"M{left} {middle}H{right}\" fill=\"none\" {look}/>"));
        svg.text(x + SAMPLE + 6.0, down + 4.0, "q n", &text);
        x += width;
    }
    down + 16.0 - y
}

fn longest_text(facts: &Facts<'_>, route: &Route) -> String {
    let same = facts.routed.routes.routes.iter().filter(|other| other.links.len() == route.links.len());
    let others = match same.count() {
        0 | 1 => String::new(),
        count => format!(", one of {count}"),
    };
    let name = shortened_inside(&facts.stream(route), WIDEST_NAME);
    format!("longest route{others}: {name}, {}", count_of(route.links.len(), "hop"))
}

/// The colours of loads.
fn scale(svg: &mut Svg, lanes: &Lanes, y: f64) {
    const STEPS: usize = 8;
    const STEP: f64 = 30.0;
    svg.text(0.0, y + 10.0, "q n", "load ÷ bandwidth");
    let left = 108.0;
    for step in 0..STEPS {
        let part = (step as f64 + 0.5) / STEPS as f64;
        let width = lanes.look(Use::Part(part)).1;
        let [from, to, middle] =
            [left + STEP * step as f64, left + STEP * (step + 1) as f64 - 1.5, y + 6.0].map(Number);
        let look = format!("class=\"s{}\" fill=\"none\" stroke-width=\"{}\"", colour(part), Number(width));
        svg.add(format_args!("<path d=\"M{from} {middle}H{to}\" {look}/>"));
    }
    let right = left + STEP * STEPS as f64;
    for (x, class, text) in
        [(left, "q n", "0 %"), (f64::midpoint(left, right), "q n m", "50 %"), (right, "q n e", "100 %")]
    {
        svg.text(x, y + 24.0, class, text);
    }
    svg.text(right + 16.0, y + 10.0, "q n", "each direction is on its right-hand side");
}

/// Least room on the left for the names of links.
const BARS_LEFT: f64 = 190.0;
const WIDTH: f64 = 360.0;
const BARS_TOP: f64 = 66.0;
const ROW: f64 = 20.0;
/// Room on the right for the values of bars.
const RIGHT: f64 = 270.0;
/// Bars.
const MOST_ROWS: usize = 24;

/// The busiest links of a network with their load as a part of their bandwidth; of links whose bandwidth is not known, as a part of the
/// largest load.
#[must_use]
pub fn route_loads(routed: &Routed<'_>) -> String {
    let facts = Facts::new(*routed);
    let usages = || (0..facts.loads.len()).map(|link| (link, facts.usage(link)));
    let are_known = usages().any(|(_, usage)| matches!(usage, Use::Part(_)));
    // Loads of links of unknown bandwidth are only comparable with each other.
    let busy = |(link, usage): (usize, Use)| match usage {
        Use::Part(part) => Some((link, part)),
        Use::Unknown(part) if !are_known => Some((link, part)),
        _ => None,
    };
    let mut busy: Vec<(usize, f64)> = usages().filter_map(busy).collect();
    busy.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut svg = Svg::new("Busiest links", &subtitle(&facts, busy.len()));
    if busy.is_empty() {
        return svg.finish(BARS_LEFT + WIDTH, 40.0);
    }
    let cables = cables(&facts);
    let rows = busy.len().min(MOST_ROWS);
    let names: Vec<String> = busy[..rows].iter().map(|&(link, _)| name(&facts, &cables, link)).collect();
    let widest = names.iter().map(|name| text_width(name) * SMALL + 12.0);
    let left = widest.fold(BARS_LEFT, f64::max);
    let largest = busy.iter().map(|(_, part)| *part).fold(1.0, f64::max);
    let bottom = BARS_TOP + ROW * rows as f64;
    for (part, class, text) in [(0.0, "q n", "0"), (1.0, "q n m", if are_known { "100 %" } else { "" })] {
        let x = left + WIDTH * part / largest;
        svg.text(x, BARS_TOP - 8.0, class, text);
        svg.line(x, BARS_TOP - 3.0, x, bottom + 2.0, "l");
    }
    for (row, (&(link, part), name)) in busy.iter().zip(&names).enumerate() {
        let place = Point::new(left, BARS_TOP + ROW * row as f64);
        draw_row(&mut svg, &facts, (link, is_parallel(&facts, &cables, link)), (name, part / largest), place);
    }
    let more = busy.len() - rows;
    if more > 0 {
        let text = format!("and {} more with traffic", grouped(more));
        svg.text(left, bottom + 16.0, "q n", &text);
    }
    svg.finish(left + WIDTH + RIGHT, bottom + if more > 0 { 24.0 } else { 8.0 })
}

fn subtitle(facts: &Facts<'_>, busy: usize) -> String {
    let all = facts.loads.len();
    if busy == 0 {
        return format!("no traffic on any of {}", count_of(all, "link"));
    }
    let over = (0..all).filter(|&link| matches!(facts.usage(link), Use::Part(part) if Facts::is_over(part)));
    let over = match over.count() {
        0 => String::new(),
        count => format!(" · {} overloaded", grouped(count)),
    };
    format!("{} of {} in use, each direction counted separately{over}", grouped(busy), count_of(all, "link"))
}

/// How many links lead from a node to another one.
fn cables(facts: &Facts<'_>) -> BTreeMap<(u32, u32), usize> {
    let mut cables = BTreeMap::new();
    for link in &facts.routed.system.links {
        *cables.entry((link.source, link.destination)).or_default() += 1;
    }
    cables
}

/// Whether several links lead from a node to another one.
fn is_parallel(facts: &Facts<'_>, cables: &BTreeMap<(u32, u32), usize>, link: usize) -> bool {
    let ends = &facts.routed.system.links[link];
    cables.get(&(ends.source, ends.destination)).is_some_and(|&count| count > 1)
}

fn name(facts: &Facts<'_>, cables: &BTreeMap<(u32, u32), usize>, link: usize) -> String {
    shortened_inside(&facts.link(link, is_parallel(facts, cables, link)), WIDEST_NAME)
}

fn draw_row(
    svg: &mut Svg,
    facts: &Facts<'_>,
    (link, is_parallel): (usize, bool),
    (name, part): (&str, f64),
    Point { x, y }: Point,
) {
    svg.open_group("", &facts.description(link, is_parallel));
    svg.text(x - 8.0, y + 13.0, "n e", name);
    let class = match facts.usage(link) {
        Use::Part(part) if Facts::is_over(part) => "fk1".to_owned(),
        Use::Part(part) => format!("f{}", colour(part)),
        _ => "fk6".to_owned(),
    };
    svg.rectangle(x, y + 3.0, ((WIDTH * part).max(1.0), ROW - 7.0), 2.0, &class);
    let routes = facts.routes_over[link].len();
    let text = format!("{} · {}", facts.load(link), facts.counted(routes));
    svg.text(x + WIDTH + 12.0, y + 13.0, "n q", &text);
    svg.close_group();
}
