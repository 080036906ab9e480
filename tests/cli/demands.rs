//! What a traced program asks of a machine, and the pipeline that routes it.

use crate::sandbox::{Sandbox, project};

/// A program whose ranks are traced, as `program`.
fn program(sandbox: &Sandbox) {
    let trace = project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let archive = format!("path={}", trace.display());
    let messages = ["-p", "collectives=ignore", "--out", "program"];
    sandbox.stdout(&[&["exec", "trace/otf2", "-p", &archive], &messages[..]].concat());
}

#[test]
fn a_trace_and_a_fabric_become_streams_and_tables() {
    let sandbox = Sandbox::new();
    program(&sandbox);
    let path = format!("path={}", project().join("sample-topologies/fabric-40/ib-raw").display());
    sandbox.stdout(&["exec", "topology/import", "-p", &path, "--out", "fabric"]);
    let asked = sandbox.seen(&[
        "exec",
        "route/demands",
        "--in",
        "task-graph=program",
        "--in",
        "system=fabric",
        "-p",
        "top_flows=40",
        "--out",
        "asked",
    ]);
    insta::assert_snapshot!(asked, @r"
    task-graph DIGEST asked/task-graph
    system-graph DIGEST asked/system
    tables DIGEST asked/tables
    ------- stderr -------
    40 streams need 46.1053 MB/s in total
    4 streams omitted; they need 573.182 kB/s
    ");
    // The tables that the fabric has bring every stream where it belongs.
    let inputs = ["--in", "task-graph=asked/task-graph", "--in", "system=asked/system"];
    sandbox.stdout(&[&["exec", "map/linear"][..], &inputs, &["--out", "mapping"]].concat());
    let checked =
        [&["exec", "route/check"][..], &inputs, &["--in", "mapping=mapping", "--in", "tables=asked/tables"]];
    insta::assert_snapshot!(sandbox.seen(&[&checked.concat()[..], &["--out", "checked"]].concat()), @r"
    routes DIGEST checked
    ------- stderr -------
    192 entries are not used by any stream
    ");
}

#[test]
fn what_a_trace_does_not_say_is_asked_for() {
    let sandbox = Sandbox::new();
    program(&sandbox);
    sandbox.stdout(&[
        "exec",
        "topology/synthetic",
        "-p",
        "shape=mesh:2x4",
        "-p",
        "cores=[2]",
        "--out",
        "mesh",
    ]);
    let refused = |with: &[&str]| {
        let with: Vec<&str> = with.iter().flat_map(|with| ["-p", with]).collect();
        let exec =
            ["exec", "route/demands", "--in", "task-graph=program", "--in", "system=mesh", "--out", "asked"];
        sandbox.seen(&[&exec[..], &with].concat())
    };
    insta::assert_snapshot!(refused(&["phase=solve"]), @r"
    ------- stderr -------
    error[route::invalid]: the program has no phase `solve`
      help: detect phases when the trace is read: `phases` of trace/otf2
    [exit code 1]
    ");
    insta::assert_snapshot!(refused(&["peak_phase=true"]), @r"
    ------- stderr -------
    error[route::invalid]: `peak_phase` needs phases of known length, and the program has none
      help: detect phases when the trace is read: `phases = { seconds = 0.1 }` of trace/otf2
    [exit code 1]
    ");
    insta::assert_snapshot!(refused(&["duration_s=0"]), @r"
    ------- stderr -------
    error[pipeline::invalid]: `duration_s` = 0 is out of range
       ,-[-p:1:14]
     1 | duration_s = 0
       :              |
       :              `-- here
       `----
      help: allowed: above 0
    [exit code 2]
    ");
    insta::assert_snapshot!(refused(&["switch_type=3"]), @r"
    ------- stderr -------
    error[pipeline::invalid]: `switch_type` = 3 is out of range
       ,-[-p:1:15]
     1 | switch_type = 3
       :               |
       :               `-- here
       `----
      help: allowed: 1 (one table for all ports) or 2 (one table per port)
    [exit code 2]
    ");
}

#[test]
fn the_pipeline_routes_a_trace() {
    let sandbox = Sandbox::new();
    let pipeline = std::fs::read_to_string(project().join("pipelines/route.toml")).unwrap();
    sandbox.write("route.toml", pipeline);
    let trace =
        format!("trace={}", project().join("sample-traces/rows-columns-16/eztrace_log.otf2").display());
    sandbox.stdout(&["run", "route.toml", "-p", &trace]);
    assert!(sandbox.read("out/tables.conf").contains("ROUTING_TABLE"));
    assert!(sandbox.read("out/routes.html").contains("<svg"));
    // Any program fits on links whose bandwidth nobody gave.
    let trace =
        format!("trace={}", project().join("sample-traces/lammps-melt-16/eztrace_log.otf2").display());
    let log = sandbox.seen(&["run", "route.toml", "-p", &trace]);
    assert!(log.contains("links without a bandwidth get") && !log.contains("infeasible"), "{log}");
}
