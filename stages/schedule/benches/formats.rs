//! Reading graphs of 100,000 tasks with three predecessors each in every format.

use std::fmt::Write;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use hopmap_schedule::formats::dot::{Dot, DotOptions};
use hopmap_schedule::formats::grf::{Grf, GrfChunk, GrfEdge, GrfNode};
use hopmap_schedule::formats::{stg, wfformat};

fn main() {
    divan::main();
}

const TASKS: u64 = 100_000;

/// The predecessors of a task.
fn parents(task: u64) -> impl Iterator<Item = u64> {
    (1..=3).filter_map(move |step| task.checked_sub(step * step))
}

fn grf() -> String {
    let mut nodes: Vec<GrfNode> =
        (0..TASKS).map(|number| GrfNode { number, kind: 1, weight: 5, ..GrfNode::default() }).collect();
    let chunk = GrfChunk {
        name: "x".into(),
        kind: "GRAPH_DOUBLE".into(),
        left_offset: "0".into(),
        right_offset: "8".into(),
    };
    let mut edges = Vec::new();
    for receiver in 0..TASKS {
        for sender in parents(receiver) {
            let number = edges.len() as u64;
            nodes[receiver as usize].input_edges.push(number);
            nodes[sender as usize].output_edges.push(number);
            let (kind, sent, received) = (chunk.kind.clone(), vec![chunk.clone()], vec![chunk.clone()]);
            edges.push(GrfEdge { number, weight: 8, kind, sender, receiver, sent, received });
        }
    }
    Grf { nodes, edges, ..Grf::default() }.write()
}

fn dot() -> String {
    let mut text = "digraph g {\n".to_owned();
    for task in 0..TASKS {
        let _ = writeln!(text, "\t{task}\t[\"Start time\"=0,\n\t\tWeight=126];");
        for parent in parents(task) {
            let _ = writeln!(text, "\t{parent} -> {task}\t[Weight=5];");
        }
    }
    text + "}\n"
}

fn stg_text() -> String {
    let mut text = format!("{TASKS}\n");
    for task in 0..TASKS {
        let parents: Vec<String> = parents(task).map(|parent| parent.to_string()).collect();
        let _ = writeln!(text, "{task:11}{:11}{:11} {}", 5, parents.len(), parents.join(" "));
    }
    text
}

fn wfformat_text() -> String {
    let names = |tasks: &mut dyn Iterator<Item = u64>, kind: &str| {
        tasks.map(|task| format!("\"{kind}{task}\"")).collect::<Vec<_>>().join(", ")
    };
    let (mut tasks, mut files, mut executed) = (Vec::new(), Vec::new(), Vec::new());
    for task in 0..TASKS {
        let mut children = (1..=3).map(|step| task + step * step).filter(|child| *child < TASKS);
        tasks.push(format!(
            "{{\"name\": \"task\", \"id\": \"task_{task}\", \"parents\": [{}], \"children\": [{}], \"inputFiles\": [{}], \"outputFiles\": [\"file_{task}\"]}}",
            names(&mut parents(task), "task_"),
            names(&mut children, "task_"),
            names(&mut parents(task), "file_")
        ));
        files.push(format!("{{\"id\": \"file_{task}\", \"sizeInBytes\": 1000}}"));
        executed.push(format!("{{\"id\": \"task_{task}\", \"runtimeInSeconds\": 1.25}}"));
    }
    let [tasks, files, executed] = [tasks, files, executed].map(|parts| parts.join(",\n"));
    format!(
        "{{\"schemaVersion\": \"1.5\", \"workflow\": {{\"specification\": {{\"tasks\": [{tasks}], \"files\": [{files}]}}, \"execution\": {{\"tasks\": [{executed}]}}}}}}"
    )
}

fn read<T>(bencher: Bencher<'_, '_>, text: &str, read: impl Fn(&[u8]) -> T + Sync) {
    bencher.counter(BytesCount::new(text.len())).bench(|| read(black_box(text.as_bytes())));
}

#[divan::bench(sample_count = 5)]
fn parus(bencher: Bencher<'_, '_>) {
    read(bencher, &grf(), |bytes| Grf::read(bytes).and_then(|graph| graph.task_dag(1.0)).is_ok());
}

#[divan::bench(sample_count = 5)]
fn graphviz(bencher: Bencher<'_, '_>) {
    let options = DotOptions { node_weight: None, edge_weight: None, scale: 1.0 };
    read(bencher, &dot(), |bytes| Dot::read(bytes, &options).is_ok());
}

#[divan::bench(sample_count = 5)]
fn standard_task_graph(bencher: Bencher<'_, '_>) {
    read(bencher, &stg_text(), |bytes| stg::read(bytes, 1.0).is_ok());
}

#[divan::bench(sample_count = 5)]
fn wfcommons(bencher: Bencher<'_, '_>) {
    read(bencher, &wfformat_text(), |bytes| wfformat::read(bytes, 1.0).is_ok());
}
