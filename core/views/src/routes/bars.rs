//! The busiest links as bars.

use std::collections::BTreeMap;

use super::Routed;
use super::facts::{Facts, Use};
use super::lanes::colour;
use crate::human::{count_of, whole};
use crate::svg::{Svg, shortened_inside};

const LEFT: f64 = 190.0;
const WIDTH: f64 = 360.0;
const TOP: f64 = 66.0;
const ROW: f64 = 20.0;
/// Room on the right for what bars stand for.
const RIGHT: f64 = 270.0;
/// Bars.
const MOST_ROWS: usize = 24;

/// The busiest links of a network with their load as a part of their bandwidth; of links whose bandwidth is not known, as a part of the
/// largest load.
#[must_use]
pub fn route_loads(routed: &Routed<'_>) -> String {
    let facts = Facts::new(*routed);
    let known = |link: usize| match facts.usage(link) {
        Use::Part(part) => Some((link, part)),
        Use::Unknown(_) | Use::Down | Use::Idle => None,
    };
    let mut busy: Vec<(usize, f64)> = (0..facts.loads.len()).filter_map(known).collect();
    // What a link of unknown bandwidth carries is no part of anything: they stand beside each other alone.
    let are_known = !busy.is_empty();
    if !are_known {
        let unknown = |link: usize| match facts.usage(link) {
            Use::Unknown(part) => Some((link, part)),
            _ => None,
        };
        busy = (0..facts.loads.len()).filter_map(unknown).collect();
    }
    busy.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut svg = Svg::new("Busiest links", &subtitle(&facts, busy.len()));
    if busy.is_empty() {
        return svg.finish(LEFT + WIDTH, 40.0);
    }
    let largest = busy.iter().map(|(_, part)| *part).fold(1.0, f64::max);
    let cables = cables(&facts);
    let rows = busy.len().min(MOST_ROWS);
    let bottom = TOP + ROW * rows as f64;
    for (part, class, text) in [(0.0, "q n", "0"), (1.0, "q n m", if are_known { "100 %" } else { "" })] {
        let x = LEFT + WIDTH * part / largest;
        svg.text(x, TOP - 8.0, class, text);
        svg.line(x, TOP - 3.0, x, bottom + 2.0, "l");
    }
    for (row, &(link, part)) in busy[..rows].iter().enumerate() {
        draw_row(&mut svg, &facts, &cables, (link, part / largest), TOP + ROW * row as f64);
    }
    let more = busy.len() - rows;
    if more > 0 {
        svg.text(
            LEFT,
            bottom + 16.0,
            "q n",
            &format!("and {} more that carry something", whole(more as u64)),
        );
    }
    svg.finish(LEFT + WIDTH + RIGHT, bottom + if more > 0 { 24.0 } else { 8.0 })
}

fn subtitle(facts: &Facts<'_>, busy: usize) -> String {
    let all = facts.loads.len();
    if busy == 0 {
        return format!("none of {} carries anything", count_of(all, "link"));
    }
    let over = (0..all).filter(|&link| matches!(facts.usage(link), Use::Part(part) if Facts::is_over(part)));
    let over = match over.count() {
        0 => String::new(),
        1 => " · 1 carries more than it can".to_owned(),
        count => format!(" · {} carry more than they can", whole(count as u64)),
    };
    format!("{} of {} in use, each direction on its own{over}", whole(busy as u64), count_of(all, "link"))
}

/// How many links lead from a node to another one.
fn cables(facts: &Facts<'_>) -> BTreeMap<(u32, u32), usize> {
    let mut cables = BTreeMap::new();
    for link in &facts.routed.system.links {
        *cables.entry((link.source, link.destination)).or_default() += 1;
    }
    cables
}

fn draw_row(
    svg: &mut Svg,
    facts: &Facts<'_>,
    cables: &BTreeMap<(u32, u32), usize>,
    (link, part): (usize, f64),
    y: f64,
) {
    let ends = &facts.routed.system.links[link];
    let is_parallel = cables.get(&(ends.source, ends.destination)).is_some_and(|&count| count > 1);
    svg.open_group("", &facts.says(link, is_parallel));
    let name = facts.link(link, is_parallel);
    svg.text(LEFT - 8.0, y + 13.0, "n e", &shortened_inside(&name, (LEFT - 12.0) / 0.92));
    let class = match facts.usage(link) {
        Use::Part(part) if Facts::is_over(part) => "fk1".to_owned(),
        Use::Part(part) => format!("f{}", colour(part)),
        _ => "fk6".to_owned(),
    };
    svg.rectangle(LEFT, y + 3.0, ((WIDTH * part).max(1.0), ROW - 7.0), 2.0, &class);
    let routes = facts.routes_over[link].len();
    let text = format!("{} · {}", facts.load(link), facts.counted(routes));
    svg.text(LEFT + WIDTH + 12.0, y + 13.0, "n q", &text);
    svg.close_group();
}
