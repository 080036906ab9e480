//! A pipeline as boxes and arrows.

mod layout;

use std::collections::{BTreeMap, BTreeSet};

use hopmap_text::grouped;

use crate::human::count_of;
use crate::svg::{Number, Path, Svg, shortened, shortened_before, shortened_inside, text_width};
use layout::Layout;

/// Boxes that are drawn at most.
const MOST_BOXES: usize = 200;
/// Nodes beyond which those of a group are one box.
const MOST_SINGLE: usize = 40;
/// Edges that are drawn at most.
const MOST_EDGES: usize = 3000;
const TOP: f64 = 60.0;
const BOX_WIDTH: f64 = 220.0;
const COLUMN: f64 = 280.0;
/// Height of a box whose name is one line, height of another line, and distance of boxes.
const BOX_HEIGHT: f64 = 62.0;
const LINE: f64 = 16.0;
const GAP: f64 = 20.0;
/// Room for text in a box.
const ROOM: f64 = BOX_WIDTH - 26.0;

/// A box of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DagNode {
    /// Short name, such as `placement[seed=3]`.
    pub name: String,
    /// Full name, for the tooltip; empty if it is the short one.
    pub full_name: String,
    /// Its kind, such as `map/annealing`.
    pub kind: String,
    /// Its state, drawn as a colour.
    pub state: NodeState,
    /// Its state in words, such as `cached`.
    pub label: String,
    /// Why, or empty.
    pub reason: String,
    /// What it is drawn with when there are too many nodes, such as `placement`.
    pub group: String,
}

/// State of a cell. Of several cells in one box the last state in this order is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum NodeState {
    /// Nothing is known yet.
    #[default]
    Waiting,
    /// Its result was there already.
    Cached,
    /// It ran, or would run.
    Run,
    /// It waits for a cell that failed or is infeasible.
    Blocked,
    /// It is infeasible.
    Infeasible,
    /// It failed.
    Failed,
}

impl NodeState {
    /// Class of the colour, and a sign, so that states do not depend on colour alone.
    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Waiting => ("fk6", "○"),
            Self::Cached => ("fk5", "✓"),
            Self::Run => ("fk2", "▶"),
            Self::Blocked => ("fk6", "–"),
            Self::Infeasible => ("fk4", "∅"),
            Self::Failed => ("fk1", "✕"),
        }
    }
}

/// A pipeline from left to right: a box for every node, a curve for every edge from one node to another.
///
/// Edges are pairs of indexes into `nodes`. More than 40 nodes are drawn as one box per group.
#[must_use]
pub fn dag(nodes: &[DagNode], edges: &[(u32, u32)]) -> String {
    let (boxes, edges) =
        if nodes.len() > MOST_SINGLE { group_nodes(nodes, edges) } else { (nodes.to_vec(), edges.to_vec()) };
    let lines = boxes.iter().map(|node| name_lines(&node.name).len()).max().unwrap_or(1);
    let picture = Picture {
        layout: Layout::new(boxes.len(), &edges),
        box_height: BOX_HEIGHT + LINE * (lines - 1) as f64,
    };
    let routes = &picture.layout.routes;
    let mut svg = Svg::new("Pipeline", &subtitle(nodes, routes.len()));
    for (edge, passed) in routes.iter().take(MOST_EDGES) {
        picture.draw_edge(&mut svg, edges[*edge], passed);
    }
    for (index, node) in boxes.iter().enumerate() {
        picture.draw_node(&mut svg, node, picture.place(index));
    }
    let extent = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let width = extent(&mut (0..boxes.len()).map(|index| picture.place(index).0 + BOX_WIDTH));
    let passed = routes.iter().flat_map(|route| &route.1).map(|&row| picture.middle(row) + 8.0);
    let rows = picture.layout.row.iter().map(|&row| picture.middle(row) + picture.box_height / 2.0);
    let height = extent(&mut rows.chain(passed));
    svg.finish(width.max(360.0), height.max(40.0))
}

/// The name of a box in one line, or in two if it is long: the stage, and what distinguishes its cells.
fn name_lines(name: &str) -> Vec<String> {
    // Bold type is wider.
    if text_width(name) <= ROOM * 0.88 {
        return vec![name.to_owned()];
    }
    match name.split_once('[') {
        Some((stage, keys)) => {
            vec![
                shortened(stage, ROOM * 0.88),
                shortened_before(keys.strip_suffix(']').unwrap_or(keys), ROOM * 0.88),
            ]
        }
        None => vec![shortened_inside(name, ROOM * 0.88)],
    }
}

