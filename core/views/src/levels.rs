//! The levels of a machine: how much of the traffic meets on each, and their groups as a tree.

use std::collections::BTreeSet;

use hopmap_model::{CostModel, Levels, NodeKind, NodeState, SystemGraph, TaskGraph, Weight};

use crate::chart::Axis;
use crate::human::{Unit, count_of, quantity};
use crate::palette::{LINEAR, Palette};
use crate::svg::{Path, Svg, shortened, text_width};

const LEFT: f64 = 170.0;
const WIDTH: f64 = 400.0;
const TOP: f64 = 76.0;
const ROW: f64 = 46.0;
const BAR: f64 = 13.0;

/// How much of the traffic of a program meets on each level of the tree of a machine, innermost first, for rank `i` on
/// the slots of the mapping and of a baseline, with the names of the mapper and of the baseline. The mapping has the colour of its
/// mapper. `None` if the machine is not a tree.
#[must_use]
pub fn levels(
    graph: &TaskGraph,
    system: &SystemGraph,
    placements: [&[u32]; 2],
    weight: Weight,
    ([mapper, baseline], palette): ([&str; 2], &Palette),
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
    let rows = shared_out(rows, graph, &tree.groups, placements, weight);
    let mut svg = Svg::new("Traffic by level", "by the smallest group that holds both sender and receiver");
    let classes = [palette.of(mapper), LINEAR].map(|colour| format!("fk{colour}"));
    draw_legend(&mut svg, &classes, baseline);
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, TOP + ROW * index as f64, row, &classes);
    }
    Some(svg.finish(LEFT + WIDTH + 130.0, TOP + ROW * rows.len() as f64))
}

/// A level and the traffic that meets on it.
struct Row {
    name: String,
    cost: f64,
    /// Of the mapping and of the linear mapping, relative to all traffic between different ranks.
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

fn draw_legend(svg: &mut Svg, [mapping, other]: &[String; 2], baseline: &str) {
    let y = TOP - 14.0;
    svg.rectangle(LEFT, y - 10.0, (12.0, 12.0), 2.0, mapping);
    svg.text(LEFT + 18.0, y, "n", "mapping");
    svg.rectangle(LEFT + 88.0, y - 10.0, (12.0, 12.0), 2.0, other);
    svg.text(LEFT + 106.0, y, "n", &shortened(baseline, WIDTH - 106.0));
}

fn draw_row(svg: &mut Svg, y: f64, row: &Row, classes: &[String; 2]) {
    svg.text(LEFT - 16.0, y + 13.0, "w e", &row.name);
    svg.text(LEFT - 16.0, y + 27.0, "q n e", &format!("cost {}", quantity(row.cost, Unit::Count)));
    for (index, (share, class)) in row.shares.iter().zip(classes).enumerate() {
        let top = y + 2.0 + index as f64 * (BAR + 1.0);
        svg.rectangle(LEFT, top, (WIDTH * share, BAR), 0.0, class);
        svg.text(LEFT + WIDTH * share + 6.0, top + BAR - 3.0, "n", &format!("{:.1} %", 100.0 * share));
    }
}

const TREE_LEFT: f64 = 20.0;
const TREE_WIDTH: f64 = 400.0;
const NAMES: f64 = 300.0;
const TREE_TOP: f64 = 84.0;
const TREE_ROW: f64 = 18.0;
/// Rows that are drawn at most; more hosts are counted group by group.
const MOST_ROWS: usize = 64;
/// Names of a group that are written.
const MOST_NAMES: usize = 2;

/// The tree of a machine with levels: the root on the left, hosts on the right, or the cores of the only one, costs across on a logarithmic
/// axis. Above 64 hosts groups are leaves, with the number of their hosts. `unit` is that of the costs; `None` if the machine has no levels.
#[must_use]
pub fn found_levels(system: &SystemGraph, unit: &str) -> Option<String> {
    let explicit = system.explicit(0).ok()?;
    let CostModel::Levels(levels) = &explicit.cost else { return None };
    let tree = Tree::new(system, levels);
    let mut svg = Svg::new("Levels", &subtitle(system, levels));
    let cost = |value: f64| format!("{} {unit}", quantity(value, Unit::Count)).trim_end().to_owned();
    let bottom = TREE_TOP + TREE_ROW * tree.rows.len() as f64;
    let axis = axis(&levels.costs);
    draw_axis(&mut svg, &axis, &levels.costs, bottom, &cost);
    draw_branches(&mut svg, &axis, &tree, &cost);
    for (row, text) in tree.rows.iter().enumerate() {
        let y = TREE_TOP + TREE_ROW * (row as f64 + 0.5);
        svg.text(TREE_LEFT + TREE_WIDTH + 8.0, y + 4.0, "n", &shortened(text, NAMES));
    }
    let down: Vec<&str> = system
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Host && node.state == NodeState::Down)
        .map(|node| node.name.as_str())
        .collect();
    let mut height = bottom + 10.0;
    if !down.is_empty() {
        let text = format!("down: {}", down.join(", "));
        svg.text(TREE_LEFT, bottom + 20.0, "q n", &shortened(&text, TREE_WIDTH + NAMES));
        height += 20.0;
    }
    Some(svg.finish(TREE_LEFT + TREE_WIDTH + NAMES, height))
}

