//! Every kind survives a round trip, the same value gives the same bytes, and damage is detected.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;

use arrow_schema::DataType;
use hopmap_artifact::{ArtifactError, Codec, Folder, TableReader, form};
use hopmap_model::{
    Activity, Call, CallTime, Cause, CheckpointDelta, CollectiveCalls, CollectiveOperation, CollectiveTable,
    ConvergencePoint, CostModel, Counting, DelayModel, DeltaRule, Deltas, Demands, Dependency, Diagnosis,
    Edge, Endpoint, Failure, Failures, FileSet, Fit, Forward, Interval, LaunchFile, Levels, Link, LinkState,
    LinkUse, Mapping, Matrix, Measurements, Metrics, Node, NodeState, NodeTraits, Part, PhaseSummary,
    PlacementMetrics, PlacementOrigin, Prediction, ProbePhase, Process, ProcessDemand, Processor,
    ProgramBuilder, RankSummary, RankTimes, Route, RouteCosts, RouteMetric, Routes, Routing, RuleTotals,
    Sample, Schedule, ScheduledTask, Slot, Stream, StreamRate, SwitchType, SystemGraph, TableEntry, Tables,
    Task, TaskDag, TaskGraph, TextFile, Ties, TraceSummary, TrialMapping, TrialRun, Trials, Weight, WorkUnit,
};
use proptest::prelude::*;

fn system(hosts: u32, cores: u32) -> SystemGraph {
    let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::host(format!("h{host}"))).collect();
    nodes.push(Node::switch("switch"));
    let link = |source, destination| Link { latency_s: Some(1e-6), ..Link::new(source, destination) };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links: (0..hosts).flat_map(|host| [link(host, hosts), link(hosts, host)]).collect(),
        slots: (0..hosts * cores).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.5],
            groups: vec![
                (0..hosts * cores).map(|slot| slot / cores).collect(),
                vec![0; (hosts * cores) as usize],
            ],
        }),
        calibration: Vec::new(),
    }
}

fn mapping() -> Mapping {
    let mut mapping =
        Mapping::new(&[5, 0, 3], &system(3, 2), Weight::Time { latency_s: 1e-6, bandwidth_bytes_per_s: 1e9 })
            .unwrap();
    mapping.metrics = BTreeMap::from([("F".into(), 12.0)]);
    mapping.convergence = vec![ConvergencePoint { island: 1, evaluations: 10, cost: 12.5 }];
    mapping
}

fn measurements() -> Measurements {
    let endpoint = |host: &str, core, state| Endpoint { host: host.into(), core, state };
    let sample = |phase, bytes| Sample {
        source: 0,
        destination: 2,
        phase,
        bytes,
        messages: 7,
        minimum_s: 1e-6,
        first_decile_s: 1.5e-6,
        median_s: 2e-6,
        ninth_decile_s: 3e-6,
        maximum_s: 1.0,
    };
    let fit = |from_bytes, bandwidth_bytes_per_s| Fit {
        source: 0,
        destination: 2,
        from_bytes,
        latency_s: 5e-7,
        bandwidth_bytes_per_s,
    };
    let call = CallTime {
        source: 0,
        destination: 2,
        call: Call::Isend,
        bytes: 1,
        messages: 30,
        minimum_s: 1e-6,
        median_s: 2e-6,
        maximum_s: 3e-6,
    };
    let (latency, isolated, loaded) = (ProbePhase::Latency, ProbePhase::Isolated, ProbePhase::Loaded);
    Measurements {
        endpoints: vec![
            endpoint("a", 0, NodeState::Up),
            endpoint("a", 1, NodeState::Up),
            endpoint("b", 0, NodeState::Down),
        ],
        samples: vec![
            sample(latency, 1),
            sample(latency, 1024),
            sample(isolated, 1 << 20),
            sample(loaded, 1),
        ],
        fits: vec![fit(1, None), fit(1024, Some(1e9))],
        calls: vec![call],
        streams: vec![StreamRate { step: 0, source: 0, destination: 1, bytes: 1_000_000, seconds: 0.001 }],
        eager_limit: Some(65_486),
    }
}

