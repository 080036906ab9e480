//! The stage `evaluate/collectives` from its inputs to its tables.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hopmap_evaluate::{CollectivesParams, CollectivesStage};
use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Context, CostModel, Inputs, Levels, Mapping, Node,
    Observer, Outcome, Process, Slot, Stage, SystemGraph, TaskGraph, TextFile, Weight,
};

/// Two hosts of `cores` cores; costs 1 and 10.
fn machine(cores: u32) -> SystemGraph {
    let slots = 2 * cores;
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: ["a", "b"].map(Node::host).to_vec(),
        links: Vec::new(),
        slots: (0..slots).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0],
            groups: vec![(0..slots).map(|slot| slot / cores).collect(), vec![0; slots as usize]],
        }),
        calibration: Vec::new(),
    }
}

fn calls(operation: CollectiveOperation, root: Option<u32>, bytes: u64, calls: u64) -> CollectiveCalls {
    CollectiveCalls { communicator: 0, operation, root, bytes, calls, uneven: 0 }
}

fn program(ranks: u32, calls: &[CollectiveCalls]) -> TaskGraph {
    TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        collectives: CollectiveTable { communicators: vec![(0..ranks).collect()], calls: calls.to_vec() },
        ..TaskGraph::default()
    }
}

/// Records the log.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<String>>);

impl Observer for Listener {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn cancelled(&self) -> bool {
        false
    }
}

type Rows = Vec<BTreeMap<String, String>>;

fn evaluate(graph: &TaskGraph, slots: &[u32], params: CollectivesParams, cx: &Context<'_>) -> (Rows, String) {
    let system = machine(slots.len() as u32 / 2);
    let mapping = Mapping::new(slots, &system, Weight::Bytes).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph.clone()), "1".into(), "program".into());
    inputs.connect("system", Arc::new(system), "2".into(), "machine".into());
    inputs.connect("mapping", Arc::new(mapping), "3".into(), "placement".into());
    let Outcome::Done(outputs) = CollectivesStage::run(params, inputs, cx).unwrap() else { panic!() };
    let text = |port: &str| outputs.get(port).unwrap().downcast_ref::<TextFile>().unwrap().text.clone();
    let csv = text("csv");
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    (lines.map(|line| header.iter().cloned().zip(line).collect()).collect(), text("markdown"))
}

/// Algorithm, total, path and `best` of an operation of one communicator.
fn of<'a>(rows: &'a Rows, operation: &str) -> Vec<(&'a str, f64, f64, &'a str)> {
    let one = |row: &&BTreeMap<String, String>| row["operation"] == operation && row["communicator"] == "0";
    let number = |text: &String| text.parse().unwrap();
    rows.iter()
        .filter(one)
        .map(|row| {
            (row["algorithm"].as_str(), number(&row["total"]), number(&row["path"]), row["best"].as_str())
        })
        .collect()
}

#[test]
fn broadcasts_counted_by_hand() {
    // Four ranks on two hosts of two cores. Rank 0 sends 100 bytes.
    let graph = program(4, &[calls(CollectiveOperation::Broadcast, Some(0), 100, 1)]);
    let (rows, markdown) =
        evaluate(&graph, &[0, 1, 2, 3], CollectivesParams::default(), &Context::detached());
    let expected = [
        // 0 to 2 at cost 10, then 0 to 1 and 2 to 3 at cost 1.
        ("binomial", 1200.0, 1100.0, "total"),
        // Half to 2 and quarters to 1 and 3; then three quarters over each link of the ring, two of which cost 10.
        ("scatter-ring", 500.0 + 50.0 + 75.0 * 22.0, 500.0 + 25.0 + 750.0, ""),
        // After the scatter every rank sends a quarter to its neighbour and a half to the next but one.
        ("scatter-doubling", 500.0 + 50.0 + 100.0 + 2000.0, 500.0 + 25.0 + 25.0 + 500.0, "path"),
        ("linear", 2100.0, 2100.0, ""),
        ("chain", 1200.0, 1200.0, "total"),
        // 0 to 1 at cost 1, then 0 to 2 and 1 to 3.
        ("binomial-doubling", 2100.0, 1100.0, ""),
        // The same messages; 0 sends the second to 2.
        ("binary", 2100.0, 1100.0, ""),
        // Halves to 1, then 2 and 3; then 1 and 2 exchange them, and 0 sends the second to 3.
        ("split-binary", 50.0 + 1000.0 + 1500.0, 50.0 + 500.0 + 500.0, "path"),
        // One after the other.
        ("knomial", 2100.0, 2100.0, ""),
    ];
    assert_eq!(of(&rows, "bcast"), expected);
    assert_eq!(markdown.lines().count(), 2 + 18);
    assert_eq!((rows[0]["communicator"].as_str(), rows[9]["ranks"].as_str()), ("all", "0-3"));
    let usual = |library: &str| -> Vec<&str> {
        rows[9..].iter().filter(|row| row[library] == "yes").map(|row| row["algorithm"].as_str()).collect()
    };
    assert_eq!([usual("MPICH"), usual("Open MPI")], [["binomial"], ["binomial-doubling"]]);
}

