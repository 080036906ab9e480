//! A recording in a few lines.

use hopmap_model::{Edge, TaskGraph};
use hopmap_statistics::Sample;
use hopmap_text::counted;

use crate::description::Method;
use crate::recording::Recording;

/// The lines that `hopmap record` and `trace/summary` print about a program. With its recording, they say what
/// this lacks, and how to get it.
#[must_use]
pub fn lines(graph: &TaskGraph, recording: Option<&Recording>) -> Vec<String> {
    let between = || graph.edges.iter().filter(|edge| edge.source != edge.destination);
    let sum = |of: fn(&Edge) -> u64| between().map(of).fold(0, u64::saturating_add);
    let (messages, bytes) = (sum(|edge| edge.messages), sum(|edge| edge.bytes));
    let mut lines = vec![format!(
        "{}, {} between them: {}",
        counted(graph.ranks(), "rank"),
        counted(usize::try_from(messages).unwrap_or(usize::MAX), "message"),
        hopmap_text::bytes(bytes)
    )];
    lines.extend(recording.and_then(Recording::programs));
    if let Some(collective) = graph.collective_bytes.filter(|_| bytes > 0) {
        lines.push(format!("collective operations: {} of the bytes", percent(collective / bytes as f64)));
    }
    lines.extend(busiest(graph));
    lines.extend(inside(graph, recording));
    let incomplete = match recording {
        Some(recording) => recording.incomplete.as_deref(),
        None => graph.is_incomplete.then_some("parts of the recording are missing"),
    };
    lines.extend(incomplete.map(|reason| format!("incomplete: {reason}")));
    lines
}

