//! Places for the boxes of a directed graph: layers from left to right, few crossings.

/// Places that edges take between their ends; with more of them long edges are drawn as one curve.
const MOST_PLACES: usize = 4000;
/// Sweeps over the layers that look for fewer crossings.
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
        chains.reduce_crossings();
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

    /// Sorts layers by the mean place of neighbours, back and forth, and keeps the best order (Sugiyama 1981).
    fn reduce_crossings(&mut self) {
        let mut best = (self.crossings(), self.order.clone());
        for sweep in 0..SWEEPS {
            let forward = sweep % 2 == 0;
            let layers: Vec<usize> = if forward {
                (1..self.order.len()).collect()
            } else {
                (0..self.order.len().saturating_sub(1)).rev().collect()
            };
            let neighbours = self.neighbours(forward);
            for layer in layers {
                self.sort_layer(layer, &neighbours);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
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

    fn sort_layer(&mut self, layer: usize, neighbours: &[Vec<usize>]) {
        let position = self.positions();
        let mean = |place: usize| {
            let around = &neighbours[place];
            match around.len() {
                0 => position[place] as f64,
                count => around.iter().map(|&other| position[other] as f64).sum::<f64>() / count as f64,
            }
        };
        self.order[layer].sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
    }

    /// Position of every place within its layer.
    fn positions(&self) -> Vec<usize> {
        let mut position = vec![0; self.layer.len()];
        for layer in &self.order {
            for (index, &place) in layer.iter().enumerate() {
                position[place] = index;
            }
        }
        position
    }

    fn crossings(&self) -> usize {
        let position = self.positions();
        let mut by_layer: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.order.len()];
        for &(from, to) in &self.links {
            by_layer[self.layer[from]].push((position[from], position[to]));
        }
        by_layer.iter_mut().map(|links| inversions(links)).sum()
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
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|&place| match neighbours[place].len() {
                        0 => rows[place],
                        count => {
                            neighbours[place].iter().map(|&other| rows[other]).sum::<f64>() / count as f64
                        }
                    })
                    .collect();
                let heights: Vec<f64> = layer.iter().map(|&place| height(place)).collect();
                for (&place, row) in layer.iter().zip(apart(&wanted, &heights)) {
                    rows[place] = row;
                }
            }
        }
        let top =
            (0..rows.len()).map(|place| rows[place] - height(place) / 2.0).fold(f64::INFINITY, f64::min);
        rows.iter().map(|row| row - top).collect()
    }
}

/// Pairs of links between two layers that cross each other, by counting inversions with a merge sort.
fn inversions(links: &mut [(usize, usize)]) -> usize {
    fn count(values: &mut [usize], buffer: &mut Vec<usize>) -> usize {
        if values.len() < 2 {
            return 0;
        }
        let half = values.len() / 2;
        let (left, right) = values.split_at_mut(half);
        let mut crossings = count(left, buffer) + count(right, buffer);
        buffer.clear();
        let (mut i, mut j) = (0, 0);
        while i < left.len() || j < right.len() {
            if j == right.len() || (i < left.len() && left[i] <= right[j]) {
                buffer.push(left[i]);
                i += 1;
            } else {
                crossings += left.len() - i;
                buffer.push(right[j]);
                j += 1;
            }
        }
        values.copy_from_slice(buffer);
        crossings
    }
    links.sort_unstable();
    let mut ends: Vec<usize> = links.iter().map(|link| link.1).collect();
    count(&mut ends, &mut Vec::new())
}

/// Rows as near to the wanted ones as the heights allow, in the given order (pool adjacent violators).
fn apart(wanted: &[f64], heights: &[f64]) -> Vec<f64> {
    // Subtracting where each would lie in a dense column turns keeping apart into not falling.
    let mut dense = Vec::with_capacity(heights.len());
    let mut top = 0.0;
    for height in heights {
        dense.push(top + height / 2.0);
        top += height;
    }
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wanted, dense) in wanted.iter().zip(&dense) {
        let mut block = (wanted - dense, 1);
        while let Some(&(value, count)) = blocks.last().filter(|last| last.0 > block.0) {
            blocks.pop();
            let members = count + block.1;
            block = ((value * count as f64 + block.0 * block.1 as f64) / members as f64, members);
        }
        blocks.push(block);
    }
    let shifts = blocks.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count));
    shifts.zip(dense).map(|(shift, dense)| shift + dense).collect()
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
        assert_eq!(inversions(&mut [(0, 1), (1, 0), (2, 0)]), 2);
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
