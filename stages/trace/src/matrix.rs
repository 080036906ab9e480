//! Messages and bytes per ordered pair, also by phase and by message length.

use std::collections::BTreeMap;

use hopmap_model::{Edge, Phase, Process, SizeBin, TaskGraph};

use crate::selection::{Class, Phases, Request, Selection};

/// Maximum number of ranks; limits the memory that a mistyped rank can claim.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// Minimum number of edges before those of one pair are merged.
const FIRST_LIMIT: usize = 1 << 20;

/// Accumulates traffic between pairs of ranks in any order.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    edges: Vec<Edge>,
    /// Number of edges at which those of one pair are merged.
    limit: usize,
    messages: u64,
    bytes: u64,
}

/// The totals exceed 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the messages or bytes of all pairs exceed 64 bits")]
pub(crate) struct Overflow;

impl Matrix {
    /// An empty matrix with capacity for this many pairs.
    pub(crate) fn with_capacity(pairs: usize) -> Self {
        Self { edges: Vec::with_capacity(pairs), limit: pairs, ..Self::default() }
    }

    /// Adds traffic. The totals of the matrix must fit into 64 bits, so those of a pair do as well.
    pub(crate) fn add(&mut self, edge: Edge) -> Result<(), Overflow> {
        self.messages = self.messages.checked_add(edge.messages).ok_or(Overflow)?;
        self.bytes = self.bytes.checked_add(edge.bytes).ok_or(Overflow)?;
        if edge.messages > 0 || edge.bytes > 0 {
            if self.edges.len() >= self.limit.max(FIRST_LIMIT) {
                self.edges = merged(std::mem::take(&mut self.edges));
                self.limit = 2 * self.edges.len();
            }
            self.edges.push(edge);
        }
        Ok(())
    }

    /// All pairs with messages, sorted by source and destination.
    pub(crate) fn into_edges(self) -> Vec<Edge> {
        merged(self.edges)
    }
}

/// The edges sorted and merged by pair.
pub(crate) fn merged(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort_unstable_by_key(Edge::pair);
    edges.dedup_by(|next, kept| {
        let same = next.pair() == kept.pair();
        if same {
            kept.messages += next.messages;
            kept.bytes += next.bytes;
        }
        same
    });
    edges
}

/// Accumulates traffic between pairs of ranks by the classes of a request.
#[derive(Debug)]
pub(crate) struct MessageClasses {
    all: Matrix,
    phases: Option<BTreeMap<u32, Matrix>>,
    sizes: Option<Lengths>,
}

/// Messages and bytes by source, destination and bit length of the message length.
type Lengths = BTreeMap<(u32, u32, u32), (u64, u64)>;

impl MessageClasses {
    /// No traffic, with capacity for this many pairs.
    pub(crate) fn new(request: &Request<'_>, pairs: usize) -> Self {
        Self {
            all: Matrix::with_capacity(pairs),
            phases: request.phases.map(|_| BTreeMap::new()),
            sizes: request.sizes.then(BTreeMap::new),
        }
    }

    /// Adds messages of one class.
    pub(crate) fn add(&mut self, class: Class, edge: Edge) -> Result<(), Overflow> {
        self.all.add(edge)?;
        if let Some(phases) = &mut self.phases {
            phases.entry(class.phase()).or_default().add(edge)?;
        }
        if let Some(sizes) = &mut self.sizes {
            let bin = sizes.entry((edge.source, edge.destination, class.length_bits())).or_default();
            // No overflow: the totals over all pairs fit.
            *bin = (bin.0 + edge.messages, bin.1 + edge.bytes);
        }
        Ok(())
    }

    /// The task graph of a trace of this many ticks. Processes get their hosts and the times of their main
    /// threads.
    pub(crate) fn into_graph(
        self,
        (request, selection): (&Request<'_>, Option<&Selection>),
        (hosts, work): (impl Iterator<Item = Option<String>>, &[Work]),
        (duration, ticks_per_second): (Option<u64>, Option<f64>),
    ) -> TaskGraph {
        let seconds = |ticks: u64| ticks_per_second.map(|per_second| ticks as f64 / per_second);
        let bin = |((source, destination, bits), (messages, bytes)): ((u32, u32, u32), (u64, u64))| {
            let at_least_bytes = 1u64.checked_shl(bits.wrapping_sub(1)).unwrap_or(0);
            SizeBin { source, destination, at_least_bytes, messages, bytes }
        };
        let sizes = self.sizes.into_iter().flatten().filter(|(_, (messages, _))| *messages > 0).map(bin);
        let mut by_phase = self.phases.unwrap_or_default();
        let mut phases = empty_phases(request, selection, duration.unwrap_or(0), seconds);
        for (number, phase) in (0..).zip(&mut phases) {
            let time =
                |work: &Work| seconds(work.compute.as_ref()?.get(number as usize).copied().unwrap_or(0));
            phase.compute_s = work.iter().map(time).collect();
            phase.edges = by_phase.remove(&number).map(Matrix::into_edges).unwrap_or_default();
        }
        let process = |(host, work): (_, &Work)| Process {
            host,
            compute_s: work.compute.as_ref().and_then(|ticks| seconds(sum(ticks))),
            communication_s: work.communicating.and_then(|(all, _)| seconds(all)),
            collective_s: work.communicating.and_then(|(_, collective)| seconds(collective)),
        };
        TaskGraph {
            processes: hosts.zip(work).map(process).collect(),
            edges: self.all.into_edges(),
            duration_s: duration.and_then(seconds),
            sizes: sizes.collect(),
            phases,
            ..TaskGraph::default()
        }
    }
}

fn sum(ticks: &[u64]) -> u64 {
    ticks.iter().copied().fold(0, u64::saturating_add)
}

/// Times of the main thread of a process in ticks, where known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    /// Computation, by phase.
    pub(crate) compute: Option<Vec<u64>>,
    /// Communication, and the part of it in collective operations.
    pub(crate) communicating: Option<(u64, u64)>,
}

