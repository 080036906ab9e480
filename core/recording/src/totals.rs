//! Key figures of a task graph.

use std::collections::BTreeMap;

use hopmap_model::{Edge, Phase, PhaseSummary, RankSummary, TaskGraph, TraceSummary};
use hopmap_statistics::median;

/// Summarises a task graph with the `pairs` heaviest pairs. Its totals are what `hopmap record --json` prints, too.
#[must_use]
pub fn summarise(graph: &TaskGraph, pairs: usize) -> TraceSummary {
    let ranks = ranks(graph);
    TraceSummary {
        totals: totals(graph, &ranks),
        heaviest: heaviest(&graph.edges, pairs),
        phases: graph.phases.iter().map(phase).collect(),
        ranks,
    }
}

/// Edges between different ranks; messages of a rank to itself are excluded.
fn between(edges: &[Edge]) -> impl Iterator<Item = &Edge> {
    edges.iter().filter(|edge| edge.source != edge.destination)
}

fn ranks(graph: &TaskGraph) -> Vec<RankSummary> {
    let times = graph.processes.iter().map(|process| RankSummary {
        compute_s: process.compute_s,
        communication_s: process.communication_s,
        collective_s: process.collective_s,
        ..RankSummary::default()
    });
    let mut ranks: Vec<RankSummary> = times.collect();
    let mut partners: Vec<(u32, u32)> = Vec::with_capacity(2 * graph.edges.len());
    for edge in between(&graph.edges) {
        let sender = &mut ranks[edge.source as usize];
        sender.messages_sent = sender.messages_sent.saturating_add(edge.messages);
        sender.bytes_sent = sender.bytes_sent.saturating_add(edge.bytes);
        let receiver = &mut ranks[edge.destination as usize];
        receiver.messages_received = receiver.messages_received.saturating_add(edge.messages);
        receiver.bytes_received = receiver.bytes_received.saturating_add(edge.bytes);
        partners.extend([edge.pair(), (edge.destination, edge.source)]);
    }
    partners.sort_unstable();
    partners.dedup();
    partners.iter().for_each(|(rank, _)| ranks[*rank as usize].partners += 1);
    ranks
}

/// The maximum over the mean; `None` if all are zero.
fn imbalance(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    let largest = values.fold(0.0, f64::max);
    (sum > 0.0).then(|| largest * count / sum)
}

/// The sum over all ranks; `None` if it is unknown for a rank.
fn sum(ranks: &[RankSummary], of: impl Fn(&RankSummary) -> Option<f64>) -> Option<f64> {
    ranks.iter().map(of).sum()
}

/// The fraction of its time that a rank communicates.
fn communication_share(rank: &RankSummary) -> Option<f64> {
    let (compute, communication) = rank.compute_s.zip(rank.communication_s)?;
    Some(communication / (compute + communication)).filter(|share| share.is_finite())
}