fn round_trip<C: Codec + PartialEq + std::fmt::Debug>(value: &C) {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = Folder::write(one.path(), value).unwrap();
    assert_eq!(&Folder::read::<C>(one.path()).unwrap(), value);
    assert_eq!(written.digest(), Folder::write(other.path(), value).unwrap().digest());
    is_in_the_reference(&written);
}

/// Checks that every table and column is in the reference, with its type and in the same order.
fn is_in_the_reference(written: &Folder) {
    let kind = &written.description().kind;
    let form = form(kind).unwrap_or_else(|| panic!("the reference lacks the kind {kind}"));
    for name in written.description().tables.keys() {
        let table = form.tables.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("the reference lacks the table {name} of {kind}"));
        let mut described = table.columns();
        for field in TableReader::open(&written.table_path(name)).unwrap().schema().fields() {
            let kind_of = match field.data_type() {
                DataType::UInt32 => "u32",
                DataType::UInt64 => "u64",
                DataType::Float64 => "f64",
                DataType::Utf8 => "text",
                other => panic!("{kind}, {name}: the reference does not know the type {other}"),
            };
            let kind_of = format!("{kind_of}{}", if field.is_nullable() { "?" } else { "" });
            let found = described
                .clone()
                .find(|column| column.name == field.name() || column.name == "*")
                .unwrap_or_else(|| panic!("{kind}, {name}: {} is not there, or out of order", field.name()));
            assert_eq!(found.kind, kind_of, "{kind}, {name}: {}", field.name());
            if found.name != "*" {
                described.find(|column| column.name == field.name());
            }
        }
    }
}

#[test]
fn trials_keep_the_output_of_their_runs() {
    let (output, folder) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    fs::write(output.path(), "Loop time of 0.25").unwrap();
    let run = |mapping: &str, block, seconds: Option<f64>| TrialRun {
        mapping: mapping.into(),
        block,
        choice: mapping == "b",
        seconds,
        mpi_s: Some(0.1),
        lateness_s: None,
        idle: Some(0.5),
        exit: seconds.map(|_| 0),
        complete: seconds.is_some(),
    };
    let mapping = |name: &str| TrialMapping { name: name.into(), digest: "d".into() };
    let trials = Trials {
        mappings: vec![mapping("a"), mapping("b")],
        runs: vec![run("a", None, Some(0.5)), run("b", Some(0), Some(0.25)), run("a", Some(0), None)],
        looks: vec![1, 3],
        metrics: BTreeMap::from([("gain".into(), 0.1)]),
        files: FileSet::new([("1/stdout".to_owned(), output.path().to_owned())].into()),
    };
    is_in_the_reference(&Folder::write(folder.path(), &trials).unwrap());
    let read = Folder::read::<Trials>(folder.path()).unwrap();
    assert_eq!((&read.mappings, &read.runs), (&trials.mappings, &trials.runs));
    assert_eq!(read.looks, trials.looks);
    // Trials that were never stopped have no such table, as those of before.
    let never_stopped = Trials { looks: Vec::new(), ..read.clone() };
    let other = tempfile::tempdir().unwrap();
    let written = Folder::write(other.path(), &never_stopped).unwrap();
    assert!(!written.description().tables.contains_key("looks"));
    assert!(Folder::read::<Trials>(other.path()).unwrap().looks.is_empty());
    assert_eq!(read.metrics, trials.metrics);
    assert_eq!(fs::read_to_string(&read.files.files()["1/stdout"]).unwrap(), "Loop time of 0.25");
}

