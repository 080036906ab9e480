//! OTF 1 archives written by the tests, the samples, and comparison with the OTF library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Listener, data, read_otf, sample};
use flate2::{Compress, Compression, FlushCompress};
use hopmap_model::{Context, InputPath, Stage, TaskGraph};
use hopmap_trace::{Otf, OtfParams};
use proptest::prelude::*;

/// An archive in its own folder.
struct Archive {
    folder: tempfile::TempDir,
}

impl Archive {
    /// `files` are file extensions and contents.
    fn new(files: &[(&str, &str)]) -> Self {
        let archive = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            archive.write(name, text.as_bytes());
        }
        archive
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.file(name), bytes).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("a.{name}"))
    }

    fn graph(&self) -> TaskGraph {
        read_otf(self.folder.path(), &Context::detached()).unwrap()
    }

    /// The error message without the path.
    fn refused(&self) -> String {
        let error = read_otf(self.folder.path(), &Context::detached()).unwrap_err();
        assert!(!error.to_string().is_empty());
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    /// The log of reading it.
    fn log(&self) -> Vec<String> {
        let listener = Listener::default();
        read_otf(self.folder.path(), &Context::new(1, None, &listener)).unwrap();
        listener.lines.into_inner().unwrap()
    }
}

fn pairs(graph: &TaskGraph) -> Vec<(u32, u32, u64, u64)> {
    graph.edges.iter().map(|e| (e.source, e.destination, e.messages, e.bytes)).collect()
}

/// Compresses like libotf: flushed, but not finished.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 1000);
    Compress::new(Compression::best(), true).compress_vec(text, &mut bytes, FlushCompress::Full).unwrap();
    bytes
}

const DEFINITIONS: &str =
    "DTR3b9aca00\nDP1NM\"Process 0\"\nDP2NM\"Process 1\"\nDF1G1NM\"MPI_Send\"\nDF2G2NM\"main\"\n";
const EVENTS: &str = "3e8\n*1\nPB\nE2\n7d0\n*1\nE1\nbb8\n*1\nS2L400T7C1\nfa0\n*1\nL1\n1388\n*1\nL2\nPE\n";

fn two(events: &str) -> Archive {
    Archive::new(&[("otf", "1:1\n2:2\n"), ("0.def", DEFINITIONS), ("1.events", events), ("2.events", "")])
}

#[test]
fn the_given_ring_is_read_plain_and_compressed() {
    let Some(data) = data() else { return };
    let ring = [(0, 1, 3, 0x400 + 0x800 + 0xc00), (1, 2, 3, 6144), (2, 3, 3, 6144), (3, 0, 3, 6144)];
    for name in ["otf1/ring.otf", "otf1/ringz.otf"] {
        let graph = read_otf(&data.join(name), &Context::detached()).unwrap();
        assert_eq!(pairs(&graph), ring, "{name}");
        assert_eq!(graph.duration_s, Some(f64::from(0x71c - 0x3e8) / 1e9));
    }
}

#[test]
fn the_sample_gives_the_same_result_plain_and_compressed() {
    let folder = sample("otf-ring-4");
    let plain = read_otf(&folder.join("plain"), &Context::detached()).unwrap();
    let expected = fs::read_to_string(folder.join("expected.csv")).unwrap();
    let lines =
        plain.edges.iter().map(|e| format!("{},{},{},{}\n", e.source, e.destination, e.messages, e.bytes));
    assert_eq!(expected, format!("source,destination,messages,bytes\n{}", lines.collect::<String>()));
    let hosts: Vec<_> = plain.processes.iter().map(|process| process.host.clone().unwrap()).collect();
    assert_eq!(hosts, ["node1", "node1", "node0", "node0"]);
    assert_eq!(plain, read_otf(&folder.join("compressed/ring.otf"), &Context::detached()).unwrap());
}

#[test]
fn messages_times_and_functions_are_read() {
    let graph = two(EVENTS).graph();
    assert_eq!(pairs(&graph), [(0, 1, 1, 0x400)]);
    assert_eq!(graph.duration_s, Some(4e-6));
    // 4000 ticks minus 2000 in MPI_Send.
    assert_eq!(graph.processes[0].compute_s, Some(2e-6));
    assert_eq!(graph.processes[1].compute_s, None);
}

