//! The stage `evaluate/correlation` from mappings and run times to its table.

use std::fs;
use std::sync::Arc;

use hopmap_evaluate::{CorrelationParams, CorrelationStage};
use hopmap_model::{
    Context, Edge, Inputs, Mapping, Metrics, Outcome, PlacementMetrics, Prediction, Process, RankTimes,
    Stage, SystemGraph, TaskGraph, TextFile, TrialMapping, TrialRun, Trials, Weight,
};

use crate::mapping::machine;

/// Two ranks that talk a lot, and two that talk a little.
fn graph() -> TaskGraph {
    let edge = |source, bytes| Edge { source, destination: source + 1, messages: 1, bytes };
    TaskGraph {
        processes: vec![Process::default(); 4],
        edges: vec![edge(0, 100), edge(2, 10)],
        ..TaskGraph::default()
    }
}

/// F is 110, 1010 (the small pair inside a host costs 10) and so on, from the best mapping to the worst.
const SLOTS: [[u32; 4]; 4] = [[0, 1, 2, 3], [0, 1, 2, 4], [0, 2, 4, 5], [0, 2, 4, 6]];
const F: [f64; 4] = [110.0, 200.0, 1010.0, 1100.0];

struct Case {
    predicted: Vec<f64>,
    csv: String,
    noise: f64,
    mappings: usize,
}

impl Case {
    fn new(csv: &str) -> Self {
        Self { predicted: Vec::new(), csv: csv.into(), noise: 0.0, mappings: SLOTS.len() }
    }

    fn run(&self) -> Result<(Metrics, String), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seconds.csv");
        fs::write(&file, &self.csv).unwrap();
        let system: SystemGraph = machine(4);
        let mut inputs = Inputs::new();
        inputs.connect("task-graph", Arc::new(graph()), "1".into(), "program".into());
        inputs.connect("system", Arc::new(system.clone()), "2".into(), "machine".into());
        for (index, slots) in SLOTS.iter().take(self.mappings).enumerate() {
            let mapping = Mapping::new(slots, &system, Weight::Bytes).unwrap();
            inputs.connect("mappings", Arc::new(mapping), "3".into(), format!("p[seed={index}]"));
        }
        // Predictions belong to the mapping with their slots, wherever they are.
        for (slots, &finish_s) in SLOTS.iter().zip(&self.predicted).rev() {
            let rank = |&slot: &u32| RankTimes { slot, finish_s, ..RankTimes::default() };
            let ranks = slots.iter().map(rank).collect();
            let prediction = Prediction { ranks, complete: true, ..Prediction::default() };
            inputs.connect("predictions", Arc::new(prediction), "4".into(), "prediction".into());
        }
        let given = serde_json::json!({ "seconds": file, "noise": self.noise });
        let params: CorrelationParams = serde_json::from_value(given).unwrap();
        let outcome = CorrelationStage::run(params, inputs, &Context::detached());
        let outputs =
            match outcome.map_err(|error| error.to_string().replace(file.to_str().unwrap(), "FILE"))? {
                Outcome::Done(outputs) => outputs,
                other => panic!("{other:?}"),
            };
        let metrics = outputs.get("metrics").unwrap().downcast_ref::<Metrics>().unwrap().clone();
        Ok((metrics, outputs.get("csv").unwrap().downcast_ref::<TextFile>().unwrap().text.clone()))
    }
}

#[test]
fn metrics_and_predictions_are_compared_with_the_medians_of_the_runs() {
    let csv = "mapping,seconds\np[seed=0],1.0\np[seed=0],1.2\np[seed=0],1.1\n1,2\n2,4\n3,3\n";
    let case = Case { predicted: vec![1.1, 2.2, 4.4, 2.1], ..Case::new(csv) };
    let (metrics, table) = case.run().unwrap();
    let expected: Vec<f64> = metrics.placements.iter().map(|row| row.values["F"]).collect();
    assert_eq!(expected, F);
    let first = &metrics.placements[0].values;
    assert_eq!(vec![first["measured_s"], first["measured_low_s"], first["measured_high_s"]], [1.1, 1.0, 1.2]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "metric,Spearman,Kendall,Kendall beyond noise,regret %,chosen",
            "predicted_s,0.800,0.667,0.667,0.00,p[seed=0]",
            "F,0.800,0.667,0.667,0.00,p[seed=0]",
        ]
    );
    let summary = |name: &str| metrics.summary[name];
    assert_eq!(["mappings", "pairs", "pairs_beyond_noise"].map(summary).to_vec(), [4.0, 6.0, 6.0]);
    // Errors 0, 0.1, 0.1 and 0.3.
    assert!((summary("prediction_error") - 0.1).abs() < 1e-12);
}

#[test]
fn pairs_within_the_noise_do_not_count() {
    let csv = "mapping,seconds\n0,1.0\n1,2\n2,4\n2,2.9\n3,3\n";
    let kendall = |case: &Case| {
        let (metrics, _) = case.run().unwrap();
        (metrics.summary["pairs_beyond_noise"], metrics.summary["kendall_beyond_noise_F"])
    };
    assert_eq!(kendall(&Case::new(csv)), (5.0, 1.0));
    // With 60 %, only the first mapping differs from all others, and the second from none of them.
    assert_eq!(kendall(&Case { noise: 0.6, ..Case::new(csv) }), (3.0, 1.0));
}