#[test]
fn every_kind_survives_a_round_trip() {
    round_trip(&TaskGraph::default());
    let tasks = vec![Task { rank: Some(3), work: 0.5 }, Task { rank: None, work: 0.0 }];
    let ranks = vec![RankSummary { bytes_sent: 7, compute_s: Some(1.0), ..RankSummary::default() }];
    let phases = vec![PhaseSummary { name: Some("solve".into()), messages: 3, ..PhaseSummary::default() }];
    let totals = BTreeMap::from([("bytes".to_owned(), 7.0)]);
    round_trip(&TraceSummary { totals, ranks, heaviest: vec![], phases });
    let mut dag = TaskDag {
        tasks,
        dependencies: vec![Dependency { source: 0, destination: 1, bytes: 1 << 40 }],
        ..TaskDag::default()
    };
    round_trip(&dag);
    dag.recorded_s = Some(0.75);
    round_trip(&dag);
    (dag.names, dag.unit) = (vec!["first".into(), "second".into()], WorkUnit::Time);
    round_trip(&dag);
    round_trip(&TaskGraph {
        processes: vec![Process::default(); 2],
        is_incomplete: true,
        demands: demands(),
        ..TaskGraph::default()
    });
    round_trip(&ProgramBuilder::new(2).finish().unwrap());
    round_trip(&Routes::default());
    round_trip(&routes());
    let entry = TableEntry { switch: 3, input_port: Some(1), destination: 0, output_port: 2 };
    let entries = vec![TableEntry { input_port: None, ..entry }, entry];
    round_trip(&Tables { entries, metrics: BTreeMap::from([("entries".to_owned(), 2.0)]) });
    round_trip(&Prediction::default());
    round_trip(&prediction());
    round_trip(&Schedule::default());
    round_trip(&schedule());
    round_trip(&system(3, 2));
    let costs = (0..36).map(f64::from).collect();
    round_trip(&SystemGraph { cost: CostModel::Matrix(Matrix { costs }), ..system(3, 2) });
    let mut part = system(3, 2);
    part.nodes[1].state = NodeState::Down;
    round_trip(&part);
    part.nodes[3].address = Some("0002c903000abcde".into());
    part.nodes[0].traits = NodeTraits {
        performance: Some(2.0),
        capabilities: vec!["fpga".into()],
        devices: BTreeMap::from([("camera".into(), 2)]),
        ..NodeTraits::default()
    };
    part.nodes[3].traits.switch_type = Some(SwitchType::Two);
    part.links[1].state = LinkState::Down;
    (part.links[0].source_port, part.links[2].destination_port) = (Some(1), Some(17));
    part.routing = Routing { forwarding: vec![Forward { node: 3, last: 1, link: 1 }], ties: Ties::First };
    let inside = Levels { costs: vec![0.0, 0.5], groups: vec![(0..6).collect(), vec![0, 0, 1, 1, 2, 2]] };
    for metric in [RouteMetric::Hops, RouteMetric::Latency] {
        part.links.iter_mut().for_each(|link| link.latency_s = Some(1e-6));
        part.cost = CostModel::Routes(RouteCosts { metric, inside: inside.clone() });
        round_trip(&part);
    }
    part.links.iter_mut().for_each(|link| link.bandwidth_bytes_per_s = Some(4e9));
    part.cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Time { bytes: 65_536 }, inside });
    round_trip(&part);
    round_trip(&Measurements::default());
    round_trip(&measurements());
    round_trip(&mapping());
    let values = BTreeMap::from([("F".to_owned(), 1.5)]);
    let row = |origin, sample, values| PlacementMetrics { origin, sample, values };
    round_trip(&Metrics {
        placements: vec![
            row(PlacementOrigin::Mapping, 0, values.clone()),
            row(PlacementOrigin::Random, 3, BTreeMap::new()),
        ],
        summary: values,
    });
    round_trip(&LaunchFile {
        name: "rankfile".into(),
        text: "rank 0=a slot=0\n".into(),
        command: "mpirun".into(),
    });
    round_trip(&TextFile { name: "matrix.csv".into(), text: "source,destination\n".into() });
}

#[test]
fn a_changed_byte_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    Folder::write(folder.path(), &mapping()).unwrap();
    let table = folder.path().join("ranks.parquet");
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();
    assert!(matches!(Folder::read::<Mapping>(folder.path()), Err(ArtifactError::Damaged { .. })));
}

#[test]
fn another_kind_or_schema_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    Folder::write(folder.path(), &mapping()).unwrap();
    assert!(matches!(Folder::read::<TaskGraph>(folder.path()), Err(ArtifactError::WrongKind { .. })));
    let description = folder.path().join("artifact.json");
    let text = fs::read_to_string(&description).unwrap().replace("\"schema\": 1", "\"schema\": 99");
    fs::write(&description, text).unwrap();
    assert!(matches!(
        Folder::read::<Mapping>(folder.path()),
        Err(ArtifactError::WrongSchema { found: 99, .. })
    ));
}