#[test]
fn file_names_do_not_depend_on_the_name_of_the_archive() {
    let archive = two(EVENTS);
    archive.write("1.def", b"");
    archive.write("1f.events", b"not listed");
    fs::remove_file(archive.file("2.events")).unwrap();
    archive.write("2.events.z", &compressed(EVENTS.as_bytes()));
    let params = OtfParams::new(InputPath::new(archive.folder.path()));
    let names: Vec<_> = Otf::reads(&params).unwrap().iter().map(|file| file.name().into_owned()).collect();
    assert_eq!(
        names,
        ["archive.0.def", "archive.1.def", "archive.1.events", "archive.2.events.z", "archive.otf"]
    );
}

#[test]
fn functions_of_a_stream_are_local() {
    let archive = two(EVENTS);
    archive.write("0.def", b"DTR3b9aca00\nDP1\nDP2\nDFG1NM\"MPI\"\nDF1G2NM\"f\"\n");
    assert_eq!(archive.graph().processes[0].compute_s, Some(4e-6));
    archive.write("1.def", b"DF1G1NM\"own\"\n");
    assert_eq!(archive.graph().processes[0].compute_s, Some(2e-6));
}

#[test]
fn records_of_every_kind_are_read() {
    let short = "5\n*1\nK1Y6V0\nE2X1\nL2X1\nE1\nL\nS2L1T2C3X4\nR2L1T2C3\nCNT1V2a\nCOP1C3RT1S8R8D5\nCOPB1H9C3RT1S8R8X1\n\
        COPE9\n#\"a S1\"\nF1H1OP2B64D5\nFA3X1\nFF1MI3H4OP2B64X1\nFB3\nFE1H4OP2B64\nT1P2C3T1L40\nU1P2C3T1L40X1\nG1P2C3T2L40\n\
        M2C3T2\nN\nPB\nPE\n\nTE1T5\nTS2T5L1\nTOF1\nTC\"x\"\nTCOC1\nTCNT1\nTBC1\nTBF1\n";
    let long = "5\n*1\nKEY 1 TYPE 6 VALUE 0\nENTER 2 SCL 1\nLEAVE 2 SCL 1\nENTER 1\nLEAVE \nSEND 2 LEN 1 TAG 2 COMM 3 SCL 4\n\
        RECEIVE 2 LEN 1 TAG 2 COMM 3\nCOUNTER 1 VALUE 2a\nCOLLOP 1 COMM 3\nCOLLOPBEGIN 1\nCOLLOPEND 9\n#EVTCOMMENT \"a S1\"\n\
        FILEOP 1\nFILEOPBEGINNEW 3\nFILEOPENDNEW 1\nFILEOPBEGIN 3\nFILEOPEND 1\nTRMAPUT 1\nURMAPUTRE 1\nGRMAGET 1\nMRMAEND 2\n\
        NOOP\nPROCESSBEGIN\nPROCESSEND\n\nTENTER 1\nTSEND 2\nTOPENFILE 1\nTCOMMENT \"x\"\nTCOLLOPCOUNT 1\nTCOUNTER 1\n\
        TBEGINCOLLOP 1\nTBEGINFILEOP 1\n";
    for text in [short, long] {
        let archive = two(text);
        assert_eq!(pairs(&archive.graph()), [(0, 1, 1, 1)]);
        assert_eq!(
            archive.log(),
            [
                "2 processes, 2 streams, 23 events, 1 messages",
                "collective operations, which are not counted: 2",
                "remote memory accesses, which are not counted: 2",
                "warning: streams without events: 1",
            ]
        );
    }
}

#[test]
fn counters_of_groups_have_a_group_in_place_of_a_process() {
    let archive = two("5\n*3b9aca01\nCNT1V1\n*1\nS2L1T1C1\n");
    assert_eq!(pairs(&archive.graph()), [(0, 1, 1, 1)]);
    assert_eq!(two("5\n*3b9aca01\nE1\n").refused(), "a.1.events:3: `E1`: its process is not defined");
}

