//! Predicted run times: the pipeline `predict`, bounds that end a run early, and inputs that cannot be predicted.

use hopmap_artifact::Folder;
use hopmap_model::{LinkState, SystemGraph};
use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Two ranks, the first of which sends to the second, on hosts with and without rates.
const PIPELINE: &str = r#"name = "p"

[params]
program = "program/index"
mapped  = "program/index"
machine = "rates"
shape   = "tree:1x4"

[stages.program]
uses = "trace/program"
with = { path = "${params.program}" }

[stages.messages]
uses = "trace/import"
with = { path = "${params.mapped}" }

[stages.rates]
uses = "topology/synthetic"
with = { shape = "${params.shape}", link_latency_s = 1e-5, bandwidth_bytes_per_s = 1e8 }

[stages.plain]
uses = "topology/synthetic"
with = { shape = "tree:1x4" }

[stages.placement]
uses  = "map/linear"
needs = { task-graph = "messages", system = "rates" }

[stages.prediction]
uses  = "predict/time"
needs = { program = "program", system = "${params.machine}", mapping = "placement" }
with  = { baselines = false }
"#;

/// A sandbox with [`PIPELINE`] and programs as traces of `SimGrid`.
fn programs() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", PIPELINE);
    sandbox.write("pair.csv", "source,destination,messages,bytes\n0,1,1,10\n1,2,1,10\n");
    let small = ["compute 1000000\n0 send 1 0 1000", "recv 0 0 1000"];
    let lost = ["send 1 0 1000", "compute 10"];
    let deadlock = ["send 1 0 100000\n0 recv 1 0 100000", "send 0 0 100000\n1 recv 0 0 100000"];
    for (name, ranks) in [("program", small), ("lost", lost), ("deadlock", deadlock)] {
        sandbox.write(&format!("{name}/index"), "rank0.txt\nrank1.txt\n");
        for (rank, actions) in ranks.iter().enumerate() {
            let text = format!("{rank} init\n{rank} {actions}\n{rank} finalize\n");
            sandbox.write(&format!("{name}/rank{rank}.txt"), text);
        }
    }
    sandbox
}

fn run(sandbox: &Sandbox, with: &[&str]) -> String {
    let with = with.iter().flat_map(|with| ["-p", *with]);
    let with: Vec<&str> = ["run", "p.toml", "--no-report", "--quiet"].into_iter().chain(with).collect();
    sandbox.seen(&with)
}

/// The recorded sample, in a sandbox of its own.
fn predict(sandbox: &Sandbox, with: &[&str]) -> String {
    let program = format!("program={}", project().join("sample-traces/rows-columns-16-recorded").display());
    sandbox.seen(&[&["run", "predict", "-j1", "-p", &program], with].concat())
}

