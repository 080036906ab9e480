//! `trace/export`, and the way back.

use std::sync::Arc;

use hopmap_model::{Context, Edge, Inputs, Outcome, Process, Stage, TaskGraph, TextFile};
use hopmap_trace::{Export, ExportFormat, ExportParams};
use proptest::prelude::*;

use super::{Files, pairs};
use crate::support::Listener;

const FORMATS: [ExportFormat; 2] = [ExportFormat::Csv, ExportFormat::MatrixMarket];

/// The file and the log.
fn export(graph: &TaskGraph, to: ExportFormat) -> (TextFile, Vec<String>) {
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph.clone()), "d1".into(), "program".into());
    let listener = Listener::default();
    let outcome =
        Export::run(ExportParams { format: to }, inputs, &Context::new(1, None, &listener)).unwrap();
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    let file: &TextFile = outputs.get("file").unwrap().downcast_ref().unwrap();
    (file.clone(), listener.lines.into_inner().unwrap())
}

/// A graph with traffic only.
fn graph(ranks: usize, rows: &[(u32, u32, u64, u64)]) -> TaskGraph {
    let edge = |&(source, destination, messages, bytes): &(u32, u32, u64, u64)| Edge {
        source,
        destination,
        messages,
        bytes,
    };
    TaskGraph {
        processes: vec![Process::default(); ranks],
        edges: rows.iter().map(edge).collect(),
        ..TaskGraph::default()
    }
}

#[test]
fn files_have_the_format_of_other_tools() {
    let traffic = graph(4, &[(0, 1, 2, 100), (2, 0, 1, 7)]);
    let (file, log) = export(&traffic, ExportFormat::Csv);
    assert_eq!(file.name, "matrix.csv");
    assert_eq!(file.text, "source,destination,messages,bytes\n0,1,2,100\n2,0,1,7\n3,3,0,0\n");
    assert!(log.is_empty());
    let (file, _) = export(&traffic, ExportFormat::MatrixMarket);
    assert_eq!(file.name, "matrix.mtx");
    assert_eq!(
        file.text,
        "%%MatrixMarket matrix coordinate integer general\n\
         % hopmap task-graph d1\n\
         % row: sender, column: receiver, both counted from one; value: bytes\n\
         %hopmap messages 2 1\n4 4 2\n1 2 100\n3 1 7\n"
    );
    let (file, _) = export(&traffic, ExportFormat::Svg);
    assert_eq!(file.name, "matrix.svg");
    assert!(file.text.starts_with("<svg ") && file.text.contains("0 → 1: 100 B in 2 messages"));
}

#[test]
fn omitted_data_is_logged() {
    let mut traffic = graph(1, &[(0, 0, 1, 1)]);
    traffic.processes[0] = Process { host: Some("n1".into()), compute_s: Some(1.0), ..Process::default() };
    traffic.duration_s = Some(2.0);
    let (_, log) = export(&traffic, ExportFormat::Csv);
    assert_eq!(log, ["warning: the file does not contain hosts, computing times, the duration"]);
}

#[test]
fn lines_of_matrix_market_stay_short() {
    let rows: Vec<_> = (0..500).map(|rank| (rank, rank, u64::MAX / 500, 0)).collect();
    let (file, _) = export(&graph(500, &rows), ExportFormat::MatrixMarket);
    assert!(file.text.lines().all(|line| line.len() <= 1024));
    assert_eq!(pairs(Files::one(file.text).auto().graph()), rows);
}

/// Real programs as well.
#[test]
fn exports_of_real_traces_are_imported_unchanged() {
    let Some(data) = crate::support::data() else { return };
    let mut checked = 0;
    for name in ["eztrace-lu.S.16", "eztrace-mg.A.16", "eztrace-lulesh-8", "eztrace-is.W.16"] {
        let folder = data.join(name);
        if !folder.is_dir() {
            continue;
        }
        let read = crate::support::read_with(&folder, hopmap_trace::Reader::Native, &Context::detached());
        let traced = read.unwrap();
        for to in FORMATS {
            let read = Files::one(export(&traced, to).0.text).auto();
            assert_eq!(read.graph().edges, traced.edges, "{name}");
            assert_eq!(read.graph().ranks(), traced.ranks(), "{name}");
        }
        checked += 1;
    }
    assert!(checked > 0, "no archive was found");
}

fn any_graph() -> impl Strategy<Value = TaskGraph> {
    let rows = prop::collection::btree_map((0..9u32, 0..9u32), (0..4u64, 0..1u64 << 40), 0..60);
    (rows, 0..4usize).prop_map(|(rows, more)| {
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|(_, sums)| *sums != (0, 0))
            .map(|((source, destination), (messages, bytes))| (source, destination, messages, bytes))
            .collect();
        let highest = rows.iter().map(|row| row.0.max(row.1) as usize).max();
        graph(highest.map_or(1, |rank| rank + 1) + more, &rows)
    })
}

proptest! {
    #[test]
    fn what_is_exported_is_imported(graph in any_graph()) {
        for to in FORMATS {
            let (file, _) = export(&graph, to);
            let read = Files::one(file.text).auto();
            prop_assert_eq!(read.graph(), &graph);
        }
    }
}
