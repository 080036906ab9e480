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
    assert!(makespan("schedule") <= makespan("rank-order"));
    assert_eq!(makespan("schedule"), makespan("checked"));
    // Every node of the schedule leads back to its rank and segment.
    let sch = sandbox.read("out/schedule.sch");
    assert!(sch.starts_with("<SCHEDULE_BEGIN>\n\n num_processors 16\n"), "{}", &sch[..200]);
    assert!(sch.contains(": rank 15, segment 3"), "{}", &sch[..2000]);
    let timeline: Value = serde_json::from_str(&sandbox.read("out/schedule.json")).unwrap();
    assert!(timeline["traceEvents"].as_array().unwrap().iter().any(|event| event["ph"] == "s"));
    assert!(sandbox.read("out/schedule.html").contains("<svg"));
    assert_eq!(sandbox.read("out/rankfile").lines().filter(|line| line.starts_with("rank ")).count(), 16);
    assert!(sandbox.read("report.html").contains("makespan"));
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
    let makespan = |stage: &str| {
        let cell = ran["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == stage).unwrap();
        cell["outputs"]["schedule"]["metrics"]["makespan"].as_f64().unwrap()
    };
    assert!(makespan("best") <= makespan("genetic"));
    // What was written is read again, and takes as long.
    sandbox.stdout(&[
        "exec",
        "schedule/import",
        "--with",
        &format!("file={}", sample("graph.grf")),
        "--out",
        "graph",
    ]);
    let [procs, network] = [("procs", "procs.vct"), ("network", "network.average")]
        .map(|(key, name)| format!("{key}={}", sample(name)));
    let machine =
        ["--with", &procs, "--with", &network, "--with", "coordinator=true", "--with", "model=receive"];
    let file = format!("file={schedule}");
    let check = ["exec", "schedule/check", "--in", "task-dag=graph", "--with", &file, "--out", "checked"];
    sandbox.stdout(&[&check[..], &machine[..]].concat());
    assert_eq!(metric(&sandbox, "checked", "makespan"), makespan("best"));
}

#[test]
fn graphs_of_other_tools_are_scheduled() {
    let sandbox = Sandbox::new();
    sandbox.write("diamond.dot", DIAMOND);
    insta::assert_snapshot!(sandbox.seen(&["exec", "schedule/import", "--with", "file=diamond.dot", "--out", "graph"]), @"");
    let exec = |kind: &str, out: &str| {
        sandbox.seen(&["exec", kind, "--in", "task-dag=graph", "--with", "processors=2", "--out", out])
    };
    insta::assert_snapshot!(exec("schedule/auto", "auto"), @"");
    insta::assert_snapshot!(exec("schedule/exact", "exact"), @"");
    insta::assert_snapshot!(exec("schedule/list", "list"), @"");
    insta::assert_snapshot!(sandbox.stdout(&["show", "exact", "--table", "tasks", "--format", "csv"]), @"");
    let export = |format: &str, out: &str| {
        let format = format!("format={format}");
        let ends = ["--in", "task-dag=graph", "--in", "schedule=exact"];
        sandbox
            .stdout(&[&["exec", "schedule/export"][..], &ends, &["--with", &format, "--out", out]].concat());
    };
    export("sch", "sch");
    insta::assert_snapshot!(sandbox.read("sch/files/schedule.sch"), @"");
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
    let imported =
        ["exec", "schedule/import", "--with", "file=wfformat/files/workflow.json", "--out", "again"];
    sandbox.stdout(&imported);
    assert_eq!(metric(&sandbox, "again", "work"), metric(&sandbox, "graph", "work"));
}

#[test]
fn bad_graphs_schedules_and_machines_are_refused_in_words() {
    let sandbox = Sandbox::new();
    sandbox.write("diamond.dot", DIAMOND);
    sandbox.stdout(&["exec", "schedule/import", "--with", "file=diamond.dot", "--out", "graph"]);
    let import = |text: &str| {
        sandbox.write("bad", text);
        sandbox.seen(&["exec", "schedule/import", "--with", "file=bad", "--out", "bad-graph"])
    };
    insta::assert_snapshot!(import(&DIAMOND.replace("a -> b", "d -> a [Weight=1]; a -> b")), @"");
    insta::assert_snapshot!(import(&DIAMOND.replace("[Weight=3]", "[Weight=-3]")), @"");
    insta::assert_snapshot!(import(""), @"");
    insta::assert_snapshot!(import("nothing of the kind"), @"");
    let schedule = |with: &[&str]| {
        let exec = ["exec", "schedule/auto", "--in", "task-dag=graph", "--out", "bad-schedule"];
        sandbox.seen(&[&exec[..], with].concat())
    };
    insta::assert_snapshot!(schedule(&[]), @"");
    insta::assert_snapshot!(schedule(&["--with", "processors=0"]), @"");
    insta::assert_snapshot!(schedule(&["--with", "processors=2", "--with", "speeds=[1, 0]"]), @"");
    let network = std::fs::read_to_string(sample("network.average")).unwrap();
    let cut = &network[..network.rfind("Message length").unwrap()];
    sandbox.write("network.average", cut);
    insta::assert_snapshot!(schedule(&["--with", "network=network.average"]), @"");
    let check = |text: &str| {
        sandbox.write("s.sch", text);
        let exec = ["exec", "schedule/check", "--in", "task-dag=graph", "--with", "processors=2"];
        sandbox.seen(&[&exec[..], &["--with", "file=s.sch", "--out", "bad-check"]].concat())
    };
    let sch = |nodes: &str| {
        format!(
            "<SCHEDULE_BEGIN>\n num_processors 1\n<PROCESSOR_BEGIN>\n name 1\n num_nodes 4\n nodes ( {nodes} )\n<PROCESSOR_END>\n<SCHEDULE_END>\n"
        )
    };
    insta::assert_snapshot!(check(&sch("4 3 2 1")), @"");
    insta::assert_snapshot!(check(&sch("1 2 3 7")), @"");
    insta::assert_snapshot!(check("<SCHEDULE_BEGIN>"), @"");
}

/// A graph that is not solved at once, on machines of three kinds.
#[test]
fn schedules_are_the_same_with_any_number_of_threads() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..40).map(|task| format!("t{task} [Weight={}];", 1 + task * 7 % 11)).collect();
    let edge = |to: usize| {
        format!("t{} -> t{to} [Weight={}]; t{} -> t{to} [Weight=3];", to / 2, 1 + to * 5 % 13, to * 2 / 3)
    };
    let edges: String = (2..40).map(edge).collect();
    sandbox.write("graph.dot", format!("digraph g {{ {tasks} {edges} }}"));
    sandbox.stdout(&["exec", "schedule/import", "--with", "file=graph.dot", "--out", "graph"]);
    for stage in ["auto", "genetic"] {
        for machine in ["processors=3", "speeds=[1.0, 0.5, 2.0]"] {
            let digest = |jobs: &str| {
                let kind = format!("schedule/{stage}");
                let exec = ["exec", &kind, "--in", "task-dag=graph", "-j", jobs, "--out", "out", "--json"];
                let with = ["--with", "processors=3", "--with", machine, "--with", "evaluations=20000"];
                let text = sandbox
                    .stdout(&[&exec[..], &with[if machine.starts_with('p') { 2 } else { 0 }..]].concat());
                let shown: Value = serde_json::from_str(&text).unwrap();
                shown.to_string()
            };
            assert_eq!(digest("1"), digest("2"), "{stage} {machine}");
        }
    }
}
