//! Fast initial placements.
//!
//! On a tree of slots, ranks are placed by partitioning and by clustering, on other machines greedily. Partitioning minimises the
//! total cut. If all ranks wait for the slowest one, a single heavy message across the cut is as bad as many: joining ranks by
//! their heaviest channel (single linkage) keeps heavy channels inside as long as there is room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopmap_model::{Context, Error};
use hopmap_partition::{Effort, Graph, PartitionError, partition};
use hopmap_replay::{MakespanEvaluator, ReplayProblem};
use rayon::prelude::*;

use super::search::RankSearch;
use crate::SearchResult;

/// Maximum number of ranks for a second, roomy partition.
const ROOMY: usize = 4096;
/// Maximum product of channels and slots for greedy placement.
const MAX_GREEDY: usize = 1 << 27;
/// Number of ranks above which less effort is made for a small cut.
const MANY: usize = 2048;
/// The seed of partitions.
const SEED: u64 = 1;
/// No slot.
const NONE: u32 = u32::MAX;

/// A placement and its makespan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Its name.
    pub name: String,
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Its makespan in ticks.
    pub makespan: i64,
}

/// `schedule/list`: the best start. List heuristics of tasks do not apply to ranks, whose tasks stay together.
pub fn list(search: &RankSearch<'_>, cx: &Context<'_>) -> Result<SearchResult<Vec<u32>>, Error> {
    let starts = starts(search)?;
    for start in &starts {
        cx.log(format!("{}: makespan {}", start.name, search.problem.real(start.makespan)));
    }
    let evaluations = starts.len() as u64;
    let best = starts.into_iter().next().ok_or_else(|| Error::msg("no initial placement exists"))?;
    Ok(SearchResult {
        best: best.slots,
        makespan: best.makespan,
        lower_bound: search.problem.lower_bound(),
        evaluations,
        convergence: Vec::new(),
        complete: true,
    })
}

/// All starts, the best first; ties in the order of this list: a given placement, linear, round-robin over hosts, by clusters, by
/// partition and greedy. The weights are the total traffic between ranks, the possible delay of the end, and the longest delays.
pub fn starts(search: &RankSearch<'_>) -> Result<Vec<Start>, Error> {
    let problem = search.problem;
    let mut evaluator = MakespanEvaluator::new(search.problem);
    let mut starts: Vec<Start> = Vec::new();
    let mut add = |name: String, slots: Vec<u32>| {
        if !starts.iter().any(|start| start.slots == slots) {
            let makespan = evaluator.makespan(&slots);
            starts.push(Start { name, slots, makespan });
        }
    };
    search.given.iter().for_each(|given| add("mapping".into(), given.clone()));
    add("linear".into(), (0..problem.ranks() as u32).collect());
    add("round-robin".into(), round_robin(search));
    let critical = problem.criticality();
    let by_weight =
        [("", &sensitivity(problem)), ("critical ", &critical.delays), ("bottleneck ", &critical.longest)];
    for (name, weights) in by_weight {
        add(format!("{name}clusters"), place_by_clusters(search, weights));
        if !search.places.is_tree() {
            place_greedily(problem, weights)
                .into_iter()
                .for_each(|slots| add(format!("{name}greedy"), slots));
            continue;
        }
        for (kind, room_for) in [("partition", 1), ("roomy partition", 2)] {
            if room_for == 1 || (room_for * problem.ranks() <= ROOMY && problem.slots() > problem.ranks()) {
                add(format!("{name}{kind}"), place_by_partition(search, weights, room_for)?);
            }
        }
    }
    starts.sort_by_key(|start| start.makespan);
    Ok(starts)
}

/// For every channel the total increase of its message times per unit of distance: the weight in a quadratic assignment problem.
fn sensitivity(problem: &ReplayProblem) -> Vec<i64> {
    let channels = problem.program().channels();
    let of_channel =
        |(channel, &messages): (_, &u32)| problem.spread(channel).saturating_mul(i64::from(messages));
    channels.all.iter().copied().zip(&channels.messages).map(of_channel).collect()
}

/// The first slot of every host, then the second of each.
fn round_robin(search: &RankSearch<'_>) -> Vec<u32> {
    let mut turn = 0;
    let mut before = None;
    let turns = search.hosts.iter().map(|&host| {
        turn = if before == Some(host) { turn + 1 } else { 0 };
        before = Some(host);
        turn
    });
    let mut slots: Vec<(u32, u32)> = turns.zip(0..).collect();
    slots.sort_unstable();
    slots.into_iter().map(|(_, slot)| slot).take(search.problem.ranks()).collect()
}

/// Ranks that share the slots `begin..end` of the order of the tree.
struct Part {
    /// Its children are the groups of the level below; zero if they are single slots.
    level: usize,
    begin: u32,
    end: u32,
    graph: Graph,
    /// The rank of every vertex.
    ranks: Vec<u32>,
}

