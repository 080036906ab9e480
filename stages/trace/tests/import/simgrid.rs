//! Time-independent traces of SimGrid.

use hopmap_trace::Format;

use crate::{Files, import_path};

/// Doubles where no type stands; the last rank is silent.
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

/// Bytes where no type stands, in a file for each rank.
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
    let said = "2 collective operations and accesses to remote memory, one per process, do not count";
    assert_eq!(read.log, ["format: simgrid", said]);
}

#[test]
fn an_index_of_files_without_tags() {
    let files = Files::new(&INDEX);
    let read = files.auto();
    assert_eq!(read.pairs(), [(0, 1, 2, 1100), (1, 2, 1, 40)]);
    assert_eq!(read.graph().ranks(), 3);
    std::fs::remove_file(files.path("actions/rank1.txt")).unwrap();
    let refused = files.refused();
    assert_eq!(refused, "`trace`, line 3: there is no file `actions/rank1.txt`");
}

#[test]
fn types_that_smpi_does_not_number_are_counted_in_bytes() {
    let read = Files::one("0 init\n0 send 1 0 64 -1\n0 send 1 0 64 20\n0 send 1 0 64 4\n").auto();
    assert_eq!(read.pairs(), [(0, 1, 3, 64 + 64 + 512)]);
}

#[test]
fn tags_that_cannot_be_seen_are_asked_for() {
    let files = Files::one("0 init\n0 send 1 2 3\n");
    let asked = "`trace`: whether its messages have tags cannot be seen: say `format = \"simgrid-tagged\"` or \
                 `format = \"simgrid-untagged\"`";
    assert_eq!(files.refused(), asked);
    let bytes = |format| import_path(&files.path("trace"), format).unwrap().bytes();
    assert_eq!((bytes(Format::SimgridTagged), bytes(Format::SimgridUntagged)), (3, 4));
    // A size with an exponent is no tag, and a large number no type.
    assert_eq!(Files::one("0 init\n0 send 1 2e3 0\n").auto().pairs(), [(0, 1, 1, 16000)]);
    assert_eq!(Files::one("0 init\n0 send 1 2 3000\n").auto().pairs(), [(0, 1, 1, 3000)]);
}

#[test]
fn communicators_are_warned_of() {
    let read = Files::one("0 init\n0 comm_split\n0 send 1 2\n").auto();
    assert_eq!(
        read.log[1],
        "the program splits communicators, and the trace does not say through which a message goes: all ranks count as \
         ranks of the program"
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    for (actions, what) in [
        ("0 init\n0 dance\n", "`trace`, line 2: `dance` is no action that is known"),
        ("0 init\n0\n", "`trace`, line 2: the action is missing"),
        ("0 init\nx init\n", "`trace`, line 2: the rank `x` is not a whole number"),
        ("0 init\n99999999 init\n", "`trace`, line 2: the rank `99999999` is not below 16777216"),
        ("0 init\n0 send 1\n", "`trace`, line 2: `send` has from 2 to 4 arguments"),
        ("0 init\n0 send 1 5.5\n", "`trace`, line 2: the size `5.5` is not a whole number"),
        ("0 init\n0 send -1 5\n", "`trace`, line 2: the destination `-1` is negative"),
        ("0 init\n0 send 1 5\n0 send 1 2 3 4\n", "`trace`: some messages have a tag and some have none"),
        ("0 init\n1 init 1\n", "`trace`: some ranks say `init` with an argument and some without"),
        (
            "0 init\n0 sendRecv 8 2 8 2 0 0\n",
            "`trace`, line 2: `sendRecv` names its partner by process id and not by rank, and SimGrid does not replay it",
        ),
        (
            "0 init 1\n0 send 1 18446744073709551615\n",
            "the messages or bytes of all pairs in `trace` exceed 64 bits",
        ),
    ] {
        assert_eq!(Files::one(actions).refused(), what);
    }
}
