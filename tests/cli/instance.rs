//! The stages of `instance`, and placements of other tools on their programs.

use crate::sandbox::Sandbox;

const SQUARE: &str =
    "4\n\n0 3 0 2\n3 0 0 1\n0 0 0 4\n2 1 4 0\n\n0 22 53 53\n22 0 40 62\n53 40 0 55\n53 62 55 0\n";

const PIPELINE: &str = r#"
[stages.square]
uses = "instance/qaplib"
with = { path = "square.dat", solution = "square.sln" }
"#;

fn with_square() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("square.dat", SQUARE);
    sandbox.write("square.sln", "4 790\n3 4 1 2\n");
    sandbox.write("p.toml", PIPELINE);
    sandbox
}

/// What a person sees of an instance with this text.
fn read(text: impl AsRef<[u8]>) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat", text);
    sandbox.seen(&["exec", "instance/qaplib", "-p", "path=a.dat", "--out", "a"])
}

/// What a person sees of the square with a solution of this text.
fn check(text: &str) -> String {
    let sandbox = with_square();
    sandbox.write("square.sln", text);
    let with = ["-p", "path=square.dat", "-p", "solution=square.sln"];
    sandbox.seen(&[&["exec", "instance/qaplib"], &with[..], &["--out", "a"]].concat())
}

fn table(sandbox: &Sandbox, artifact: &str, table: &str) -> String {
    sandbox.stdout(&["show", artifact, "--table", table, "--format", "csv"])
}