#[test]
fn equal_values_share_the_choice() {
    let csv = "mapping,seconds\n0,1\n1,2\n2,4\n3,3\n";
    let (metrics, table) =
        Case { predicted: vec![5.0, 5.0, 5.0 + 1e-12, 7.0], ..Case::new(csv) }.run().unwrap();
    assert!(table.contains("predicted_s,0.258,0.236,0.236,133.33,p[seed=0] and 2 more\n"), "{table}");
    assert!((metrics.summary["regret_predicted_s"] - 4.0 / 3.0).abs() < 1e-12);
    let (metrics, table) = Case { predicted: vec![5.0; 4], ..Case::new(csv) }.run().unwrap();
    assert!(table.contains("predicted_s,,,,150.00,p[seed=0] and 3 more\n"), "{table}");
    assert!(!metrics.summary.contains_key("kendall_predicted_s"));
}

#[test]
fn what_cannot_be_compared_is_said_in_one_message() {
    let message = |case: &Case| case.run().unwrap_err();
    let three = "mapping,seconds\n0,1\n1,2\n2,4\n";
    let few = Case { mappings: 2, ..Case::new("mapping,seconds\n0,1\n1,2\n") };
    assert_eq!(message(&few), "2 of 2 mappings have run times, but an order needs at least 3");
    let silent = Case::new("mapping,seconds\n0,1\n1,2\n");
    assert_eq!(message(&silent), "2 of 4 mappings have run times, but an order needs at least 3");
    let unpredicted = Case { predicted: vec![1.0, 2.0], ..Case::new(three) };
    assert_eq!(message(&unpredicted), "`p[seed=2]` has no complete prediction");
    for (csv, expected) in [
        ("mapping,time\n0,1\n", "FILE: column `seconds` is missing"),
        ("mapping,seconds\n0,1\n4,1\n", "FILE:3: unknown mapping `4`"),
        ("mapping,seconds\n0,1\n1,-2\n", "FILE:3: `-2` is not a time in seconds"),
        ("mapping,seconds\n0,1\n1,fast\n", "FILE:3: `fast` is not a time in seconds"),
    ] {
        assert_eq!(message(&Case::new(csv)), expected);
    }
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph()), "1".into(), "program".into());
    inputs.connect("system", Arc::new(machine(4)), "2".into(), "machine".into());
    let error =
        CorrelationStage::run(CorrelationParams::default(), inputs, &Context::detached()).unwrap_err();
    assert_eq!(error.to_string(), "nothing says how long the mappings run");
}

#[test]
fn trials_know_their_mappings_by_digest_and_runs_on_a_busy_machine_do_not_count() {
    let system = machine(4);
    let run = |mapping: &str, block, seconds, idle| TrialRun {
        mapping: mapping.into(),
        block: Some(block),
        choice: false,
        seconds: Some(seconds),
        mpi_s: None,
        lateness_s: Some(0.1 - 0.1 * idle),
        idle: Some(idle),
        exit: Some(0),
        complete: true,
    };
    let mut runs = vec![
        run("a", 0, 1.0, 0.9),
        run("b", 0, 2.0, 0.9),
        run("c", 0, 4.0, 0.9),
        run("c", 1, 40.0, 0.1),
        run("b", 1, 2.2, 0.9),
        TrialRun { complete: false, ..run("a", 1, 9.0, 0.9) },
        TrialRun { block: None, ..run("a", 0, 7.0, 0.9) },
    ];
    let name = |(name, digest): (&str, &str)| TrialMapping { name: name.into(), digest: digest.into() };
    let mappings = [("a", "m0"), ("b", "m1"), ("c", "m2")].map(name).to_vec();
    let correlate = |runs: &[TrialRun], params: serde_json::Value| {
        let mut inputs = Inputs::new();
        inputs.connect("task-graph", Arc::new(graph()), "1".into(), "program".into());
        inputs.connect("system", Arc::new(system.clone()), "2".into(), "machine".into());
        for (index, slots) in SLOTS.iter().enumerate() {
            let mapping = Mapping::new(slots, &system, Weight::Bytes).unwrap();
            inputs.connect("mappings", Arc::new(mapping), format!("m{index}"), format!("p[seed={index}]"));
        }
        let trials = Trials { mappings: mappings.clone(), runs: runs.to_vec(), ..Trials::default() };
        trials.check().unwrap();
        inputs.connect("trials", Arc::new(trials), "5".into(), "trial".into());
        let params = serde_json::from_value(params).unwrap();
        let outcome = CorrelationStage::run(params, inputs, &Context::detached());
        let Outcome::Done(outputs) = outcome.map_err(|error| error.to_string())? else { panic!("not done") };
        let metrics = outputs.get("metrics").unwrap().downcast_ref::<Metrics>().unwrap();
        let measured = |row: &PlacementMetrics| (row.sample, row.values["measured_s"]);
        Ok::<_, String>(metrics.placements.iter().map(measured).collect::<Vec<_>>())
    };
    let calm = serde_json::json!({ "min_idle": 0.3 });
    assert_eq!(correlate(&runs, calm.clone()).unwrap(), [(0, 1.0), (1, 2.1), (2, 4.0)]);
    let late = serde_json::json!({ "max_lateness_s": 0.05 });
    assert_eq!(correlate(&runs, late).unwrap(), [(0, 1.0), (1, 2.1), (2, 4.0)]);
    assert_eq!(correlate(&runs, serde_json::json!({})).unwrap()[2], (2, 22.0));
    runs.retain(|run| run.mapping != "c" || run.block == Some(1));
    let few = "2 of 4 mappings have run times, but an order needs at least 3";
    assert_eq!(correlate(&runs, calm).unwrap_err(), few);
    let both = serde_json::json!({ "seconds": "seconds.csv" });
    assert_eq!(correlate(&runs, both).unwrap_err(), "there are both `trials` and `seconds`");
}