fn subtitle(nodes: &[DagNode], edges: usize) -> String {
    let groups: BTreeSet<&str> = nodes.iter().map(|node| node.group.as_str()).collect();
    // Only a sweep has stages of several cells.
    let thing = if groups.len() < nodes.len() { "cell" } else { "stage" };
    let mut parts = vec![count_of(nodes.len(), thing)];
    parts.extend(counts_by_label(nodes.iter()));
    if edges > MOST_EDGES {
        parts.push(format!("{} of {} edges", grouped(MOST_EDGES), grouped(edges)));
    }
    parts.join(" · ")
}

/// `3 cached`, `1 failed`: in the order of states.
fn counts_by_label<'a>(nodes: impl Iterator<Item = &'a DagNode>) -> Vec<String> {
    let mut counts: BTreeMap<(NodeState, &str), usize> = BTreeMap::new();
    for node in nodes.filter(|node| !node.label.is_empty()) {
        *counts.entry((node.state, &node.label)).or_default() += 1;
    }
    counts.into_iter().map(|((_, label), count)| format!("{count} {label}")).collect()
}

/// One node per group, in the order in which groups come up; nodes without a group by their kind.
fn group_nodes(nodes: &[DagNode], edges: &[(u32, u32)]) -> (Vec<DagNode>, Vec<(u32, u32)>) {
    let mut index_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut group_of = Vec::with_capacity(nodes.len());
    for (node, content) in nodes.iter().enumerate() {
        let name = if content.group.is_empty() { &content.kind } else { &content.group };
        // What comes after the last box that fits is drawn as one.
        let next = members.len().min(MOST_BOXES - 1);
        let group = *index_of.entry(name).or_insert(next);
        if group == members.len() {
            members.push(Vec::new());
        }
        members[group].push(node);
        group_of.push(group as u32);
    }
    let boxes = members.iter().map(|members| group_box(nodes, members)).collect();
    let pairs: BTreeSet<(u32, u32)> = edges
        .iter()
        .filter_map(|&(from, to)| Some((*group_of.get(from as usize)?, *group_of.get(to as usize)?)))
        .filter(|(from, to)| from != to)
        .collect();
    (boxes, pairs.into_iter().collect())
}

fn group_box(nodes: &[DagNode], members: &[usize]) -> DagNode {
    let inside = || members.iter().map(|&node| &nodes[node]);
    let first = &nodes[members[0]];
    if members.len() == 1 {
        return first.clone();
    }
    let names: BTreeSet<&str> = inside().map(|node| node.group.as_str()).collect();
    let kinds: BTreeSet<&str> = inside().map(|node| node.kind.as_str()).collect();
    let counts = counts_by_label(inside());
    let name = match (names.len(), first.group.is_empty()) {
        (1, false) => first.group.clone(),
        (1, true) => first.kind.clone(),
        _ => "other stages".into(),
    };
    DagNode {
        name,
        kind: match kinds.len() {
            1 => format!("{} × {}", members.len(), first.kind),
            kinds => format!("{} of {}", count_of(members.len(), "cell"), count_of(kinds, "kind")),
        },
        state: inside().map(|node| node.state).max().unwrap_or_default(),
        label: counts.into_iter().rev().collect::<Vec<_>>().join(", "),
        ..DagNode::default()
    }
}

/// Boxes of one height, and where they are.
struct Picture {
    layout: Layout,
    box_height: f64,
}

impl Picture {
    fn place(&self, node: usize) -> (f64, f64) {
        (COLUMN * self.layout.layer[node] as f64, self.middle(self.layout.row[node]) - self.box_height / 2.0)
    }

    /// Height on the screen of the middle of a row.
    fn middle(&self, row: f64) -> f64 {
        TOP + (self.box_height + GAP) * (row - 0.5) + self.box_height / 2.0
    }

    fn draw_edge(&self, svg: &mut Svg, (from, to): (u32, u32), passed: &[f64]) {
        let (from, to) = (from as usize, to as usize);
        let start = self.place(from);
        let mut pen = (start.0 + BOX_WIDTH, start.1 + self.box_height / 2.0);
        let mut path = Path::from(pen.0, pen.1);
        for (index, row) in passed.iter().enumerate() {
            let left = COLUMN * (self.layout.layer[from] + 1 + index) as f64;
            let y = self.middle(*row);
            curve_between(&mut path, pen, (left, y));
            path.across_to(left + BOX_WIDTH);
            pen = (left + BOX_WIDTH, y);
        }
        let end = self.place(to);
        let tip = (end.0 - 7.0, end.1 + self.box_height / 2.0);
        curve_between(&mut path, pen, tip);
        svg.add(format_args!("<path d=\"{path}\" class=\"a\" stroke-width=\"1.3\" opacity=\"0.75\"/>"));
        svg.add(format_args!(
            "<path d=\"M{0} {1}l-7 -3.5v7z\" class=\"fk6\"/>",
            Number(end.0),
            Number(tip.1)
        ));
    }