#[test]
fn messages_of_threads_count_for_their_process() {
    let archive = Archive::new(&[
        ("otf", "1:1,2,100001\n2:100002,200001\n"),
        (
            "0.def",
            "DP1\nDP2\nDP100001PT1\nDP100002NM\"t\"PT2\nDP200001PT100001\nDPG9M2,1,NM\"MPI_COMM_WORLD\"\n",
        ),
        ("1.events", "5\n*100001\nS2L1T1C1\n*1\nS100002L2T1C1\n*2\nS200001L4T1C1\n"),
        ("2.events", "6\n*200001\nS2L8T1C1\n"),
    ]);
    assert_eq!(pairs(&archive.graph()), [(0, 1, 1, 4), (1, 0, 3, 11)]);
    assert_eq!(archive.graph().duration_s, None);
}

#[test]
fn unknown_data_is_logged() {
    let archive = Archive::new(&[
        ("otf", "1:1,2,3\n"),
        ("0.def", "DTR0\nDP1\nDP2\nDP3\nDPG9M1,2,NM\"MPI_COMM_WORLD\"\n"),
        ("1.events", "5\n*1\nPB\nS3L1T1C1\n4\n*3\nS1L1T1C1\nS3L1T1C1\n"),
    ]);
    assert_eq!(
        archive.log(),
        [
            "2 processes, 1 streams, 4 events, 3 messages",
            "warning: messages from or to processes that are not MPI ranks, which are not counted: 3",
            "warning: processes without an end event, whose events may be truncated: 1",
            "warning: timestamps that decrease: 1",
            "warning: the trace does not define its clock resolution, so times are unknown",
            "warning: no messages between ranks were recorded",
        ]
    );
}

#[test]
fn invalid_events_are_rejected() {
    for (events, message) in [
        ("5\n*1\nQ1\n", "3: `Q1`: not an event of OTF 1"),
        ("5\n*1\nENTR1\n", "3: `ENTR1`: not an event of OTF 1"),
        ("\u{7f}\0\n", "1: `\\u{7f}\\0`: not an event of OTF 1"),
        ("*1\nE1\n", "2: `E1`: missing time before it"),
        ("5\nE1\n", "2: `E1`: missing process before it"),
        ("5\n*7\nE1\n", "3: `E1`: its process is not defined"),
        ("5\n*1\nE\n", "3: `E`: missing number"),
        ("5\n*1\nE1S\n", "3: `E1S`: missing number"),
        ("5\n*1\nE1\r\n", "3: `E1\\r`: unexpected data at the end"),
        ("5x\n", "1: `5x`: unexpected data at the end"),
        ("12345678901234567\n", "1: `12345678901234567`: a number exceeds 64 bits"),
        ("5\n*123456789\n", "2: `*123456789`: a number exceeds 32 bits"),
        ("5\n*1\nS2\n", "3: `S2`: missing length"),
        ("5\n*1\nS2L4\n", "3: `S2L4`: missing tag"),
        ("5\n*1\nS2L4T1\n", "3: `S2L4T1`: missing communicator"),
        ("5\n*1\nS2L100000000T1C1\n", "3: `S2L100000000T1C1`: a number exceeds 32 bits"),
        ("5\n*1\nS9L4T1C1\n", "3: it sends to process 9, which is not defined"),
        ("5\n*1\nN\nS2L4T1C1\nN\nS9L4T1C1\n", "6: it sends to process 9, which is not defined"),
        (
            "5\n*1\n#\"error due to unsorted time stamp, aborted\"\n",
            "3: `#\"error due to unsorted time stamp, abor…`: the writer stopped here, so the rest of the stream is missing",
        ),
    ] {
        assert_eq!(two(events).refused(), format!("a.1.events:{message}"));
    }
}

