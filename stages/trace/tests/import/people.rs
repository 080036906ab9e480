//! Inputs as people have them, after public reports; the right values are those of the folder's README.

use std::path::PathBuf;

use hopmap_model::{Context, InputPath};
use hopmap_test_support::{given_data, with_foreign_lines};
use hopmap_trace::{Format, ImportParams};
use proptest::prelude::*;

use super::flight_recorder::flight_recorder;
use super::kineto::kineto;
use super::{Files, Read, clog2, import, record, tau, training};
use crate::support::Listener;

/// A file or folder of the reports, if they are here.
fn report(name: &str) -> Option<PathBuf> {
    Some(given_data()?.join("reports").join(name))
}

fn read_by(path: PathBuf, ask: impl FnOnce(&mut ImportParams)) -> Read {
    let mut params = ImportParams::new(InputPath::new(path));
    ask(&mut params);
    let listener = Listener::default();
    let result = import(params, &Context::new(1, None, &listener));
    let result = result
        .map_err(|error| (error.to_string(), error.help().map_or(String::new(), |help| help.to_string())));
    Read { result, log: listener.lines.into_inner().unwrap() }
}

fn read(path: PathBuf) -> Read {
    read_by(path, |_| {})
}

const SILENT: &str = "warning: no messages between ranks were recorded";

#[test]
fn persistent_sends_of_ipm_are_said() {
    let Some(path) = report("ipm-persistent.xml") else { return };
    let log = read(path).log;
    let persistent = "warning: persistent sends (MPI_Send_init) of 4000000 bytes per start, which are not counted, as IPM \
                      does not record which of them the 200 calls of MPI_Start and MPI_Startall start: 4";
    assert_eq!(log, ["format: ipm", persistent, SILENT]);
}

#[test]
fn nearly_valid_json_of_pytorch_is_read() {
    let Some(kineto) = report("kineto") else { return };
    for fault in ["inf", "utf8"] {
        let read = read(kineto.join(fault));
        let graph = read.graph();
        assert_eq!((graph.ranks(), graph.messages(), graph.bytes()), (4, 16, 32_000), "{fault}");
        let warning = "warning: invalid JSON in 4 files";
        assert!(read.log.iter().any(|line| line.starts_with(warning)) || fault == "utf8", "{:?}", read.log);
    }
    // A folder per rank.
    let names: Vec<(String, Vec<u8>)> = (0..4)
        .map(|rank| {
            let file = std::fs::read(kineto.join(format!("inf/rank{rank}.json"))).unwrap();
            let text = String::from_utf8(file).unwrap();
            let text = text.replace("\"rank\": ", "\"number\": ").replace("\"ts\": 1100", "\"ts\": \"1100\"");
            (format!("node{rank}/trace_99.json"), text.into_bytes())
        })
        .collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    assert_eq!(Files::new(&files).auto().pairs(), read(kineto.join("inf")).pairs());
}

#[test]
fn operations_that_some_ranks_did_not_keep_are_said() {
    let Some(path) = report("flight/wrap") else { return };
    let read = read(path);
    let warning = "1 of 3 collective operations are not in the traces of all members";
    assert!(read.log.iter().any(|line| line.ends_with(warning)), "{:?}", read.log);
    assert_eq!(read.graph().collectives.calls.iter().map(|calls| calls.calls).sum::<u64>(), 2);
}

#[test]
fn a_cut_log_of_the_inspector_is_refused_with_the_way_out() {
    let Some(path) = report("inspector/cutline") else { return };
    let (_, help) = read(path.clone()).result.unwrap_err();
    assert!(help.contains("`allow_truncated = true`"), "{help}");
    assert_eq!(read_by(path, |params| params.allow_truncated = true).graph().ranks(), 4);
}

#[test]
fn profiles_of_threads_without_user_events_are_read() {
    let Some(path) = report("tau-threads") else { return };
    let read = read(path);
    assert_eq!(read.graph().ranks(), 3);
    assert!(read.graph().edges.iter().any(|edge| edge.pair() == (0, 1) && edge.bytes == 2304));
}

#[test]
fn files_of_an_index_are_relative_to_the_folder_of_the_run() {
    let Some(path) = report("ti/out/t.txt") else { return };
    let read = read(path);
    assert_eq!(read.pairs(), [(0, 1, 1, 2800), (1, 2, 1, 2800), (2, 3, 1, 2800), (3, 0, 1, 2800)]);
    assert!(read.log[1].starts_with("files of the index are relative to "), "{:?}", read.log);
}

#[test]
fn every_input_without_messages_is_said() {
    for silent in [
        "source,destination,messages,bytes\n0,0,1,1\n".to_owned(),
        "0 0\n0 0\n".into(),
        "%%MatrixMarket matrix coordinate integer general\n2 2 0\n".into(),
        super::paraver::HEADER.into(),
        "0 init\n1 init\n0 barrier\n1 barrier\n".into(),
        super::ipm::sample().replace("MPI_S", "MPI_X").replace("MPI_Is", "MPI_X"),
    ] {
        let read = Files::one(&silent).auto();
        assert_eq!(read.log.last().map(String::as_str), Some(SILENT), "{:?}", read.log);
    }
    assert!(!clog2::sample().auto().log.iter().any(|line| line == SILENT));
}