fn subtitle(system: &SystemGraph, levels: &Levels) -> String {
    let (levels, hosts) = (count_of(levels.groups.len(), "level"), system.hosts().count());
    format!("{levels} · {} · {}", count_of(hosts, "host"), count_of(system.slots.len(), "slot"))
}

/// A group that joins others.
struct Branch {
    level: usize,
    cost: f64,
    /// Its position, in rows.
    y: f64,
    /// Positions and costs of its children; leaves have none.
    children: Vec<(f64, Option<f64>)>,
    slots: usize,
}

struct Tree {
    /// The label of every leaf.
    rows: Vec<String>,
    branches: Vec<Branch>,
}

impl Tree {
    fn new(system: &SystemGraph, levels: &Levels) -> Self {
        let is_one = system.hosts().count() == 1;
        let leaf_of_slot: Vec<u32> = match is_one {
            true => (0..system.slots.len() as u32).collect(),
            false => system.slots.iter().map(|slot| slot.host).collect(),
        };
        // The finest leaves of which there are not too many, and the first level that may join some.
        let candidates = std::iter::once((&leaf_of_slot, 0)).chain(levels.groups.iter().zip(1..));
        let few = |groups: &[u32]| distinct(groups) <= MOST_ROWS;
        let (leaves, first_level) = candidates
            .filter(|(groups, _)| few(groups))
            .min_by_key(|leaves| leaves.1)
            .unwrap_or((&leaf_of_slot, 0));
        let order = order(levels, leaves, first_level);
        let rows = order.iter().map(|slots| leaf_name(system, slots, is_one)).collect();
        Self { rows, branches: branches(levels, first_level, &order) }
    }
}

fn distinct(groups: &[u32]) -> usize {
    let mut groups = groups.to_vec();
    groups.sort_unstable();
    groups.dedup();
    groups.len()
}

/// The slots of every leaf, the leaves of every group together, groups in the order of their first slots.
fn order(levels: &Levels, leaves: &[u32], first_level: usize) -> Vec<Vec<usize>> {
    let firsts = |groups: &[u32]| {
        let mut first = std::collections::HashMap::new();
        groups.iter().enumerate().for_each(|(slot, &group)| {
            first.entry(group).or_insert(slot);
        });
        groups.iter().map(|group| first[group]).collect::<Vec<usize>>()
    };
    let mut keys: Vec<Vec<usize>> = levels.groups[first_level.min(levels.groups.len())..]
        .iter()
        .rev()
        .map(|groups| firsts(groups))
        .collect();
    keys.push(firsts(leaves));
    let mut slots: Vec<usize> = (0..leaves.len()).collect();
    slots.sort_by_key(|&slot| (keys.iter().map(|key| key[slot]).collect::<Vec<_>>(), slot));
    slots.chunk_by(|&a, &b| leaves[a] == leaves[b]).map(<[usize]>::to_vec).collect()
}

