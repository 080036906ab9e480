//! What stands out in a picture of routes: the longest way, a circle of links that wait, how busy links are; and what it all means.

use hopmap_model::{Route, Routes};

use super::facts::{Facts, Use, percent};
use super::geometry::{Area, Point};
use super::lanes::{Lane, Lanes, colour};
use super::standing::Standing;
use super::table;
use crate::human::count_of;
use crate::svg::{Number, Svg, shortened_inside, text_width};

/// Between the edge of a cable and the line beside it that marks the longest way, or the circle.
const LONGEST: f64 = 2.2;
const CIRCLE: f64 = 5.6;
/// Links that are marked.
const MOST_MARKED: usize = 400;
/// Busy links from which on none has its use written beside it.
const MOST_LABELS: usize = 64;
/// Width of a row of the legend.
const WIDE: f64 = 760.0;
const SAMPLE: f64 = 26.0;

/// The route with most links, of several the one with the largest bandwidth; nothing if all have as many.
pub(super) fn longest(routes: &Routes) -> Option<&Route> {
    let lengths = || routes.routes.iter().map(|route| route.links.len()).filter(|&length| length > 0);
    let most = lengths().max()?;
    let bandwidth = |route: &&Route| route.bandwidth_bytes_per_s;
    let of_most = routes.routes.iter().filter(|route| route.links.len() == most);
    let first = of_most.reduce(|best, next| if bandwidth(&next) > bandwidth(&best) { next } else { best });
    first.filter(|_| lengths().count() == 1 || lengths().any(|length| length < most))
}

/// Lines beside the cables of the longest way and of the circle.
pub(super) fn draw(svg: &mut Svg, facts: &Facts<'_>, standing: &Standing, lanes: &Lanes) {
    let routes = facts.routed.routes;
    let way = longest(routes).map(|route| &route.links[..]).unwrap_or_default();
    for (links, by, look) in [
        (way, LONGEST, "style=\"stroke:var(--i)\" stroke-width=\"1.3\" stroke-dasharray=\"6 3\""),
        (&routes.cycle[..], CIRCLE, "class=\"sk3\" stroke-width=\"2.4\" stroke-dasharray=\"2 3\""),
    ] {
        let mut course = String::new();
        for lane in links.iter().take(MOST_MARKED).filter_map(|&link| lanes.of(link as usize)) {
            for curve in standing.course(lane.ends.0, lane.ends.1, lane.edge + by) {
                course.push_str(&curve.markup());
            }
        }
        if !course.is_empty() {
            svg.add(format_args!("<path d=\"{course}\" fill=\"none\" {look}/>"));
        }
    }
}

/// Writes beside busy links how busy they are, where there is room.
pub(super) fn draw_labels(svg: &mut Svg, facts: &Facts<'_>, standing: &Standing, lanes: &Lanes) {
    let busy: Vec<&Lane> =
        lanes.drawn.iter().rev().filter(|lane| matches!(lane.usage, Use::Part(_))).collect();
    if busy.len() > MOST_LABELS {
        return;
    }
    let marked = longest(facts.routed.routes).map(|route| &route.links[..]).unwrap_or_default();
    let mut taken: Vec<Area> = standing.areas.values().copied().collect();
    for lane in busy {
        let Use::Part(part) = lane.usage else { continue };
        let text = percent(part);
        let is_in = |links: &[u32]| links.contains(&(lane.link as u32));
        let beside = match (is_in(&facts.routed.routes.cycle), is_in(marked)) {
            (true, _) => CIRCLE + 2.0,
            (_, true) => LONGEST + 2.0,
            _ => 1.0,
        };
        let size = Point::new(text_width(&text) * 0.84 + 2.0, 11.0);
        let place = [0.5, 0.36, 0.64, 0.25, 0.75]
            .into_iter()
            .filter_map(|along| place(lane, along, beside, size))
            .find(|area| is_free(area, standing, lanes, lane, &taken));
        if let Some(area) = place {
            svg.text(area.middle.x, area.middle.y + 3.6, "x m q", &text);
            taken.push(area);
        }
    }
}

/// Where a text of a size stands beside a lane.
fn place(lane: &Lane, along: f64, beside: f64, size: Point) -> Option<Area> {
    let curve = lane.curves.first()?;
    let right = curve.direction(along).right();
    let centre = lane.curves.first()?.at(along);
    let half = size.times(0.5);
    let reach = right.x.abs() * half.x + right.y.abs() * half.y;
    let by = lane.edge - lane.middle + beside + reach;
    Some(Area::new(centre.plus(right.times(by)), size.x, size.y))
}

fn is_free(area: &Area, standing: &Standing, lanes: &Lanes, own: &Lane, taken: &[Area]) -> bool {
    let inside = area.left() >= 0.0 && area.right() <= standing.width.max(table::WIDTH);
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
pub(super) fn legend(svg: &mut Svg, facts: &Facts<'_>, lanes: &Lanes, y: f64) -> f64 {
    let has = |wanted: &dyn Fn(Use) -> bool| lanes.drawn.iter().any(|lane| wanted(lane.usage));
    scale(svg, lanes, y);
    let mut items: Vec<(String, String)> = Vec::new();
    let line = |class: &str, width: f64, more: &str| {
        format!("class=\"{class}\" stroke-width=\"{}\"{more}", Number(width))
    };
    if has(&|usage| matches!(usage, Use::Part(part) if Facts::is_over(part))) {
        let (class, width) = lanes.look(Use::Part(2.0));
        items.push((line(&class, width, ""), "more than it can carry".into()));
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
        let look = "style=\"stroke:var(--i)\" stroke-width=\"1.3\" stroke-dasharray=\"6 3\"";
        items.push((look.into(), says_longest(facts, route)));
    }
    if !facts.routed.routes.cycle.is_empty() {
        let text = format!("can wait for each other: {}", count_of(facts.routed.routes.cycle.len(), "link"));
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

fn says_longest(facts: &Facts<'_>, route: &Route) -> String {
    let same = facts.routed.routes.routes.iter().filter(|other| other.links.len() == route.links.len());
    let others = match same.count() {
        0 | 1 => String::new(),
        count => format!(", one of {count}"),
    };
    let name = shortened_inside(&facts.stream(route), 220.0);
    format!("longest way{others}: {name}, {}", count_of(route.links.len(), "hop"))
}

/// The colours of loads.
fn scale(svg: &mut Svg, lanes: &Lanes, y: f64) {
    const STEPS: usize = 8;
    const STEP: f64 = 30.0;
    svg.text(0.0, y + 10.0, "q n", "load of bandwidth");
    let left = 108.0;
    for step in 0..STEPS {
        let part = (step as f64 + 0.5) / STEPS as f64;
        let width = lanes.look(Use::Part(part)).1;
        let [from, to, middle] =
            [left + STEP * step as f64, left + STEP * (step + 1) as f64 - 1.5, y + 6.0].map(Number);
        svg.add(format_args!(
            "<path d=\"M{from} {middle}H{to}\" class=\"s{}\" fill=\"none\" stroke-width=\"{}\"/>",
            colour(part),
            Number(width)
        ));
    }
    let right = left + STEP * STEPS as f64;
    for (x, class, text) in
        [(left, "q n", "0 %"), (f64::midpoint(left, right), "q n m", "50 %"), (right, "q n e", "100 %")]
    {
        svg.text(x, y + 24.0, class, text);
    }
    svg.text(right + 16.0, y + 10.0, "q n", "each direction on the right of who goes that way");
}