#[test]
fn invalid_definitions_are_rejected() {
    let refused = |definitions: &str| {
        let archive = two(EVENTS);
        archive.write("0.def", definitions.as_bytes());
        archive.refused()
    };
    for (definitions, message) in [
        ("E1\n", "a.0.def:1: `E1`: not a definition of OTF 1"),
        ("DQ1\n", "a.0.def:1: `DQ1`: not a definition of OTF 1"),
        ("DTR1\nDTR2\n", "a.0.def:2: `DTR2`: conflicting definitions of the timer resolution"),
        ("DP3PT1\nDP3PT2\n", "a.0.def:2: `DP3PT2`: conflicting definitions of the process"),
        ("DP3X\n", "a.0.def:1: `DP3X`: missing name or parent"),
        ("DPG3\n", "a.0.def:1: `DPG3`: missing members"),
        ("DPG3M1,2NM\"x\n", "a.0.def:1: `DPG3M1,2NM\"x`: unterminated text"),
        ("DF3NM\"x\"\n", "a.0.def:1: `DF3NM\"x\"`: missing group"),
        ("DP3PT9\n", "a.0.def: inconsistent definitions: process 9, the parent of process 3, is not defined"),
        ("DP3PT4\nDP4PT3\n", "a.0.def: inconsistent definitions: the parents of process 3 form a cycle"),
    ] {
        assert_eq!(refused(definitions), message);
    }
}

#[test]
fn invalid_master_files_are_rejected() {
    let refused = |master: &str| {
        let archive = two(EVENTS);
        archive.write("otf", master.as_bytes());
        archive.refused()
    };
    let no_master = "`a.otf` is not the master file of an OTF 1 archive: ";
    assert_eq!(refused(""), format!("{no_master}it is empty"));
    assert_eq!(refused("\n\n"), format!("{no_master}it does not list streams"));
    assert_eq!(refused("OTTO font"), format!("{no_master}it is an OpenType font"));
    assert_eq!(refused("\u{3}BOTF2"), format!("{no_master}it does not start like one"));
    assert_eq!(refused("1\n"), "a.otf:1: `1`: missing colon");
    assert_eq!(refused("1:1\n2:1\n"), "a.otf:2: `2:1`: a process is listed twice");
    assert_eq!(refused("0:1\n"), "a.otf:1: `0:1`: stream 0 is reserved for definitions");
    assert_eq!(refused("1:1"), "a.otf:1: the line is cut off");
    assert!(refused("i1:1:8\n").contains("IOFSL"));
    assert_eq!(refused("1:1\n3:3\n"), "`a.3.events` is missing (stream 3), also with `.z`");
    let archive = two(EVENTS);
    fs::remove_file(archive.file("0.def")).unwrap();
    assert_eq!(archive.refused(), "`a.0.def` is missing, also with `.z`");
    fs::remove_file(archive.file("otf")).unwrap();
    assert!(archive.refused().ends_with("does not contain master files"));
    let error = read_otf(&sample("rows-columns-16/eztrace_log.otf2"), &Context::detached()).unwrap_err();
    assert!(error.help().unwrap().to_string().contains("trace/otf2"));
    let other = read_otf(&sample("rows-columns-16.expected.csv"), &Context::detached()).unwrap_err();
    assert!(other.to_string().ends_with("its extension is not `.otf`"));
}

/// Whether a text may be truncated here: at the end of a line.
fn at_end_of_line(text: &str, length: usize) -> bool {
    length == 0 || text.as_bytes()[length - 1] == b'\n'
}

#[test]
fn files_truncated_within_a_line_are_rejected() {
    let archive = two(EVENTS);
    for (name, text) in [("1.events", EVENTS), ("0.def", DEFINITIONS), ("otf", "1:1\n2:2\n")] {
        for length in 0..text.len() {
            archive.write(name, &text.as_bytes()[..length]);
            let read = read_otf(archive.folder.path(), &Context::detached());
            let complete = at_end_of_line(text, length) && (name != "otf" || length > 0);
            assert_eq!(read.is_ok(), complete, "{name}, {length}");
        }
        archive.write(name, text.as_bytes());
    }
    fs::remove_file(archive.file("1.events")).unwrap();
    let bytes = compressed(EVENTS.as_bytes());
    for length in 0..bytes.len() {
        archive.write("1.events.z", &bytes[..length]);
        assert!(archive.refused().starts_with("a.1.events.z:"), "{length}");
    }
    archive.write("1.events.z", &bytes);
    archive.graph();
}

