//! Trees other than the binomial one of [`crate::network`], from `ompi/mca/coll/base/coll_base_topo.c` of
//! Open MPI 4.1.4. Processes are numbered from the root, and parents have lower numbers than their children.

use hopmap_model::Edge;

use crate::network::Network;

/// Fan-out of the k-nomial tree: `coll_tuned_bcast_algorithm_knomial_radix`.
const RADIX: u32 = 4;

/// The children of a process among this many, in the order in which it serves them.
pub(crate) type Children = fn(u32, u32) -> Vec<u32>;

/// The next process.
pub(crate) fn chain(process: u32, processes: u32) -> Vec<u32> {
    existing([process.checked_add(1)], processes)
}

/// The complete binary tree by levels: the children of a process are one and two widths of its level away,
/// so all descendants of process 1 are odd, and those of process 2 even.
pub(crate) fn binary(process: u32, processes: u32) -> Vec<u32> {
    let width = 1u32 << (u64::from(process) + 1).ilog2();
    existing([process.checked_add(width), process.checked_add(width.saturating_mul(2))], processes)
}

/// The binomial tree in which a process serves the distances 1, 2, 4, …: its parent lacks its highest bit.
pub(crate) fn doubling(process: u32, processes: u32) -> Vec<u32> {
    let bits = u32::BITS - process.leading_zeros();
    existing((bits..u32::BITS).map(|bit| process.checked_add(1 << bit)), processes)
}

/// The k-nomial tree: the parent of a process lacks its lowest digit to the base [`RADIX`]. The largest
/// subtrees are served first.
pub(crate) fn knomial(process: u32, processes: u32) -> Vec<u32> {
    let weights: Vec<u32> = std::iter::successors(Some(1u32), |weight| weight.checked_mul(RADIX))
        .take_while(|&weight| weight < processes)
        .take_while(|&weight| u64::from(process).is_multiple_of(u64::from(weight) * u64::from(RADIX)))
        .collect();
    let digits = weights.iter().rev().flat_map(|&weight| (1..RADIX).map(move |digit| weight * digit));
    existing(digits.map(|distance| process.checked_add(distance)), processes)
}

/// The binary tree that keeps the order of a reduction: every subtree is a range of processes. The second
/// child of its first process has the last half, rounded down, and the first child the rest.
pub(crate) fn in_order(process: u32, processes: u32) -> Vec<u32> {
    let (mut first, mut size) = (0, processes);
    loop {
        let second = if size > 2 { size / 2 } else { 0 };
        let middle = first + size - second;
        if process == first {
            let ends = first + size;
            return [(first + 1, middle), (middle, ends)]
                .into_iter()
                .filter(|(child, end)| child < end)
                .map(|(child, _)| child)
                .collect();
        }
        (first, size) = if process < middle { (first + 1, middle - first - 1) } else { (middle, second) };
    }
}

fn existing(children: impl IntoIterator<Item = Option<u32>>, processes: u32) -> Vec<u32> {
    children.into_iter().flatten().filter(|&child| child < processes).collect()
}

/// A message from every parent to every child. P − 1 messages.
pub(crate) fn down(
    children: Children,
    bytes: impl Fn(u32) -> u64,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let processes = network.processes();
    let mut received = vec![0; processes as usize];
    for process in 0..processes {
        for (round, child) in (received[process as usize]..).zip(children(process, processes)) {
            network.round(round);
            network.send(process, child, bytes(child));
            received[child as usize] = round + 1;
        }
    }
}

/// A message from every child to every parent, which receives them one after the other. `place` is the
/// process of a node of the tree. P − 1 messages.
pub(crate) fn up(
    children: Children,
    place: impl Fn(u32) -> u32,
    bytes: u64,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let processes = network.processes();
    let mut complete = vec![0; processes as usize];
    for node in (0..processes).rev() {
        for child in children(node, processes) {
            let round = complete[node as usize].max(complete[child as usize]);
            network.round(round);
            network.send(place(child), place(node), bytes);
            complete[node as usize] = round + 1;
        }
    }
}

/// One half of the vector to the subtree of process 1, the other to that of process 2; then every process
/// exchanges halves with its twin in the other subtree. About 2 P messages of half the vector.
pub(crate) fn split_binary(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let half = |process: u32| if process % 2 == 1 { bytes.div_ceil(2) } else { bytes / 2 };
    down(binary, half, network);
    network.next_part();
    let processes = network.processes();
    for process in (1..processes).step_by(2) {
        // Without a twin, the root sends what is missing.
        let twin = if process + 1 < processes { process + 1 } else { 0 };
        network.send(twin, process, half(0));
        if twin > 0 {
            network.send(process, twin, half(process));
        }
    }
}

