//! Reads generated traces back: the graph must match the pattern.

use crate::support::{Listener, otf2_params, read_otf2};
use hopmap_model::{Context, Inputs, Outcome, Stage, TaskGraph, TraceArchive};
use hopmap_trace::{Generate, GenerateParams, Pattern};

fn generate(params: GenerateParams, cx: &Context<'_>) -> Result<(TraceArchive, TaskGraph), String> {
    match Generate::run(params, Inputs::new(), cx).map_err(|error| error.to_string())? {
        Outcome::Done(outputs) => {
            let archive: &TraceArchive = outputs.get("archive").unwrap().downcast_ref().unwrap();
            let graph: &TaskGraph = outputs.get("task-graph").unwrap().downcast_ref().unwrap();
            graph.check().unwrap();
            Ok((archive.clone(), graph.clone()))
        }
        other => panic!("{other:?}"),
    }
}

fn params(pattern: Pattern, ranks: u32, events: u64) -> GenerateParams {
    GenerateParams { pattern, ranks, events, seed: 7 }
}

#[test]
fn reading_gives_the_generated_messages() {
    for pattern in Pattern::ALL {
        for (ranks, events) in [(2, 100), (7, 5_000), (16, 20_000), (36, 30_000), (60, 150_000)] {
            let (archive, expected) = generate(params(pattern, ranks, events), &Context::detached()).unwrap();
            let listener = Listener::default();
            let graph =
                read_otf2(archive.file("traces.otf2").unwrap(), &Context::new(2, None, &listener)).unwrap();
            assert_eq!(graph, expected, "{pattern:?} {ranks}");
            let [line] = listener.lines.into_inner().unwrap().try_into().unwrap();
            let read: u64 = line.split(' ').nth(4).unwrap().parse().unwrap();
            assert!(read.abs_diff(events) * 2 <= events, "{pattern:?} {ranks}: {read} events");
        }
    }
}

#[test]
fn a_message_through_a_row_reaches_the_neighbour_in_the_row() {
    let (archive, graph) = generate(params(Pattern::Rows, 12, 5_000), &Context::detached()).unwrap();
    let of_five: Vec<_> =
        graph.edges.iter().filter(|edge| edge.source == 5).map(|edge| edge.destination).collect();
    assert_eq!(of_five, [4, 6]);
    // Twelve ranks with two files each, the anchor file and the definitions.
    assert_eq!(
        hopmap_trace::Otf2::reads(&otf2_params(
            archive.file("traces.otf2").unwrap(),
            hopmap_trace::Reader::Auto
        ))
        .unwrap()
        .len(),
        26
    );
}

#[test]
fn the_same_parameters_give_the_same_bytes() {
    let bytes = |seed| {
        let params = GenerateParams { seed, ..params(Pattern::Random, 9, 3_000) };
        let (archive, graph) = generate(params, &Context::detached()).unwrap();
        let contents =
            archive.files().iter().map(|(name, path)| (name.clone(), std::fs::read(path).unwrap()));
        (contents.collect::<Vec<_>>(), graph)
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1).0, bytes(2).0);
    assert_ne!(bytes(1).1, bytes(2).1);
}

/// libotf2 reads an archive and writes it again with the same bytes, except for the random identifier.
#[test]
#[cfg(feature = "libotf2")]
fn the_bytes_match_libotf2() {
    use std::{fs, path::Path};
    const IDENTIFIER: std::ops::Range<usize> = 53..61;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("otf2_copy");
    let flags = run("pkg-config", &["--cflags", "--libs", "otf2"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otf2_copy.c");
    let fixed = [source.to_str().unwrap(), "-o", program.to_str().unwrap()];
    run("cc", &fixed.into_iter().chain(flags.split_whitespace()).collect::<Vec<_>>());
    // The last one has several chunks.
    for (pattern, ranks, events) in
        [(Pattern::Rows, 12, 5_000), (Pattern::Random, 300, 50_000), (Pattern::Stencil3d, 2, 500_000)]
    {
        let (archive, _) = generate(params(pattern, ranks, events), &Context::detached()).unwrap();
        let copies = folder.path().join(format!("{ranks}"));
        let anchor = archive.file("traces.otf2").unwrap();
        run(program.to_str().unwrap(), &[anchor.to_str().unwrap(), copies.to_str().unwrap()]);
        assert_eq!(archive.files().len(), 2 + 2 * ranks as usize);
        for (name, path) in archive.files() {
            let mut bytes = [path.clone(), copies.join(name)].map(|path| fs::read(path).unwrap());
            if name == "traces.otf2" {
                bytes.each_mut().iter_mut().for_each(|bytes| bytes[IDENTIFIER].fill(0));
            }
            let [ours, theirs] = bytes;
            assert!(ours == theirs, "{pattern:?} {ranks} {name}");
        }
    }
}

#[cfg(feature = "libotf2")]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn otf2_print_reads_every_message() {
    let (archive, graph) = generate(params(Pattern::Stencil2d, 16, 400_000), &Context::detached()).unwrap();
    let anchor = archive.file("traces.otf2").unwrap();
    let Some(program) = hopmap_test_support::program("otf2-print") else { return };
    let printed = std::process::Command::new(program).arg(anchor).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let lines = String::from_utf8(printed.stdout).unwrap();
    let sends = lines.lines().filter(|line| line.starts_with("MPI_SEND ")).count();
    assert_eq!(sends as u64, graph.messages());
}

#[test]
fn files_are_removed_with_the_archive() {
    let (archive, _) = generate(params(Pattern::Rows, 4, 1_000), &Context::detached()).unwrap();
    let path = archive.file("traces.otf2").unwrap().to_owned();
    let other = archive.clone();
    drop(archive);
    assert!(path.exists());
    drop(other);
    assert!(!path.exists());
}

#[test]
fn an_interrupt_is_an_error() {
    let listener = Listener { stop_after: Some(3), ..Listener::default() };
    let error = generate(params(Pattern::Rows, 9, 1_000), &Context::new(1, None, &listener)).unwrap_err();
    assert_eq!(error, "stopped after 3 of 9 ranks");
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = |ranks, events| {
        let params = GenerateParams { pattern: Pattern::AllToAll, ranks, events, seed: 7 };
        Generate::check(&params).unwrap_err().to_string()
    };
    assert_eq!(refused(1, 1000), "`ranks` = 1 is out of range");
    assert_eq!(refused(70_000, 1000), "`ranks` = 70000 is out of range");
    assert_eq!(refused(64, 10_000), "`events` = 10000 is too small: one round has 40448 events");
}
