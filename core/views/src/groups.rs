//! The groups of a program on the hosts of a machine, in the order of the fabric.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Mapping, SystemGraph, TaskGraph};

use crate::human::count_of;
use crate::svg::{Svg, shortened};

const LEFT: f64 = 76.0;
const TOP: f64 = 74.0;
const WIDTH: f64 = 720.0;
/// Height of a row, and of the gap between kinds.
const ROW: f64 = 7.0;
const GAP: f64 = 22.0;
/// Rows of a kind that are drawn at most: those that cross most.
const MOST_ROWS: usize = 64;
/// Names in a tooltip.
const MOST_NAMES: usize = 16;
/// Marks of a kind that are drawn at most.
const MOST_MARKS: usize = 1500;
/// Width of an entry of the legend.
const LEGEND: f64 = 235.0;
/// Colours by number of levels that a group crosses; more have the last one.
const COLOURS: [usize; 3] = [2, 4, 1];

/// Sets of hosts, each with the number of its groups.
type Rows = Vec<(usize, BTreeSet<u32>)>;

/// A row for every set of hosts with groups of a phase: marks at its hosts, which stand in the order of the fabric, with the
/// levels of switches that the set crosses as colour. Phases whose groups are inside hosts are left out; `None` if these are all,
/// or if the machine has no switches.
#[must_use]
pub fn groups(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Option<String> {
    let areas = system.areas();
    let nodes: Vec<u32> = system.hosts().map(|(node, ..)| node).collect();
    let area = |level: usize, host: u32| areas[level][nodes[host as usize] as usize];
    let phases = graph.phases.iter().filter_map(|phase| Some((phase.name.clone()?, phase.groups())));
    let kinds: Vec<(String, Rows)> = phases
        .map(|(name, groups)| (name, rows(&groups, mapping)))
        .filter(|(_, rows)| rows.len() > 1)
        .collect();
    if kinds.is_empty() || areas.is_empty() {
        return None;
    }
    let mut hosts: Vec<u32> = (0..nodes.len() as u32).collect();
    hosts.sort_by_key(|&host| {
        ((0..areas.len()).rev().map(|level| area(level, host)).collect::<Vec<_>>(), host)
    });
    let mut places = vec![0; hosts.len()];
    (0..).zip(&hosts).for_each(|(place, &host)| places[host as usize] = place);
    let step = WIDTH / hosts.len() as f64;
    let mut svg = Svg::new(
        "Groups on the fabric",
        &format!("{} in the order of the fabric", count_of(hosts.len(), "host")),
    );
    draw_legend(&mut svg, &system.level_names()[..areas.len()]);
    let mut top = TOP;
    for (kind, mut rows) in kinds {
        let crossed = |set: &BTreeSet<u32>| {
            let spans =
                |level: &usize| set.iter().map(|&host| area(*level, host)).collect::<BTreeSet<_>>().len() > 1;
            (0..areas.len()).filter(spans).count()
        };
        rows.sort_by_key(|(_, set)| std::cmp::Reverse(crossed(set)));
        let crossing = rows.iter().filter(|(_, set)| crossed(set) > 0).map(|(count, _)| count).sum::<usize>();
        let all = rows.iter().map(|(count, _)| count).sum::<usize>();
        svg.text(LEFT - 8.0, top + 9.0, "q e", &shortened(&kind, LEFT - 12.0));
        svg.text(LEFT, top - 4.0, "q n", &format!("{crossing} of {} cross switches", count_of(all, "group")));
        rows.truncate(MOST_ROWS);
        let mut marks = 0;
        for (_, set) in &rows {
            let runs = runs(set, &places);
            marks += runs.len();
            if marks > MOST_MARKS {
                break;
            }
            let colour = COLOURS[crossed(set).min(COLOURS.len() - 1)];
            let names = set.iter().map(|&host| mapping.hosts[host as usize].host.as_str());
            let shown: Vec<&str> = names.take(MOST_NAMES).collect();
            let more = if set.len() > MOST_NAMES { ", …" } else { "" };
            svg.group(&format!("{}{more}", shown.join(", ")), |svg| {
                for (first, count) in runs {
                    let width = (f64::from(count) * step - 0.14 * step).max(0.5);
                    svg.rectangle(
                        LEFT + f64::from(first) * step,
                        top,
                        (width, ROW * 0.8),
                        0.0,
                        &format!("fk{colour}"),
                    );
                }
            });
            top += ROW;
        }
        top += GAP;
    }
    // Borders of the areas: a second line beside those of outer levels.
    for (place, pair) in (1u32..).zip(hosts.windows(2)) {
        let border = (0..areas.len()).rev().find(|&level| area(level, pair[0]) != area(level, pair[1]));
        let left = LEFT + f64::from(place) * step - 0.07 * step;
        if border.is_some() {
            svg.line(left, TOP - 2.0, left, top - GAP, "l");
        }
        if border.is_some_and(|level| level > 0) {
            svg.line(left - 1.5, TOP - 2.0, left - 1.5, top - GAP, "a");
        }
    }
    Some(svg.finish(LEFT + WIDTH + 8.0, top))
}

/// Neighbouring places of a set of hosts: the first one of each run, and their number.
fn runs(set: &BTreeSet<u32>, places: &[u32]) -> Vec<(u32, u32)> {
    let mut own: Vec<u32> = set.iter().map(|&host| places[host as usize]).collect();
    own.sort_unstable();
    own.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32)).collect()
}

/// The sets of hosts with groups, each with the number of its groups; not those of one host.
fn rows(groups: &[Vec<u32>], mapping: &Mapping) -> Rows {
    let mut sets: BTreeMap<BTreeSet<u32>, usize> = BTreeMap::new();
    for group in groups {
        let hosts = group.iter().filter_map(|&rank| mapping.ranks.get(rank as usize)).map(|place| place.host);
        *sets.entry(hosts.collect()).or_default() += 1;
    }
    sets.into_iter().filter(|(set, _)| set.len() > 1).map(|(set, count)| (count, set)).collect()
}

fn draw_legend(svg: &mut Svg, levels: &[String]) {
    let higher = if levels.len() > COLOURS.len() - 1 { " or higher" } else { "" };
    let crosses = levels.iter().take(COLOURS.len() - 1).map(|level| format!("crosses {level}"));
    let mut names: Vec<String> = std::iter::once("below one switch".to_owned()).chain(crosses).collect();
    names.last_mut().into_iter().for_each(|name| name.push_str(higher));
    let mut left = LEFT;
    for (colour, name) in COLOURS.iter().zip(names) {
        svg.rectangle(left, TOP - 32.0, (10.0, 10.0), 0.0, &format!("fk{colour}"));
        svg.text(left + 15.0, TOP - 23.0, "q n", &shortened(&name, LEGEND - 20.0));
        left += LEGEND;
    }
}