/// Every group of a level that joins several leaves or groups.
fn branches(levels: &Levels, first_level: usize, order: &[Vec<usize>]) -> Vec<Branch> {
    // Middle and cost of the subtree of every leaf so far, with the number of the branch.
    let mut tops: Vec<(f64, Option<f64>, usize)> =
        (0..order.len()).map(|row| (row as f64 + 0.5, None, row)).collect();
    let mut branches = Vec::new();
    let mut next = order.len();
    for (level, groups) in levels.groups.iter().enumerate().skip(first_level) {
        let mut row = 0;
        while row < order.len() {
            let group = groups[order[row][0]];
            let end = row + order[row..].iter().take_while(|slots| groups[slots[0]] == group).count();
            let mut children = tops[row..end].to_vec();
            children.dedup_by_key(|child| child.2);
            if children.len() > 1 {
                let y = f64::midpoint(children[0].0, children[children.len() - 1].0);
                branches.push(Branch {
                    level,
                    cost: levels.costs[level],
                    y,
                    children: children.iter().map(|child| (child.0, child.1)).collect(),
                    slots: order[row..end].iter().map(Vec::len).sum(),
                });
                tops[row..end].fill((y, Some(levels.costs[level]), next));
                next += 1;
            }
            row = end;
        }
    }
    branches
}

/// A host with its slots, or several with their number and the first names.
fn leaf_name(system: &SystemGraph, slots: &[usize], is_one: bool) -> String {
    if let (true, [slot]) = (is_one, slots) {
        return format!("core {}", system.slots[*slot].core);
    }
    let mut hosts: Vec<u32> = slots.iter().map(|&slot| system.slots[slot].host).collect();
    hosts.dedup();
    let name = |host: &u32| system.nodes[*host as usize].name.as_str();
    match hosts[..] {
        [host] if slots.len() == 1 => name(&host).to_owned(),
        [host] => format!("{} · {}", name(&host), count_of(slots.len(), "slot")),
        _ => {
            let names: Vec<&str> = hosts.iter().take(MOST_NAMES).map(name).collect();
            let more = if hosts.len() > MOST_NAMES { ", …" } else { "" };
            format!("{}: {}{more}", count_of(hosts.len(), "host"), names.join(", "))
        }
    }
}

fn axis(costs: &[f64]) -> Axis {
    let positive = || costs.iter().copied().filter(|cost| *cost > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min);
    let high = positive().fold(0.0, f64::max);
    // Leaves are at the low end; keep other nodes off it.
    if low.is_finite() { Axis::logarithmic(low / 2.0, high * 1.1) } else { Axis::logarithmic(0.5, 1.0) }
}

fn across(axis: &Axis, cost: Option<f64>) -> f64 {
    TREE_LEFT + TREE_WIDTH * (1.0 - cost.map_or(0.0, |cost| axis.at(cost)))
}

fn draw_axis(svg: &mut Svg, axis: &Axis, costs: &[f64], bottom: f64, cost: &dyn Fn(f64) -> String) {
    let mut costs = costs.to_vec();
    costs.sort_by(|a, b| b.total_cmp(a));
    costs.dedup();
    let mut free = f64::NEG_INFINITY;
    for value in costs {
        let x = across(axis, Some(value));
        svg.line(x, TREE_TOP - 6.0, x, bottom, "l");
        let label = cost(value);
        let half = text_width(&label) / 2.0;
        if x - half > free {
            svg.text(x, TREE_TOP - 12.0, "q n m", &label);
            free = x + half + 4.0;
        }
    }
    svg.text(TREE_LEFT, TREE_TOP - 28.0, "q n", "← cost of a message between groups");
}

