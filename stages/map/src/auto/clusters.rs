//! Single-linkage clustering of the rows of a matrix.

use std::cmp::Reverse;

/// Rows that are compared by all their columns; more rows are compared by fewer.
const COLUMNS: usize = 256;
/// Clusters count as separate if the shortest distance between two is this multiple of the longest link
/// inside one. Rows of random matrices, and of grids, have no such gap.
const GAP: f64 = 1.3;

/// A link of the minimum spanning tree of the rows.
#[derive(Debug, Clone, Copy)]
struct Link {
    length: u64,
    ends: [u32; 2],
}

/// Partitions of some rows into clusters, the one with the widest gap first. The rows of a cluster are in
/// order, the clusters by size.
pub(super) fn clusterings(
    rows: &[u32],
    columns: usize,
    value: impl Fn(usize, usize) -> i64,
) -> Vec<Vec<Vec<u32>>> {
    let step = rows.len().div_ceil(COLUMNS).max(1);
    let values = |&row: &u32| (0..columns).step_by(step).map(|column| value(row as usize, column)).collect();
    let mut tree = spanning_tree(&rows.iter().map(values).collect::<Vec<_>>());
    tree.sort_unstable_by_key(|link| (link.length, link.ends));
    let gap = |at: usize| tree[at].length as f64 / tree[at - 1].length.max(1) as f64;
    let mut cuts: Vec<usize> = (1..tree.len()).filter(|&at| gap(at) >= GAP).collect();
    cuts.sort_by(|&a, &b| gap(b).total_cmp(&gap(a)));
    cuts.into_iter().map(|at| joined(rows, &tree[..at])).collect()
}

/// Prim's algorithm; the distance of two rows is the sum of absolute differences.
fn spanning_tree(rows: &[Vec<i64>]) -> Vec<Link> {
    let distance = |a: u32, b: u32| {
        let pairs = rows[a as usize].iter().zip(&rows[b as usize]);
        pairs.fold(0_u64, |sum, (a, b)| sum.saturating_add(a.abs_diff(*b)))
    };
    let mut outside: Vec<Link> =
        (1..rows.len() as u32).map(|row| Link { length: distance(0, row), ends: [0, row] }).collect();
    let mut tree = Vec::with_capacity(outside.len());
    while let Some(nearest) = (0..outside.len()).min_by_key(|&at| (outside[at].length, outside[at].ends[1])) {
        let link = outside.swap_remove(nearest);
        tree.push(link);
        let joined = link.ends[1];
        for link in &mut outside {
            let length = distance(joined, link.ends[1]);
            if length < link.length {
                *link = Link { length, ends: [joined, link.ends[1]] };
            }
        }
    }
    tree
}

/// The clusters that links join.
fn joined(rows: &[u32], links: &[Link]) -> Vec<Vec<u32>> {
    let mut cluster_of: Vec<usize> = (0..rows.len()).collect();
    let mut clusters: Vec<Vec<u32>> = (0..rows.len() as u32).map(|index| vec![index]).collect();
    for link in links {
        let [mut from, mut to] = link.ends.map(|end| cluster_of[end as usize]);
        if clusters[from].len() > clusters[to].len() {
            (from, to) = (to, from);
        }
        let rows = std::mem::take(&mut clusters[from]);
        rows.iter().for_each(|&row| cluster_of[row as usize] = to);
        clusters[to].extend(rows);
    }
    clusters.retain(|cluster| !cluster.is_empty());
    for cluster in &mut clusters {
        cluster.iter_mut().for_each(|index| *index = rows[*index as usize]);
        cluster.sort_unstable();
    }
    clusters.sort_unstable_by_key(|rows| (Reverse(rows.len()), rows[0]));
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_clusters_are_found_widest_gap_first() {
        // Rows of one number each: three pairs and three rows, in two groups.
        let rows = [0, 1, 20, 21, 400, 401, 420, 421, 422];
        let found = clusterings(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 9, |row, _| rows[row]);
        let sizes = |clusters: &Vec<Vec<u32>>| clusters.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(found.iter().map(sizes).collect::<Vec<_>>(), [vec![5, 4], vec![3, 2, 2, 2]]);
        assert_eq!(found[1][0], [6, 7, 8]);
    }

    #[test]
    fn a_line_of_rows_has_no_clusters() {
        let rows: Vec<u32> = (0..50).collect();
        assert!(clusterings(&rows, 50, |row, column| row.abs_diff(column).cast_signed() as i64).is_empty());
    }
}
