//! Collective operations from a trace to the table of their algorithms, and a mapping that counts them.

use crate::sandbox::{Sandbox, project};

/// Maps a sample with its allgathers in rings, and compares the algorithms.
const PIPELINE: &str = r#"name = "collectives"

[params]
trace = "trace"

[stages.program]
uses = "trace/otf2"
with = { path = "${params.trace}", collectives = "expand", algorithms = { allgather = "ring" } }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4x2", costs = [1, 10, 100] }

[stages.placement]
uses  = "map/annealing"
with  = { evaluations = 20000 }
needs = { task-graph = "program", system = "machine" }

[stages.algorithms]
uses  = "evaluate/collectives"
needs = { task-graph = "program", system = "machine", mapping = "placement" }
save  = { csv = "out/collectives.csv", markdown = "out/collectives.md" }
"#;

/// Reads a sample archive into `graph`; the BLAKE3 of its edges, and the table of its collective operations.
fn read(sandbox: &Sandbox, sample: &str, with: &[&str]) -> (String, String) {
    let archive = format!("path={}", project().join("sample-traces").join(sample).display());
    let mut arguments = vec!["exec", "trace/otf2", "--out", "graph", "-p", &archive];
    arguments.extend(with.iter().flat_map(|with| ["-p", *with]));
    sandbox.stdout(&arguments);
    let shown: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["show", "graph", "--json"])).unwrap();
    let edges = shown["artifact"]["tables"]["edges"]["blake3"].as_str().unwrap().to_owned();
    let table = sandbox.stdout(&["show", "graph", "--table", "collectives", "--format", "csv"]);
    (edges, table)
}

/// The BLAKE3 of the edges as they were before operations were kept.
#[test]
fn operations_are_kept_beside_the_messages_that_they_always_gave() {
    let samples = [
        ("rows-columns-16", "545e18695d46b28a4b3c6caebff2678c", 35),
        ("lammps-melt-16", "0229f41f3123dadd8f270b4e4ab96abe", 132),
    ];
    for (sample, edges, operations) in samples {
        let sandbox = Sandbox::new();
        let (expanded, table) = read(&sandbox, sample, &["collectives=expand"]);
        assert!(expanded.starts_with(edges), "{sample}: {expanded}");
        let calls = table.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<u64>().unwrap());
        assert_eq!(calls.sum::<u64>(), operations, "{sample}");
        let (kept, same) = read(&sandbox, sample, &["collectives=keep"]);
        assert_eq!((same, kept == expanded), (table, false), "{sample}");
    }
}

#[test]
fn algorithms_are_compared_under_a_mapping_that_counts_them() {
    let sandbox = Sandbox::new();
    sandbox.write("collectives.toml", PIPELINE);
    let trace = format!("trace={}", project().join("sample-traces/rows-columns-16").display());
    sandbox.stdout(&["run", "collectives.toml", "-p", &trace, "--report", "report.html"]);
    let table = sandbox.read("out/collectives.csv");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|other| *other == name).unwrap();
    let (algorithm, best) = (column("algorithm"), column("best"));
    assert!(rows[1..].iter().all(|row| row.len() == rows[0].len()));
    let rings: Vec<_> = rows.iter().filter(|row| row[3] == "allgather" && row[algorithm] == "ring").collect();
    assert!(rings.len() > 1 && rings[0][0] == "all", "{table}");
    assert!(rows[1..].iter().any(|row| row[best] == "both"), "{table}");
    assert_eq!(sandbox.read("out/collectives.md").lines().count(), rows.len() + 1);
    let report = sandbox.read("report.html");
    for shown in ["Compare collective algorithms", "path linear", "recursive-doubling"] {
        assert!(report.contains(shown), "the report does not show {shown}");
    }
    let again = sandbox.stdout(&["run", "collectives.toml", "-p", &trace, "-j1", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert!(again["cells"].as_array().unwrap().iter().all(|cell| cell["state"] == "cached"), "{again}");
}

#[test]
fn a_wrong_algorithm_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("collectives.toml", PIPELINE);
    sandbox.edit("collectives.toml", "allgather = \"ring\"", "bcast = \"ring\"");
    let trace = format!("trace={}", project().join("sample-traces/rows-columns-16").display());
    let seen = sandbox.seen(&["check", "collectives.toml", "-p", &trace]);
    assert!(seen.contains("`ring` does not implement `bcast`"), "{seen}");
    assert!(seen.contains("algorithms: `binomial`, `scatter-ring`"), "{seen}");
    sandbox.edit("collectives.toml", "bcast = \"ring\"", "bcast = \"round\"");
    let seen = sandbox.seen(&["check", "collectives.toml", "-p", &trace]);
    assert!(seen.contains("round") && seen.contains("exit code"), "{seen}");
}

#[test]
fn collectives_that_do_not_count_are_named_with_their_share() {
    let sandbox = Sandbox::new();
    let trace = format!("trace={}", project().join("sample-traces/rows-columns-16").display());
    let run = |with: &[&str]| {
        let report = format!("report{}.html", with.concat());
        let place = ["run", "place", "-p", &trace, "--report", &report];
        let said = sandbox.stdout(&[&place[..], with].concat());
        let what = "collectives are 41 % of the communication time of program and are not counted";
        (
            said.contains(&format!("warning: {what}: -p collectives=expand")),
            sandbox.read(&report).contains(what),
        )
    };
    assert_eq!(run(&[]), (false, false));
    assert_eq!(run(&["-p", "collectives=ignore"]), (true, true));
    assert_eq!(run(&["-p", "collectives=keep"]), (true, true));
}
