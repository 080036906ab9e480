//! `topology/levels`: machines that were measured, and machines with a matrix.

use hopmap_artifact::Folder;
use hopmap_model::{Endpoint, Measurements, NodeState, ProbePhase, Sample};

use crate::sandbox::Sandbox;

/// Two switches with two hosts each, of which one did not answer, and one core a host.
fn measured() -> Measurements {
    let endpoint = |host: u32| Endpoint {
        host: format!("node{host}"),
        core: 0,
        state: if host == 3 { NodeState::Down } else { NodeState::Up },
    };
    let sample = |(source, destination): (u32, u32)| {
        let time = if source / 2 == destination / 2 { 3e-6 } else { 8e-6 };
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes: 1,
            messages: 100,
            minimum_s: time,
            first_decile_s: time,
            median_s: time,
            ninth_decile_s: time,
            maximum_s: time,
        }
    };
    let pairs = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).filter(|(a, b)| a != b);
    Measurements {
        endpoints: (0..4).map(endpoint).collect(),
        samples: pairs.map(sample).collect(),
        ..Measurements::default()
    }
}

const PIPELINE: &str = "[stages.measured]\nuses = \"stored/measurements\"\nwith = { path = \"m\" }\n\
     [stages.machine]\nuses = \"topology/levels\"\nneeds = { measurements = \"measured\" }\n";

#[test]
fn what_was_measured_becomes_a_machine_and_is_in_the_report() {
    let sandbox = Sandbox::new();
    Folder::write(&sandbox.path().join("m"), &measured()).unwrap();
    sandbox.write("levels.toml", format!("{PIPELINE}save = {{ system-graph = \"out\" }}\n"));
    sandbox.stdout(&["run", "levels.toml", "--report", "report.html"]);
    let shown: serde_json::Value = serde_json::from_str(&sandbox.stdout(&["show", "out", "--json"])).unwrap();
    assert_eq!(shown["artifact"]["kind"], "system-graph", "{shown}");
    let nodes = sandbox.stdout(&["show", "out", "--table", "nodes", "--format", "csv"]);
    assert!(nodes.contains("node3") && nodes.contains("down") && nodes.contains("level-2-0"), "{nodes}");
    let html = sandbox.read("report.html");
    for inside in
        ["The machine, measured", "4 hosts · 1 down", ">1.5 µs</text>", "down: node3", "level 2: 2 parts"]
    {
        assert!(html.contains(inside), "the report does not show {inside}");
    }
}

#[test]
fn a_matrix_becomes_levels_and_exactly_one_input_is_taken() {
    let sandbox = Sandbox::new();
    let instance = "[stages.tai]\nuses = \"instance/taillard-e\"\nwith = { groups = [3, 3, 3], seed = 1 }\n";
    let machine = "[stages.machine]\nuses = \"topology/levels\"\nneeds = { system-graph = \"tai.system\" }\n";
    sandbox.write("tai.toml", format!("{instance}{machine}"));
    sandbox.stdout(&["run", "tai.toml", "--report", "report.html"]);
    let html = sandbox.read("report.html");
    assert!(html.contains("Levels of the machine") && html.contains("27 hosts"));
    sandbox.write("none.toml", "[stages.machine]\nuses = \"topology/levels\"\n");
    let output = sandbox.output(&["run", "none.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("neither `measurements` nor `system-graph` is connected"), "{error}");
}
