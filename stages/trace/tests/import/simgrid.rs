//! Time-independent traces of SimGrid.

use std::path::Path;
use std::process::Command;

use hopmap_trace::Format;

use super::{Files, import_path, packed};

/// Datatypes default to doubles; the last rank is silent.
pub(crate) const TAGGED: &str = "0 init 1\n\
    0 comm_size 4\n\
    0 compute 1e6\n\
    0 send 1 42 10\n\
    0 isend 2 7 1e3 6\n\
    1 init 1\n\
    1 recv 0 42 10\n\
    1 allreduce 8 0 0\n\
    1 Isend 0 0 3.0 1\n\
    2 init 1\n\
    2 irecv 0 7 1e3 6\n\
    2 wait 0 2 7\n\
    3 init 1\n\
    3 barrier\n";

/// Datatypes default to bytes; one file per rank.
pub(crate) const INDEX: [(&str, &str); 4] = [
    ("trace", "# one line per rank\nactions/rank0.txt\nactions/rank1.txt\n\nactions/rank2.txt\n"),
    ("actions/rank0.txt", "0 init\n0 send 1 100\n0 send 1 1e3 6\n0 finalize\n"),
    ("actions/rank1.txt", "1 init\n1 recv 0 100\n1 Irecv 0 1e3 6\n1 wait\n1 send 2 5 0\n1 finalize\n"),
    ("actions/rank2.txt", "2 init\n2 finalize\n"),
];

#[test]
fn actions_with_tags() {
    let read = Files::one(TAGGED).auto();
    assert_eq!(read.pairs(), [(0, 1, 1, 80), (0, 2, 1, 1000), (1, 0, 1, 12)]);
    assert_eq!(read.graph().ranks(), 4);
    assert!(read.graph().processes.iter().all(|process| process.compute_s.is_none()));
    let warning = "warning: collective operations and remote memory accesses (once per process), which are not counted: 2";
    assert_eq!(read.log, ["format: simgrid", warning]);
}

#[test]
fn an_index_of_files_without_tags() {
    let files = Files::new(&INDEX);
    let read = files.auto();
    assert_eq!(read.pairs(), [(0, 1, 2, 1100), (1, 2, 1, 40)]);
    assert_eq!(read.graph().ranks(), 3);
    std::fs::remove_file(files.path("actions/rank1.txt")).unwrap();
    let refused = files.refused();
    assert_eq!(refused, "trace:3: file `actions/rank1.txt` does not exist");
    std::fs::remove_file(files.path("actions/rank0.txt")).unwrap();
    let missing = "line 2 is wrong: file `actions/rank0.txt` does not exist";
    assert_eq!(
        files.refused(),
        format!("`trace` has an unknown format; as an index of `simgrid`, {missing}")
    );
    // Once packed files of an index did not exist.
    let name = |name: &str| if name == "trace" { name.into() } else { format!("{name}.gz") };
    let files = INDEX.map(|(file, text)| (name(file), packed(text)));
    let read = Files::new(&files.each_ref().map(|(name, text)| (name.as_str(), text))).auto();
    assert_eq!(read.pairs(), [(0, 1, 2, 1100), (1, 2, 1, 40)]);
}

/// Output of SMPI 3.32 for a program with all kinds of messages, on its own communicators.
#[test]
fn every_action_of_smpi_is_read() {
    let rank0 = "0 init\n0 compute 1.03874\n0 irecv 1 7 100 0\n0 isend 1 7 100 0\n0 waitall 2\n0 send 1 3 50 7\n\
                 0 Ssend 1 1 10 1\n0 ISsend 1 1 3 1\n0 wait 0 1 1\n0 bsend 1 1 4 1\n0 ibsend 1 1 5 1\n0 Start 1 1 32 1\n\
                 0 send -333 1 9 1\n0 sendRecv 9 1 9 1 3 3\n0 Win_fence\n0 Put 1 0 11 6\n0 Accumulate 1 0 1 1\n\
                 0 wait -333 -333 -779\n0 reducescatter 0 1 \n0 allreduce 1 0 1 \n0 finalize\n";
    let rank1 =
        "1 init\n1 recv -333 3 33 6\n1 Start 1 1 32 1\n1 send 0 3 2 -1\n1 sendRecv 9 0 9 0 3 3\n1 finalize\n";
    let read = Files::one(format!("{rank0}{rank1}")).auto();
    let to_1 = 100 * 8 + 50 * 8 + 10 * 4 + 3 * 4 + 4 * 4 + 5 * 4 + 32 + 9 * 2;
    assert_eq!(read.pairs(), [(0, 1, 8, to_1), (1, 0, 2, 2 + 9 * 2)]);
    assert_eq!(
        read.log[1..],
        [
            "warning: collective operations and remote memory accesses (once per process), which are not counted: 4",
            "warning: the trace does not contain the sizes of user-defined types: each element counts as one byte",
        ]
    );
}

