//! Streams from the traffic of a trace.

use std::collections::BTreeMap;

use hopmap_model::{Demands, Edge, Phase, ProcessDemand, Stream, TaskGraph};

use super::{DemandsParams, Performance};
use crate::CheckError;

/// A program that says what it asks of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// The program.
    pub(super) graph: TaskGraph,
    /// Streams that are left out for they need too little.
    pub(super) left_out: usize,
    /// What they need together, in bytes per second.
    pub(super) left_out_bandwidth: f64,
}

/// The program with a stream for every pair of ranks that sent something: its bytes over the time that they had. Messages of a rank to
/// itself are none.
pub(super) fn ask(graph: &TaskGraph, params: &DemandsParams) -> Result<Asked, CheckError> {
    if !graph.demands.is_empty() {
        return Err(CheckError::new(
            "the program already says what it asks of a machine",
            "connect it without route/demands",
        ));
    }
    let rates = match params.peak {
        true => peak(graph)?,
        false => {
            let (edges, seconds) = traffic(graph, params)?;
            edges.iter().map(|edge| (edge.pair(), edge.bytes as f64 / seconds)).collect()
        }
    };
    let mut streams: Vec<Stream> = rates
        .into_iter()
        .filter(|&((source, destination), rate)| source != destination && rate > 0.0)
        .map(|((source, destination), bandwidth_bytes_per_s)| Stream {
            source,
            destination,
            bandwidth_bytes_per_s,
        })
        .collect();
    // The heaviest first; of equals in the order of ranks.
    streams.sort_by(|a, b| b.bandwidth_bytes_per_s.total_cmp(&a.bandwidth_bytes_per_s));
    let enough = streams.iter().filter(|stream| stream.bandwidth_bytes_per_s >= params.least).count();
    let rest = streams.split_off(enough.min(params.heaviest.unwrap_or(usize::MAX)));
    streams.sort_by_key(|stream| (stream.source, stream.destination));
    let demands = Demands { processes: processes(graph, params)?, streams };
    Ok(Asked {
        graph: TaskGraph { demands, ..graph.clone() },
        left_out: rest.len(),
        left_out_bandwidth: rest.iter().map(|stream| stream.bandwidth_bytes_per_s).sum(),
    })
}

/// The traffic that counts, and how long it had.
fn traffic<'a>(graph: &'a TaskGraph, params: &DemandsParams) -> Result<(&'a [Edge], f64), CheckError> {
    let (edges, seconds, what) = match &params.phase {
        None => (&graph.edges, graph.duration_s, "trace"),
        Some(name) => {
            let phase = phase(graph, name)?;
            (&phase.edges, length(phase), "phase")
        }
    };
    match params.seconds.or(seconds).filter(|seconds| *seconds > 0.0) {
        Some(seconds) => Ok((edges, seconds)),
        None => Err(CheckError::new(
            format!("how long the {what} took is not known"),
            "say in how many `seconds` its traffic has to get through",
        )),
    }
}

fn phase<'a>(graph: &'a TaskGraph, wanted: &str) -> Result<&'a Phase, CheckError> {
    let named = graph.phases.iter().find(|phase| phase.name.as_deref() == Some(wanted));
    let numbered = || wanted.parse::<usize>().ok().and_then(|number| graph.phases.get(number));
    named.or_else(numbered).ok_or_else(|| {
        let known: Vec<&str> =
            graph.phases.iter().filter_map(|phase| phase.name.as_deref()).take(10).collect();
        let help = match (graph.phases.len(), known.as_slice()) {
            (0, _) => "tell phases apart when the trace is read: `phases` of trace/otf2".to_owned(),
            (count, []) => format!("phases are numbered from 0 to {}", count - 1),
            (_, known) => format!("phases are: {}", known.join(", ")),
        };
        CheckError::new(format!("the program has no phase `{wanted}`"), help)
    })
}

fn length(phase: &Phase) -> Option<f64> {
    Some(phase.end_s? - phase.begin_s?)
}

/// What every pair of ranks sends in a second in the phase in which it sends most.
fn peak(graph: &TaskGraph) -> Result<BTreeMap<(u32, u32), f64>, CheckError> {
    let mut rates: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for phase in &graph.phases {
        let Some(seconds) = length(phase).filter(|seconds| *seconds > 0.0) else { continue };
        for edge in &phase.edges {
            let rate = rates.entry(edge.pair()).or_default();
            *rate = rate.max(edge.bytes as f64 / seconds);
        }
    }
    match rates.is_empty() && !graph.edges.is_empty() {
        false => Ok(rates),
        true => Err(CheckError::new(
            "the program has no phases of known length, and `peak` asks for the busiest",
            "tell phases of time apart when the trace is read: `phases = { seconds = 0.1 }` of trace/otf2",
        )),
    }
}

