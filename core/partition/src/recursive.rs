//! Many parts by cutting in two, again and again.

use crate::Graph;
use crate::bisection::bisect;
use crate::random::stream;

/// Vertices of a graph whose halves are cut side by side.
const PARALLEL: usize = 512;

/// Cuts a graph into parts of about these sizes, each more than zero. `path` is the place of the graph in the recursion.
pub(crate) fn recursive(graph: &Graph, sizes: &[u32], tries: u32, seed: u64, path: u64) -> Vec<u32> {
    let mut parts = vec![0; graph.vertices()];
    if sizes.len() < 2 || graph.vertices() == 0 {
        return parts;
    }
    let (middle, target) = halve(graph, sizes);
    let mut random = stream(seed, path);
    let side = bisect(graph, target, tries, &mut random);
    let (left, right) = sizes.split_at(middle);
    let [(first, first_vertices), (second, second_vertices)] = graph.halves(&side);
    let one = || recursive(&first, left, tries, seed, path.wrapping_mul(2).wrapping_add(1));
    let other = || recursive(&second, right, tries, seed, path.wrapping_mul(2).wrapping_add(2));
    let (one, other) = match graph.vertices() >= PARALLEL {
        true => rayon::join(one, other),
        false => (one(), other()),
    };
    first_vertices.iter().zip(one).for_each(|(&vertex, part)| parts[vertex as usize] = part);
    let offset = middle as u32;
    second_vertices.iter().zip(other).for_each(|(&vertex, part)| parts[vertex as usize] = part + offset);
    parts
}

/// How many parts the first half has, and what it should weigh.
fn halve(graph: &Graph, sizes: &[u32]) -> (usize, i64) {
    let total: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    let mut before = 0u64;
    let mut best = (u64::MAX, 1, 0);
    for (index, &size) in sizes[..sizes.len() - 1].iter().enumerate() {
        before += u64::from(size);
        let off = (2 * before).abs_diff(total);
        if off < best.0 {
            best = (off, index + 1, before);
        }
    }
    let weight = u128::from(graph.total());
    let target = (weight * u128::from(best.2) + u128::from(total) / 2) / u128::from(total.max(1));
    (best.1, target as i64)
}
