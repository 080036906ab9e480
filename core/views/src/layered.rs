//! Layered drawings of graphs (Sugiyama, Tagawa and Toda 1981): how far nodes are from others, an order of every layer with few
//! crossings, and places that keep boxes apart.

use std::collections::BTreeMap;

use hopmap_graph::UNREACHED;

/// Sweeps over the layers that look for fewer crossings.
const SWEEPS: usize = 8;

/// Neighbours of every node.
pub(crate) fn neighbours(count: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); count];
    for (a, b) in pairs {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    neighbours
}

/// Edges from every node to the nearest of some; none where these are not reached.
pub(crate) fn distances(
    neighbours: &[Vec<usize>],
    from: impl IntoIterator<Item = usize>,
) -> Vec<Option<usize>> {
    let distances = hopmap_graph::distances(neighbours.len(), from, |node| neighbours[node].iter().copied());
    distances.into_iter().map(|distance| (distance != UNREACHED).then_some(distance as usize)).collect()
}

/// Sorts layers by the mean place of neighbours in the layers before, then in those behind, and so on; keeps the order with the fewest
/// crossings. Edges inside a layer, and those of nodes in none, do not count.
pub(crate) fn reduce_crossings(layers: &mut Vec<Vec<usize>>, edges: &[(usize, usize)]) {
    let ends = edges.iter().flat_map(|&(a, b)| [a, b]);
    let count = layers.iter().flatten().copied().chain(ends).max().map_or(0, |last| last + 1);
    let neighbours = neighbours(count, edges.iter().copied());
    let mut places: Vec<Option<(usize, usize)>> = vec![None; count];
    (0..layers.len()).for_each(|layer| note(&mut places, layers, layer));
    let mut best = (crossings(&places, edges), layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let is_forward = sweep % 2 == 0;
        for step in 1..layers.len() {
            let layer = if is_forward { step } else { layers.len() - 1 - step };
            let counts = |other: usize| if is_forward { other < layer } else { other > layer };
            let part =
                |(layer, place): (usize, usize)| (place as f64 + 0.5) / layers[layer].len().max(1) as f64;
            let mean_of = |node: usize| {
                let others = neighbours[node].iter().filter_map(|&other| places[other]);
                mean(others.filter(|&(layer, _)| counts(layer)).map(part))
                    .or(places[node].map(part))
                    .unwrap_or(0.0)
            };
            let means: BTreeMap<usize, f64> =
                layers[layer].iter().map(|&node| (node, mean_of(node))).collect();
            layers[layer].sort_by(|a, b| means[a].total_cmp(&means[b]));
            note(&mut places, layers, layer);
        }
        let crossings = crossings(&places, edges);
        if crossings < best.0 {
            best = (crossings, layers.clone());
        }
    }
    *layers = best.1;
}

/// Notes the layer of its nodes and their places in it.
fn note(places: &mut [Option<(usize, usize)>], layers: &[Vec<usize>], layer: usize) {
    layers[layer].iter().enumerate().for_each(|(place, &node)| places[node] = Some((layer, place)));
}

/// The mean of some values, if there are any.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn crossings(places: &[Option<(usize, usize)>], edges: &[(usize, usize)]) -> usize {
    let mut between: BTreeMap<(usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
    for &(a, b) in edges {
        if let (Some(a), Some(b)) = (places[a], places[b])
            && a.0 != b.0
        {
            let (first, last) = (a.min(b), a.max(b));
            between.entry((first.0, last.0)).or_default().push((first.1, last.1));
        }
    }
    between.into_values().map(inversions).sum()
}

/// Pairs of edges between two layers that cross each other.
fn inversions(mut edges: Vec<(usize, usize)>) -> usize {
    edges.sort_unstable();
    // How many edges so far end at the places up to each, in sums over powers of two (Fenwick 1994).
    let mut ended = vec![0_usize; edges.iter().map(|edge| edge.1 + 2).max().unwrap_or(0)];
    let mut crossings = 0;
    for (before, &(_, end)) in edges.iter().enumerate() {
        let mut at = end + 1;
        crossings += before;
        while at > 0 {
            crossings -= ended[at];
            at &= at - 1;
        }
        at = end + 1;
        while at < ended.len() {
            ended[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    crossings
}

/// The places nearest to those wanted that are in order and at least as far apart as their offsets are: isotonic regression by pooling
/// neighbours.
pub(crate) fn apart(wanted: &[f64], offsets: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wanted, offset) in wanted.iter().zip(offsets) {
        pools.push((wanted - offset, 1));
        while let [.., (first, count), (last, more)] = pools[..]
            && first / count as f64 > last / more as f64
        {
            pools.truncate(pools.len() - 2);
            pools.push((first + last, count + more));
        }
    }
    let bases = pools.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    bases.zip(offsets).map(|(base, offset)| base + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted_and_resolved() {
        assert_eq!(inversions(vec![(0, 1), (1, 0), (2, 0)]), 2);
        let mut layers = vec![vec![0, 1, 2], vec![3, 4, 5]];
        reduce_crossings(&mut layers, &[(0, 5), (1, 4), (2, 3), (0, 2)]);
        assert_eq!(layers, [[0, 1, 2], [5, 4, 3]]);
    }

    #[test]
    fn what_is_too_near_moves_apart_and_no_more() {
        assert_eq!(apart(&[0.0, 0.0, 9.0], &[0.0, 2.0, 4.0]), [-1.0, 1.0, 9.0]);
        assert_eq!(distances(&neighbours(4, [(0, 1), (1, 2)]), [0]), [Some(0), Some(1), Some(2), None]);
    }
}
