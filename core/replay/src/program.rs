//! The program of all ranks, contracted to the parts that depend on the placement.
//!
//! Consecutive tasks of a rank without messages in between take the same time in every placement, so they
//! become one node. Of several messages from a rank to a node, only those that can arrive last are kept.

use std::collections::HashMap;

use hopmap_model::{Dependency, TaskDag};

use crate::delays::SizedMessages;

/// No node or channel.
pub(crate) const NONE: u32 = u32::MAX;

/// Nodes and the messages between them. Nodes are numbered in a topological order that is close to
/// chronological.
#[derive(Debug)]
pub struct Program {
    /// The rank of every node.
    pub(crate) rank: Vec<u32>,
    /// The previous node on its rank, or [`NONE`].
    pub(crate) previous: Vec<u32>,
    /// Start of the messages to every node in `messages`, and the end.
    pub(crate) starts: Vec<u32>,
    /// The messages to every node.
    pub(crate) messages: Vec<Incoming>,
    /// Start of the nodes of every rank in `nodes`, and the end.
    rank_starts: Vec<u32>,
    /// The nodes of every rank, in order.
    nodes: Vec<u32>,
    /// Start of the tasks of every node in `tasks`, and the end.
    task_starts: Vec<u32>,
    /// The tasks of every node, in order.
    tasks: Vec<u32>,
    /// Channels of the messages.
    pub(crate) channels: Channels,
}

/// A message from the view of its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// The node that sends it.
    pub source: u32,
    /// Its channel.
    pub channel: u32,
}

/// Messages of one size from one rank to another, which all take the same time in a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// Index of the size of the messages.
    pub size: u32,
}

/// All channels of a program.
#[derive(Debug)]
pub struct Channels {
    /// The channels.
    pub all: Vec<Channel>,
    /// Number of messages of every channel.
    pub messages: Vec<u32>,
    starts: Vec<u32>,
    of_rank: Vec<u32>,
}

/// A program before it is contracted.
pub(crate) struct Uncontracted<'a> {
    pub(crate) dag: &'a TaskDag,
    /// The rank of every task.
    pub(crate) rank: &'a [u32],
    pub(crate) ranks: usize,
    pub(crate) messages: &'a SizedMessages,
    /// Whether messages of every size take no time within a slot.
    pub(crate) silent: &'a [bool],
    /// Whether larger messages never take less time.
    pub(crate) is_monotone: bool,
    /// Time of every task on the fastest slot.
    pub(crate) work: &'a [i64],
}

impl Program {
    pub(crate) fn contract(source: &Uncontracted<'_>) -> Self {
        let order = order_by_time(source);
        let previous = previous_on_rank(source, &order);
        let heads = first_of_nodes(source, &previous);
        let mut node_of = vec![NONE; order.len()];
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
            (0..order.len()).filter(|&task| heads[task]).fold(vec![NONE; nodes], |mut all, task| {
                let before = previous[task];
                all[node_of[task] as usize] = if before == NONE { NONE } else { node_of[before as usize] };
                all
            });
        let (starts, messages, channels) = messages_to_nodes(source, &node_of, &rank);
        let (rank_starts, of_rank) =
            group(source.ranks, (0..nodes as u32).map(|node| (rank[node as usize], node)));
        let (task_starts, tasks) = group(nodes, order.iter().map(|&task| (node_of[task as usize], task)));
        Self { rank, previous, starts, messages, rank_starts, nodes: of_rank, task_starts, tasks, channels }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.rank_starts.len() - 1
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.rank.len()
    }

