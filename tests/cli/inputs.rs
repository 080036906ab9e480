//! Input files: paths that are not files are refused at once, and a result is kept only if its inputs did not change.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{Sandbox, ring};

/// A cell that waits for the file `go` runs before the one that reads `m.csv`.
const PIPELINE: &str = r#"
[stages.graph]
uses = "instance/stencil"
with = { shape = "2x2" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2", costs = [1, 10] }

[stages.held]
uses  = "map/external"
with  = { command = "touch DIR/begun; while [ ! -e DIR/go ]; do sleep 0.02; done; printf '1\n2\n3\n4\n'" }
needs = { task-graph = "graph", system = "machine" }

[stages.program]
uses = "trace/import"
with = { path = "m.csv", format = "csv" }
"#;

/// A run that must end soon, whatever its inputs are.
fn ends_soon(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("it waits for ever");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

fn wait_for(path: &Path, child: &mut Child) {
    let end = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(
            child.try_wait().unwrap().is_none() && Instant::now() < end,
            "{} never comes",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// A cell in the output of a run with `--json`.
fn cell(output: &Output, name: &str) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == name).unwrap().clone()
}

fn matrix(bytes: u64) -> String {
    format!("source,destination,messages,bytes\n0,1,1,{bytes}\n")
}

#[test]
fn an_input_that_changes_while_its_cell_waits_is_not_cached() {
    let sandbox = Sandbox::new();
    let here = sandbox.path();
    sandbox.write("p.toml", PIPELINE.replace("DIR", here.to_str().unwrap()));
    sandbox.write("m.csv", matrix(100));
    let run = || sandbox.command(&["run", "p.toml", "-j1", "--no-report", "--json"]);
    let mut child = run().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&here.join("begun"), &mut child);
    sandbox.write("m.csv", matrix(999));
    sandbox.write("go", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(cell(&output, "held")["state"], "ran");
    assert_eq!(cell(&output, "program")["state"], "failed");
    let said = text(output.stderr);
    assert!(said.contains("m.csv` changed while it was read"), "{said}");
    assert!(said.contains("run again"), "{said}");
    // The old file is put back: nothing wrong is in the cache.
    sandbox.write("m.csv", matrix(100));
    let output = run().output().unwrap();
    assert_eq!(cell(&output, "program")["state"], "ran");
    sandbox.stdout(&["exec", "trace/import", "-p", "path=m.csv", "-p", "format=csv", "--out", "alone"]);
    let shown =
        |name: &str| -> Value { serde_json::from_str(&sandbox.stdout(&["show", name, "--json"])).unwrap() };
    assert_eq!(shown("alone")["digest"], shown("program")["digest"]);
}

#[test]
fn a_process_elsewhere_looks_at_its_inputs_before_and_after() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "[stages.program]\nuses = \"trace/import\"\nwith = { path = \"m.csv\", format = \"csv\" }\nlauncher = \"sh launcher\"\n",
    );
    let run = |script: &str| {
        sandbox.write("m.csv", matrix(100));
        sandbox.write("launcher", script);
        let output = sandbox.output(&["run", "p.toml", "--no-report"]);
        (output.status.code(), text(output.stderr))
    };
    // Before it reads: the process reports it itself.
    let (code, said) = run("echo 1,0,1,5 >> m.csv; exec \"$@\"\n");
    assert_eq!(code, Some(1));
    assert!(said.contains("rank 0 of `sh launcher") && said.contains("m.csv` changed while it"), "{said}");
    // When it has ended: whoever takes the result over looks as well.
    let (code, said) = run("\"$@\"; status=$?; echo 1,0,1,5 >> m.csv; exit $status\n");
    assert_eq!(code, Some(1));
    assert!(!said.contains("rank 0") && said.contains("m.csv` changed while it was read"), "{said}");
    let (code, said) = run("exec \"$@\"\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(sandbox.stdout(&["run", "p.toml"]).contains("nothing to do"));
}

#[test]
fn two_equal_files_of_hwloc_are_two_hosts() {
    const HOST: &str = "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Core\"><object type=\"PU\" \
                        os_index=\"0\" cpuset=\"0x1\"/></object></object></topology>\n";
    let sandbox = Sandbox::new();
    sandbox.write("node1.xml", HOST);
    sandbox.write("node2.xml", HOST);
    sandbox.write(
        "p.toml",
        "[stages.machine]\nuses = \"topology/hwloc\"\nwith = { path = \"${matrix.file}\" }\n\
         matrix = { file = [\"node1.xml\", \"node2.xml\"] }\n",
    );
    sandbox.stdout(&["run", "p.toml", "--no-report"]);
    for host in ["node1", "node2"] {
        let cell = format!("machine[file={host}.xml]");
        let nodes = sandbox.stdout(&["show", &cell, "--table", "nodes"]);
        assert!(nodes.contains(host), "{nodes}");
    }
}

#[test]
fn inputs_that_are_not_files_are_refused_at_once() {
    let sandbox = Sandbox::new();
    let mkfifo = |name: &str| Command::new("mkfifo").arg(sandbox.path().join(name)).status().unwrap();
    assert!(mkfifo("pipe.csv").success() && mkfifo("pipe.otf2").success());
    sandbox.write("ring.csv", ring(4));
    let p = |kind: &str, parameter: &str, file: &str| {
        format!("[stages.program]\nuses = \"{kind}\"\nwith = {{ {parameter} = \"{file}\" }}\n")
    };
    for (kind, parameter, file, reason) in [
        ("trace/import", "path", "pipe.csv", "it is a named pipe, not a file"),
        ("trace/import", "path", "/dev/zero", "it is a device, not a file"),
        ("trace/otf2", "path", "pipe.otf2", "missing"),
        ("topology/import", "path", "pipe.csv", "it is a named pipe, not a file"),
        ("schedule/import", "path", "/dev/zero", "it is a device, not a file"),
    ] {
        sandbox.write("p.toml", p(kind, parameter, file));
        let output = ends_soon(sandbox.command(&["run", "p.toml", "--no-report"]));
        let said = text(output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind}: {said}");
        assert!(said.contains(reason), "{kind}: {said}");
        let with = format!("{parameter}={file}");
        let output = ends_soon(sandbox.command(&["exec", kind, "-p", &with, "--out", "a"]));
        let said = text(output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind}: {said}");
        assert!(!said.contains("panicked"), "{kind}: {said}");
    }
    // A pipeline file too.
    let output = ends_soon(sandbox.command(&["check", "pipe.csv"]));
    assert_eq!(output.status.code(), Some(2));
    sandbox.write(
        "p.toml",
        "[stages.program]\nuses = \"trace/import\"\nwith = { path = \"pipe.csv\", format = \"csv\" }\n",
    );
    insta::assert_snapshot!(sandbox.seen(&["run", "p.toml", "--no-report", "--quiet"]), @r"
    ------- stderr -------
    error[engine::unreadable]: stage `program` (p.toml:3)
      |-> cannot read DIR/pipe.csv
      `-> it is a named pipe, not a file
      help: redirect its output to a file and give the path of that file
    [exit code 1]
    ");
}