#[test]
fn inconsistent_tables_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut graph =
        TaskGraph { processes: vec![Process::default(); 2], edges: vec![], ..TaskGraph::default() };
    graph.edges.push(Edge { source: 0, destination: 7, messages: 1, bytes: 1 });
    Folder::write(folder.path(), &graph).unwrap();
    assert!(matches!(Folder::read::<TaskGraph>(folder.path()), Err(ArtifactError::Invalid { .. })));
}

fn collectives() -> CollectiveTable {
    let one = |communicator, operation: CollectiveOperation, bytes| CollectiveCalls {
        communicator,
        operation,
        root: operation.has_root().then_some(1),
        bytes,
        calls: 1 << 40,
        uneven: bytes / 2,
    };
    let all = CollectiveOperation::ALL.into_iter().map(|operation| one(0, operation, 8));
    let calls = all.chain([one(1, CollectiveOperation::Scan, 0), one(1, CollectiveOperation::Scan, 9)]);
    CollectiveTable { communicators: vec![vec![0, 1], vec![2, 0]], calls: calls.collect() }
}

#[test]
fn collective_operations_survive_a_round_trip() {
    let processes = vec![Process::default(); 3];
    round_trip(&TaskGraph {
        processes: processes.clone(),
        collectives: collectives(),
        ..TaskGraph::default()
    });
    // Communicators without calls.
    let collectives = CollectiveTable { calls: Vec::new(), ..collectives() };
    round_trip(&TaskGraph { processes, collectives, ..TaskGraph::default() });
}

#[test]
fn a_graph_without_collective_operations_omits_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let edges = vec![Edge { source: 0, destination: 1, messages: 3, bytes: 8 }];
    let graph = TaskGraph { processes: vec![Process::default(); 2], edges, ..TaskGraph::default() };
    let written = Folder::write(folder.path(), &graph).unwrap();
    assert_eq!(written.description().tables.keys().collect::<Vec<_>>(), ["edges", "processes"]);
    assert!(written.digest().starts_with("5b1f2d73fbfa"), "{}", written.digest());
}

#[test]
fn collective_operations_inconsistent_with_the_processes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let graph = TaskGraph {
        processes: vec![Process::default(); 2],
        collectives: collectives(),
        ..TaskGraph::default()
    };
    Folder::write(folder.path(), &graph).unwrap();
    let error = Folder::read::<TaskGraph>(folder.path()).unwrap_err();
    let ArtifactError::Invalid { .. } = &error else { panic!("{error}") };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn task_graphs_come_back(
        pairs in proptest::collection::btree_map((0u32..9, 0u32..9), (1u64.., 0u64..), 0..40),
        compute in proptest::collection::vec(proptest::option::of(0.0f64..1e9), 9),
    ) {
        let edges = pairs
            .into_iter()
            .map(|((source, destination), (messages, bytes))| {
                Edge { source, destination, messages: messages >> 8, bytes: bytes >> 8 }
            })
            .collect();
        let processes = compute.into_iter().map(|compute_s| Process { compute_s, collective_s: compute_s, ..Process::default() }).collect();
        round_trip(&TaskGraph { processes, edges, duration_s: Some(0.25), ..TaskGraph::default() });
    }
}

fn prediction() -> Prediction {
    let interval = |activity, peer| Interval { rank: 0, start_s: 0.5, finish_s: 1.5, activity, peer };
    Prediction {
        ranks: vec![RankTimes { slot: 3, computing_s: 1.0, sending_s: 0.25, waiting_s: 0.5, finish_s: 1.75 }],
        links: vec![LinkUse {
            link: 2,
            source: "h0".into(),
            destination: "switch".into(),
            bytes: 1e6,
            saturated: 0.75,
        }],
        intervals: vec![interval(Activity::Computing, None), interval(Activity::Waiting, Some(0))],
        metrics: BTreeMap::from([("seconds".to_owned(), 1.75)]),
        is_contended: true,
        is_calibrated: true,
        complete: true,
    }
}