/// Distributes ranks to the children of every node of the tree with a small cut, in parts with room for `room_for` times the
/// ranks, so that groups can stay together.
fn place_by_partition(
    search: &RankSearch<'_>,
    weights: &[i64],
    room_for: usize,
) -> Result<Vec<u32>, PartitionError> {
    let problem = search.problem;
    let level = search.places.levels.len();
    let ranks = (0..problem.ranks() as u32).collect();
    let root =
        Part { level, begin: 0, end: problem.slots() as u32, graph: channel_graph(problem, weights)?, ranks };
    let mut slots = vec![0; problem.ranks()];
    for (rank, slot) in place_part(search, root, room_for)? {
        slots[rank as usize] = slot;
    }
    Ok(slots)
}

fn place_part(
    search: &RankSearch<'_>,
    part: Part,
    room_for: usize,
) -> Result<Vec<(u32, u32)>, PartitionError> {
    let Some(level) = part.level.checked_sub(1).filter(|&level| level > 0 && part.ranks.len() > 1) else {
        let order = &search.places.order[part.begin as usize..part.end as usize];
        return Ok(part.ranks.into_iter().zip(order.iter().copied()).collect());
    };
    let children = children(search, &part, room_for, level - 1);
    if let [(begin, end)] = children[..] {
        return place_part(search, Part { level, begin, end, ..part }, room_for);
    }
    let sizes: Vec<u32> = children.iter().map(|(begin, end)| end - begin).collect();
    let room = sizes.iter().sum::<u32>() as usize;
    let effort = Effort { cycles: if search.problem.ranks() > MANY { 2 } else { 20 }, ..Effort::default() };
    let mut parts = partition(
        &part.graph.padded(room),
        &sizes,
        effort,
        SEED ^ u64::from(part.begin) << 8 ^ level as u64,
    )?;
    parts.truncate(part.ranks.len());
    let split = part.graph.split(&parts, sizes.len());
    let below = children.into_iter().zip(split).map(|((begin, end), (graph, vertices))| {
        let ranks = vertices.iter().map(|&vertex| part.ranks[vertex as usize]).collect();
        Part { level, begin, end, graph, ranks }
    });
    let below: Vec<Part> = below.filter(|part| !part.ranks.is_empty()).collect();
    let placed: Result<Vec<_>, _> =
        below.into_par_iter().map(|part| place_part(search, part, room_for)).collect();
    Ok(placed?.concat())
}

/// The first groups of a level in a part that have room for the given multiple of its ranks, or all.
fn children(search: &RankSearch<'_>, part: &Part, room_for: usize, level: usize) -> Vec<(u32, u32)> {
    let starts = &search.places.levels[level].starts;
    let first = starts.partition_point(|&start| start < part.begin);
    let mut room = 0;
    let mut children = Vec::new();
    for pair in starts[first..].windows(2).take_while(|pair| pair[1] <= part.end) {
        children.push((pair[0], pair[1]));
        room += (pair[1] - pair[0]) as usize;
        if room >= room_for * part.ranks.len() {
            break;
        }
    }
    children
}

/// The graph of all ranks: the weight of an edge is that of the channels between its two ranks.
fn channel_graph(problem: &ReplayProblem, weights: &[i64]) -> Result<Graph, PartitionError> {
    let channels = problem.program().channels().all.iter().zip(weights);
    let mut edges: Vec<(u32, u32, i64)> = channels
        .filter(|(channel, weight)| channel.from != channel.to && **weight > 0)
        .flat_map(|(channel, &weight)| {
            [(channel.from, channel.to, weight), (channel.to, channel.from, weight)]
        })
        .collect();
    edges.sort_unstable();
    edges.dedup_by(|next, kept| {
        let is_same = (next.0, next.1) == (kept.0, kept.1);
        if is_same {
            kept.2 = kept.2.saturating_add(next.2);
        }
        is_same
    });
    let mut first = vec![0u32; problem.ranks() + 1];
    edges.iter().for_each(|edge| first[edge.0 as usize + 1] += 1);
    (0..problem.ranks()).for_each(|rank| first[rank + 1] += first[rank]);
    let targets = edges.iter().map(|edge| edge.1).collect();
    Graph::new(first, targets, edges.iter().map(|edge| edge.2).collect(), vec![1; problem.ranks()])
}

/// Places ranks in cluster order on the slots in tree order.
fn place_by_clusters(search: &RankSearch<'_>, weights: &[i64]) -> Vec<u32> {
    let problem = search.problem;
    let mut channels: Vec<(i64, usize)> =
        weights.iter().copied().zip(0..).filter(|(weight, _)| *weight > 0).collect();
    channels.sort_unstable_by_key(|&(weight, channel)| (Reverse(weight), channel));
    let mut clusters = Clusters::new(problem.ranks());
    for (_, channel) in channels {
        let channel = problem.program().channels().all[channel];
        clusters.join(channel.from, channel.to);
    }
    let mut slots = vec![0; problem.ranks()];
    for (rank, &slot) in clusters.into_order().into_iter().zip(&search.places.order) {
        slots[rank as usize] = slot;
    }
    slots
}