/// The lines of the summary, from its headline on.
fn summary(seen: &str) -> String {
    let lines = seen.lines().skip_while(|line| !line.starts_with("predict: "));
    lines.take_while(|line| !line.starts_with("-------")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_recorded_program_gets_a_bound_seconds_and_a_report() {
    let sandbox = Sandbox::new();
    let seen = predict(&sandbox, &["--report", "report.html"]);
    assert_snapshot!(summary(&seen), @"
    predict: 8 ran in N.NN s
      result       predicted 26 ms: 618 ms (96.0 %) less than linear, as good as round-robin (`--map-by node`)
      bound        placement can save at most 97 % of the 644 ms run
      quality      F 0.036 × linear, F 0.056 × random, T 0.095 × linear, max_link_time_s 0.027 × linear
      prediction   predicted 0.025979 s, 0.040 × linear, 1.000 × round-robin
      warning: the recorded ranks shared cores and waited for them: stage `bound` gives no upper bound where each rank has a core
      not calibrated: predictions take the overheads of messages at their ends as zero; topology/probe with calibrate = true measures them
      prediction   out/predict/timeline.json
      launch       out/predict/rankfile
      run with     mpirun -n 16 --rankfile out/predict/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with --hosts NAMES
      report       report.html
    ");
    let report = sandbox.read("report.html");
    for part in ["What a placement can gain", "Predicted run time", "at full capacity"] {
        assert!(report.contains(part), "the report lacks: {part}");
    }
    assert!(sandbox.read("out/predict/timeline.json").starts_with('{'));
    assert!(sandbox.read("out/predict/rankfile").contains("rank 15="));
}

/// A search for the shortest predicted time, and its prediction.
const SHORTEST: &str = r#"name = "shortest"

[params]
program = ""

[stages.messages]
uses = "trace/import"
with = { path = "${params.program}" }

[stages.program]
uses = "trace/program"
with = { path = "${params.program}" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2x4", link_latency_s = 20e-6, bandwidth_bytes_per_s = [12.5e6, 5e6] }

[stages.placement]
uses  = "map/auto"
needs = { task-graph = "messages", system = "machine", program = "program" }
with  = { objective = "predicted-time", evaluations = 2000, replays = 24 }

[stages.prediction]
uses  = "predict/time"
needs = { program = "program", system = "machine", mapping = "placement" }
"#;

#[test]
fn the_seconds_of_a_search_are_those_of_the_prediction() {
    let sandbox = Sandbox::new();
    sandbox.write("shortest.toml", SHORTEST);
    let program = format!("program={}", project().join("sample-traces/rows-columns-16-recorded").display());
    let seen = sandbox.stdout(&["run", "shortest.toml", "--no-report", "--json", "-p", &program]);
    let report: Value = serde_json::from_str(&seen).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let cell = |stage: &str| cells.iter().find(|cell| cell["stage"] == stage).unwrap();
    let searched = cell("placement")["outputs"]["mapping"]["metrics"]["predicted_s"].as_f64().unwrap();
    let predicted = &cell("prediction")["outputs"]["prediction"]["metrics"];
    assert_eq!(searched.to_bits(), predicted["seconds"].as_f64().unwrap().to_bits());
    for baseline in ["seconds_linear", "seconds_round_robin"] {
        assert!(searched <= predicted[baseline].as_f64().unwrap(), "{baseline}");
    }
    let log = std::fs::read_to_string(cell("placement")["log"].as_str().unwrap()).unwrap();
    for name in ["linear", "F by time", "F by bytes", "max-link-time"] {
        assert!(log.contains(&format!("candidate {name}: predicted run time ")), "{log}");
    }
    // Without the program there is one message.
    sandbox.edit("shortest.toml", ", program = \"program\" }", " }");
    assert_snapshot!(sandbox.seen(&["run", "shortest.toml", "--no-report", "--quiet", "-p", &program]), @"
    ------- stderr -------
    error[map::no_program]: stage `placement` (shortest.toml:21)
      `-> the objective `predicted-time` needs the operations of the program
      help: connect `program` to the output of trace/program, or use another objective
    [exit code 1]
    ");
}

#[test]
fn a_placement_that_is_not_worth_it_is_not_searched() {
    let sandbox = Sandbox::new();
    let seen = predict(&sandbox, &["--worth", "99%", "--no-report"]);
    assert_snapshot!(summary(&seen), @"
    predict: 4 ran, 4 not worth it in N.NN s
      bound        placement can save at most 97 % of the 644 ms run
      warning: the recorded ranks shared cores and waited for them: stage `bound` gives no upper bound where each rank has a core
    ");
    assert!(!seen.contains("[exit code"), "{seen}");
    assert!(!sandbox.path().join("out").exists());
    let again = predict(&sandbox, &["--worth", "2%", "--no-report"]);
    assert!(again.contains("\n  launch       out/predict/rankfile\n"), "{again}");
}

#[test]
fn only_a_fraction_is_a_gain() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.seen(&["run", "place", "--worth", "abc"]), @"
    ------- stderr -------
    error[command::arguments]: invalid value 'abc' for '--worth <GAIN>': give 2% or 0.02

    For more information, try '--help'.
    [exit code 2]
    ");
    for gain in ["101%", "-1%", "2 percent", ""] {
        let seen = sandbox.seen(&["run", "place", &format!("--worth={gain}")]);
        assert!(seen.contains("give 2% or 0.02"), "{gain}: {seen}");
    }
}

#[test]
fn the_pipelines_that_place_bound_the_gain_of_any_input() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", crate::sandbox::ring(16));
    let recorded = project().join("sample-traces/rows-columns-16-recorded").display().to_string();
    let archive = project().join("sample-traces/rows-columns-16").display().to_string();
    let mut said = String::new();
    for trace in [&recorded, &archive, &"ring.csv".to_owned()] {
        for with in [&[][..], &["latency=1e-5", "bandwidth=1e9", "shape=tree:2x2x2x2"]] {
            let trace = format!("trace={trace}");
            let with = with.iter().flat_map(|with| ["-p", *with]);
            let with: Vec<&str> =
                ["run", "place", "--no-report", "-p", &trace].into_iter().chain(with).collect();
            let seen = sandbox.stdout(&with);
            let bound = seen.lines().find(|line| line.starts_with("  bound  ")).unwrap();
            said += &format!("{}\n", bound.trim());
            assert!(seen.contains("\n  launch       out/rankfile"), "{seen}");
        }
    }
    assert_snapshot!(said, @"
    bound        placement can save at most 98 % of the 322 ms run
    bound        placement can save at most 98 % of the 322 ms run
    bound        placement can save at most 96 % of the 343 ms run
    bound        placement can save at most 96 % of the 343 ms run
    bound        the recording has no times: what a placement gains is not bounded
    bound        no run is shorter than 0.000061 s
    ");
}

#[test]
fn what_cannot_be_predicted_is_said_in_one_message() {
    let sandbox = programs();
    assert_eq!(run(&sandbox, &[]), "");
    assert_snapshot!(run(&sandbox, &["machine=plain"]), @"
    ------- stderr -------
    error[prediction::unknown_rate]: stage `prediction` (p.toml:32)
      `-> the link from `host0` to `switch-1-0` has no latency
      help: give the links of the machine a latency and a bandwidth: `link_latency_s` and `bandwidth_bytes_per_s` of topology/synthetic, or those of an imported file; if none has either, `levels` may give the rates between slots by level
    [exit code 1]
    ");
    assert_snapshot!(run(&sandbox, &["mapped=pair.csv"]), @"
    ------- stderr -------
    error[prediction::other_mapping]: stage `prediction` (p.toml:32)
      `-> the mapping has 3 ranks, the program has 2
      help: use the mapping of this program on this machine
    [exit code 1]
    ");
    assert_snapshot!(run(&sandbox, &["shape=tree:1x1"]), @"
    ------- stderr -------
    error[objective::invalid]: stage `placement` (p.toml:25)
      `-> 2 ranks do not fit on 1 slots
      help: every rank needs one slot: use a machine with at least 2 slots, or a smaller program
    [exit code 1]
    ");
    assert_snapshot!(run(&sandbox, &["program=lost/index"]), @"
    ------- stderr -------
    error[trace::refused]: stage `program` (p.toml:11)
      `-> the actions in `DIR/lost/index` are inconsistent: rank 0 sends 1 messages to rank 1 with tag 0 in communicator 0, which receives 0
      help: actions are missing in the trace, or a receive from MPI_ANY_SOURCE was left out: SMPI does not record which message it received
    [exit code 1]
    ");
    assert_snapshot!(run(&sandbox, &["program=deadlock/index", "mapped=deadlock/index"]), @"
    ------- stderr -------
    error[prediction::deadlock]: stage `prediction` (p.toml:32)
      `-> the program ends in a deadlock: rank 0 waits in send (operation 0) to send to rank 1, rank 1 waits in send (operation 0) to send to rank 0
      help: a send of at least the eager limit waits for its receive; the program may depend on the limit of its MPI library
    [exit code 1]
    ");
}

/// The pipeline with a machine `stored` of this shape, changed.
fn with_machine(shape: &str, change: impl Fn(&mut SystemGraph)) -> Sandbox {
    let sandbox = programs();
    let shape = format!("shape={shape}");
    let rates = ["-p", "link_latency_s=1e-5", "-p", "bandwidth_bytes_per_s=1e8"];
    sandbox.stdout(&[&["exec", "topology/synthetic", "-p", &shape, "--out", "m"], &rates[..]].concat());
    let machine = sandbox.path().join("m");
    let mut system: SystemGraph = Folder::read(&machine).unwrap();
    change(&mut system);
    std::fs::remove_dir_all(&machine).unwrap();
    Folder::write(&machine, &system).unwrap();
    let stored = "[stages.stored]\nuses = \"stored/system-graph\"\nwith = { path = \"m\" }\n";
    sandbox.write("p.toml", PIPELINE.to_owned() + stored);
    sandbox
}

#[test]
fn a_host_that_no_link_reaches_is_named() {
    let sandbox = with_machine("torus:4", |system| {
        for link in system.links.iter_mut().filter(|link| link.source == 1 || link.destination == 1) {
            link.state = LinkState::Down;
        }
    });
    assert_snapshot!(run(&sandbox, &["machine=stored"]), @"
    ------- stderr -------
    error[prediction::no_route]: stage `prediction` (p.toml:32)
      `-> host `host0` cannot reach host `host1`
      help: their switches are not connected, or the forwarding tables have no route; choose hosts that reach each other with select/hosts
    [exit code 1]
    ");
}

#[test]
fn seconds_of_a_machine_without_links_are_without_contention() {
    let sandbox = with_machine("tree:1x4", |system| system.links.clear());
    let levels = "levels = [{ latency_s = 1e-6, bandwidth_bytes_per_s = 1e9 }, { latency_s = 1e-5, bandwidth_bytes_per_s = 1e8 }]";
    let with = "with  = { baselines = false }\n";
    let bound = format!(
        "with  = {{ baselines = false, {levels} }}\n\n[stages.bound]\nuses  = \"predict/bound\"\n\
         needs = {{ program = \"program\", system = \"${{params.machine}}\" }}\nwith  = {{ {levels} }}\n"
    );
    sandbox.edit("p.toml", with, &bound);
    let seen = sandbox.stdout(&["run", "p.toml", "-p", "machine=stored", "--report", "report.html"]);
    let lines =
        seen.lines().filter(|line| line.starts_with("  prediction  ") || line.starts_with("  bound  "));
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
      prediction   predicted 0.001020 s, without contention
      bound        placement can save at most 0.0 % of the 1.02 ms run, without contention
    ");
    for part in ["prediction (without contention)", "bound (without contention)"] {
        assert!(sandbox.read("report.html").contains(part), "the report lacks: {part}");
    }
    // They say nothing about links.
    assert_snapshot!(run(&sandbox, &["machine=rates"]), @"
    ------- stderr -------
    error[predict::levels_with_links]: stage `prediction` (p.toml:32)
      `-> `levels` is for machines whose links have no rates, but messages of this one take its links
      help: remove `levels`; the rates of the links apply
    error[predict::levels_with_links]: stage `bound` (p.toml:37)
      `-> `levels` is for machines whose links have no rates, but messages of this one take its links
      help: remove `levels`; the rates of the links apply
    [exit code 1]
    ");
}

#[test]
fn a_mapping_of_another_program_is_a_warning() {
    let sandbox = programs();
    sandbox.write("two.csv", "source,destination,messages,bytes\n0,1,1,10\n");
    let warning = |mapped: &str| {
        let seen = sandbox.stdout(&["run", "p.toml", "--no-report", "-p", mapped]);
        seen.lines().filter(|line| line.contains("warning")).map(str::to_owned).collect::<String>()
    };
    assert_eq!(warning("mapped=program/index"), "");
    assert_snapshot!(warning("mapped=two.csv"), @"  warning: program and messages, inputs of prediction, are read from different files: check that they are the same program");
}

#[test]
fn worth_needs_a_bound() {
    let sandbox = programs();
    assert_snapshot!(sandbox.seen(&["run", "p.toml", "--worth", "2%"]), @"
    ------- stderr -------
    error[command::mistake]: `p` has no bound that `--worth` could judge by
      help: add a stage predict/bound, and connect it to `bound` of the mapper
    [exit code 2]
    ");
}

/// A network with a mapping, but without tables.
const NETWORK: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }]
switches  = [{ name = "s", type = 1 }]
links     = [{ a = "s", b = "h1", bandwidth = 1, a_port = 1, b_port = 1 }, { a = "s", b = "h2", bandwidth = 1, a_port = 2, b_port = 1 }]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2" }
"#;

#[test]
fn an_optional_input_takes_nothing_from_a_source_without_that_output() {
    let sandbox = Sandbox::new();
    sandbox.write("network.toml", NETWORK);
    let needs = "{ task-graph = \"network\", system = \"network\", mapping = \"network.mapping\", tables = \"network.tables\" }";
    let stages = format!(
        "name = \"n\"\n[stages.network]\nuses = \"route/import\"\nwith = {{ path = \"network.toml\" }}\n\
         [stages.failures]\nuses = \"route/failures\"\nneeds = {needs}\n"
    );
    sandbox.write("n.toml", stages);
    let seen = sandbox.stdout(&["run", "n.toml", "--no-report"]);
    assert!(seen.contains("n: 2 ran"), "{seen}");
    // One that has to be there is missed by name.
    sandbox.edit("network.toml", "mapping   = { P1 = \"h1\", P2 = \"h2\" }", "");
    assert_snapshot!(sandbox.seen(&["run", "n.toml", "--no-report", "--quiet"]), @"
    ------- stderr -------
    error[engine::empty_output]: stage `failures` (n.toml:5)
      `-> `network` has nothing at its output `mapping`
    [exit code 1]
    ");
}
