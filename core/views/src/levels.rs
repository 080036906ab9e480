//! How far messages travel.

use std::collections::BTreeSet;

use hopmap_model::{CostModel, SystemGraph, TaskGraph, Weight};

use crate::human::{Unit, count_of, quantity};
use crate::svg::Svg;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 400.0;
const TOP: f64 = 76.0;
const ROW: f64 = 46.0;
const BAR: f64 = 13.0;

/// How much of the traffic of a program meets on each level of the tree of a machine, innermost first, for rank `i` on
/// `mapping[i]` and on `linear[i]`. `None` if the machine is no tree.
#[must_use]
pub fn levels(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &[u32],
    linear: &[u32],
    weight: Weight,
) -> Option<String> {
    let explicit = system.explicit(0).ok()?;
    let CostModel::Levels(tree) = &explicit.cost else { return None };
    let rows: Vec<Row> = (0..tree.groups.len())
        .map(|level| Row {
            name: name_of(system, &tree.groups, level),
            cost: tree.costs[level],
            shares: [0.0; 2],
        })
        .collect();
    let rows = shared_out(rows, graph, &tree.groups, [mapping, linear], weight);
    let mut svg = Svg::new("Traffic by level", "by the smallest group that holds both sender and receiver");
    draw_legend(&mut svg);
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, TOP + ROW * index as f64, row);
    }
    Some(svg.finish(LEFT + WIDTH + 130.0, TOP + ROW * rows.len() as f64))
}

/// A level and the traffic that meets on it.
struct Row {
    name: String,
    cost: f64,
    /// Of the mapping and the linear placement, of all that ranks send to others.
    shares: [f64; 2],
}

/// Gives every level its share of the traffic.
fn shared_out(
    mut rows: Vec<Row>,
    graph: &TaskGraph,
    groups: &[Vec<u32>],
    placements: [&[u32]; 2],
    weight: Weight,
) -> Vec<Row> {
    let mut total = 0.0;
    for edge in graph.edges.iter().filter(|edge| edge.source != edge.destination) {
        total += weight.of(edge);
        for (side, slots) in placements.iter().enumerate() {
            let [a, b] = [edge.source, edge.destination].map(|rank| slots[rank as usize] as usize);
            let meeting = groups.iter().position(|groups| groups[a] == groups[b]);
            if let Some(row) = meeting.and_then(|level| rows.get_mut(level)) {
                row.shares[side] += weight.of(edge);
            }
        }
    }
    for share in rows.iter_mut().flat_map(|row| &mut row.shares) {
        *share /= if total > 0.0 { total } else { 1.0 };
    }
    rows
}

/// What a group of a level is: some cores of a host, a host, some hosts, or all.
fn name_of(system: &SystemGraph, groups: &[Vec<u32>], level: usize) -> String {
    if level + 1 == groups.len() {
        return "the whole machine".into();
    }
    let hosts: BTreeSet<(u32, u32)> =
        groups[level].iter().zip(&system.slots).map(|(&group, slot)| (group, slot.host)).collect();
    let largest = |keys: &mut dyn Iterator<Item = u32>| {
        let mut sizes = std::collections::BTreeMap::<u32, usize>::new();
        keys.for_each(|key| *sizes.entry(key).or_default() += 1);
        sizes.into_values().max().unwrap_or(0)
    };
    let hosts_of_group = largest(&mut hosts.iter().map(|&(group, _)| group));
    let groups_of_host = largest(&mut hosts.iter().map(|&(_, host)| host));
    match (hosts_of_group, groups_of_host) {
        (0 | 1, 0 | 1) => "one host".into(),
        (0 | 1, _) => count_of(largest(&mut groups[level].iter().copied()), "core"),
        (hosts, _) => count_of(hosts, "host"),
    }
}

fn draw_legend(svg: &mut Svg) {
    let y = TOP - 14.0;
    svg.rectangle(LEFT, y - 10.0, (12.0, 12.0), 2.0, "fk0");
    svg.text(LEFT + 18.0, y, "n", "mapping");
    svg.rectangle(LEFT + 88.0, y - 10.0, (12.0, 12.0), 2.0, "fk4");
    svg.text(LEFT + 106.0, y, "n", "linear");
}

fn draw_row(svg: &mut Svg, y: f64, row: &Row) {
    svg.text(LEFT - 16.0, y + 13.0, "w e", &row.name);
    svg.text(LEFT - 16.0, y + 27.0, "q n e", &format!("cost {}", quantity(row.cost, Unit::Count)));
    for (index, (share, class)) in row.shares.iter().zip(["fk0", "fk4"]).enumerate() {
        let top = y + 2.0 + index as f64 * (BAR + 1.0);
        svg.rectangle(LEFT, top, (WIDTH * share, BAR), 0.0, class);
        svg.text(LEFT + WIDTH * share + 6.0, top + BAR - 3.0, "n", &format!("{:.1} %", 100.0 * share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Levels, Matrix, Process, Slot};

    fn machine() -> SystemGraph {
        let groups = [1, 2, 4, 8].map(|size| (0..8).map(|slot| slot / size).collect());
        SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels { costs: vec![0.0, 1.0, 10.0, 100.0], groups: groups.into() }),
            routing: hopmap_model::Routing::default(),
        }
    }

    fn graph() -> TaskGraph {
        let edge = |(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        TaskGraph {
            processes: vec![Process::default(); 8],
            edges: [(0, 1, 60), (0, 4, 30), (2, 2, 1000), (5, 6, 10)].map(edge).into(),
            ..TaskGraph::default()
        }
    }

    #[test]
    fn traffic_is_shared_out_over_the_levels() {
        let (linear, mapping) = ([0, 1, 2, 3, 4, 5, 6, 7], [0, 4, 2, 3, 1, 5, 6, 7]);
        let picture = levels(&graph(), &machine(), &mapping, &linear, Weight::Bytes).unwrap();
        let shares: Vec<&str> = picture.split("</text>").filter(|text| text.ends_with('%')).collect();
        let shares: Vec<&str> = shares.iter().filter_map(|text| text.rsplit('>').next()).collect();
        assert_eq!(shares, ["0.0 %", "0.0 %", "30.0 %", "60.0 %", "10.0 %", "10.0 %", "60.0 %", "30.0 %"]);
    }

    #[test]
    fn levels_have_names() {
        let picture = levels(&graph(), &machine(), &[0; 8], &[0; 8], Weight::Messages).unwrap();
        let at = |name: &str| picture.find(&format!(">{name}<")).unwrap();
        assert!(at("1 core") < at("one host") && at("one host") < at("2 hosts"));
        assert!(at("2 hosts") < at("the whole machine"));
    }

    #[test]
    fn other_machines_have_none() {
        let machine = SystemGraph { cost: CostModel::Matrix(Matrix { costs: vec![0.0; 64] }), ..machine() };
        assert_eq!(levels(&graph(), &machine, &[0; 8], &[0; 8], Weight::Bytes), None);
    }
}