    /// Number of messages that can take time.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Channels of the messages.
    #[must_use]
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The messages to a node.
    #[inline]
    pub(crate) fn incoming(&self, node: u32) -> &[Incoming] {
        &self.messages[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// The tasks of a node, in order.
    #[must_use]
    pub fn tasks(&self, node: u32) -> &[u32] {
        &self.tasks[self.task_starts[node as usize] as usize..self.task_starts[node as usize + 1] as usize]
    }

    /// The nodes of a rank, in order.
    pub(crate) fn nodes_of(&self, rank: u32) -> &[u32] {
        &self.nodes[self.rank_starts[rank as usize] as usize..self.rank_starts[rank as usize + 1] as usize]
    }
}

impl Channels {
    fn new(ranks: usize, all: Vec<Channel>, messages: Vec<u32>) -> Self {
        let ends = |(number, channel): (u32, &Channel)| {
            let other = (channel.from != channel.to).then_some((channel.to, number));
            std::iter::once((channel.from, number)).chain(other)
        };
        let (starts, of_rank) = group(ranks, (0..).zip(&all).flat_map(ends));
        Self { all, messages, starts, of_rank }
    }

    /// The channels on which a rank sends or receives.
    #[inline]
    #[must_use]
    pub fn of(&self, rank: u32) -> &[u32] {
        &self.of_rank[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// Stable counting sort of values by group: the start of every group, and all values.
fn group(groups: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> (Vec<u32>, Vec<u32>) {
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

/// The tasks in order of their start times without message times: a topological order in which independent
/// tasks of a rank run as early as possible.
fn order_by_time(source: &Uncontracted<'_>) -> Vec<u32> {
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

/// The previous task on the rank of every task.
fn previous_on_rank(source: &Uncontracted<'_>, order: &[u32]) -> Vec<u32> {
    let mut last = vec![NONE; source.ranks];
    let mut previous = vec![NONE; order.len()];
    for &task in order {
        let last = &mut last[source.rank[task as usize] as usize];
        previous[task as usize] = std::mem::replace(last, task);
    }
    previous
}

/// Whether a dependency is a message: between ranks, or within one where that takes time.
fn is_message(source: &Uncontracted<'_>, edge: &Dependency, size: u32) -> bool {
    source.rank[edge.source as usize] != source.rank[edge.destination as usize]
        || !source.silent[size as usize]
}

/// Whether every task starts a node: it waits for other ranks, or other ranks wait for the previous task.
fn first_of_nodes(source: &Uncontracted<'_>, previous: &[u32]) -> Vec<bool> {
    let tasks = previous.len();
    let (mut receives, mut sends) = (vec![false; tasks], vec![false; tasks]);
    for (edge, size) in source.messages.with_sizes() {
        if is_message(source, edge, size) {
            receives[edge.destination as usize] = true;
            sends[edge.source as usize] = true;
        }
    }
    (0..tasks)
        .map(|task| receives[task] || previous[task] == NONE || sends[previous[task] as usize])
        .collect()
}

/// The messages to every node without dominated ones, and the channels.
fn messages_to_nodes(
    source: &Uncontracted<'_>,
    node_of: &[u32],
    rank: &[u32],
) -> (Vec<u32>, Vec<Incoming>, Channels) {
    let nodes = rank.len();
    let all = source.messages.with_sizes();
    let all = all.filter(|&(edge, size)| is_message(source, edge, size));
    let by_node = all.map(|(edge, size)| (node_of[edge.destination as usize], (edge, size)));
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
    let mut found = ChannelNumbers::default();
    let (mut starts, mut messages) = (vec![0u32], Vec::with_capacity(sorted.len()));
    for node in 0..nodes {
        let own = &mut sorted[counts[node]..counts[node + 1]];
        own.sort_unstable_by_key(|&(from, sender, size)| (from, std::cmp::Reverse((sender, size))));
        let mut before: Option<(u32, u32)> = None;
        for &(from, sender, size) in own.iter() {
            // A message that is sent later and is at least as large arrives later.
            let is_dominated = before.is_some_and(|(rank, largest)| {
                rank == from && (size == largest || (source.is_monotone && size < largest))
            });
            if !is_dominated {
                let channel = found.count(Channel { from, to: rank[node], size });
                messages.push(Incoming { source: sender, channel });
                before = Some((from, size));
            }
        }
        starts.push(messages.len() as u32);
    }
    (starts, messages, Channels::new(source.ranks, found.channels, found.messages))
}

/// Numbers channels in the order of their first messages.
#[derive(Default)]
struct ChannelNumbers {
    known: HashMap<Channel, u32>,
    channels: Vec<Channel>,
    messages: Vec<u32>,
}

impl ChannelNumbers {
    /// Counts a message of a channel and returns the number of the channel.
    fn count(&mut self, channel: Channel) -> u32 {
        let number = *self.known.entry(channel).or_insert_with(|| {
            self.channels.push(channel);
            self.messages.push(0);
            self.channels.len() as u32 - 1
        });
        self.messages[number as usize] += 1;
        number
    }
}
