//! The streams below a picture of routes.

use hopmap_model::Route;

use super::facts::{Facts, amount};
use super::lanes::Lanes;
use crate::human::{count_of, whole};
use crate::svg::{Svg, shortened, shortened_inside};

/// Rows.
const MOST_ROWS: usize = 24;
const ROW: f64 = 19.0;
/// Where columns begin, and where the one of the ways ends.
const STREAM: f64 = 0.0;
const BANDWIDTH: f64 = 270.0;
const HOPS: f64 = 318.0;
const WAY: f64 = 338.0;
/// Arrows between names are wider than what is measured.
const ARROWS: f64 = 0.95;
pub(super) const WIDTH: f64 = 820.0;

/// The streams with the longest ways, of equal ones the heaviest first; the height of the table.
pub(super) fn draw(svg: &mut Svg, facts: &Facts<'_>, lanes: Option<&Lanes>, y: f64) -> f64 {
    let mut routes: Vec<&Route> = facts.routed.routes.routes.iter().collect();
    if routes.is_empty() {
        return 0.0;
    }
    routes.sort_by(|a, b| {
        let heavier = b.bandwidth_bytes_per_s.total_cmp(&a.bandwidth_bytes_per_s);
        b.links.len().cmp(&a.links.len()).then(heavier)
    });
    for (x, class, text) in [
        (STREAM, "q n", "stream"),
        (BANDWIDTH, "q n e", "bandwidth"),
        (HOPS, "q n e", "hops"),
        (WAY, "q n", "way"),
    ] {
        svg.text(x, y + 12.0, class, text);
    }
    svg.line(0.0, y + 18.0, WIDTH, y + 18.0, "l");
    let rows = routes.len().min(MOST_ROWS);
    for (row, route) in routes[..rows].iter().enumerate() {
        draw_row(svg, facts, lanes, route, y + 20.0 + ROW * row as f64);
    }
    let bottom = y + 20.0 + ROW * rows as f64;
    let more = routes.len() - rows;
    let hint = "point at a row, or at a host, to see the way";
    let text = match (more, lanes) {
        (0, None) => return bottom - y,
        (0, Some(_)) => hint.to_owned(),
        (more, None) => format!("and {} more", whole(more as u64)),
        (more, Some(_)) => format!("and {} more · {hint}", whole(more as u64)),
    };
    svg.text(0.0, bottom + 14.0, "q n", &text);
    bottom + 22.0 - y
}

fn draw_row(svg: &mut Svg, facts: &Facts<'_>, lanes: Option<&Lanes>, route: &Route, y: f64) {
    const MOST_LETTERS: usize = 2000;
    let (stream, between, mut way) = (facts.stream(route), facts.between(route), facts.way(route));
    if let Some((end, _)) = way.char_indices().nth(MOST_LETTERS) {
        way.truncate(end);
        way.push('…');
    }
    let title = format!("{stream} · {between} · {way}");
    svg.open_group("h", &title);
    svg.rectangle(-4.0, y, (WIDTH + 8.0, ROW - 1.0), 2.0, "z");
    let merged = match route.streams.len() {
        0 | 1 => String::new(),
        count => format!(" ({})", count_of(count, "stream")),
    };
    let base = y + 13.0;
    svg.text(STREAM, base, "n", &shortened_inside(&format!("{stream}{merged}"), (BANDWIDTH - 78.0) / 0.92));
    svg.text(BANDWIDTH, base, "n e", &amount(route.bandwidth_bytes_per_s));
    svg.text(HOPS, base, "n e", &route.links.len().to_string());
    svg.text(WAY, base, "n q", &shortened(&way, (WIDTH - WAY) * ARROWS));
    let course = lanes.map(|lanes| lanes.way(&route.links)).unwrap_or_default();
    if !course.is_empty() && course.len() < 20_000 {
        svg.add(format_args!("<path d=\"{course}\" class=\"p\"/>"));
    }
    svg.close_group();
}