fn draw_branches(svg: &mut Svg, axis: &Axis, tree: &Tree, cost: &dyn Fn(f64) -> String) {
    let down = |row: f64| TREE_TOP + TREE_ROW * row;
    for branch in &tree.branches {
        let x = across(axis, Some(branch.cost));
        let mut path = Path::default();
        for &(y, inner) in &branch.children {
            path.line(across(axis, inner), down(y), x, down(y));
        }
        let (first, last) = (branch.children[0].0, branch.children[branch.children.len() - 1].0);
        path.line(x, down(first), x, down(last));
        let (parts, slots) = (count_of(branch.children.len(), "part"), count_of(branch.slots, "slot"));
        let (level, cost) = (branch.level + 1, cost(branch.cost));
        svg.group(&format!("level {level}: {parts} of {slots}, cost {cost}"), |svg| {
            svg.add(format_args!("<path class=\"g sk{}\" d=\"{path}\"/>", branch.level % 6));
        });
    }
    if let Some(root) = tree.branches.last() {
        svg.line(TREE_LEFT, down(root.y), across(axis, Some(root.cost)), down(root.y), "a");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Matrix, Node, Process, Slot};

    fn machine() -> SystemGraph {
        let groups = [1, 2, 4, 8].map(|size| (0..8).map(|slot| slot / size).collect());
        SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels { costs: vec![0.0, 1.0, 10.0, 100.0], groups: groups.into() }),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
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
        let picture =
            levels(&graph(), &machine(), [&mapping, &linear], Weight::Bytes, ([""; 2], &Palette::default()))
                .unwrap();
        let shares: Vec<&str> = picture.split("</text>").filter(|text| text.ends_with('%')).collect();
        let shares: Vec<&str> = shares.iter().filter_map(|text| text.rsplit('>').next()).collect();
        assert_eq!(shares, ["0.0 %", "0.0 %", "30.0 %", "60.0 %", "10.0 %", "10.0 %", "60.0 %", "30.0 %"]);
    }

    #[test]
    fn levels_have_names() {
        let picture =
            levels(&graph(), &machine(), [&[0; 8]; 2], Weight::Messages, ([""; 2], &Palette::default()))
                .unwrap();
        let at = |name: &str| picture.find(&format!(">{name}<")).unwrap();
        assert!(at("1 core") < at("one host") && at("one host") < at("2 hosts"));
        assert!(at("2 hosts") < at("the whole machine"));
    }

    #[test]
    fn other_machines_have_none() {
        let machine = SystemGraph { cost: CostModel::Matrix(Matrix { costs: vec![0.0; 64] }), ..machine() };
        assert_eq!(
            levels(&graph(), &machine, [&[0; 8]; 2], Weight::Bytes, ([""; 2], &Palette::default())),
            None
        );
    }

    fn system(hosts: u32, cores: u32, groups: Vec<Vec<u32>>, costs: &[f64]) -> SystemGraph {
        SystemGraph {
            nodes: (0..hosts).map(|host| Node::host(format!("n{host}"))).collect(),
            links: Vec::new(),
            slots: (0..hosts * cores).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
            cost: CostModel::Levels(Levels { costs: costs.to_vec(), groups }),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
        }
    }

    #[test]
    fn hosts_of_a_group_stand_together() {
        let system = system(
            4,
            2,
            vec![
                (0..8).map(|slot| slot / 2).collect(),
                (0..8).map(|slot| slot / 2 % 2).collect(),
                vec![0; 8],
            ],
            &[1.0, 10.0, 100.0],
        );
        let CostModel::Levels(levels) = &system.cost else { panic!() };
        let tree = Tree::new(&system, levels);
        assert_eq!(tree.rows, ["n0 · 2 slots", "n2 · 2 slots", "n1 · 2 slots", "n3 · 2 slots"]);
        let shape: Vec<_> =
            tree.branches.iter().map(|branch| (branch.level, branch.children.len())).collect();
        assert_eq!(shape, [(1, 2), (1, 2), (2, 2)]);
        assert!(found_levels(&system, "µs").unwrap().contains(">10 µs</text>"));
    }

    #[test]
    fn many_hosts_are_counted() {
        let slots = 1000;
        let groups = vec![(0..slots).map(|slot| slot / 50).collect(), vec![0; slots as usize]];
        let picture = found_levels(&system(slots, 1, groups, &[1.0, 3.0]), "").unwrap();
        assert!(picture.contains("50 hosts: n0, n1, …") && picture.len() < 20_000, "{}", picture.len());
        let flat = found_levels(&system(slots, 1, vec![vec![0; slots as usize]], &[1.0]), "").unwrap();
        assert!(flat.contains("1,000 hosts"));
    }

    #[test]
    fn a_single_host_is_shown_by_its_cores() {
        let picture =
            found_levels(&system(1, 4, vec![vec![0, 0, 1, 1], vec![0; 4]], &[1.0, 3.0]), "").unwrap();
        assert!(picture.contains("core 3"));
    }
}