/// The phases of a request, for a trace of this many ticks.
fn empty_phases(
    request: &Request<'_>,
    selection: Option<&Selection>,
    ticks: u64,
    seconds: impl Fn(u64) -> Option<f64>,
) -> Vec<Phase> {
    match (request.phases, selection.and_then(Selection::slice_ticks)) {
        (Some(Phases::Regions(names)), _) => std::iter::once(None)
            .chain(names.iter().cloned().map(Some))
            .map(|name| Phase { name, ..Phase::default() })
            .collect(),
        (Some(Phases::Seconds(_)), Some(width)) => (0..=ticks.saturating_sub(1) / width)
            .map(|slice| Phase {
                begin_s: seconds(slice.saturating_mul(width)),
                end_s: seconds((slice + 1).saturating_mul(width).min(ticks)),
                ..Phase::default()
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Accumulates messages and the highest rank.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    matrix: Matrix,
    /// The highest rank so far plus one.
    ranks: u32,
}

impl Accumulator {
    /// Registers a rank, whether it sends or not.
    pub(super) fn see(&mut self, rank: u32) {
        self.ranks = self.ranks.max(rank + 1);
    }

    /// Adds messages.
    pub(super) fn add(&mut self, edge: Edge) -> Result<(), Overflow> {
        self.see(edge.source.max(edge.destination));
        self.matrix.add(edge)
    }

    /// The graph of all messages, without information about processes.
    pub(super) fn into_graph(self) -> TaskGraph {
        TaskGraph {
            processes: vec![Process::default(); self.ranks as usize],
            edges: self.matrix.into_edges(),
            ..TaskGraph::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Select;

    fn edge(source: u32, destination: u32, messages: u64, bytes: u64) -> Edge {
        Edge { source, destination, messages, bytes }
    }

    #[test]
    fn a_pair_with_messages_is_one_edge() {
        let mut matrix = Matrix::default();
        for edge in [edge(1, 0, 1, 5), edge(0, 1, 2, 6), edge(1, 0, 3, 7), edge(2, 2, 0, 0)] {
            matrix.add(edge).unwrap();
        }
        assert_eq!(matrix.into_edges(), [edge(0, 1, 2, 6), edge(1, 0, 4, 12)]);
    }

    #[test]
    fn sums_beyond_64_bits_are_rejected() {
        let mut matrix = Matrix::default();
        matrix.add(edge(0, 1, 1, u64::MAX)).unwrap();
        assert_eq!(matrix.add(edge(1, 0, 1, 1)), Err(Overflow));
    }

    #[test]
    fn traffic_is_separated_by_length_and_phase() {
        let (select, regions) = (Select::default(), Phases::Regions(vec!["a".into()]));
        let request = Request { select: &select, phases: Some(&regions), sizes: true };
        let mut classes = MessageClasses::new(&request, 0);
        let edge = |messages, bytes| Edge { source: 0, destination: 1, messages, bytes };
        classes.add(Class::ALL.of_length(0), edge(2, 0)).unwrap();
        classes.add(Class::ALL.of_length(9), edge(1, 9)).unwrap();
        let work = [Work { compute: Some(vec![4, 6]), communicating: None }, Work::default()];
        let hosts = std::iter::repeat_n(None, 2);
        let graph = classes.into_graph((&request, None), (hosts, &work), (Some(10), Some(1.0)));
        assert_eq!(graph.edges, [edge(3, 9)]);
        let bins: Vec<_> =
            graph.sizes.iter().map(|bin| (bin.at_least_bytes, bin.messages, bin.bytes)).collect();
        assert_eq!(bins, [(0, 2, 0), (8, 1, 9)]);
        let phases = graph.phases;
        let names: Vec<_> = phases.iter().map(|phase| phase.name.as_deref()).collect();
        assert_eq!(names, [None, Some("a")]);
        assert_eq!(phases[1].compute_s, [Some(6.0), None]);
        assert_eq!((phases[0].edges.len(), phases[1].edges.len()), (1, 0));
    }
}
