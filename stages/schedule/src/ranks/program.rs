//! The tasks of ranks, contracted to what a placement can change.

use std::collections::HashMap;

use hopmap_model::{Dependency, TaskDag};

/// No node: there is none before.
pub(super) const NOBODY: u32 = u32::MAX;

/// What runs in one piece wherever its rank is: tasks of one rank in a row, of which only the first waits for others and only the last
/// is waited for. Nodes are numbered in an order in which none comes before one that it waits for, nearly that of time.
#[derive(Debug)]
pub(super) struct Program {
    /// The rank of every node.
    pub(super) rank: Vec<u32>,
    /// The node before it on its rank, or [`NOBODY`].
    pub(super) previous: Vec<u32>,
    /// Where the messages to every node begin, and where the last ones end.
    pub(super) starts: Vec<u32>,
    /// The messages to every node.
    pub(super) messages: Vec<Incoming>,
    /// Where the nodes of every rank begin in `nodes`, and where the last ones end.
    pub(super) rank_starts: Vec<u32>,
    /// The nodes of every rank in their order.
    pub(super) nodes: Vec<u32>,
    /// Where the tasks of every node begin in `tasks`, and where the last ones end.
    pub(super) task_starts: Vec<u32>,
    /// The tasks of every node in their order.
    pub(super) tasks: Vec<u32>,
    /// Ways that messages take.
    pub(super) links: Links,
}

/// A message as the node that gets it sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Incoming {
    /// The node that sends it.
    pub(super) source: u32,
    /// The link that it takes.
    pub(super) link: u32,
}

/// Messages of one size from one rank to another: all take the same, wherever the two are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) size: u32,
}

/// All links of a program.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) all: Vec<Link>,
    /// How many messages take every link.
    pub(super) messages: Vec<u32>,
    starts: Vec<u32>,
    of_rank: Vec<u32>,
}

/// What is known of a program before it is contracted.
pub(super) struct Source<'a> {
    pub(super) dag: &'a TaskDag,
    /// The rank of every task.
    pub(super) rank: &'a [u32],
    pub(super) ranks: usize,
    /// Dependencies, and the size of each.
    pub(super) dependencies: &'a [Dependency],
    pub(super) size_of: &'a [u32],
    /// Whether messages of every size take no time on any one slot.
    pub(super) silent: &'a [bool],
    /// Whether larger messages never take less.
    pub(super) is_monotone: bool,
    /// What every task takes where it is fastest.
    pub(super) work: &'a [i64],
}

impl Program {
    pub(super) fn new(source: &Source<'_>) -> Self {
        let order = by_time(source);
        let previous = previous(source, &order);
        let heads = heads(source, &previous);
        let mut node_of = vec![NOBODY; order.len()];
        let mut rank = Vec::new();
        for &task in &order {
            node_of[task as usize] = match heads[task as usize] {
                true => {
                    rank.push(source.rank[task as usize]);
                    rank.len() as u32 - 1
                }
                false => node_of[previous[task as usize] as usize],
            };
        }
        let nodes = rank.len();
        let previous =
            (0..order.len()).filter(|&task| heads[task]).fold(vec![NOBODY; nodes], |mut all, task| {
                let before = previous[task];
                all[node_of[task] as usize] =
                    if before == NOBODY { NOBODY } else { node_of[before as usize] };
                all
            });
        let (starts, messages, links) = messages(source, &node_of, &rank);
        let (rank_starts, of_rank) =
            grouped(source.ranks, (0..nodes as u32).map(|node| (rank[node as usize], node)));
        let (task_starts, tasks) = grouped(nodes, order.iter().map(|&task| (node_of[task as usize], task)));
        Self { rank, previous, starts, messages, rank_starts, nodes: of_rank, task_starts, tasks, links }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.rank.len()
    }