#[test]
fn archives_and_profiles_of_score_p_are_named_for_what_they_are() {
    let two = Files::new(&[("a/x.otf2", ""), ("b/y.otf2", "")]);
    let (problem, help) = two.auto().result.unwrap_err();
    assert!(problem.contains("contains several anchor files: a/x.otf2, b/y.otf2"), "{problem}");
    assert!(help.contains("pass the path of the anchor file"), "{help}");
    let profile = Files::new(&[("profile.cubex", ""), ("scorep.cfg", "")]);
    let parts = Files::new(&[("t.otf2", ""), ("t.def", ""), ("t/0.evt", "")]);
    for (path, problem, help) in [
        (profile.path(""), "is a profile of Score-P", "SCOREP_ENABLE_TRACING"),
        (profile.path("profile.cubex"), "is a profile of Score-P", "SCOREP_ENABLE_TRACING"),
        (parts.path("t.def"), "is a part of an OTF2 archive", "t.otf2`"),
        (parts.path("t/0.evt"), "is a part of an OTF2 archive", "t.otf2`"),
    ] {
        for format in [Format::Auto, Format::Otf2] {
            let (found, hint) = read_by(path.clone(), |params| params.format = format).result.unwrap_err();
            assert!(found.contains(problem) && hint.contains(help), "{found} {hint}");
        }
    }
}

/// Files in text formats; `~` becomes a Latin-1 letter.
const TEXTS: [fn() -> Files; 14] = [
    || Files::one(format!("# ~\n{}", super::simgrid::TAGGED)),
    || Files::one(format!("{}# ~\n{}", super::paraver::HEADER, super::paraver::RECORDS)),
    || Files::one("%%MatrixMarket matrix coordinate integer general\n% ~\n2 2 1\n1 2 7\n"),
    || Files::one("# ~\nsource,destination,messages,bytes\n0,1,2,3\n"),
    || Files::one("% ~\n0 1\n\x1b[1m1 0\x1b[0m\n"),
    || Files::one("a b c d\n0 1 2 3\n1 0 2 3\n1 2 0 3\n1 2 3 0\n"),
    || Files::one(super::ipm::sample()),
    || Files::new(&super::simgrid::INDEX),
    kineto,
    flight_recorder,
    training::inspector,
    training::chakra,
    tau::sample,
    record::profiles,
];

/// Notes about that many lines of other programs, which name the file where there are several.
fn said(read: &Read, count: usize, first: usize) -> usize {
    let said = format!("warning: lines of other programs, skipped: {count}, the first in line {first}");
    let begins = |line: &&String| line.strip_prefix(&said).is_some_and(|rest| rest.starts_with([':', ' ']));
    read.log.iter().filter(begins).count()
}

/// Lines that programs print beside JSON, which nothing else tells from a file.
const PRINTED: [&str; 11] = [
    "+ ./app --size 4",
    "-----",
    "WARNING: no {memory}",
    "n1:123:456 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
    "done",
    "[rank0]: started",
    "[0] step 1",
    "{'loss': 2.5}",
    "t",
    "0 of 4 {\"a\": [",
    "srun: error: killed",
];

proptest! {
    #[test]
    fn lines_of_other_programs_and_bytes_of_latin_1_are_no_part_of_a_trace(
        (sample, file) in (0..TEXTS.len(), any::<prop::sample::Index>()),
        places in prop::collection::vec(any::<(usize, usize)>(), 1..5),
        is_cut in any::<bool>(),
    ) {
        let files = TEXTS[sample]();
        let whole = files.auto();
        let is_text = |name: &&String| !name.contains(".et") && *name != "tau.conf";
        let names: Vec<&String> = files.names.iter().filter(is_text).collect();
        let path = files.path(names[file.index(names.len())]);
        let (bytes, count, first) = with_foreign_lines(&std::fs::read_to_string(&path).unwrap(), &places, is_cut);
        std::fs::write(path, bytes).unwrap();
        let read = files.auto();
        prop_assert_eq!(&read.result, &whole.result);
        prop_assert_eq!(said(&read, count, first), 1, "{:?}", read.log);
        prop_assert_eq!(read.log.len(), whole.log.len() + 1);
    }

    /// Once text behind the last brace was refused, in its line or in the next.
    #[test]
    fn text_around_json_is_no_part_of_it(
        (sample, file) in (0..4usize, any::<prop::sample::Index>()),
        before in prop::collection::vec(0..PRINTED.len(), 0..4),
        behind in prop::collection::vec(0..PRINTED.len(), 1..4),
        in_line in any::<bool>(),
    ) {
        let files = [training::chakra, kineto, flight_recorder, training::inspector][sample]();
        let whole = files.auto();
        let names: Vec<&String> = files.names.iter().filter(|name| !name.contains(".et")).collect();
        let path = files.path(names[file.index(names.len())]);
        let json = std::fs::read_to_string(&path).unwrap();
        let printed = |lines: &[usize]| lines.iter().map(|line| PRINTED[*line].to_owned() + "\n").collect::<String>();
        let end = if in_line { "" } else { "\n" };
        std::fs::write(&path, printed(&before) + json.trim_end() + end + &printed(&behind)).unwrap();
        let read = files.auto();
        prop_assert_eq!(&read.result, &whole.result);
        let first = if before.is_empty() { json.trim_end().lines().count() + usize::from(!in_line) } else { 1 };
        let count = before.len() + behind.len();
        prop_assert_eq!(said(&read, count, first), 1, "{:?}", read.log);
        prop_assert_eq!(read.log.len(), whole.log.len() + 1);
    }
}

/// What is damaged or may be another document is not text of another program.
#[test]
fn a_second_document_is_refused() {
    for behind in ["}", ", \"a\": 1}", "{}", "[1, 2]", "[", "12", "\"a\""] {
        let files = flight_recorder();
        let path = files.path(&files.names[0]);
        let json = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, json.trim_end().to_owned() + behind).unwrap();
        let (problem, _) = files.auto().result.unwrap_err();
        assert!(problem.ends_with(": trailing characters"), "{behind} {problem}");
    }
}