fn schedule() -> Schedule {
    let task = |processor, start, waits_for| ScheduledTask {
        processor,
        turn: 0,
        start,
        finish: start + 1.5,
        waits_for,
        process: Some(processor),
    };
    let processor = |name: &str, slot| Processor { name: name.into(), available: 0.25, slot };
    Schedule {
        tasks: vec![task(1, 0.25, None), task(0, 2.0, Some(0))],
        processors: vec![processor("h0", Some(4)), processor("h1", None)],
        names: vec!["first".into(), "second".into()],
        model: DelayModel::Receive,
        metrics: BTreeMap::from([("makespan".to_owned(), 3.5)]),
        convergence: vec![ConvergencePoint { island: 1, evaluations: 10, cost: 3.5 }],
        complete: false,
    }
}

fn demands() -> Demands {
    let demand = |name: &str, host: Option<&str>| ProcessDemand {
        name: name.into(),
        performance: 1.5,
        capabilities: vec!["fpga".into()],
        devices: BTreeMap::from([("camera".into(), 1)]),
        host: host.map(str::to_owned),
    };
    let streams = vec![Stream { source: 1, destination: 0, bandwidth_bytes_per_s: 40.0 }; 2];
    Demands { processes: vec![demand("P0", None), demand("P1", Some("h1"))], streams }
}

fn routes() -> Routes {
    let route = |links: &[u32]| Route {
        source: 0,
        destination: 1,
        bandwidth_bytes_per_s: 40.0,
        streams: vec![0, 1],
        links: links.to_vec(),
    };
    Routes {
        routes: vec![route(&[0, 3, 2]), route(&[])],
        counting: Counting::HostPairs,
        cycle: vec![2, 3],
        metrics: BTreeMap::from([("longest".to_owned(), 3.0)]),
    }
}

#[test]
fn diagnoses_and_failures_survive_a_round_trip() {
    let cause = Cause {
        remedy: 1,
        part: Part::Link,
        name: "A → B".to_owned(),
        there: Some(3.0),
        needed: None,
        words: "too narrow".to_owned(),
    };
    round_trip(&Diagnosis { causes: vec![cause], metrics: [("causes".to_owned(), 1.0)].into() });
    let failure = Failure {
        part: Part::Switch,
        name: "A".to_owned(),
        survived: None,
        objective: Some(2.0),
        longest: Some(3),
        moved: 1,
        rerouted: 2,
        changed_entries: 3,
        shortage: String::new(),
    };
    round_trip(&Failures { failures: vec![failure], ..Failures::default() });
}

#[test]
fn deltas_survive_a_round_trip() {
    let first = CheckpointDelta {
        rule: DeltaRule::AdcaLiteral,
        block: 4096,
        checkpoint: 1,
        name: "01".into(),
        base: None,
        full_bytes: 8192,
        blocks: 2,
        changed_blocks: 2,
        stored_bytes: 8192,
        depth: 0,
        write_s: 8.192e-6,
        saving: None,
    };
    let second =
        CheckpointDelta { checkpoint: 2, base: Some(1), saving: Some(0.0), depth: 1, ..first.clone() };
    let totals = RuleTotals {
        rule: DeltaRule::AdcaLiteral,
        block: 4096,
        bases: vec![1],
        sum_of_bases: 1,
        base_changes: 0,
        full_bytes: 16_384,
        stored_bytes: 16_384,
        write_s: 1.6384e-5,
        depth: 1,
    };
    let deltas = Deltas { checkpoints: vec![first, second], rules: vec![totals], ..Deltas::default() };
    round_trip(&deltas);
    let mut wrong = deltas;
    wrong.checkpoints[1].base = Some(2);
    let folder = tempfile::tempdir().unwrap();
    Folder::write(folder.path(), &wrong).unwrap();
    let error = Folder::read::<Deltas>(folder.path()).unwrap_err();
    assert!(error.to_string().contains("is not an earlier checkpoint"), "{error}");
}
