//! When tasks run: from traces and from the files of PARUS and others.

use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Two branches that join, with weights.
const DIAMOND: &str = "digraph diamond { a [Weight=2]; b [Weight=3]; c [Weight=3]; d [Weight=2];
a -> b [Weight=1]; a -> c [Weight=1]; b -> d [Weight=4]; c -> d [Weight=1]; }\n";

fn sample(name: &str) -> String {
    project().join("sample-schedules/cholesky-5").join(name).display().to_string()
}

fn metric(sandbox: &Sandbox, artifact: &str, name: &str) -> f64 {
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", artifact, "--json"])).unwrap();
    shown["artifact"]["metrics"][name].as_f64().unwrap()
}

#[test]
fn a_traced_program_is_scheduled() {
    let sandbox = Sandbox::new();
    let pipeline = project().join("pipelines/schedule.toml");
    let out = format!("out={}", sandbox.path().join("out").display());
    let report = sandbox.path().join("report.html");
    let run = [
        "run",
        pipeline.to_str().unwrap(),
        "--store",
        "store",
        "-p",
        &out,
        "--report",
        report.to_str().unwrap(),
    ];
    let ran: Value = serde_json::from_str(&sandbox.stdout(&[&run[..], &["--json"]].concat())).unwrap();
    let makespan = |stage: &str| {
        let cell = ran["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == stage).unwrap();
        cell["outputs"]["schedule"]["metrics"]["makespan"].as_f64().unwrap()
    };
    assert!(makespan("schedule") <= makespan("schedule-rank-order"));
    assert!(makespan("schedule").total_cmp(&makespan("checked")).is_eq());
    // Every node of the schedule leads back to its rank and segment.
    let sch = sandbox.read("out/schedule.sch");
    assert!(sch.starts_with("<SCHEDULE_BEGIN>\n\n num_processors 16\n"), "{}", &sch[..200]);
    assert!(sch.contains(": rank 15, segment 3"), "{}", &sch[..2000]);
    let timeline: Value = serde_json::from_str(&sandbox.read("out/schedule.json")).unwrap();
    assert!(timeline["traceEvents"].as_array().unwrap().iter().any(|event| event["ph"] == "s"));
    assert!(sandbox.read("out/schedule.html").contains("<svg"));
    assert_eq!(sandbox.read("out/rankfile").lines().filter(|line| line.starts_with("rank ")).count(), 16);
    let again = sandbox.stdout(&run);
    let line = again.lines().find(|line| line.starts_with("  schedule ")).unwrap();
    let parts = [" makespan 0.0", ", predicted 0.0", ", recorded 0.3"];
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    let shown = sandbox.stdout(&["show", "checked", "--store", "store"]);
    for part in ["makespan 16.", "waiting and contention", "beyond the prediction"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The sum of doubles that PARUS would print has no rounding noise, and no trace comes from PARUS.
    assert!(!shown.contains("00000000"), "{shown}");
    assert!(!again.contains("PARUS would report"), "{again}");
    assert!(sandbox.read("report.html").contains("recorded (s)"));
}

#[test]
fn files_of_parus_become_a_schedule() {
    let sandbox = Sandbox::new();
    let pipeline = project().join("pipelines/graph2sch.toml");
    let [schedule, gantt] =
        ["schedule.sch", "schedule.html"].map(|name| sandbox.path().join(name).display().to_string());
    let run = ["run", pipeline.to_str().unwrap(), "--store", "store", "--no-report"];
    let outs = ["-p", &format!("schedule={schedule}"), "-p", &format!("gantt={gantt}")];
    let ran: Value =
        serde_json::from_str(&sandbox.stdout(&[&run[..], &outs[..], &["--json"]].concat())).unwrap();
    let of = |ran: &Value, stage: &str, metric: &str| {
        let cell = ran["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == stage).unwrap();
        cell["outputs"]["schedule"]["metrics"][metric].as_f64().unwrap()
    };
    assert!(of(&ran, "auto", "makespan") < of(&ran, "genetic", "makespan"));
    assert!(of(&ran, "checked", "parus_accepts") > 0.0);
    // Without a file the parameters of PARUS's algorithm are its own; they matter for the schedule that is written.
    let written = || sandbox.read("schedule.sch");
    let of_genetic = written();
    sandbox.write("sch.ini", "creatures:max = 4 ;\nstop:max_cycles = 1 ;\n");
    let ini = sandbox.path().join("sch.ini").display().to_string();
    let said = sandbox.stdout(&[&run[..], &outs[..], &["-p", &format!("ini={ini}")]].concat());
    assert_ne!(written(), of_genetic);
    for stage in ["auto", "genetic"] {
        let start = format!("  {stage:<12} makespan 0.1");
        assert!(said.lines().any(|line| line.starts_with(&start)), "{said}");
    }
    let auto = sandbox.stdout(&[&run[..], &outs[..], &["-p", "method=auto", "--json"]].concat());
    let auto: Value = serde_json::from_str(&auto).unwrap();
    assert_ne!(written(), of_genetic);
    assert!(of(&auto, "checked", "parus_accepts") > 0.0);
    // What was written is read again, and takes as long.
    sandbox.stdout(&[
        "exec",
        "schedule/import",
        "-p",
        &format!("path={}", sample("graph.grf")),
        "--out",
        "graph",
    ]);
    let [procs, network] = [("procs", "procs.vct"), ("network", "network.average")]
        .map(|(key, name)| format!("{key}={}", sample(name)));
    let machine = ["-p", &procs, "-p", &network, "-p", "coordinator=true", "-p", "model=receive"];
    let file = format!("path={schedule}");
    let check = ["exec", "schedule/check", "--in", "task-dag=graph", "-p", &file, "--out", "checked"];
    sandbox.stdout(&[&check[..], &machine[..]].concat());
    // Read from the file times are added up along paths, and not in ticks.
    assert!((metric(&sandbox, "checked", "makespan") / of(&auto, "checked", "makespan") - 1.0).abs() < 1e-9);
}

#[test]
fn graphs_of_other_tools_are_scheduled() {
    let sandbox = Sandbox::new();
    sandbox.write("diamond.dot", DIAMOND);
    insta::assert_snapshot!(sandbox.seen(&["exec", "schedule/import", "-p", "path=diamond.dot", "--out", "graph"]), @r"
    task-dag DIGEST graph
    ------- stderr -------
    DOT, work is `Weight` of nodes, messages are `Weight` of edges: 4 tasks, 4 dependencies
    ");
    let exec = |kind: &str, out: &str| {
        sandbox.seen(&["exec", kind, "--in", "task-dag=graph", "-p", "processors=2", "--out", out])
    };
    insta::assert_snapshot!(exec("schedule/auto", "auto"), @r"
    schedule DIGEST auto
    ------- stderr -------
    makespan 8, proven optimal
    ");
    insta::assert_snapshot!(exec("schedule/exact", "exact"), @r"
    schedule DIGEST exact
    ------- stderr -------
    makespan 8, proven optimal
    ");
    insta::assert_snapshot!(exec("schedule/list", "list"), @r"
    schedule DIGEST list
    ------- stderr -------
    the best of 16 heuristics is heft
    makespan 9, at most N.NN % above the optimum (lower bound 8)
    ");
    insta::assert_snapshot!(sandbox.stdout(&["show", "exact", "--table", "tasks", "--format", "csv"]), @r"
    task,processor,turn,start,finish,waits_for,name
    0,0,0,0.0,2.0,,a
    1,1,0,3.0,6.0,0,b
    2,0,1,2.0,5.0,0,c
    3,1,1,6.0,8.0,1,d
    ");
    let export = |format: &str, out: &str| {
        let format = format!("format={format}");
        let ends = ["--in", "task-dag=graph", "--in", "schedule=exact"];
        sandbox.stdout(&[&["exec", "schedule/export"][..], &ends, &["-p", &format, "--out", out]].concat());
    };
    export("sch", "sch");
    insta::assert_snapshot!(sandbox.read("sch/files/schedule.sch"), @r"
    <SCHEDULE_BEGIN>

     num_processors 2

    <PROCESSOR_BEGIN>
     name 1
     num_nodes 2
     nodes ( 0 2 )
    <PROCESSOR_END>

    <PROCESSOR_BEGIN>
     name 2
     num_nodes 2
     nodes ( 1 3 )
    <PROCESSOR_END>

    <SCHEDULE_END>
    ");
    for (format, name) in [
        ("perfetto", "schedule.json"),
        ("svg", "schedule.svg"),
        ("paje", "schedule.trace"),
        ("wfformat", "workflow.json"),
    ] {
        export(format, format);
        assert!(!sandbox.read(&format!("{format}/files/{name}")).is_empty());
    }
    // What is exported as a workflow is imported again as the same graph.
    let imported = ["exec", "schedule/import", "-p", "path=wfformat/files/workflow.json", "--out", "again"];
    sandbox.stdout(&imported);
    let work = |artifact: &str| metric(&sandbox, artifact, "work");
    assert!(work("again").total_cmp(&work("graph")).is_eq());
}

#[test]
fn bad_graphs_schedules_and_machines_are_refused_in_words() {
    let sandbox = Sandbox::new();
    sandbox.write("diamond.dot", DIAMOND);
    sandbox.stdout(&["exec", "schedule/import", "-p", "path=diamond.dot", "--out", "graph"]);
    let import = |text: &str| {
        sandbox.write("bad", text);
        sandbox.seen(&["exec", "schedule/import", "-p", "path=bad", "--out", "bad-graph"])
    };
    insta::assert_snapshot!(import(&DIAMOND.replace("a -> b", "d -> a [Weight=1]; a -> b")), @r"
    ------- stderr -------
    error[text::file]: DIR/bad: task `d` is part of a dependency cycle
      help: dependencies between tasks must be acyclic
    [exit code 1]
    ");
    insta::assert_snapshot!(import(&DIAMOND.replace("[Weight=3]", "[Weight=-3]")), @r"
    ------- stderr -------
    error[text::file]: DIR/bad:1: `Weight` of node `b` is `-3`, which is negative
      help: weights must be numbers from 0 to 2^53
    [exit code 1]
    ");
    insta::assert_snapshot!(import(""), @r"
    ------- stderr -------
    error[schedule::invalid_input]: `DIR/bad` is not a task graph in a supported format: it is empty
      help: a graph of PARUS starts with `<GRAPH_BEGIN>`, DOT with `digraph`, a file of the STG set with a number, and WfFormat is JSON
    [exit code 1]
    ");
    insta::assert_snapshot!(import("nothing of the kind"), @r"
    ------- stderr -------
    error[schedule::invalid_input]: `DIR/bad` is not a task graph in a supported format
      help: a graph of PARUS starts with `<GRAPH_BEGIN>`, DOT with `digraph`, a file of the STG set with a number, and WfFormat is JSON
    [exit code 1]
    ");
    let schedule = |with: &[&str]| {
        let exec = ["exec", "schedule/auto", "--in", "task-dag=graph", "--out", "bad-schedule"];
        sandbox.seen(&[&exec[..], with].concat())
    };
    insta::assert_snapshot!(schedule(&[]), @r"
    ------- stderr -------
    error[schedule::invalid_input]: the number of processors is not specified
      help: set `processors = 4`, connect a `system`, or set `procs` and `network` to files of PARUS
    [exit code 1]
    ");
    insta::assert_snapshot!(schedule(&["-p", "processors=0"]), @r"
    ------- stderr -------
    error[model::out_of_range]: `processors` = 0 is out of range
      help: allowed: 1 to 65536
    [exit code 1]
    ");
    insta::assert_snapshot!(schedule(&["-p", "processors=2", "-p", "speeds=[1, 0]"]), @r"
    ------- stderr -------
    error[model::out_of_range]: `speeds` = 0 is out of range
      help: allowed: speeds and bandwidth above 0; latency and times 0 or more
    [exit code 1]
    ");
    let network = std::fs::read_to_string(sample("network.average")).unwrap();
    let cut = &network[..network.rfind("Message length").unwrap()];
    sandbox.write("network.average", cut);
    insta::assert_snapshot!(schedule(&["-p", "network=network.average"]), @r"
    ------- stderr -------
    error[schedule::invalid_input]: `DIR/network.average` has times for 7 message lengths, but its header announces 8
      help: the network test was interrupted: repeat it, or correct `end message length` in the header
    [exit code 1]
    ");
    let check = |text: &str| {
        sandbox.write("s.sch", text);
        let exec = ["exec", "schedule/check", "--in", "task-dag=graph", "-p", "processors=2"];
        sandbox.seen(&[&exec[..], &["-p", "path=s.sch", "--out", "bad-check"]].concat())
    };
    let sch = |nodes: &str| {
        format!(
            "<SCHEDULE_BEGIN>\n num_processors 1\n<PROCESSOR_BEGIN>\n name 1\n num_nodes 4\n nodes ( {nodes} )\n<PROCESSOR_END>\n<SCHEDULE_END>\n"
        )
    };
    insta::assert_snapshot!(check(&sch("3 2 1 0")), @r"
    ------- stderr -------
    error[schedule::invalid_input]: the order is infeasible: tasks `b`, `d`, `c` form a cycle in which each waits for the previous one
      help: a task precedes one of its direct or indirect predecessors on a processor: the schedule belongs to another graph, or was modified
    [exit code 1]
    ");
    insta::assert_snapshot!(check(&sch("0 1 2 7")), @r"
    ------- stderr -------
    error[schedule::invalid_input]: node 7 of the schedule is not a task of the program
      help: the `.sch` file belongs to another graph: import its `.grf` file
    [exit code 1]
    ");
    insta::assert_snapshot!(check("<SCHEDULE_BEGIN>"), @r"
    ------- stderr -------
    error[text::file]: DIR/s.sch:1: the file ends here
      help: the file must be an output of `graph2sch` of PARUS
    [exit code 1]
    ");
}

/// A graph that is not solved at once, on machines of three kinds.
#[test]
fn schedules_are_the_same_with_any_number_of_threads() {
    let sandbox = Sandbox::new();
    let tasks =
        (0..40).map(|task| format!("t{task} [Weight={}];", 1 + task * 7 % 11)).collect::<Vec<_>>().join("\n");
    let edge = |to: usize| {
        format!("t{} -> t{to} [Weight={}]; t{} -> t{to} [Weight=3];", to / 2, 1 + to * 5 % 13, to * 2 / 3)
    };
    let edges = (2..40).map(edge).collect::<Vec<_>>().join("\n");
    sandbox.write("graph.dot", format!("digraph g {{ {tasks} {edges} }}"));
    sandbox.stdout(&["exec", "schedule/import", "-p", "path=graph.dot", "--out", "graph"]);
    for stage in ["auto", "genetic"] {
        for machine in ["processors=3", "speeds=[1.0, 0.5, 2.0]"] {
            let digest = |jobs: &str| {
                let kind = format!("schedule/{stage}");
                let exec = ["exec", &kind, "--in", "task-dag=graph", "-j", jobs, "--out", "out", "--json"];
                let with = ["-p", "processors=3", "-p", machine, "-p", "evaluations=20000"];
                let text = sandbox
                    .stdout(&[&exec[..], &with[if machine.starts_with('p') { 2 } else { 0 }..]].concat());
                let shown: Value = serde_json::from_str(&text).unwrap();
                shown.to_string()
            };
            assert_eq!(digest("1"), digest("2"), "{stage} {machine}");
        }
    }
}