#[test]
fn calls_multiply_and_roots_add_up() {
    let broadcast = CollectiveOperation::Broadcast;
    let graph = program(4, &[calls(broadcast, Some(0), 100, 2), calls(broadcast, Some(3), 100, 3)]);
    let (rows, _) = evaluate(&graph, &[0, 1, 2, 3], CollectivesParams::default(), &Context::detached());
    // From rank 3, process 2 of the tree is rank 1, and process 1 is rank 0: both are on the other host.
    let third = 100.0 * (10.0 + 10.0 + 10.0);
    assert_eq!(rows[9]["total"], (2.0 * 1200.0 + 3.0 * third).to_string());
    assert_eq!(
        (rows[9]["calls"].as_str(), rows[9]["messages"].as_str(), rows[9]["rounds"].as_str()),
        ("5", "15", "2")
    );
}

#[test]
fn a_mapping_is_compared_with_linear() {
    // With ranks scattered over the hosts, every ring neighbour is remote.
    let graph = program(4, &[calls(CollectiveOperation::AllReduce, None, 400, 1)]);
    let (rows, _) = evaluate(&graph, &[0, 2, 1, 3], CollectivesParams::default(), &Context::detached());
    let ring = rows.iter().find(|row| row["algorithm"] == "ring" && row["communicator"] == "0").unwrap();
    assert_eq!((ring["total"].as_str(), ring["total linear"].as_str()), ("24000", "13200"));
    assert_eq!((ring["path"].as_str(), ring["rounds"].as_str()), ("6000", "6"));
}

#[test]
fn a_message_of_a_barrier_weighs_a_byte_and_time_has_a_latency() {
    let graph = program(4, &[calls(CollectiveOperation::Barrier, None, 0, 1)]);
    let (rows, _) = evaluate(&graph, &[0, 1, 2, 3], CollectivesParams::default(), &Context::detached());
    // Round one sends to the next rank, round two to the next but one.
    assert_eq!(of(&rows, "barrier")[0], ("dissemination", 22.0 + 40.0, 20.0, ""));
    // Exchanges with the other rank of the host, then with the other host.
    assert_eq!(of(&rows, "barrier")[2], ("recursive-doubling", 4.0 + 40.0, 1.0 + 10.0, "path"));
    let weight = Some(Weight::Time { latency_s: 0.5, bandwidth_bytes_per_s: 4.0 });
    let (rows, _) = evaluate(
        &graph,
        &[0, 1, 2, 3],
        CollectivesParams { weight: weight.map(Into::into) },
        &Context::detached(),
    );
    assert_eq!(rows[0]["total"], "4.65000e1");
}

#[test]
fn odd_communicators_skip_unsupported_algorithms() {
    let mut graph = program(6, &[calls(CollectiveOperation::AllGather, None, 8, 1)]);
    graph.collectives.communicators = vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4]];
    graph.collectives.calls.push(CollectiveCalls { communicator: 1, ..graph.collectives.calls[0] });
    let (rows, _) = evaluate(&graph, &[0, 1, 2, 3, 4, 5], CollectivesParams::default(), &Context::detached());
    let names = |communicator: &str| -> Vec<&str> {
        let of = rows.iter().filter(|row| row["communicator"] == communicator);
        of.map(|row| row["algorithm"].as_str()).collect()
    };
    assert_eq!(names("0"), ["recursive-doubling", "bruck", "ring", "neighbour-exchange", "non-overlapping"]);
    assert_eq!(names("1"), ["bruck", "ring", "non-overlapping"]);
    // In the totals one uses recursive doubling and the other MPICH's choice.
    assert_eq!(names("all"), names("0"));
    let total = |communicator: &str, algorithm: &str| -> u64 {
        let of = |row: &&BTreeMap<String, String>| {
            row["communicator"] == communicator && row["algorithm"] == algorithm
        };
        rows.iter().find(of).unwrap()["total"].parse().unwrap()
    };
    assert_eq!(total("all", "recursive-doubling"), total("0", "recursive-doubling") + total("1", "bruck"));
}

#[test]
fn silent_operations_are_logged() {
    let listener = Listener::default();
    let cx = Context::new(2, None, &listener);
    let (rows, markdown) = evaluate(&program(4, &[]), &[0, 1, 2, 3], CollectivesParams::default(), &cx);
    assert_eq!((rows.len(), markdown.lines().count()), (0, 2));
    let silent = program(4, &[calls(CollectiveOperation::AllReduce, None, 0, 7)]);
    assert_eq!(evaluate(&silent, &[0, 1, 2, 3], CollectivesParams::default(), &cx).0.len(), 0);
    let lines = listener.0.into_inner().unwrap();
    assert!(
        lines
            .iter()
            .any(|line| line == "collective operations that send nothing (no bytes, or a single process): 7")
    );
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let operations = CollectiveOperation::ALL.into_iter();
    let all: Vec<CollectiveCalls> = operations
        .flat_map(|operation| {
            let root = operation.has_root().then_some(2);
            [1, 5000, 600_000].map(|bytes| calls(operation, root, bytes, 3))
        })
        .collect();
    let graph = program(12, &all);
    graph.check().unwrap();
    let slots: Vec<u32> = (0..12).map(|rank| rank * 5 % 12).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| evaluate(&graph, &slots, CollectivesParams::default(), &Context::detached()))
    };
    assert_eq!(run(1), run(3));
}