/// Clusters of ranks, each a linked list of its members.
struct Clusters {
    /// A member closer to the first one of the cluster, or itself.
    up: Vec<u32>,
    /// The next member of the list.
    next: Vec<Option<u32>>,
    /// For first members, the last member and the size.
    last: Vec<u32>,
    size: Vec<u32>,
}

impl Clusters {
    fn new(ranks: usize) -> Self {
        let own = || (0..ranks as u32).collect::<Vec<u32>>();
        Self { up: own(), next: vec![None; ranks], last: own(), size: vec![1; ranks] }
    }

    fn first_of(&mut self, mut rank: u32) -> u32 {
        while self.up[rank as usize] != rank {
            let up = self.up[rank as usize];
            self.up[rank as usize] = self.up[up as usize];
            rank = up;
        }
        rank
    }

    /// Joins the clusters of two ranks; the smaller one is appended to the larger.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first_of(a), self.first_of(b));
        if a == b {
            return;
        }
        let size = |first: u32| (self.size[first as usize], Reverse(first));
        let (front, back) = if size(a) >= size(b) { (a, b) } else { (b, a) };
        let [front_index, back_index] = [front as usize, back as usize];
        self.next[self.last[front_index] as usize] = Some(back);
        self.last[front_index] = self.last[back_index];
        self.size[front_index] += self.size[back_index];
        self.up[back_index] = front;
    }

    /// All ranks by cluster, the largest first.
    fn into_order(mut self) -> Vec<u32> {
        let ranks = self.up.len() as u32;
        let mut firsts: Vec<u32> = (0..ranks).filter(|&rank| self.first_of(rank) == rank).collect();
        firsts.sort_by_key(|&first| Reverse(self.size[first as usize]));
        let mut order = Vec::with_capacity(ranks as usize);
        for first in firsts {
            let mut at = Some(first);
            while let Some(rank) = at {
                order.push(rank);
                at = self.next[rank as usize];
            }
        }
        order
    }
}

/// Repeatedly places the rank that communicates most with the placed ones, where its weighted distance is smallest; none if the
/// machine is too large.
fn place_greedily(problem: &ReplayProblem, weights: &[i64]) -> Option<Vec<u32>> {
    let channels = problem.program().channels();
    if channels.all.len().saturating_mul(problem.slots()) > MAX_GREEDY {
        return None;
    }
    let total = |rank: u32| {
        channels.of(rank).iter().fold(0i64, |sum, &channel| sum.saturating_add(weights[channel as usize]))
    };
    let mut unplaced: Vec<u32> = (0..problem.ranks() as u32).collect();
    unplaced.sort_by_key(|&rank| Reverse(total(rank)));
    let mut slots = vec![NONE; problem.ranks()];
    let mut is_free = vec![true; problem.slots()];
    let mut tied = vec![0i64; problem.ranks()];
    let mut heap = BinaryHeap::new();
    for first in unplaced {
        heap.push((0, Reverse(first)));
        while let Some((tie, Reverse(rank))) = heap.pop() {
            if slots[rank as usize] != NONE || tie != tied[rank as usize] {
                continue;
            }
            let slot = nearest_free_slot(problem, weights, &mut slots, &is_free, rank)?;
            slots[rank as usize] = slot;
            is_free[slot as usize] = false;
            for &number in channels.of(rank) {
                let channel = channels.all[number as usize];
                let other = if channel.from == rank { channel.to } else { channel.from };
                if slots[other as usize] == NONE {
                    let tied = &mut tied[other as usize];
                    *tied = tied.saturating_add(weights[number as usize]);
                    heap.push((*tied, Reverse(other)));
                }
            }
        }
    }
    Some(slots)
}

/// The free slot with the smallest weighted distance of a rank to its placed partners.
fn nearest_free_slot(
    problem: &ReplayProblem,
    weights: &[i64],
    slots: &mut [u32],
    is_free: &[bool],
    rank: u32,
) -> Option<u32> {
    let channels = problem.program().channels();
    let free = (0..problem.slots() as u32).filter(|&slot| is_free[slot as usize]);
    let chosen = free.min_by_key(|&slot| {
        slots[rank as usize] = slot;
        let placed =
            channels.of(rank).iter().map(|&number| (channels.all[number as usize], weights[number as usize]));
        let placed = placed.filter(|(channel, _)| {
            slots[channel.from as usize] != NONE && slots[channel.to as usize] != NONE
        });
        placed.fold(0i128, |sum, (channel, weight)| {
            sum + i128::from(problem.delay(channel, slots)) * i128::from(weight)
        })
    });
    slots[rank as usize] = NONE;
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_joined_first_stay_together() {
        let mut clusters = Clusters::new(7);
        for (a, b) in [(5, 2), (2, 6), (0, 3), (3, 6), (0, 5)] {
            clusters.join(a, b);
        }
        assert_eq!(clusters.into_order(), [2, 5, 6, 0, 3, 1, 4]);
    }
}
