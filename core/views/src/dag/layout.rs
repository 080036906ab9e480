//! Places for the boxes of a directed graph: layers from left to right, few crossings.

use crate::layered::{apart, mean, reduce_crossings};

/// Places that edges take between their ends; with more of them long edges are drawn as one curve.
const MOST_PLACES: usize = 4000;
/// Sweeps over the layers that bring boxes near to their neighbours.
const SWEEPS: usize = 8;

/// A graph laid out in layers.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Layer of every node.
    pub(crate) layer: Vec<usize>,
    /// Middle of every node from the top, in units of one row.
    pub(crate) row: Vec<f64>,
    /// For every edge that is drawn: its index, and the rows it passes in the layers between its ends.
    pub(crate) routes: Vec<(usize, Vec<f64>)>,
}

impl Layout {
    /// Lays out `nodes` nodes. Edges that would close a cycle, or name no node, are not drawn.
    pub(crate) fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let layer = layers(nodes, edges);
        let span = |edge: usize| {
            let layer = |node: u32| layer.get(node as usize);
            let (from, to) = edges[edge];
            layer(to)?.checked_sub(*layer(from)?).filter(|span| *span > 0)
        };
        let drawn: Vec<usize> = (0..edges.len()).filter(|&edge| span(edge).is_some()).collect();
        let places: usize = drawn.iter().filter_map(|&edge| span(edge)).map(|span| span - 1).sum();
        let mut chains = Chains::new(&layer);
        let route = |&edge: &usize| chains.add(edges[edge], places <= MOST_PLACES);
        let routes: Vec<Vec<usize>> = drawn.iter().map(route).collect();
        reduce_crossings(&mut chains.order, &chains.links);
        let rows = chains.rows();
        let routes = drawn
            .into_iter()
            .zip(routes)
            .map(|(edge, places)| (edge, places.into_iter().map(|place| rows[place]).collect()))
            .collect();
        Self { row: rows[..nodes].to_vec(), layer, routes }
    }
}

/// Length of the longest path to every node. Nodes on cycles come behind all others.
fn layers(nodes: usize, edges: &[(u32, u32)]) -> Vec<usize> {
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut waiting = vec![0_usize; nodes];
    for &(from, to) in edges {
        if (from as usize) < nodes && (to as usize) < nodes {
            successors[from as usize].push(to as usize);
            waiting[to as usize] += 1;
        }
    }
    let mut layer = vec![0; nodes];
    let mut queue: Vec<usize> = (0..nodes).filter(|&node| waiting[node] == 0).collect();
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        for &successor in &successors[node] {
            layer[successor] = layer[successor].max(layer[node] + 1);
            waiting[successor] -= 1;
            if waiting[successor] == 0 {
                queue.push(successor);
            }
        }
    }
    let last = queue.iter().map(|&node| layer[node] + 1).max().unwrap_or(0);
    for node in (0..nodes).filter(|&node| waiting[node] > 0) {
        layer[node] = last;
    }
    layer
}

/// The nodes, and for edges that pass over layers a place in each of these.
struct Chains {
    layer: Vec<usize>,
    /// Pairs in neighbouring layers.
    links: Vec<(usize, usize)>,
    /// Nodes and places of every layer from the top.
    order: Vec<Vec<usize>>,
    nodes: usize,
}

impl Chains {
    fn new(layer: &[usize]) -> Self {
        let mut order = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
        for (node, &layer) in layer.iter().enumerate() {
            order[layer].push(node);
        }
        Self { layer: layer.to_vec(), links: Vec::new(), order, nodes: layer.len() }
    }

    /// Adds an edge and gives back its places between the ends, none unless it is `routed`.
    fn add(&mut self, (from, to): (u32, u32), routed: bool) -> Vec<usize> {
        let (from, to) = (from as usize, to as usize);
        let mut places = Vec::new();
        let mut last = from;
        let between = if routed { self.layer[from] + 1..self.layer[to] } else { 0..0 };
        for layer in between {
            let place = self.layer.len();
            self.layer.push(layer);
            self.order[layer].push(place);
            self.links.push((last, place));
            places.push(place);
            last = place;
        }
        self.links.push((last, to));
        places
    }

    /// What comes before every place, or behind it.
    fn neighbours(&self, before: bool) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.layer.len()];
        for &(from, to) in &self.links {
            let (place, neighbour) = if before { (to, from) } else { (from, to) };
            neighbours[place].push(neighbour);
        }
        neighbours
    }

    /// A row for every place: in order within a layer, close to its neighbours.
    fn rows(&self) -> Vec<f64> {
        let height = |place: usize| if place < self.nodes { 1.0 } else { 0.4 };
        let mut rows = vec![0.0; self.layer.len()];
        for layer in &self.order {
            let mut top = -layer.iter().map(|&place| height(place)).sum::<f64>() / 2.0;
            for &place in layer {
                rows[place] = top + height(place) / 2.0;
                top += height(place);
            }
        }
        for sweep in 0..SWEEPS {
            let neighbours = self.neighbours(sweep % 2 == 0);
            let layers: Vec<&Vec<usize>> =
                if sweep % 2 == 0 { self.order.iter().collect() } else { self.order.iter().rev().collect() };
            for layer in layers {
                let around = |place: usize| mean(neighbours[place].iter().map(|&other| rows[other]));
                let wanted: Vec<f64> =
                    layer.iter().map(|&place| around(place).unwrap_or(rows[place])).collect();
                let mut top = 0.0;
                let middle = |&place: &usize| {
                    top += height(place);
                    top - height(place) / 2.0
                };
                let offsets: Vec<f64> = layer.iter().map(middle).collect();
                for (&place, row) in layer.iter().zip(apart(&wanted, &offsets)) {
                    rows[place] = row;
                }
            }
        }
        let top =
            (0..rows.len()).map(|place| rows[place] - height(place) / 2.0).fold(f64::INFINITY, f64::min);
        rows.iter().map(|row| row - top).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layers_are_longest_paths() {
        assert_eq!(layers(4, &[(0, 1), (1, 2), (0, 2), (0, 3)]), [0, 1, 2, 1]);
    }

    #[test]
    fn cycles_come_last_and_do_not_hang() {
        let layout = Layout::new(4, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 9)]);
        assert_eq!(layout.layer, [0, 1, 1, 1]);
        assert_eq!(layout.routes.iter().map(|route| route.0).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn crossings_are_resolved() {
        let layout = Layout::new(4, &[(0, 3), (1, 2)]);
        assert!((layout.row[0] < layout.row[1]) == (layout.row[3] < layout.row[2]));
    }

    #[test]
    fn long_edges_pass_through_every_layer() {
        let layout = Layout::new(4, &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        assert_eq!(layout.routes[3].1.len(), 2);
    }

    proptest! {
        #[test]
        fn boxes_of_a_layer_never_overlap(edges in prop::collection::vec((0_u32..20, 0_u32..20), 0..60)) {
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(from, to)| from < to).collect();
            let layout = Layout::new(20, &edges);
            prop_assert_eq!(layout.routes.len(), edges.len());
            for a in 0..20 {
                for b in 0..a {
                    if layout.layer[a] == layout.layer[b] {
                        prop_assert!((layout.row[a] - layout.row[b]).abs() > 0.999);
                    }
                }
            }
            prop_assert!(layout.row.iter().all(|row| *row >= 0.0));
        }
    }
}