#[test]
fn long_lines_are_read_and_endless_ones_rejected() {
    let archive = two(EVENTS);
    let members: String = (0..400_000).map(|_| "1,").collect();
    archive.write("0.def", format!("{DEFINITIONS}DPG9M{members}NM\"many\"\n").as_bytes());
    archive.graph();
    archive.write("0.def", &vec![b'D'; 65 << 20]);
    assert_eq!(archive.refused(), "a.0.def:1: the line is longer than 64 MiB");
    // As many megabytes, compressed to a few kilobytes.
    fs::remove_file(archive.file("0.def")).unwrap();
    archive.write("0.def.z", &compressed(&vec![b'D'; 65 << 20]));
    assert_eq!(archive.refused(), "a.0.def.z:1: the line is longer than 64 MiB");
}

/// Many streams with messages, some of them faulty.
fn many(faults: &[u32]) -> Archive {
    let (mut master, mut definitions) = (String::new(), String::new());
    for process in 1..=40 {
        writeln!(master, "{process:x}:{process:x}").unwrap();
        writeln!(definitions, "DP{process:x}").unwrap();
    }
    let archive = Archive::new(&[("otf", &master), ("0.def", &definitions)]);
    for process in 1..=40_u32 {
        let mut events = format!("5\n*{process:x}\n");
        for receiver in 1..=40 {
            writeln!(events, "S{receiver:x}L{:x}T1C1", process * receiver).unwrap();
        }
        if faults.contains(&process) {
            events += "oops\n";
        }
        archive.write(&format!("{process:x}.events"), events.as_bytes());
    }
    archive
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let read = |archive: &Archive, threads| {
        let listener = Listener::default();
        let cx = Context::new(threads, None, &listener);
        pool.install(|| read_otf(archive.folder.path(), &cx)).map_err(|error| error.to_string())
    };
    let (valid, broken) = (many(&[]), many(&[3, 4, 39]));
    let (graph, error) = (read(&valid, 1).unwrap(), read(&broken, 1).unwrap_err());
    assert!(error.contains("a.3.events:43"));
    assert_eq!(graph.edges.len(), 1600);
    for _ in 0..5 {
        assert_eq!(read(&valid, 4).unwrap(), graph);
        assert_eq!(read(&broken, 4).unwrap_err(), error);
    }
}

#[test]
fn an_interrupt_ends_reading() {
    let listener = Listener { stop_after: Some(5), ..Listener::default() };
    let error = read_otf(many(&[]).folder.path(), &Context::new(1, None, &listener)).unwrap_err();
    assert_eq!(error.to_string(), "stopped after 5 of 40 streams");
}

/// Operations of a process.
type Events = Vec<(u8, u32, u32)>;

