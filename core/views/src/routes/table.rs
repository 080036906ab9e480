//! The table of the longest routes.

use hopmap_model::Route;
use hopmap_text::grouped;

use super::lanes::{Lanes, SMALL};
use super::network::{Facts, rate};
use crate::human::count_of;
use crate::svg::{Svg, shortened_inside, text_width};

/// Width above which names are shortened.
pub(super) const WIDEST_NAME: f64 = 600.0;

/// Rows.
const MOST_ROWS: usize = 24;
const ROW: f64 = 19.0;
/// Distance between lines of a row.
const LINE: f64 = 15.0;
/// Width of the columns of bandwidths and hops, and the gap before the route.
const BANDWIDTH: f64 = 84.0;
const HOPS: f64 = 42.0;
const GAP: f64 = 18.0;
/// Least width of the table, and of the column of routes.
const WIDTH: f64 = 820.0;
const LEAST_ROUTE: f64 = 400.0;
/// Arrows between names are wider than what is measured.
const ARROWS: f64 = 1.05;

/// The streams with the longest routes, of equal ones the heaviest first.
pub(super) struct Table<'f> {
    facts: &'f Facts<'f>,
    rows: Vec<Row<'f>>,
    /// Routes without a row.
    more: usize,
    /// Where the column of bandwidths begins.
    begin: f64,
    pub(super) width: f64,
}

struct Row<'f> {
    route: &'f Route,
    name: String,
    /// The nodes of the route; as many lines as they need.
    lines: Vec<String>,
}

impl<'f> Table<'f> {
    pub(super) fn new(facts: &'f Facts<'f>) -> Self {
        let mut routes: Vec<&Route> = facts.routed.routes.routes.iter().collect();
        routes.sort_by(|a, b| {
            let heavier = b.bandwidth_bytes_per_s.total_cmp(&a.bandwidth_bytes_per_s);
            b.links.len().cmp(&a.links.len()).then(heavier)
        });
        let shown = &routes[..routes.len().min(MOST_ROWS)];
        let names: Vec<String> = shown.iter().map(|route| name(facts, route)).collect();
        let begin = names.iter().map(|name| text_width(name) * SMALL + 10.0).fold(180.0, f64::max);
        let room = (WIDTH - begin - BANDWIDTH - HOPS - GAP).max(LEAST_ROUTE);
        let rows = shown.iter().zip(names).map(|(&route, name)| Row {
            route,
            name,
            lines: wrapped(&facts.nodes_of(route), room),
        });
        let rows: Vec<Row<'_>> = rows.collect();
        let more = routes.len() - rows.len();
        Self { facts, rows, more, begin, width: begin + BANDWIDTH + HOPS + GAP + room }
    }

    /// Returns the height.
    pub(super) fn draw(&self, svg: &mut Svg, lanes: Option<&Lanes>, y: f64) -> f64 {
        if self.rows.is_empty() {
            return 0.0;
        }
        for (x, class, text) in [
            (0.0, "q n", "stream"),
            (self.begin + BANDWIDTH, "q n e", "bandwidth"),
            (self.begin + BANDWIDTH + HOPS, "q n e", "hops"),
            (self.begin + BANDWIDTH + HOPS + GAP, "q n", "route"),
        ] {
            svg.text(x, y + 12.0, class, text);
        }
        svg.line(0.0, y + 18.0, self.width, y + 18.0, "l");
        let mut bottom = y + 20.0;
        for row in &self.rows {
            bottom += self.draw_row(svg, lanes, row, bottom);
        }
        let hint = "point at a row or a host to see its routes";
        let text = match (self.more, lanes) {
            (0, None) => return bottom - y,
            (0, Some(_)) => hint.to_owned(),
            (more, None) => format!("and {} more", grouped(more)),
            (more, Some(_)) => format!("and {} more · {hint}", grouped(more)),
        };
        svg.text(0.0, bottom + 14.0, "q n", &text);
        bottom + 22.0 - y
    }

    fn draw_row(&self, svg: &mut Svg, lanes: Option<&Lanes>, row: &Row<'_>, y: f64) -> f64 {
        let height = ROW + LINE * (row.lines.len() - 1) as f64;
        let title = format!("{} · {} · {}", row.name, self.facts.between(row.route), row.lines.join(" "));
        svg.open_group("h", &title);
        svg.rectangle(-4.0, y, (self.width + 8.0, height - 1.0), 2.0, "z");
        let base = y + 13.0;
        svg.text(0.0, base, "n", &row.name);
        svg.text(self.begin + BANDWIDTH, base, "n e", &rate(row.route.bandwidth_bytes_per_s));
        svg.text(self.begin + BANDWIDTH + HOPS, base, "n e", &row.route.links.len().to_string());
        for (line, text) in row.lines.iter().enumerate() {
            let x = self.begin + BANDWIDTH + HOPS + GAP;
            svg.text(x, base + LINE * line as f64, "n q", text);
        }
        let course = lanes.map(|lanes| lanes.path_data(&row.route.links)).unwrap_or_default();
        if !course.is_empty() && course.len() < 20_000 {
            svg.add(format_args!("<path d=\"{course}\" class=\"p sk3\"/>"));
        }
        svg.close_group();
        height
    }
}

fn name(facts: &Facts<'_>, route: &Route) -> String {
    let merged = match route.streams.len() {
        0 | 1 => String::new(),
        count => format!(" ({})", count_of(count, "stream")),
    };
    shortened_inside(&format!("{}{merged}", facts.stream(route)), WIDEST_NAME)
}

/// The nodes of a route in lines of a width. After some letters it ends with an ellipsis.
fn wrapped(route: &str, width: f64) -> Vec<String> {
    const MOST_LETTERS: usize = 2000;
    let mut lines = vec![String::new()];
    let mut letters = 0;
    for (index, node) in route.split(" → ").enumerate() {
        let node = if index == 0 { node.to_owned() } else { format!("→ {node}") };
        letters += node.len();
        let last = lines.len() - 1;
        if letters > MOST_LETTERS {
            lines[last].push_str(" …");
            break;
        }
        if index > 0 && text_width(&format!("{} {node}", lines[last])) * SMALL * ARROWS > width {
            lines.push(node);
        } else {
            if index > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(&node);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_routes_take_several_lines_and_lose_no_node() {
        let route = (0..20).map(|node| format!("switch-{node}")).collect::<Vec<_>>().join(" → ");
        let lines = wrapped(&route, 400.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| text_width(line) * SMALL < 400.0), "{lines:?}");
        assert_eq!(lines.join(" "), route);
        assert_eq!(wrapped("inside h1", 400.0), ["inside h1"]);
    }
}