/// Up the tree that keeps the order of a reduction, whose root is the last rank, and from there to the root
/// of the operation.
pub(crate) fn reduce_in_order(bytes: u64, root: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let last = network.processes() - 1;
    up(in_order, |node| last - node, bytes, network);
    network.next_part();
    if root != last {
        network.send(last, root, bytes);
    }
}

/// Bytes of a chunk of NCCL: `NCCL_BUFFSIZE` of 4 MiB in `NCCL_STEPS` of 8 steps.
const CHUNK: u64 = 1 << 19;
/// More chunks do not change the time of a pipeline much.
const MOST_CHUNKS: u64 = 16;

/// The parent of a process other than 0 in the binary tree that NCCL uses for its allreduce, in which leaves and
/// inner nodes alternate: it differs in the lowest bit of the process and in the bit above.
fn alternating_parent(process: u32, processes: u32) -> u32 {
    let bit = process & process.wrapping_neg();
    let without = process ^ bit;
    match bit.checked_mul(2).map(|above| without | above) {
        Some(parent) if parent < processes => parent,
        _ => without,
    }
}

/// Half of the vector up and down a binary tree, the other half up and down the same tree mirrored, or shifted by
/// one if the number of processes is odd. Chunks follow each other a round apart. 4 · (P − 1) messages per chunk.
/// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
/// Computing 35(12), 2009, as in `src/graph/trees.cc` of NCCL.
pub(crate) fn double_binary(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    let chunks = bytes.div_ceil(CHUNK).clamp(1, MOST_CHUNKS);
    let parent = |node: u32| alternating_parent(node, processes);
    let depth = |node: u32| {
        let above = |node: &u32| (*node > 0).then(|| parent(*node));
        std::iter::successors(Some(node), above).count() as u32 - 1
    };
    let height = (1..processes).map(depth).max().unwrap_or(0);
    for (half, is_second) in [(bytes.div_ceil(2), false), (bytes / 2, true)] {
        let place = |node: u32| match (is_second, processes % 2) {
            (false, _) => node,
            (true, 0) => processes - 1 - node,
            (true, _) => (node + 1) % processes,
        };
        for chunk in 0..chunks {
            let bytes = half / chunks + u64::from(chunk < half % chunks);
            for node in 1..processes {
                let (child, parent, depth) = (place(node), place(parent(node)), depth(node));
                network.round(chunk as u32 + height - depth);
                network.send(child, parent, bytes);
                network.round(chunk as u32 + height + depth - 1);
                network.send(parent, child, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_trees_of_nccl_share_no_inner_node() {
        // The figure of `src/graph/trees.cc`.
        let parents = |processes| -> Vec<u32> {
            (1..processes).map(|node| alternating_parent(node, processes)).collect()
        };
        assert_eq!(parents(14), [2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12]);
        for processes in 2..70 {
            let mut edges = std::collections::BTreeMap::new();
            double_binary(
                6,
                &mut Network::new(processes, 0, |_, edge: Edge| {
                    *edges.entry((edge.source, edge.destination)).or_insert(0) += edge.bytes;
                }),
            );
            let sent = |process| -> u64 {
                edges.iter().filter(|((source, _), _)| *source == process).map(|(_, bytes)| bytes).sum()
            };
            // A leaf of one tree sends half a vector there, and at most three halves in the other.
            assert!((0..processes).all(|process| sent(process) <= 12), "{processes}");
            assert_eq!((0..processes).map(sent).sum::<u64>(), u64::from(processes - 1) * 12);
        }
    }

    /// The examples in comments of the source.
    #[test]
    fn trees_are_those_of_open_mpi() {
        let of = |tree: Children, processes| -> Vec<Vec<u32>> {
            (0..processes).map(|process| tree(process, processes)).collect()
        };
        assert_eq!(of(binary, 7)[..3], [vec![1, 2], vec![3, 5], vec![4, 6]]);
        assert_eq!(of(doubling, 8)[..4], [vec![1, 2, 4], vec![3, 5], vec![6], vec![7]]);
        assert_eq!(of(knomial, 10)[0], [4, 8, 1, 2, 3]);
        assert_eq!(of(knomial, 10)[4..9], [vec![5, 6, 7], vec![], vec![], vec![], vec![9]]);
        let ranks = |node: u32| in_order(node, 9).into_iter().map(|child| 8 - child).collect::<Vec<_>>();
        assert_eq!(
            [8, 7, 6, 5, 3, 2].map(|rank| ranks(8 - rank)),
            [vec![7, 3], vec![6, 5], vec![], vec![4], vec![2, 1], vec![],]
        );
        assert_eq!(
            [of(in_order, 2), of(in_order, 3)],
            [vec![vec![1], vec![]], vec![vec![1, 2], vec![], vec![]]]
        );
    }
}