    fn draw_node(&self, svg: &mut Svg, node: &DagNode, (x, y): (f64, f64)) {
        let (colour, sign) = node.state.look();
        let name = if node.full_name.is_empty() { &node.name } else { &node.full_name };
        let tooltip = [name, &node.kind, &node.label, &node.reason].map(String::as_str);
        let tooltip: Vec<&str> = tooltip.into_iter().filter(|text| !text.is_empty()).collect();
        svg.open_group("", &tooltip.join(" · "));
        svg.rectangle(x, y, (BOX_WIDTH, self.box_height), 7.0, "b");
        let [edge, top, down, up] = [x + 7.0, y, self.box_height, 8.0 - self.box_height].map(Number);
        let path = format!("M{edge} {top}v{down}h-3a4 4 0 0 1 -4 -4v{up}a4 4 0 0 1 4 -4z");
        svg.add(format_args!("<path d=\"{path}\" class=\"{colour}\"/>"));
        let left = x + 17.0;
        let mut line = y + 19.0;
        for name in name_lines(&node.name) {
            svg.text(left, line, "w", &name);
            line += LINE;
        }
        svg.text(left, line, "q n", &shortened(&node.kind, ROOM * 1.06));
        line += LINE + 1.0;
        let label = if node.label.is_empty() { sign.to_owned() } else { format!("{sign} {}", node.label) };
        let label = shortened(&label, ROOM * 0.94);
        svg.text(left, line, "n w", &label);
        let used = text_width(&label) + 6.0;
        if used + 20.0 < ROOM {
            svg.text(left + used, line, "q n", &shortened(&node.reason, (ROOM - used) * 1.06));
        }
        svg.close_group();
    }
}

/// A curve that leaves and arrives level.
fn curve_between(path: &mut Path, start: (f64, f64), end: (f64, f64)) {
    let middle = f64::midpoint(start.0, end.0);
    path.curve_to((middle, start.1), (middle, end.1), end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: usize, group: &str) -> DagNode {
        DagNode {
            name: format!("n{index}"),
            kind: "map/annealing".into(),
            state: if index == 3 { NodeState::Failed } else { NodeState::Cached },
            label: if index == 3 { "failed" } else { "cached" }.into(),
            reason: String::new(),
            group: group.into(),
            ..DagNode::default()
        }
    }

    /// Long names were once cut in the middle, where the distinguishing keys are.
    #[test]
    fn long_names_take_two_lines_and_are_whole_in_the_tooltip() {
        let named = |name: &str| DagNode { name: name.into(), ..node(0, "g") };
        let name = "placement[mapper=annealing,seed=1]";
        let picture = dag(&[named(name), named("program")], &[]);
        for text in [
            ">placement</text>",
            ">mapper=annealing,seed=1</text>",
            ">program</text>",
            "<title>placement[mapper",
        ] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        let lines = name_lines(&format!("placement[file={},seed=17]", "n".repeat(90)));
        assert!(lines[1].starts_with('…') && lines[1].ends_with("nn,seed=17"), "{lines:?}");
    }

    #[test]
    fn few_nodes_are_drawn_one_by_one() {
        let nodes: Vec<DagNode> = (0..4).map(|index| node(index, "g")).collect();
        let picture = dag(&nodes, &[(0, 1), (1, 2), (0, 3)]);
        assert_eq!(picture.matches("<rect").count(), 4);
        assert!(picture.contains("4 cells · 3 cached · 1 failed"));
        let stages: Vec<DagNode> = (0..4).map(|index| node(index, &format!("g{index}"))).collect();
        assert!(dag(&stages, &[]).contains("4 stages · 3 cached · 1 failed"));
    }

    #[test]
    fn many_nodes_are_drawn_by_group() {
        let nodes: Vec<DagNode> =
            (0..1000).map(|index| node(index, if index < 500 { "a" } else { "b" })).collect();
        let edges: Vec<(u32, u32)> = (0..500).map(|index| (index, index + 500)).collect();
        let (boxes, edges) = group_nodes(&nodes, &edges);
        assert_eq!(boxes.len(), 2);
        assert_eq!(edges, [(0, 1)]);
        assert_eq!(
            (boxes[0].name.as_str(), boxes[0].state, boxes[0].label.as_str()),
            ("a", NodeState::Failed, "1 failed, 499 cached")
        );
    }

    #[test]
    fn a_thousand_groups_end_in_one_box() {
        let nodes: Vec<DagNode> = (0..1000).map(|index| node(index, &format!("g{index}"))).collect();
        let (boxes, _) = group_nodes(&nodes, &[(0, 1), (998, 999)]);
        assert_eq!(boxes.len(), MOST_BOXES);
        assert_eq!(boxes[MOST_BOXES - 1].name, "other stages");
    }
}