fn totals(graph: &TaskGraph, ranks: &[RankSummary]) -> BTreeMap<String, f64> {
    let messages: u64 = between(&graph.edges).map(|edge| edge.messages).sum();
    let bytes: u64 = between(&graph.edges).map(|edge| edge.bytes).sum();
    let pairs = between(&graph.edges).count() as f64;
    let to_itself = |of: fn(&Edge) -> u64| {
        graph.edges.iter().filter(|edge| edge.source == edge.destination).map(of).sum::<u64>() as f64
    };
    let count = ranks.len() as f64;
    let (compute, communication) =
        (sum(ranks, |rank| rank.compute_s), sum(ranks, |rank| rank.communication_s));
    let collective = sum(ranks, |rank| rank.collective_s);
    let time = compute.zip(communication).map(|(compute, communication)| compute + communication);
    let share = |part: Option<f64>| Some(part? / time.filter(|time| *time > 0.0)?);
    let shares: Vec<f64> = ranks.iter().filter_map(communication_share).collect();
    let extreme = |of: fn(f64, f64) -> f64| shares.iter().copied().reduce(of);
    let heaviest = between(&graph.edges).map(|edge| edge.bytes).max().unwrap_or(0);
    let per_bytes = |value: f64| (bytes > 0).then(|| value / bytes as f64);
    let moved = ranks.iter().map(|rank| rank.bytes_sent as f64 + rank.bytes_received as f64);
    let computed = ranks.iter().filter_map(|rank| rank.compute_s);
    let partners = ranks.iter().map(|rank| f64::from(rank.partners)).sum::<f64>();
    let all = [
        ("ranks", Some(count)),
        ("pairs", Some(pairs)),
        ("messages", Some(messages as f64)),
        ("bytes", Some(bytes as f64)),
        ("self_messages", Some(to_itself(|edge| edge.messages))),
        ("self_bytes", Some(to_itself(|edge| edge.bytes))),
        ("message_bytes_mean", (messages > 0).then(|| bytes as f64 / messages as f64)),
        ("pairs_share", (count > 1.0).then(|| pairs / (count * (count - 1.0)))),
        ("partners_mean", (count > 0.0).then(|| partners / count)),
        ("partners_max", ranks.iter().map(|rank| f64::from(rank.partners)).reduce(f64::max)),
        ("bytes_imbalance", imbalance(moved)),
        ("heaviest_pair_share", per_bytes(heaviest as f64)),
        ("duration_s", graph.duration_s),
        ("compute_s", compute),
        ("compute_imbalance", compute.and_then(|_| imbalance(computed))),
        ("communication_s", communication),
        ("communication_share", share(communication)),
        ("collective_s", collective),
        ("collective_share", share(collective)),
        ("collective_bytes", graph.collective_bytes),
        ("collective_bytes_share", graph.collective_bytes.and_then(per_bytes)),
        ("communication_share_min", extreme(f64::min)),
        ("communication_share_median", median(shares.clone())),
        ("communication_share_max", extreme(f64::max)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn heaviest(edges: &[Edge], pairs: usize) -> Vec<Edge> {
    let mut heaviest: Vec<Edge> = between(edges).copied().collect();
    // The heaviest first; ties in order of the pairs.
    let order = |edge: &Edge| (std::cmp::Reverse(edge.bytes), edge.pair());
    if pairs < heaviest.len() {
        heaviest.select_nth_unstable_by_key(pairs, order);
        heaviest.truncate(pairs);
    }
    heaviest.sort_unstable_by_key(order);
    heaviest
}

fn phase(phase: &Phase) -> PhaseSummary {
    PhaseSummary {
        name: phase.name.clone(),
        messages: between(&phase.edges).map(|edge| edge.messages).sum(),
        bytes: between(&phase.edges).map(|edge| edge.bytes).sum(),
        compute_s: phase.compute_s.iter().copied().sum(),
    }
}

#[cfg(test)]
mod tests {
    use hopmap_model::Process;

    use super::*;

    fn edge(source: u32, destination: u32, messages: u64, bytes: u64) -> Edge {
        Edge { source, destination, messages, bytes }
    }

    fn process(compute: f64, communication: f64, collective: f64) -> Process {
        Process {
            host: None,
            compute_s: Some(compute),
            communication_s: Some(communication),
            collective_s: Some(collective),
        }
    }

    #[test]
    fn a_program_is_summarised() {
        let graph = TaskGraph {
            processes: vec![process(3.0, 1.0, 0.5), process(1.0, 3.0, 1.5), process(2.0, 2.0, 0.0)],
            edges: vec![edge(0, 0, 9, 900), edge(0, 1, 2, 60), edge(1, 0, 1, 10), edge(1, 2, 1, 30)],
            duration_s: Some(4.0),
            ..TaskGraph::default()
        };
        let summary = summarise(&graph, 2);
        let total = |name: &str| summary.totals[name];
        assert_eq!(
            (total("ranks"), total("pairs"), total("messages"), total("bytes")),
            (3.0, 3.0, 4.0, 100.0)
        );
        assert_eq!((total("self_messages"), total("self_bytes")), (9.0, 900.0));
        assert_eq!((total("communication_share"), total("collective_share")), (0.5, 1.0 / 6.0));
        // Ranks send or receive 70, 100 and 30 bytes.
        assert_eq!((total("bytes_imbalance"), total("compute_imbalance")), (1.5, 1.5));
        assert_eq!((total("heaviest_pair_share"), total("pairs_share")), (0.6, 0.5));
        assert_eq!((total("partners_max"), total("partners_mean")), (2.0, 4.0 / 3.0));
        assert_eq!(summary.heaviest, [edge(0, 1, 2, 60), edge(1, 2, 1, 30)]);
        let one = summary.ranks[1];
        assert_eq!((one.bytes_sent, one.bytes_received, one.partners), (40, 60, 2));
    }

    #[test]
    fn unknown_metrics_are_missing() {
        let mut graph = TaskGraph { processes: vec![process(1.0, 1.0, 0.0); 2], ..TaskGraph::default() };
        graph.processes[1] = Process::default();
        let summary = summarise(&graph, 10);
        for name in
            ["compute_s", "communication_share", "bytes_imbalance", "message_bytes_mean", "duration_s"]
        {
            assert!(!summary.totals.contains_key(name), "{name}");
        }
        assert!(summary.heaviest.is_empty());
        assert_eq!(summarise(&TaskGraph::default(), 1).totals.get("ranks"), Some(&0.0));
    }

    #[test]
    fn equal_pairs_keep_their_order() {
        let edges: Vec<Edge> = (0..20).map(|rank| edge(rank, rank + 1, 1, u64::from(rank % 2))).collect();
        let sources: Vec<u32> = heaviest(&edges, 4).iter().map(|edge| edge.source).collect();
        assert_eq!(sources, [1, 3, 5, 7]);
        assert_eq!(heaviest(&edges, 0), []);
    }
}