#[test]
fn ambiguous_tags_require_an_explicit_format() {
    let files = Files::one("0 init\n1 init\n0 send 1 2 3\n");
    let asked = "trace: cannot infer whether its messages have tags: set `format = \"simgrid-tagged\"` or \
                 `format = \"simgrid-untagged\"`";
    assert_eq!(files.refused(), asked);
    let bytes = |format| import_path(&files.path("trace"), format).unwrap().bytes();
    assert_eq!((bytes(Format::SimgridTagged), bytes(Format::SimgridUntagged)), (3, 4));
    // A size with an exponent is not a tag, and a large number is not a datatype.
    assert_eq!(Files::one("0 init\n1 init\n0 send 1 2e3 0\n").auto().pairs(), [(0, 1, 1, 16000)]);
    assert_eq!(Files::one("0 init\n1 init\n0 send 1 2 3000\n").auto().pairs(), [(0, 1, 1, 3000)]);
}

#[test]
fn invalid_lines_are_rejected_with_their_number() {
    for (actions, what) in [
        ("0 init\n0 dance\n", "trace:2: unknown action `dance`"),
        ("0 init\n0\n", "trace:2: the action is missing"),
        ("0 init\nx init\n", "trace:2: the rank `x` is not an integer"),
        ("0 init\n99999999 init\n", "trace:2: the rank `99999999` is not below 16777216"),
        ("0 init\n0 send 1\n", "trace:2: `send` has from 2 to 4 arguments"),
        ("0 init\n0 send 1 5.5\n", "trace:2: the size `5.5` is not an integer"),
        ("0 init\n0 send x 5\n", "trace:2: the destination `x` is not an integer"),
        ("0 init\n0 send 1 5\n0 send 1 2 3 4\n", "trace: some messages have tags and some do not"),
        ("0 init\n1 init 1\n", "trace: some ranks have `init` with an argument and some without"),
        ("0 init\n0 sendRecv 8 2 8 2\n", "trace:2: `sendRecv` has 6 arguments"),
        ("0 init\n0 send 0 1 8 99\n", "trace:2: unknown datatype `99`"),
        ("0 init\n0 send 2 8\n2 init\n", "trace: rank 1 of 3 has no action, not even `init`"),
        ("0 init\n0 send 1 8\n", "trace: rank 1 of 2 has no action, not even `init`"),
        (
            "0 init 1\n0 send 0 18446744073709551615\n",
            "trace:2: the messages or bytes of all pairs exceed 64 bits",
        ),
    ] {
        assert_eq!(Files::one(actions).refused(), what);
    }
}

const PLATFORM: &str = "<?xml version='1.0'?>\n\
    <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
    <platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><cluster id=\"c\" prefix=\"h\" radical=\"0-3\" suffix=\"\" \
    speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"/></zone></platform>\n";

/// Runs a program to completion.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_trace_recorded_by_smpi_has_the_messages_of_the_program() {
    if !hopmap_test_support::system_tests() {
        return;
    }
    if Command::new("smpirun").arg("-version").output().is_err() {
        hopmap_test_support::skipped("SimGrid is not installed (libsimgrid-dev)");
        return;
    }
    let files = Files::new(&[("platform.xml", PLATFORM), ("hosts", "h0\nh1\nh2\nh3\n")]);
    let folder = files.path("");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/smpi_program.c");
    run(Command::new("smpicc").arg(source).arg("-o").arg("program").current_dir(&folder));
    run(Command::new("smpirun")
        .args(["-np", "4", "-hostfile", "hosts", "-platform", "platform.xml", "-trace-ti"])
        .args(["--cfg=tracing/filename:trace", "./program"])
        .current_dir(&folder));
    let read = files.auto();
    let (ring, pair, back) = (100 * 8, (1..=8).sum::<u64>() * 4 + 2 * 9 * 2, 2 * 9 * 2);
    assert_eq!(
        read.pairs(),
        [
            (0, 1, 1, ring),
            (0, 2, 10, pair),
            (1, 2, 1, ring),
            (1, 3, 10, pair),
            (2, 0, 2, back),
            (2, 3, 1, ring),
            (3, 0, 1, ring),
            (3, 1, 2, back),
        ]
    );
}
