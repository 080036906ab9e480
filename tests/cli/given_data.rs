//! Real traces with known answers, from the folder named by `HOPMAP_DATA`.

use hopmap_test_support::given_data;
use std::path::PathBuf;

use crate::sandbox::Sandbox;

/// Archives, the BLAKE3 of their edges with collective operations as it was before these were kept, and how many there are.
const EXPANDED: [(&str, &str, f64); 3] = [
    ("eztrace-ft.W.16", "cc0a07676d168253", 20.0),
    ("eztrace-is.W.16", "9f7ad78750ff8a00", 36.0),
    ("eztrace-mg.A.16", "c05b1cd1e0c4d37e", 102.0),
];

/// The anchor file of an archive.
fn anchor(folder: &std::path::Path) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "otf2")).unwrap()
}

#[test]
fn every_archive_gives_exactly_the_expected_pairs() {
    let Some(data) = given_data() else { return };
    let mut checked = 0;
    for entry in std::fs::read_dir(data.join("traces/expected")).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".p2p.txt") else {
            continue;
        };
        let folder = data.join("traces").join(name);
        if !folder.is_dir() {
            continue;
        }
        let sandbox = Sandbox::new();
        let archive = format!("path={}", anchor(&folder).display());
        let messages = ["-p", "collectives=ignore", "--out", "graph"];
        sandbox.stdout(&[&["exec", "trace/otf2", "-p", &archive], &messages[..]].concat());
        let shown = sandbox.stdout(&["show", "graph", "--table", "edges", "--format", "csv"]);
        let mut pairs: Vec<Vec<u64>> = shown
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|number| number.parse().unwrap()).collect())
            .collect();
        let expected = std::fs::read_to_string(&path).unwrap();
        let mut expected: Vec<Vec<u64>> = expected
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|number| number.parse().unwrap()).collect())
            .collect();
        pairs.sort();
        expected.sort();
        assert_eq!(pairs, expected, "{name}");
        checked += 1;
    }
    assert!(checked >= 5, "only {checked} archives have an expected matrix");
}