    /// The messages to a node.
    #[inline]
    pub(super) fn incoming(&self, node: u32) -> &[Incoming] {
        &self.messages[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// The tasks of a node.
    pub(super) fn tasks(&self, node: u32) -> &[u32] {
        &self.tasks[self.task_starts[node as usize] as usize..self.task_starts[node as usize + 1] as usize]
    }

    /// The nodes of a rank.
    pub(super) fn nodes_of(&self, rank: u32) -> &[u32] {
        &self.nodes[self.rank_starts[rank as usize] as usize..self.rank_starts[rank as usize + 1] as usize]
    }
}

impl Links {
    fn new(ranks: usize, all: Vec<Link>, messages: Vec<u32>) -> Self {
        let ends = |(number, link): (u32, &Link)| {
            let other = (link.from != link.to).then_some((link.to, number));
            std::iter::once((link.from, number)).chain(other)
        };
        let (starts, of_rank) = grouped(ranks, (0..).zip(&all).flat_map(ends));
        Self { all, messages, starts, of_rank }
    }

    /// Number of links.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The links at which a rank sends or receives.
    #[inline]
    pub(super) fn of(&self, rank: u32) -> &[u32] {
        &self.of_rank[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// Values by their groups, in the order in which they come: where every group begins, and all values.
fn grouped(groups: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; groups + 1];
    pairs.clone().for_each(|(group, _)| starts[group as usize + 1] += 1);
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let mut next = starts.clone();
    let mut values = vec![0; starts[groups] as usize];
    for (group, value) in pairs {
        values[next[group as usize] as usize] = value;
        next[group as usize] += 1;
    }
    (starts, values)
}

/// The tasks in the order in which they would begin if messages took no time: none comes before one that it waits for, and tasks of a
/// rank that do not wait for each other run in the order in which they can.
fn by_time(source: &Source<'_>) -> Vec<u32> {
    let mut order = source.dag.order().unwrap_or_default();
    let starts = source.dag.starts();
    let mut begin = vec![0i64; order.len()];
    for &task in &order {
        let end = begin[task as usize] + source.work[task as usize];
        for edge in &source.dag.dependencies[starts[task as usize]..starts[task as usize + 1]] {
            let next = &mut begin[edge.destination as usize];
            *next = end.max(*next);
        }
    }
    order.sort_by_key(|&task| begin[task as usize]);
    order
}

/// The task before every task on its rank.
fn previous(source: &Source<'_>, order: &[u32]) -> Vec<u32> {
    let mut last = vec![NOBODY; source.ranks];
    let mut previous = vec![NOBODY; order.len()];
    for &task in order {
        let last = &mut last[source.rank[task as usize] as usize];
        previous[task as usize] = std::mem::replace(last, task);
    }
    previous
}

/// Whether a dependency is a message: between ranks, or on one where that takes time too.
fn is_message(source: &Source<'_>, edge: &Dependency, size: u32) -> bool {
    source.rank[edge.source as usize] != source.rank[edge.destination as usize]
        || !source.silent[size as usize]
}

/// Whether every task begins a node: where it waits for others, or others wait for the task before it.
fn heads(source: &Source<'_>, previous: &[u32]) -> Vec<bool> {
    let tasks = previous.len();
    let (mut receives, mut sends) = (vec![false; tasks], vec![false; tasks]);
    for (edge, &size) in source.dependencies.iter().zip(source.size_of) {
        if is_message(source, edge, size) {
            receives[edge.destination as usize] = true;
            sends[edge.source as usize] = true;
        }
    }
    (0..tasks)
        .map(|task| receives[task] || previous[task] == NOBODY || sends[previous[task] as usize])
        .collect()
}

/// The messages to every node without those that others outdo, and the links.
fn messages(source: &Source<'_>, node_of: &[u32], rank: &[u32]) -> (Vec<u32>, Vec<Incoming>, Links) {
    let nodes = rank.len();
    let all = source.dependencies.iter().zip(source.size_of);
    let all = all.filter(|(edge, size)| is_message(source, edge, **size));
    let by_node = all.map(|(edge, &size)| (node_of[edge.destination as usize], (edge, size)));
    let mut counts = vec![0usize; nodes + 1];
    by_node.clone().for_each(|(node, _)| counts[node as usize + 1] += 1);
    (0..nodes).for_each(|node| counts[node + 1] += counts[node]);
    let mut next = counts.clone();
    let mut sorted = vec![(0u32, 0u32, 0u32); counts[nodes]];
    for (node, (edge, size)) in by_node {
        let from = source.rank[edge.source as usize];
        sorted[next[node as usize]] = (from, node_of[edge.source as usize], size);
        next[node as usize] += 1;
    }
    let mut found = Found::default();
    let (mut starts, mut messages) = (vec![0u32], Vec::with_capacity(sorted.len()));
    for node in 0..nodes {
        let own = &mut sorted[counts[node]..counts[node + 1]];
        own.sort_unstable_by_key(|&(from, sender, size)| (from, std::cmp::Reverse((sender, size))));
        let mut before: Option<(u32, u32)> = None;
        for &(from, sender, size) in own.iter() {
            // One that was sent later and is as large is there later.
            let outdone = before.is_some_and(|(rank, largest)| {
                rank == from && (size == largest || (source.is_monotone && size < largest))
            });
            if !outdone {
                let link = found.take(Link { from, to: rank[node], size });
                messages.push(Incoming { source: sender, link });
                before = Some((from, size));
            }
        }
        starts.push(messages.len() as u32);
    }
    (starts, messages, Links::new(source.ranks, found.links, found.messages))
}

/// Links as they come up.
#[derive(Default)]
struct Found {
    known: HashMap<Link, u32>,
    links: Vec<Link>,
    messages: Vec<u32>,
}

impl Found {
    /// The number of a link that one message more takes.
    fn take(&mut self, link: Link) -> u32 {
        let number = *self.known.entry(link).or_insert_with(|| {
            self.links.push(link);
            self.messages.push(0);
            self.links.len() as u32 - 1
        });
        self.messages[number as usize] += 1;
        number
    }
}
