//! Files with extreme numbers: whatever a file counts, hopmap says what is wrong or what follows, in a gibibyte.

use std::process::Command;

use hopmap_test_support::{soak, with_extreme_numbers};

use crate::sandbox::{Sandbox, project};

/// Files, and a command that reads them and gives numbers.
struct Case {
    name: &'static str,
    files: Vec<(&'static str, String)>,
    command: &'static [&'static str],
}

const PREDICTED: &str = r#"
[stages.program]
uses = "trace/program"
with = { path = "index" }
[stages.machine]
uses = "topology/import"
with = { path = "machine.json" }
[stages.bound]
uses = "predict/bound"
needs = { program = "program", system = "machine" }
[stages.graph]
uses = "trace/import"
with = { path = "index" }
[stages.placement]
uses = "map/linear"
needs = { task-graph = "graph", system = "machine" }
[stages.time]
uses = "predict/time"
needs = { program = "program", system = "machine", mapping = "placement" }
[stages.quality]
uses = "evaluate/mapping"
needs = { task-graph = "graph", system = "machine", mapping = "placement" }
"#;
const LINKS: &str = r#"{"directed":false,"nodes":[{"name":"a","kind":"host","slots":1},{"name":"s","kind":"switch"},{"name":"b","kind":"host","slots":1}],
"links":[{"source":"a","destination":"s","latency_s":1e-6,"bandwidth_bytes_per_s":1000000000},{"source":"s","destination":"b","latency_s":1e-6,"bandwidth_bytes_per_s":1000000000}]}"#;
const RANKS: [&str; 2] = [
    "0 init\n0 compute 2000000000\n0 send 1 100 5000\n0 allreduce 8 10\n0 finalize\n",
    "1 init\n1 recv 0 100 5000\n1 compute 1000000000\n1 allreduce 8 10\n1 finalize\n",
];
const LABELS: &str = "host,accelerator,leaf,spine\nn1,d1,l1,s1\nn2,d1,l1,s1\nn3,d2,l2,s1\n";

fn cases() -> Vec<Case> {
    let file = |path: &str| std::fs::read_to_string(project().join(path)).unwrap();
    let case = |name, files, command| Case { name, files, command };
    vec![
        case(
            "predicted",
            vec![
                ("machine.json", LINKS.to_owned()),
                ("rank0", RANKS[0].to_owned()),
                ("rank1", RANKS[1].to_owned()),
                ("p.toml", PREDICTED.to_owned()),
                ("index", "rank0\nrank1\n".to_owned()),
            ],
            &["run", "p.toml", "-j1", "--no-report"],
        ),
        case(
            "matrix",
            vec![("m.csv", file("sample-traces/lulesh-64.expected.csv"))],
            &["exec", "trace/import", "-p", "path=m.csv", "-p", "format=csv", "-o", "out"],
        ),
        case(
            "network",
            vec![("network", file("sample-schedules/cholesky-5/network.average"))],
            &["exec", "topology/import", "-p", "path=network", "-o", "out"],
        ),
        case(
            "hosts",
            vec![("labels.csv", LABELS.to_owned()), ("hosts", "n3 slots=2\nn1 slots=2\nn2 slots=2\n".to_owned())],
            &["rank-order", "--topology", "labels.csv", "--hosts-file", "hosts", "-o", "out"],
        ),
        case(
            "recording",
            vec![
                ("r/record.json", r#"{"format": "hopmap-record", "version": 1, "method": "openmpi", "ranks": 2, "complete": true}"#.to_owned()),
                ("r/monitoring/x.0.prof", "E\t0\t1\t10 bytes\t1 msgs sent\n".to_owned()),
                ("r/monitoring/x.1.prof", "I\t1\t0\t20 bytes\t1 msgs sent\n".to_owned()),
            ],
            &["exec", "trace/import", "-p", "path=r", "-o", "out"],
        ),
    ]
}

/// Runs a command in a gibibyte.
fn check(sandbox: &Sandbox, case: &Case, changed: &str) {
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -v 1048576 && exec timeout 60 \"$0\" \"$@\""]);
    command.arg(assert_cmd::cargo::cargo_bin!("hopmap")).args(case.command).current_dir(sandbox.path());
    let output = command.env("MALLOC_ARENA_MAX", "1").output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let ends = matches!(output.status.code(), Some(0..=3)) && !said.contains("panicked");
    assert!(ends, "{}: {}: {said}\n{changed}", case.name, output.status);
    let is_number =
        said.split(|letter: char| !letter.is_alphanumeric()).all(|word| !["NaN", "inf"].contains(&word));
    assert!(is_number, "{}: {said}\n{changed}", case.name);
    let _ = std::fs::remove_dir_all(sandbox.path().join("out"));
}

#[test]
fn no_number_of_a_file_ends_hopmap_or_becomes_no_number() {
    for case in cases() {
        let sandbox = Sandbox::new();
        case.files.iter().for_each(|(name, text)| sandbox.write(name, text));
        check(&sandbox, &case, "nothing changed");
        for (name, text) in case.files.iter().filter(|(name, _)| !["p.toml", "index"].contains(name)) {
            let copies = with_extreme_numbers(text.as_bytes());
            // A process each: a usual run has a few of them.
            let step = if soak() { 1 } else { copies.len().div_ceil(6).max(1) + 1 };
            for bytes in copies.iter().step_by(step) {
                sandbox.write(name, bytes);
                check(&sandbox, &case, &String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]));
            }
            sandbox.write(name, text);
        }
    }
}

#[test]
fn rates_that_no_link_has_are_refused() {
    let case = &cases()[0];
    for (name, old, new, said) in [
        ("machine.json", "1e-6", "1e308", "link 0 has a latency that is negative or above 1e12 s"),
        ("machine.json", "1000000000", "1e-300", "link 0 has a latency"),
        ("rank0", "compute 2000000000", "compute 1e308", "computes for"),
    ] {
        let sandbox = Sandbox::new();
        case.files.iter().for_each(|(name, text)| sandbox.write(name, text));
        sandbox.edit(name, old, new);
        let seen = sandbox.seen(case.command);
        assert!(seen.contains(said) && seen.ends_with("[exit code 1]\n"), "{seen}");
    }
}
