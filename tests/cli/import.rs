//! `trace/import` and `trace/export`.

use crate::sandbox::{Sandbox, project};

const PIPELINE: &str = r#"
[stages.program]
uses = "trace/import"
with = { path = "traffic" }

[stages.matrix]
uses  = "trace/export"
needs = { task-graph = "program" }
with  = { format = "matrix-market" }
save  = { file = "out/traffic.mtx" }
"#;

fn with_traffic() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("traffic", "source,destination,messages,bytes\n0,1,2,100\n2,0,1,7\n3,3,0,0\n");
    sandbox.write("p.toml", PIPELINE);
    sandbox
}

fn import(sandbox: &Sandbox, file: &str) -> String {
    sandbox.seen(&["exec", "trace/import", "-p", &format!("path={file}"), "--out", "graph"])
}

#[test]
fn a_pipeline_imports_and_exports() {
    let sandbox = with_traffic();
    insta::assert_snapshot!(sandbox.seen(&["run", "p.toml", "-j1"]), @r#"
    p: 2 ran in N.NN s
      matrix       out/traffic.mtx
      report       .hopmap/reports/p.html
    ------- stderr -------
      program: format: csv
      ran        program  N.NN s
      ran        matrix  N.NN s
    "#);
    insta::assert_snapshot!(sandbox.read("out/traffic.mtx"), @r"
    %%MatrixMarket matrix coordinate integer general
    % hopmap task-graph 929f653a6f0e6fb0713c4195ea0b319ff28f7096e4f8b60e1dae31a5f6864123
    % row: sender, column: receiver, both counted from one; value: bytes
    %hopmap messages 2 1
    4 4 2
    1 2 100
    3 1 7
    ");
    insta::assert_snapshot!(import(&sandbox, "out/traffic.mtx"), @r#"
    task-graph DIGEST graph
    ------- stderr -------
    format: matrix-market
    "#);
    let edges = ["show", "graph", "--table", "edges", "--format", "csv"];
    insta::assert_snapshot!(sandbox.stdout(&edges), @r#"
    source,destination,messages,bytes
    0,1,2,100
    2,0,1,7
    "#);
}

#[test]
fn the_name_of_a_file_changes_nothing() {
    let sandbox = with_traffic();
    sandbox.stdout(&["run", "p.toml"]);
    std::fs::rename(sandbox.path().join("traffic"), sandbox.path().join("traffic.txt")).unwrap();
    sandbox.edit("p.toml", "\"traffic\"", "\"traffic.txt\"");
    insta::assert_snapshot!(sandbox.seen(&["plan", "p.toml"]), @r#"
      cached     program
      cached     matrix
    p: nothing to do
    "#);
}

#[test]
fn a_folder_of_profiles_and_an_index_of_actions() {
    let sandbox = Sandbox::new();
    for (node, other) in [(0, 1), (1, 0)] {
        let event = format!("\"Message size sent to node {other}\" 3 8 8 8 192");
        let head =
            "0 templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n0 aggregates\n";
        let events = format!("1 userevents\n# eventname numevents max min mean sumsqr\n{event}\n");
        sandbox.write(&format!("profiles/profile.{node}.0.0"), format!("{head}{events}"));
    }
    insta::assert_snapshot!(import(&sandbox, "profiles"), @r#"
    task-graph DIGEST graph
    ------- stderr -------
    format: tau
    "#);
    let edges = ["show", "graph", "--table", "edges", "--format", "csv"];
    insta::assert_snapshot!(sandbox.stdout(&edges), @r#"
    source,destination,messages,bytes
    0,1,3,24
    1,0,3,24
    "#);
    sandbox.write("run/actions.txt", "rank0.txt\nrank1.txt\n");
    sandbox.write("run/rank0.txt", "0 init\n0 send 1 7 1e3 6\n0 barrier\n");
    sandbox.write("run/rank1.txt", "1 init\n1 recv 0 7 1e3 6\n1 barrier\n");
    insta::assert_snapshot!(import(&sandbox, "run/actions.txt"), @r#"
    task-graph DIGEST graph
    ------- stderr -------
    format: simgrid
    warning: collective operations and remote memory accesses (once per process), which are not counted: 2
    "#);
    insta::assert_snapshot!(sandbox.stdout(&edges), @r#"
    source,destination,messages,bytes
    0,1,1,1000
    "#);
}

#[test]
fn an_index_names_what_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("actions.txt", "rank0.txt\n");
    sandbox.write("rank0.txt", "0 init\n0 send 0 100\n");
    sandbox.write("p.toml", "[stages.program]\nuses = \"trace/import\"\nwith = { path = \"actions.txt\" }\n");
    sandbox.stdout(&["run", "p.toml"]);
    sandbox.edit("rank0.txt", "100", "200");
    insta::assert_snapshot!(sandbox.seen(&["plan", "p.toml"]), @r#"
      would run  program                  file actions/0: DIGEST → DIGEST
    p: 1 of 1 would run
    "#);
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write("lu.mpiP", "@ mpiP\n@ Command : ./lu.S.8\n");
    insta::assert_snapshot!(import(&sandbox, "lu.mpiP"), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/lu.mpiP` is an mpiP report: it has totals per call site, but no receivers
      help: record the program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which record sender and receiver
    [exit code 1]
    ");
    sandbox.write("hotspots.csv", "Function,CPU Time,Module\nmain,1.5,lu.S.8\n");
    insta::assert_snapshot!(import(&sandbox, "hotspots.csv"), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/hotspots.csv` is a report of VTune: it contains times per process and function, but no pairs of processes
      help: record the program with Score-P or EZTrace, or export the matrix of Intel Trace Analyzer as CSV with the columns source, destination, messages and bytes
    [exit code 1]
    ");
    sandbox.write("notes", "hello\n");
    insta::assert_snapshot!(import(&sandbox, "notes"), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/notes` has an unknown format
      help: supported formats: chakra, clog2, csv, dense-matrix, flight-recorder, hopmap-record, ipm, kineto, matrix-market, nccl-inspector, openmpi-monitoring, otf, otf2, paraver, simgrid, simgrid-tagged, simgrid-untagged, task-graph, tau; set one with `format`
    [exit code 1]
    ");
    sandbox.write("m.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 3 5\n");
    insta::assert_snapshot!(import(&sandbox, "m.mtx"), @r"
    ------- stderr -------
    format: matrix-market
    error[text::file]: DIR/m.mtx:3: the column `3` is not between 1 and 2
      help: a file begins with `%%MatrixMarket matrix coordinate integer general`, then come `rows columns entries` and one line `row column bytes` for every entry; rows are senders, counted from one
    [exit code 1]
    ");
    insta::assert_snapshot!(import(&sandbox, "none"), @r"
    ------- stderr -------
    error[text::file]: DIR/none: cannot be read: No such file or directory (os error 2)
      help: check the path; in a pipeline file it is relative to that file
    [exit code 1]
    ");
}

/// Hosts of a job whose leaves alternate: the first four hosts are on two leaves.
#[test]
fn groups_of_a_training_trace_stay_within_borders() {
    let sandbox = Sandbox::new();
    let labels: Vec<String> = (0..8).map(|host| format!("n{host},leaf{}\n", host % 2)).collect();
    let labels = labels.concat();
    sandbox.write("labels.csv", format!("host,leaf\n{labels}"));
    let trace = project().join("sample-traces/training-16");
    let mapped = |name: &str, with: &str| {
        format!(
            "[stages.{name}]\nuses = \"map/linear\"\nneeds = {{ task-graph = \"job\", system = \"machine\" }}\n\
             with = {{ weight = \"bytes\"{with} }}\n\
             [stages.{name}-groups]\nuses = \"evaluate/groups\"\n\
             needs = {{ task-graph = \"job\", system = \"machine\", mapping = \"{name}\" }}\n\
             save = {{ csv = \"{name}.csv\" }}\n"
        )
    };
    let machine =
        "[stages.machine]\nuses = \"topology/import\"\nwith = { path = \"labels.csv\", slots = 4 }\n";
    let job =
        format!("[stages.job]\nuses = \"trace/import\"\nwith = {{ path = {trace:?}, ranks_per_host = 4 }}\n");
    let (free, bordered) = (mapped("free", ""), mapped("bordered", ", borders = { dp = 1 }"));
    sandbox.write("p.toml", [machine, &job, &free, &bordered].concat());
    sandbox.stdout(&["run", "p.toml"]);
    let leaves = |file: &str, kind: &str| -> Vec<String> {
        let text = sandbox.read(file);
        let rows = text.lines().filter(|row| row.starts_with(&format!("{kind},")));
        rows.map(|row| row.split(',').nth(4).unwrap().to_owned()).collect()
    };
    assert_eq!(
        (leaves("free.csv", "dp"), leaves("free.csv", "tp")),
        (vec!["2".to_owned(); 4], vec!["1".to_owned(); 4])
    );
    assert_eq!(leaves("bordered.csv", "dp"), ["1"; 4]);
}

#[test]
fn the_format_is_one_that_is_known() {
    let sandbox = with_traffic();
    sandbox.edit("p.toml", "path = \"traffic\"", "path = \"traffic\", format = \"matrix\"");
    insta::assert_snapshot!(sandbox.seen(&["check", "p.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `format` must be one of `auto`, `chakra`, `clog2`, `csv`, `dense-matrix`, `flight-recorder`, `hopmap-record`, `ipm`, `kineto`, `matrix-market`, `nccl-inspector`, `openmpi-monitoring`, `otf`, `otf2`, `paraver`, `simgrid`, `simgrid-tagged`, `simgrid-untagged`, `task-graph`, `tau`, found `matrix`
       ,-[p.toml:4:37]
     3 | uses = "trace/import"
     4 | with = { path = "traffic", format = "matrix" }
       :                                     ^^^^|^^^
       :                                         `-- did you mean `matrix-market`?
     5 | 
       `----
    [exit code 2]
    "#);
}

#[test]
fn both_stages_say_what_they_take() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.seen(&["stages", "trace/import"]), @r#"
    trace/import: Import the communication matrix of a recording, or of a file of another tool

    outputs
      task-graph       task-graph

    parameters
      algorithms       default {"allgather":null,"allreduce":null,"alltoall":null,"barrier":null,"bcast":null,"gather":null,"reduce":null,"reduce_scatter":null,"rules":"mpich","scan":null,"scatter":null}
          Algorithms for expanding operations, as in `trace/otf2`. Traces of training jobs follow
          the rules of NCCL
      allow_truncated  default false
          Uses what is before the end of a log that was cut, with a warning instead of an error:
          OTF2 archives, as in `trace/otf2`, and files of CLOG-2, NCCL's Inspector, Paraver and
          SimGrid
      collectives      default "expand"
          Whether collective operations of recordings and OTF2 archives count, as in `trace/otf2`:
          `expand`, `keep` or `ignore`. Open MPI's monitoring counts the messages that they really
          sent; these count with `expand`
            ignore  Not at all
            keep    As operations of their communicators, but not as messages
            expand  As operations of their communicators and as the messages that they consist of
      format           default "auto"
          Format of the file. `auto` recognises it by its contents, not by its name
            auto                Recognised from the contents
            chakra              Chakra execution traces of a training job: the folder of `NAME.RANK.et`, optionally packed, with `comm_group.json`
            clog2               A CLOG-2 file of MPE
            csv                 A header `source,destination,messages,bytes`, then one line per pair. Lines that begin with `#` are comments. Repeated pairs are added up
            dense-matrix        A square matrix as text: a line per sender with the bytes to every receiver, separated by commas, semicolons, tabs or blanks, with or without names of columns and rows
            flight-recorder     Dumps of PyTorch's flight recorder in JSON: the folder of files whose names end in the rank
            hopmap-record       A recording: the folder that `hopmap record` wrote
            ipm                 An XML report of IPM, made with `IPM_REPORT=full` and `IPM_LOG=full`
            kineto              Traces of PyTorch's profiler (Kineto) in JSON, optionally packed: the folder with one per rank
            matrix-market       Matrix Market coordinates: bytes from row to column, counted from one. `symmetric` counts in both directions
            nccl-inspector      Records of the Inspector of NCCL or RCCL in JSON lines, optionally packed: their folder, or a file
            openmpi-monitoring  Profiles of Open MPI's monitoring, `PREFIX.RANK.prof`: their folder, or their prefix
            otf                 An OTF 1 archive, read with the defaults of `trace/otf`
            otf2                An OTF2 archive, read with the defaults of `trace/otf2`
            paraver             A Paraver trace (`.prv`) of Extrae
            simgrid             A time-independent trace of SimGrid: a file of actions, or an index of such files
            simgrid-tagged      Like `simgrid`, with tags in messages (SimGrid N.NN and later), if hopmap cannot infer it
            simgrid-untagged    Like `simgrid`, without tags in messages
            task-graph          A task graph that hopmap has stored in a folder
            tau                 The profiles of TAU in a folder, recorded with `TAU_COMM_MATRIX=1`
      path             required
          The file, or the folder of a recording, an archive, profiles or a stored task graph
      ranks            optional
          Number of ranks. The default is the number in the file, or its highest rank plus one.
          Additional ranks do not communicate
      ranks_per_host   optional
          Ranks per host, for files that do not name hosts: consecutive ranks share a host, such
          as the GPUs of a training job. `blocks = "host"` of the mappers keeps them together
    "#);
    insta::assert_snapshot!(sandbox.seen(&["stages", "trace/export"]), @r"
    trace/export: Export a communication matrix as a text file

    inputs
      task-graph       task-graph

    outputs
      file             text-file

    parameters
      format           required
          Output format. `csv` has the columns source, destination, messages and bytes.
          `matrix-market` has bytes from row to column, and comments with message counts for
          `trace/import`. `svg` is a picture of the bytes
            csv            A header and one line per pair
            matrix-market  Coordinates and bytes
            svg            A picture: senders down, receivers across, bytes as colours
    ");
}