#[test]
fn an_instance_is_a_program_and_a_machine() {
    let sandbox = with_square();
    insta::assert_snapshot!(sandbox.seen(&["run", "p.toml"]), @r#"
    p: 1 ran in N.NN s
      report       .hopmap/reports/p.html
    ------- stderr -------
      square: known placement: cost 790 (`square.sln`, slots in order of ranks)
      ran        square  N.NN s
    "#);
    insta::assert_snapshot!(sandbox.seen(&["exec", "instance/qaplib", "-p", "path=square.dat", "--out", "a"]), @r#"
    task-graph DIGEST a/task-graph
    system-graph DIGEST a/system
    "#);
    insta::assert_snapshot!(table(&sandbox, "a/task-graph", "edges"), @r#"
    source,destination,messages,bytes
    0,1,1,3
    0,3,1,2
    1,0,1,3
    1,3,1,1
    2,3,1,4
    3,0,1,2
    3,1,1,1
    3,2,1,4
    "#);
    insta::assert_snapshot!(sandbox.seen(&["show", "a/system"]), @r#"
    system-graph  a/system
    digest  DIGEST
      hosts                        4
      links                        0
      slots                        4
      cost                         matrix
    table costs: 16 rows (source, destination, cost)
    table links: 0 rows (source, destination, latency_s, bandwidth_bytes_per_s)
    table nodes: 4 rows (id, name, kind)
    table slots: 4 rows (slot, host, core)
    "#);
    let costs = table(&sandbox, "a/system", "costs");
    assert!(costs.starts_with("source,destination,cost\n0,0,0.0\n0,1,22.0\n"), "{costs}");
    assert_eq!(costs.lines().count(), 17);
}

#[test]
fn the_matrices_can_change_places() {
    let sandbox = with_square();
    let with = ["-p", "path=square.dat", "-p", "flow=b", "--out", "a"];
    sandbox.stdout(&[&["exec", "instance/qaplib"], &with[..]].concat());
    assert!(table(&sandbox, "a/task-graph", "edges").contains("\n0,1,1,22\n"));
    assert!(table(&sandbox, "a/system", "costs").contains("\n0,1,3.0\n"));
}

#[test]
fn the_names_of_files_change_nothing_and_their_contents_do() {
    let sandbox = with_square();
    sandbox.stdout(&["run", "p.toml"]);
    std::fs::rename(sandbox.path().join("square.sln"), sandbox.path().join("best")).unwrap();
    sandbox.edit("p.toml", "square.sln", "best");
    insta::assert_snapshot!(sandbox.seen(&["plan", "p.toml"]), @r#"
      cached     square
    p: nothing to do
    "#);
    sandbox.edit("best", "790", "791");
    insta::assert_snapshot!(sandbox.seen(&["plan", "p.toml"]), @r#"
      would run  square                   file solution.sln: DIGEST → DIGEST
    p: 1 of 1 would run
    "#);
}

#[test]
fn files_that_are_not_instances_are_refused() {
    insta::assert_snapshot!(read(""), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:1: the file is empty
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:1:1: n is 0
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("4000000000\n0 1\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:1:1: n = 4000000000 exceeds the maximum of 4096
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("2\n0 1 1\n1 0 1\n\n0 1\n1 0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:6:1: more than the 9 numbers of two 2 × 2 matrices
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("3\n0 1 1\n1 0 1\n\n0 1 1\n1 0 1\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:6: the file ends before row 2, column 1 of matrix B; expected two 3 × 3 matrices
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("2\n0 1\n1 zero\n\n0 1\n1 0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:3:3: row 2, column 2 of matrix A (a flow): `zero` is not a number
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("2\n0 -1\n1 0\n\n0 1\n1 0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:2:3: row 1, column 2 of matrix A (a flow): `-1` is negative
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("2\n0 1.5\n1 0\n\n0 1\n1 0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:2:3: row 1, column 2 of matrix A (a flow): `1.5` is not an integer
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read("2\n0 1\n1 0\n\n0 NaN\n1 0\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:5:3: row 1, column 2 of matrix B (a cost): `NaN` is not a number
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    insta::assert_snapshot!(read(b"\x89PNG\r\n\x1a\n\0\0\0"), @r"
    ------- stderr -------
    error[text::file]: DIR/a.dat:1:1: `�PNG` is not a number
      help: an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows
    [exit code 1]
    ");
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.seen(&["exec", "instance/qaplib", "-p", "path=none.dat", "--out", "a"]), @r"
    ------- stderr -------
    error[text::file]: DIR/none.dat: cannot be read: No such file or directory (os error 2)
      help: check the path; in a pipeline file it is relative to that file
    [exit code 1]
    ");
}

#[test]
fn solutions_are_checked() {
    insta::assert_snapshot!(check("4 790\n3 4 1 2\n"), @r#"
    task-graph DIGEST a/task-graph
    system-graph DIGEST a/system
    ------- stderr -------
    known placement: cost 790 (`square.sln`, slots in order of ranks)
    "#);
    insta::assert_snapshot!(check("4 900\n3 4 1 2\n"), @r#"
    task-graph DIGEST a/task-graph
    system-graph DIGEST a/system
    ------- stderr -------
    warning: `square.sln` states 900, but its permutation costs only 790
    known placement: cost 790 (`square.sln`, slots in order of ranks)
    "#);
    insta::assert_snapshot!(check("4 700\n3 4 1 2\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/square.sln:1: the stated cost is 700, but the permutation costs 790 and its inverse 790
      help: a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same instance; omit `solution` to skip the check
    [exit code 1]
    ");
    insta::assert_snapshot!(check("5 790\n3 4 1 2 5\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/square.sln:1:1: n = 5, but the instance has n = 4
      help: a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same instance; omit `solution` to skip the check
    [exit code 1]
    ");
    insta::assert_snapshot!(check("4 790\n3 4 1 3\n"), @r"
    ------- stderr -------
    error[text::file]: DIR/square.sln:2: duplicate entry 3
      help: a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same instance; omit `solution` to skip the check
    [exit code 1]
    ");
}

#[test]
fn mappers_place_the_ranks_of_an_instance() {
    let sandbox = with_square();
    sandbox.stdout(&["exec", "instance/qaplib", "-p", "path=square.dat", "--out", "a"]);
    let inputs = ["--in", "task-graph=a/task-graph", "--in", "system=a/system"];
    sandbox.stdout(&[&["exec", "map/annealing"], &inputs[..], &["--out", "m"]].concat());
    let shown = sandbox.stdout(&["show", "m", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    // The best of all 24 placements.
    assert_eq!(shown["artifact"]["metrics"]["F"].as_f64(), Some(790.0));
}

fn generate(groups: &str, seed: &str, out: &str) -> String {
    let sandbox = Sandbox::new();
    let with = [format!("groups={groups}"), format!("seed={seed}")];
    sandbox.seen(&["exec", "instance/taillard-e", "-p", &with[0], "-p", &with[1], "--out", out])
}

#[test]
fn instances_like_those_of_taillard() {
    insta::assert_snapshot!(generate("[3, 3, 3]", "7", "a"), @r#"
    task-graph DIGEST a/task-graph
    system-graph DIGEST a/system
    ------- stderr -------
    known placement: cost 3702
    "#);
    insta::assert_snapshot!(generate("[3, 0, 3]", "7", "a"), @r"
    ------- stderr -------
    error[pipeline::invalid]: groups [3, 0, 3] give 0 facilities
       ,-[-p:1:1]
     1 | ,-> groups = [3, 0, 3]
     2 | |-> seed = 7
       : `---- here
       `----
      help: expected three positive numbers, outermost first, with a product from 2 to 4096: [3, 3, 3] is like tai27e, [9, 9, 9] like tai729e
    [exit code 2]
    ");
    insta::assert_snapshot!(generate("[3, 3]", "7", "a"), @r"
    ------- stderr -------
    error[pipeline::invalid]: `groups`: invalid length 2, expected an array of length 3
       ,-[-p:1:10]
     1 | groups = [3, 3]
       :          ^^^|^^
       :             `-- here
     2 | seed = 7
       `----
      help: groups: Sizes of the nested groups of facilities, outermost first. `[5, 3, 5]` is 5 groups of 3 subgroups of 5 facilities, 75 in total, like `tai75e`. `tai27e` is `[3, 3, 3]`, `tai45e` `[3, 3, 5]`, `tai125e` `[5, 5, 5]`, `tai175e` `[5, 5, 7]`, `tai343e` `[7, 7, 7]`, `tai729e` `[9, 9, 9]`
    [exit code 2]
    ");
    let sandbox = Sandbox::new();
    let artifact = |seed: &str, out: &str| {
        let seed = format!("seed={seed}");
        sandbox.stdout(&["exec", "instance/taillard-e", "-p", "groups=[3,3,5]", "-p", &seed, "--out", out]);
        ["task-graph", "system"].map(|port| sandbox.read(&format!("{out}/{port}/artifact.json")))
    };
    let (one, again, other) = (artifact("1", "a"), artifact("1", "b"), artifact("2", "c"));
    assert_eq!(one, again);
    assert!(one[0] != other[0] && one[1] != other[1]);
}

fn stencil(with: &[&str]) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let with: Vec<&str> = with.iter().flat_map(|value| ["-p", value]).collect();
    let seen = sandbox.seen(&[&["exec", "instance/stencil"], &with[..], &["--out", "g"]].concat());
    (sandbox, seen)
}

#[test]
fn stencils() {
    let (sandbox, seen) = stencil(&["shape=2x3", "bytes=100"]);
    insta::assert_snapshot!(seen, @r#"task-graph DIGEST g"#);
    insta::assert_snapshot!(table(&sandbox, "g", "edges"), @r#"
    source,destination,messages,bytes
    0,1,1,100
    0,3,1,100
    1,0,1,100
    1,2,1,100
    1,4,1,100
    2,1,1,100
    2,5,1,100
    3,0,1,100
    3,4,1,100
    4,1,1,100
    4,3,1,100
    4,5,1,100
    5,2,1,100
    5,4,1,100
    "#);
    let (sandbox, _) = stencil(&["shape=4x4x4", "periodic=true"]);
    assert_eq!(table(&sandbox, "g", "edges").lines().count(), 1 + 64 * 6);
    insta::assert_snapshot!(stencil(&["shape=4"]).1, @r#"
    ------- stderr -------
    error[pipeline::invalid]: shape `4` is not a grid of two or three dimensions
       ,-[-p:1:1]
     1 | shape = "4"
       : ^^^^^^|^^^^^
       :       `-- here
       `----
      help: write the extent of every dimension: `4x4`, `8x8x4`
    [exit code 2]
    "#);
    insta::assert_snapshot!(stencil(&["shape=4096x4096"]).1, @r#"
    ------- stderr -------
    error[pipeline::invalid]: shape `4096x4096` has more than 1048576 ranks
       ,-[-p:1:1]
     1 | shape = "4096x4096"
       : ^^^^^^^^^^|^^^^^^^^^
       :           `-- here
       `----
      help: the number of ranks is the product of all dimensions: reduce some of them
    [exit code 2]
    "#);
    insta::assert_snapshot!(stencil(&["shape=4x4", "bytes=18446744073709551615"]).1, @r#"
    ------- stderr -------
    error[pipeline::invalid]: `bytes` = 18446744073709551615 is out of range
       ,-[-p:2:9]
     1 | shape = "4x4"
     2 | bytes = "18446744073709551615"
       :         ^^^^^^^^^^^|^^^^^^^^^^
       :                    `-- here
       `----
      help: allowed: 0 to 9223372036854775807; default 1024
    [exit code 2]
    "#);
}

#[test]
fn a_stencil_is_placed_like_any_other_program() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "[stages.program]\nuses = \"instance/stencil\"\nwith = { shape = \"4x4\" }\n\
         [stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:4x4\", costs = [1, 10] }\n\
         [stages.placement]\nuses = \"map/annealing\"\nneeds = { task-graph = \"program\", system = \"machine\" }\n",
    );
    sandbox.stdout(&["run", "p.toml"]);
    let shown: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["show", "placement", "--json"])).unwrap();
    // Four blocks of 2 × 2: 32 messages stay inside, 16 go out.
    assert_eq!(shown["artifact"]["metrics"]["F"].as_f64(), Some(1024.0 * (32.0 + 16.0 * 10.0)));
}

#[test]
fn a_graph_and_a_placement_of_other_tools_are_measured() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.graph", "% a ring\n4 4 1\n2 5 4 1\n1 5 3 7\n2 7 4 2\n3 2 1 1\n");
    sandbox.write("ring.part", "0\n1\n2\n3\n");
    sandbox.stdout(&["exec", "instance/graph", "-p", "path=ring.graph", "--out", "g"]);
    let machine = ["-p", "shape=kahip:2:2", "-p", "costs=1:10", "--out", "m"];
    sandbox.stdout(&[&["exec", "topology/synthetic"], &machine[..]].concat());
    let ports = ["--in", "task-graph=g", "--in", "system=m", "-p", "path=ring.part"];
    sandbox.stdout(&[&["exec", "map/import"], &ports[..], &["--out", "p"]].concat());
    let shown: serde_json::Value = serde_json::from_str(&sandbox.stdout(&["show", "p", "--json"])).unwrap();
    // J of the ring, both ways.
    assert_eq!(shown["artifact"]["metrics"]["F"].as_f64(), Some(2.0 * (5.0 + 70.0 + 2.0 + 10.0)));
    sandbox.write("ring.part", "0\n1\n1\n3\n");
    let seen = sandbox.seen(&[&["exec", "map/import"], &ports[..], &["--out", "q"]].concat());
    assert!(seen.contains("DIR/ring.part:3: ranks 1 (line 2) and 2 are both on slot 1"), "{seen}");
    sandbox.write("ring.graph", "2 1\n2\n2\n");
    let seen = sandbox.seen(&["exec", "instance/graph", "-p", "path=ring.graph", "--out", "h"]);
    assert!(seen.contains("DIR/ring.graph:3:1: vertex 2 is its own neighbour"), "{seen}");
}