/// F of the mapping and of linear, on a machine with costs 1, 10, 100.
fn quality(trace: &str, shape: &str) -> (f64, f64) {
    let data = given_data().unwrap();
    let sandbox = Sandbox::new();
    let archive = format!("trace={}", anchor(&data.join("traces").join(trace)).display());
    let shape = format!("shape={shape}");
    let messages = ["-p", "collectives=ignore", "--json"];
    let report = sandbox.stdout(&[&["run", "place", "-p", &archive, "-p", &shape], &messages[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let quality = report["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == "quality").unwrap();
    let metric = |name: &str| quality["outputs"]["metrics"]["metrics"][name].as_f64().unwrap();
    (metric("F"), metric("F_linear"))
}

#[test]
fn annealing_beats_linear_by_as_much_as_it_should() {
    if given_data().is_none() {
        return;
    }
    for (trace, shape, ratio) in [
        ("eztrace-lu.S.16", "tree:2x2x4", 0.72),
        ("eztrace-sweep3d-16", "tree:2x2x4", 0.72),
        ("eztrace-mg.A.16", "tree:2x4x2", 0.97),
    ] {
        let (annealed, linear) = quality(trace, shape);
        assert!(annealed <= ratio * linear, "{trace}: {annealed} is more than {ratio} of {linear}");
    }
    let (annealed, linear) = quality("eztrace-lulesh-8", "tree:2x4x2");
    assert!(
        (annealed - linear).abs() < 1e-9 * linear,
        "LULESH: linear is optimal, {annealed} is not {linear}"
    );
}

/// Proven optima of QAPLIB (the values of its solution files), symmetric ones and one with costs that differ both ways.
#[test]
fn searches_find_the_optima_of_small_instances() {
    let Some(data) = given_data() else { return };
    let optima = [
        ("nug12", 578.0),
        ("chr12a", 9552.0),
        ("had12", 1652.0),
        ("rou12", 235_528.0),
        ("scr12", 31_410.0),
        ("tai12a", 224_416.0),
        ("esc16a", 68.0),
        ("tai12b", 39_464_925.0),
        ("lipa20a", 3683.0),
    ];
    for (name, optimum) in optima {
        let sandbox = Sandbox::new();
        let file = format!("path={}", data.join(format!("qap/qaplib/{name}.dat")).display());
        sandbox.stdout(&["exec", "instance/qaplib", "-p", &file, "--out", "i"]);
        for mapper in ["map/annealing", "map/tabu", "map/auto"] {
            let inputs = ["--in", "task-graph=i/task-graph", "--in", "system=i/system"];
            sandbox.stdout(&[&["exec", mapper], &inputs[..], &["--out", "m"]].concat());
            let shown: serde_json::Value =
                serde_json::from_str(&sandbox.stdout(&["show", "m", "--json"])).unwrap();
            let found = shown["artifact"]["metrics"]["F"].as_f64().unwrap();
            eprintln!("{name} {mapper} {found}");
            assert!((found - optimum).abs() < 0.5, "{name}: {mapper} finds {found}, not {optimum}");
        }
    }
}

#[test]
fn one_second_of_the_defaults_is_compared_with_the_papers() {
    let Some(data) = given_data() else { return };
    let sandbox = Sandbox::new();
    let file = crate::sandbox::project().join("pipelines/one-second.toml");
    let folder = format!("data={}", data.join("qap/taie").display());
    let out = format!("out={}", sandbox.path().join("out").display());
    let few = ["-p", "seconds=0.05", "-p", "seeds=1..2", "-p", "instances=[\"tai27e01\", \"tai45e01\"]"];
    let run = ["run", file.to_str().unwrap(), "--store", "store", "-p", &folder, "-p", &out];
    sandbox.stdout(&[&run[..], &few].concat());
    let table = std::fs::read_to_string(sandbox.path().join("out/one-second.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..5], ["instance", "mapper", "runs", "F best", "F mean"]);
    assert_eq!(rows.len(), 1 + 2 * 4);
    let column = |name: &str| rows[0].iter().position(|other| *other == name).unwrap();
    for row in &rows[1..] {
        assert_eq!(row[2], "2");
        let (best, known): (f64, f64) = (row[3].parse().unwrap(), row[column("best known")].parse().unwrap());
        let gap: f64 = row[column("best over best known %")].parse().unwrap();
        assert!((gap - 100.0 * (best - known) / known).abs() < 0.01, "{row:?}");
        let papers = row[column("paper F")];
        assert_eq!(papers.is_empty(), row[1] == "auto", "{row:?}");
    }
}

/// Values that we found have their placements beside the list of what is known.
#[test]
fn the_best_known_values_are_those_of_placements_that_are_there() {
    let Some(data) = given_data() else { return };
    let samples = crate::sandbox::project().join("sample-instances/taillard-e");
    let known = std::fs::read_to_string(samples.join("best-known.csv")).unwrap();
    for name in ["tai343e01", "tai729e01"] {
        let sandbox = Sandbox::new();
        let instance = format!("path={}", data.join(format!("qap/taie/{name}.dat")).display());
        sandbox.stdout(&["exec", "instance/qaplib", "-p", &instance, "--out", "problem"]);
        let placement = format!("path={}", samples.join(format!("{name}.txt")).display());
        let inputs = ["--in", "task-graph=problem/task-graph", "--in", "system=problem/system"];
        let import = ["exec", "map/import", "-p", &placement, "--out", "placement"];
        sandbox.stdout(&[&import[..], &inputs].concat());
        let shown: serde_json::Value =
            serde_json::from_str(&sandbox.stdout(&["show", "placement", "--json"])).unwrap();
        let row = known.lines().find(|line| line.starts_with(&format!("{name},,"))).unwrap();
        let best: f64 = row.split(',').nth(3).unwrap().parse().unwrap();
        assert_eq!(shown["artifact"]["metrics"]["F"], best, "{name}");
    }
}

/// The sample of Table 1: what the papers' algorithms are made of happens in every run.
#[test]
fn table_1_is_made_of_whole_runs_with_the_choices_of_the_papers() {
    let (Some(data), Some(_)) = (given_data(), crate::sandbox::query_program()) else { return };
    let sandbox = Sandbox::new();
    let file = crate::sandbox::project().join("pipelines/table-1-taillard.toml");
    let folder = format!("data={}", data.join("qap/taie").display());
    let out = format!("out={}", sandbox.path().join("out").display());
    let few = ["-p", "effort=sample", "-p", "instances=[\"tai27e01\", \"tai45e01\"]"];
    let run = ["run", file.to_str().unwrap(), "--store", "store", "-p", &folder, "-p", &out];
    sandbox.stdout(&[&run[..], &few].concat());
    let times = sandbox.read("out/table-1-taillard-times.csv");
    let rows: Vec<Vec<&str>> = times.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0],
        ["instance", "mapper", "runs", "best_F", "mean_F", "seconds", "exchanges", "generations"]
    );
    assert_eq!(rows.len(), 1 + 2 * 3);
    for row in &rows[1..] {
        let count = if row[1] == "annealing" { row[6] } else { row[7] };
        assert!(count.parse::<f64>().unwrap() >= 40.0, "{row:?}");
    }
    let table = sandbox.read("out/table-1-taillard.csv");
    assert!(
        table
            .lines()
            .all(|line| line.starts_with("tai") && line.contains(",1,") || line.starts_with("instance,"))
    );
}

/// FT and IS talk in collective operations alone, MG in both: their messages are those of MPICH's rules.
#[test]
fn expanded_operations_give_the_messages_that_they_always_gave() {
    let Some(data) = given_data() else { return };
    for (name, edges, operations) in EXPANDED {
        let sandbox = Sandbox::new();
        let archive = format!("path={}", anchor(&data.join("traces").join(name)).display());
        let with = ["-p", &archive, "-p", "collectives=expand"];
        sandbox.stdout(&[&["exec", "trace/otf2"], &with[..], &["--out", "graph"]].concat());
        let shown: serde_json::Value =
            serde_json::from_str(&sandbox.stdout(&["show", "graph", "--json"])).unwrap();
        let table = shown["artifact"]["tables"]["edges"]["blake3"].as_str().unwrap();
        assert!(table.starts_with(edges), "{name}: {table}");
        assert_eq!(shown["artifact"]["metrics"]["collectives"], operations, "{name}");
    }
}