/// Text of a stream in the short or the long format; adds its messages to the matrix.
fn stream_text(
    process: u32,
    events: &Events,
    long: bool,
    sums: &mut BTreeMap<(u32, u32), (u64, u64)>,
) -> String {
    let mut text = String::new();
    for (time, &(kind, peer, bytes)) in events.iter().enumerate() {
        writeln!(text, "{time:x}\n*{process:x}").unwrap();
        match (kind, long) {
            (0, false) => writeln!(text, "S{peer:x}L{bytes:x}T1C3b9aca01"),
            (0, true) => writeln!(text, "SEND {peer:x} LEN {bytes:x} TAG 1 COMM 3b9aca01 SCL 5"),
            (1, false) => writeln!(text, "R{peer:x}L{bytes:x}T1C3b9aca01X5"),
            (1, true) => writeln!(text, "RECEIVE {peer:x} LEN {bytes:x} TAG 1 COMM 3b9aca01"),
            (2, false) => writeln!(text, "E{peer:x}"),
            (2, true) => writeln!(text, "ENTER {peer:x}"),
            (3, false) => writeln!(text, "L{peer:x}"),
            (3, true) => writeln!(text, "LEAVE"),
            (_, false) => writeln!(text, "COP1C3RT{peer:x}S{bytes:x}R0D0"),
            (_, true) => writeln!(text, "COUNTER {peer:x} VALUE {bytes:x}"),
        }
        .unwrap();
        if kind == 0 {
            let sums = sums.entry((process - 1, peer - 1)).or_default();
            *sums = (sums.0 + 1, sums.1 + u64::from(bytes));
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        processes in prop::collection::vec(prop::collection::vec((0..5u8, 1..5u32, any::<u32>()), 0..40), 4),
        long: bool,
        zipped: bool,
        one_stream: bool,
    ) {
        let mut sums = BTreeMap::new();
        let texts = processes.iter().zip(1..).map(|(events, process)| stream_text(process, events, long, &mut sums));
        let texts: Vec<String> = texts.collect();
        let archive = Archive::new(&[("0.def", DEFINITIONS)]);
        let (master, streams) = match one_stream {
            true => ("f:1,2,3,4\n", vec![("f", texts.concat())]),
            false => ("1:1\n2:2\n3:3\n4:4\n", ["1", "2", "3", "4"].into_iter().zip(texts).collect()),
        };
        archive.write("otf", master.as_bytes());
        for (stream, text) in streams {
            match zipped {
                true => archive.write(&format!("{stream}.events.z"), &compressed(text.as_bytes())),
                false => archive.write(&format!("{stream}.events"), text.as_bytes()),
            }
        }
        let expected: Vec<_> = sums.iter().map(|(&(s, d), &(m, b))| (s, d, m, b)).collect();
        prop_assert_eq!(pairs(&archive.graph()), expected);
    }

    #[test]
    fn no_text_makes_it_panic(text in "([0-9a-f]{1,18}\n|\\*[0-9a-f]{1,2}\n|[A-Z#]{1,4}[0-9a-f,]{0,9}[A-Z \"]{0,3}[0-9a-f]{0,3}\n|.){0,30}") {
        let archive = two(&text);
        let _ = read_otf(archive.folder.path(), &Context::detached());
        archive.write("0.def", text.as_bytes());
        let _ = read_otf(archive.folder.path(), &Context::detached());
        archive.write("otf", text.as_bytes());
        let _ = read_otf(archive.folder.path(), &Context::detached());
    }
}

/// Runs a program and returns its output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Messages and bytes per sender and receiver in the output of `otfprint`.
fn printed(master: &Path) -> BTreeMap<(u32, u32), (u64, u64)> {
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for line in output(Command::new("otfprint").arg(master)).lines() {
        let Some((_, fields)) = line.split_once("SendMessage: ") else { continue };
        let number = |name: &str| {
            let value = fields.split(", ").find_map(|field| field.strip_prefix(name)).unwrap();
            value.parse::<u32>().unwrap()
        };
        let sums = sums.entry((number("sender "), number("receiver "))).or_default();
        *sums = (sums.0 + 1, sums.1 + u64::from(number("length ")));
    }
    sums
}

/// Compares archives written by the OTF library with the output of its `otfprint`.
#[test]
fn the_otf_library_agrees() {
    if !hopmap_test_support::system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let writer = folder.path().join("otf_writer");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otf_writer.c");
    output(Command::new("gcc").arg(source).arg("-lopen-trace-format").arg("-o").arg(&writer));
    for (format, processes, streams, rounds) in [(0, 4, 2, 9), (1, 7, 7, 40), (0, 1, 1, 3), (0, 50, 3, 400)] {
        let graph = |level: u32| {
            let name = folder.path().join(format!("{format}-{processes}-{level}"));
            let numbers = [format, level, processes, streams, rounds].map(|number| number.to_string());
            output(Command::new(&writer).arg(&name).args(numbers));
            let master = name.with_extension("otf");
            (read_otf(&master, &Context::detached()).unwrap(), master)
        };
        let (plain, master) = graph(0);
        // Rank 0 is the last process; threads have an extra bit in their numbers.
        let rank = |process: u32| processes - (process & 0xf_ffff);
        let mut expected = BTreeMap::<_, (u64, u64)>::new();
        for ((sender, receiver), (messages, bytes)) in printed(&master) {
            let sums = expected.entry((rank(sender), rank(receiver))).or_default();
            *sums = (sums.0 + messages, sums.1 + bytes);
        }
        let expected: Vec<_> = expected.iter().map(|(&(s, d), &(m, b))| (s, d, m, b)).collect();
        assert!(!expected.is_empty());
        assert_eq!(pairs(&plain), expected);
        assert_eq!(plain, graph(6).0);
    }
}