/// The rank that sends and receives most.
fn busiest(graph: &TaskGraph) -> Option<String> {
    let mut moved = vec![0.0; graph.ranks()];
    for edge in graph.edges.iter().filter(|edge| edge.source != edge.destination) {
        moved[edge.source as usize] += edge.bytes as f64;
        moved[edge.destination as usize] += edge.bytes as f64;
    }
    let (rank, most) = (0..).zip(&moved).max_by(|a: &(u32, _), b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
    let mean = moved.iter().sum::<f64>() / moved.len() as f64;
    let times = most / mean;
    (mean > 0.0).then(|| format!("busiest rank: {rank}, with {times:.1} times the mean traffic"))
}

/// Shares of the time inside MPI, and what follows from them if those of all ranks are known.
fn inside(graph: &TaskGraph, recording: Option<&Recording>) -> Vec<String> {
    // Rank, time outside MPI, and share of the time inside.
    let share = |(rank, process): (usize, &hopmap_model::Process)| {
        let (outside, inside) = (process.compute_s?, process.communication_s?);
        let share = inside / (outside + inside);
        share.is_finite().then_some((rank, outside, share))
    };
    let shares: Vec<(usize, f64, f64)> = graph.processes.iter().enumerate().filter_map(share).collect();
    let by_share = |a: &&(usize, f64, f64), b: &&(usize, f64, f64)| a.2.total_cmp(&b.2).then(b.0.cmp(&a.0));
    let by_work = |a: &&(usize, f64, f64), b: &&(usize, f64, f64)| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0));
    let (Some(least), Some(most), Some(busiest)) =
        (shares.iter().min_by(by_share), shares.iter().max_by(by_share), shares.iter().max_by(by_work))
    else {
        let is_monitored = recording.is_some_and(|recording| recording.method == Method::Openmpi);
        let hint = if is_monitored { " (--method preload)" } else { "" };
        return vec![format!("time inside MPI: not recorded{hint}")];
    };
    let median = Sample::new(shares.iter().map(|(.., share)| *share)).quartiles()[1];
    let (low, high) = (percent(least.2), percent(most.2));
    // The rank that computes longest needs this time with any placement.
    let bound = percent(busiest.2);
    let of_all = "of the time is inside MPI";
    let (known, ranks) = (shares.len(), graph.ranks());
    let known = if known < ranks { format!(" ({known} of {ranks} ranks)") } else { String::new() };
    let is_bound = known.is_empty();
    let (shares, of_all) = match low == high {
        true => (format!("time inside MPI{known}: {low} of the run time on every rank"), of_all.to_owned()),
        false => {
            let shares = format!(
                "time inside MPI{known}: min {low} (rank {}), median {}, max {high} (rank {})",
                least.0,
                percent(median),
                most.0
            );
            (shares, format!("{of_all} on rank {}, which computes longest", busiest.0))
        }
    };
    // Ranks that wait for a core compute faster where they have one.
    let follows = match recording.is_some_and(Recording::shares_processors) {
        true => "not a bound, because ranks shared cores and waited for them.",
        false => "no placement can gain more than that.",
    };
    let bound = is_bound.then(|| format!("{bound} {of_all}: {follows}"));
    [shares].into_iter().chain(bound).collect()
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent > 0.0 && percent < 0.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use hopmap_model::Process;

    use super::*;

    fn graph(times: &[(f64, f64)]) -> TaskGraph {
        let process = |&(outside, inside): &(f64, f64)| Process {
            compute_s: Some(outside),
            communication_s: Some(inside),
            ..Process::default()
        };
        let edge = |source, destination, bytes| Edge { source, destination, messages: 1000, bytes };
        TaskGraph {
            processes: times.iter().map(process).collect(),
            edges: vec![edge(0, 0, 7), edge(0, 1, 3_000_000), edge(1, 2, 1_000_000)],
            collective_bytes: Some(1e6),
            ..TaskGraph::default()
        }
    }

    fn recording(method: Method, incomplete: Option<&str>) -> Recording {
        Recording {
            method,
            processes: Vec::new(),
            traffic: Vec::new(),
            histogram: Vec::new(),
            communicators: Vec::new(),
            calls: Vec::new(),
            counted: Vec::new(),
            incomplete: incomplete.map(str::to_owned),
            foreign: None,
        }
    }

    #[test]
    fn a_recording_is_a_few_lines() {
        let recording = recording(Method::Preload, Some("no file of rank 3"));
        let lines = lines(&graph(&[(9.8, 0.2), (9.0, 1.0), (7.0, 3.0)]), Some(&recording));
        assert_eq!(
            lines,
            [
                "3 ranks, 2000 messages between them: 4.00 MB",
                "collective operations: 25 % of the bytes",
                "busiest rank: 1, with 1.5 times the mean traffic",
                "time inside MPI: min 2 % (rank 0), median 10 %, max 30 % (rank 2)",
                "2 % of the time is inside MPI on rank 0, which computes longest: no placement can gain more than that.",
                "incomplete: no file of rank 3",
            ]
        );
    }

    /// They compute faster where each has a core.
    #[test]
    fn ranks_that_shared_cores_leave_no_bound() {
        let process = crate::recording::Process { cores: vec![0, 1], ..crate::recording::Process::default() };
        let shared = Recording { processes: vec![process; 3], ..recording(Method::Preload, None) };
        let lines = lines(&graph(&[(9.8, 0.2), (9.0, 1.0), (7.0, 3.0)]), Some(&shared));
        assert!(
            lines[4].ends_with("not a bound, because ranks shared cores and waited for them."),
            "{lines:?}"
        );
    }

    #[test]
    fn ranks_with_equal_shares_are_not_told_apart() {
        let lines = lines(&graph(&[(9.3, 0.7); 3]), None);
        assert_eq!(lines[3], "time inside MPI: 7 % of the run time on every rank");
        assert_eq!(lines[4], "7 % of the time is inside MPI: no placement can gain more than that.");
    }

    #[test]
    fn without_times_there_is_no_bound() {
        let mut graph = TaskGraph { processes: vec![Process::default(); 1], ..TaskGraph::default() };
        assert_eq!(
            lines(&graph, None),
            ["1 rank, 0 messages between them: 0 B", "time inside MPI: not recorded"]
        );
        graph.processes[0] =
            Process { compute_s: Some(0.0), communication_s: Some(0.0), ..Process::default() };
        assert_eq!(lines(&graph, None)[1], "time inside MPI: not recorded");
    }

    #[test]
    fn only_recordings_of_open_mpi_get_the_hint_to_preload() {
        let graph = TaskGraph { processes: vec![Process::default(); 1], ..TaskGraph::default() };
        let last = |method| lines(&graph, Some(&recording(method, None))).pop().unwrap();
        assert_eq!(last(Method::Openmpi), "time inside MPI: not recorded (--method preload)");
        assert_eq!(last(Method::Preload), "time inside MPI: not recorded");
    }

    #[test]
    fn a_rank_without_times_leaves_no_bound() {
        let mut graph = graph(&[(9.3, 0.7); 3]);
        graph.processes[2] = Process::default();
        let lines = lines(&graph, None);
        assert_eq!(lines[3..], ["time inside MPI (2 of 3 ranks): 7 % of the run time on every rank"]);
    }
}