fn processes(graph: &TaskGraph, params: &DemandsParams) -> Result<Vec<ProcessDemand>, CheckError> {
    let mut processes = Vec::with_capacity(graph.ranks());
    for (rank, process) in graph.processes.iter().enumerate() {
        let performance = match params.performance {
            Performance::Slot => 1.0,
            Performance::Compute => match (process.compute_s, graph.duration_s.filter(|all| *all > 0.0)) {
                (Some(compute), Some(all)) => (compute / all).clamp(0.0, 1.0),
                _ => {
                    return Err(CheckError::new(
                        format!("how long rank {rank} computed is not known"),
                        "leave `performance` out: every process then needs a slot",
                    ));
                }
            },
        };
        processes.push(ProcessDemand {
            name: format!("rank {rank}"),
            performance,
            ..ProcessDemand::default()
        });
    }
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use hopmap_model::Process;

    use super::*;

    fn program() -> TaskGraph {
        let edge = |source, destination, bytes| Edge { source, destination, messages: 1, bytes };
        let phase = |begin: f64, end: f64, edges| Phase {
            name: Some(format!("from {begin}")),
            begin_s: Some(begin),
            end_s: Some(end),
            compute_s: vec![None; 3],
            edges,
        };
        TaskGraph {
            processes: vec![Process { compute_s: Some(3.0), ..Process::default() }; 3],
            edges: vec![edge(0, 0, 9), edge(0, 1, 400), edge(1, 2, 40), edge(2, 0, 80)],
            duration_s: Some(4.0),
            phases: vec![
                phase(0.0, 1.0, vec![edge(0, 1, 300), edge(2, 0, 80)]),
                phase(1.0, 4.0, vec![edge(0, 1, 100), edge(1, 2, 40)]),
            ],
            ..TaskGraph::default()
        }
    }

    fn rates(params: &DemandsParams) -> Vec<(u32, u32, f64)> {
        let asked = ask(&program(), params).unwrap();
        assert!(asked.graph.check().is_ok());
        let of = |stream: &Stream| (stream.source, stream.destination, stream.bandwidth_bytes_per_s);
        asked.graph.demands.streams.iter().map(of).collect()
    }

    #[test]
    fn streams_need_their_bytes_over_the_time_that_they_had() {
        let all = DemandsParams::default();
        assert_eq!(rates(&all), [(0, 1, 100.0), (1, 2, 10.0), (2, 0, 20.0)]);
        let first = DemandsParams { phase: Some("0".into()), ..all.clone() };
        assert_eq!(rates(&first), [(0, 1, 300.0), (2, 0, 80.0)]);
        let second = DemandsParams { phase: Some("from 1".into()), seconds: Some(1.0), ..all.clone() };
        assert_eq!(rates(&second), [(0, 1, 100.0), (1, 2, 40.0)]);
        let peak = DemandsParams { peak: true, ..all.clone() };
        assert_eq!(rates(&peak), [(0, 1, 300.0), (1, 2, 40.0 / 3.0), (2, 0, 80.0)]);
        assert_eq!(rates(&DemandsParams { least: 15.0, ..all.clone() }), [(0, 1, 100.0), (2, 0, 20.0)]);
        let one = DemandsParams { heaviest: Some(1), ..all };
        assert_eq!(rates(&one), [(0, 1, 100.0)]);
        let asked = ask(&program(), &one).unwrap();
        assert_eq!((asked.left_out, asked.left_out_bandwidth), (2, 30.0));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let fault = |graph: &TaskGraph, params: &DemandsParams| ask(graph, params).unwrap_err().to_string();
        let timeless = TaskGraph { duration_s: None, phases: vec![], ..program() };
        let all = DemandsParams::default();
        assert_eq!(fault(&timeless, &all), "how long the trace took is not known");
        let peak = DemandsParams { peak: true, ..all.clone() };
        assert!(fault(&timeless, &peak).starts_with("the program has no phases of known length"));
        let named = DemandsParams { phase: Some("solve".into()), ..all.clone() };
        let error = ask(&program(), &named).unwrap_err();
        assert_eq!(error.help, "phases are: from 0, from 1");
        let computed = DemandsParams { performance: Performance::Compute, ..all.clone() };
        assert!(
            (ask(&program(), &computed).unwrap().graph.demands.processes[0].performance - 0.75).abs() < 1e-12
        );
        assert_eq!(
            fault(&timeless, &DemandsParams { seconds: Some(1.0), ..computed }),
            "how long rank 0 computed is not known"
        );
        let twice = ask(&program(), &all).unwrap().graph;
        assert!(fault(&twice, &all).contains("already says"));
    }
}
