//! Reads real archives, complete and damaged.

use std::fs;
use std::path::Path;

use crate::support::{
    Copy, Listener, OTHER, archives, data, otf2_params, read_csv, read_otf2, read_with, sample,
};
use hopmap_model::{Context, Stage};
use hopmap_trace::{Otf2, Reader};

fn read(path: &Path) -> hopmap_model::TaskGraph {
    read_otf2(path, &Context::detached()).unwrap()
}

#[test]
fn rows_and_columns_are_what_the_program_sent() {
    let graph = read(&sample("rows-columns-16"));
    let expected = read_csv(&sample("rows-columns-16.expected.csv")).unwrap();
    assert_eq!(graph.edges, expected.edges);
    assert_eq!(graph.ranks(), 16);
    assert!(graph.processes.iter().all(|process| process.host.is_some()));
}

#[test]
fn lammps_is_read_and_losses_of_eztrace_are_logged() {
    let listener = Listener::default();
    let graph =
        read_otf2(&sample("lammps-melt-16/eztrace_log.otf2"), &Context::new(2, None, &listener)).unwrap();
    assert_eq!((graph.ranks(), graph.edges.len()), (16, 64));
    assert_eq!((graph.messages(), graph.bytes()), (6208, 28_177_904));
    assert_eq!(
        *listener.lines.lock().unwrap(),
        [
            "16 processes, 16 locations, 59584 events, 6208 messages",
            "warning: calls of MPI_Sendrecv and its variants whose messages are missing from the trace and the matrix \
             (EZTrace does not record them): 640",
            "collective operations, which are not counted (`collectives = \"expand\"` counts them): 2112",
        ]
    );
    let expected: Vec<_> = (1..=16).map(|done| (done, 16)).collect();
    assert_eq!(*listener.progress.lock().unwrap(), expected);
}

#[test]
fn computing_times_are_shorter_than_the_trace() {
    for name in ["rows-columns-16", "lammps-melt-16"] {
        let graph = read(&sample(name));
        let duration = graph.duration_s.unwrap();
        assert!(duration > 0.0 && duration < 60.0, "{duration}");
        for process in &graph.processes {
            let compute = process.compute_s.unwrap();
            assert!(compute > 0.0 && compute < duration, "{compute} of {duration}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let listener = Listener::default();
    let one = read_otf2(&sample("rows-columns-16"), &Context::new(1, None, &listener)).unwrap();
    let many = read_otf2(&sample("rows-columns-16"), &Context::new(5, None, &listener)).unwrap();
    assert_eq!(one, many);
}

#[test]
fn archives_with_a_known_matrix_match_it() {
    let Some(data) = data() else { return };
    let mut archives = 0;
    for expected in fs::read_dir(data.join("expected")).unwrap() {
        let expected = expected.unwrap().path();
        let name =
            expected.file_name().unwrap().to_str().unwrap().strip_suffix(".p2p.txt").unwrap().to_owned();
        let graph = read(&data.join(&name));
        let edges: Vec<_> = graph
            .edges
            .iter()
            .map(|e| [u64::from(e.source), u64::from(e.destination), e.messages, e.bytes])
            .collect();
        let text = fs::read_to_string(expected).unwrap();
        let mut lines: Vec<[u64; 4]> = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
            .map(|line| {
                let numbers: Vec<u64> =
                    line.split_whitespace().map(|number| number.parse().unwrap()).collect();
                numbers.try_into().unwrap()
            })
            .collect();
        lines.sort_unstable();
        assert_eq!(edges, lines, "{name}");
        archives += 1;
    }
    assert!(archives >= 10, "{archives}");
}

#[test]
fn scorep_archives_name_their_nodes() {
    let Some(data) = data() else { return };
    let graph = read(&data.join("pipit-ping-pong"));
    assert!(graph.processes.iter().all(|process| process.host.as_deref() == Some("quartz10")));
    // 418210708 ticks at 2095197216 Hz.
    assert!((graph.duration_s.unwrap() - 0.1996).abs() < 0.001, "{:?}", graph.duration_s);
}

#[test]
fn keys_do_not_depend_on_the_name_of_the_archive() {
    let names = |path: &Path| {
        let files = Otf2::reads(&otf2_params(path, Reader::Auto)).unwrap();
        files
            .iter()
            .map(|file| (file.name().into_owned(), fs::read(file.path()).unwrap()))
            .collect::<Vec<_>>()
    };
    let copy = Copy::of(&sample("rows-columns-16"));
    for name in ["eztrace_log.otf2", "eztrace_log.def", "eztrace_log"] {
        fs::rename(copy.file(name), copy.file(&name.replace("eztrace_log", "my.run"))).unwrap();
    }
    let original = names(&sample("rows-columns-16/eztrace_log.otf2"));
    assert_eq!(original.len(), 34);
    assert_eq!(names(&copy.file("my.run.otf2")), original);
    assert_eq!(read(copy.path()), read(&sample("rows-columns-16")));
}

#[test]
fn an_interrupt_is_an_error() {
    for reader in [Reader::Native, OTHER] {
        for (stop, threads) in [(0, 1), (3, 1), (3, 4)] {
            let listener = Listener { stop_after: Some(stop), ..Listener::default() };
            let error =
                read_with(&sample("rows-columns-16"), reader, &Context::new(threads, None, &listener))
                    .unwrap_err();
            assert!(error.to_string().ends_with("of 16 locations"), "{error}");
        }
    }
}

#[test]
fn both_readers_agree_on_every_archive() {
    for archive in ["rows-columns-16", "lammps-melt-16"].map(sample).into_iter().chain(archives()) {
        let [native, library] = [Reader::Native, OTHER].map(|reader| {
            let listener = Listener::default();
            let graph = read_with(&archive, reader, &Context::new(2, None, &listener)).unwrap();
            (graph, listener.lines.into_inner().unwrap())
        });
        assert_eq!(native, library, "{}", archive.display());
    }
}

#[test]
fn missing_files_are_named() {
    let copy = Copy::of(&sample("rows-columns-16"));
    fs::remove_file(copy.file("eztrace_log/939524089.evt")).unwrap();
    assert_eq!(copy.refused(), "`eztrace_log/939524089.evt` is missing (location 939524089)");
    fs::remove_file(copy.file("eztrace_log.def")).unwrap();
    assert_eq!(copy.refused(), "`eztrace_log.def` is missing");
    fs::remove_file(copy.file("eztrace_log.otf2")).unwrap();
    assert!(copy.refused().ends_with("does not contain anchor files"));
}

#[test]
fn superfluous_event_files_and_missing_definitions_are_logged() {
    let copy = Copy::of(&sample("rows-columns-16"));
    fs::remove_file(copy.file("eztrace_log/0.def")).unwrap();
    for name in ["7.evt", "x.evt"] {
        fs::write(copy.file("eztrace_log").join(name), "").unwrap();
    }
    let listener = Listener::default();
    read_otf2(copy.path(), &Context::new(1, None, &listener)).unwrap();
    let lines = listener.lines.lock().unwrap();
    assert_eq!(lines[0], "warning: event files without a location, which are not read: 2");
    let undefined = "warning: locations without a .def file, whose ids and times are used unchanged: 1";
    assert!(lines.iter().any(|line| line == undefined), "{lines:?}");
}

#[test]
fn files_of_other_kinds_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        read_otf2(&path, &Context::detached()).unwrap_err().to_string()
    };
    assert!(refused("ring.otf", b"1:1\n2:2\n").ends_with("is an OTF 1 archive"));
    assert!(refused("ring.otf2", b"1:1\n2:2\n").ends_with("is an OTF 1 archive"));
    assert!(refused("text.otf2", b"once upon a time").ends_with("it does not start like one"));
    assert!(refused("text.txt", b"once upon a time").ends_with("its extension is not `.otf2`"));
    let missing = read_otf2(&folder.path().join("none.otf2"), &Context::detached()).unwrap_err();
    assert!(missing.to_string().contains("cannot read"));
}

/// Lengths at which to truncate a file: all of them when soaking, else a sample with the first and the last.
fn cuts(length: usize) -> Vec<usize> {
    let step = if hopmap_test_support::soak() { 1 } else { (length / 40).max(1) };
    (0..length).step_by(step).chain([length - 1]).collect()
}

#[test]
fn truncated_files_are_named() {
    let copy = Copy::of(&sample("rows-columns-16"));
    for (name, location) in [
        ("eztrace_log.otf2", ""),
        ("eztrace_log.def", ""),
        ("eztrace_log/0.evt", " (location 0)"),
        ("eztrace_log/0.def", " (location 0)"),
        ("eztrace_log/2013265905.evt", " (location 2013265905)"),
    ] {
        let bytes = fs::read(copy.file(name)).unwrap();
        // The mark of the end of the file is followed by one of the end of the buffer, in the anchor file
        // also of the chunk. Files without these are still complete.
        let marks = if name == "eztrace_log.otf2" { 2 } else { 1 };
        for length in cuts(bytes.len() - marks) {
            fs::write(copy.file(name), &bytes[..length]).unwrap();
            let error = copy.refused();
            let not_an_anchor = error.starts_with("`eztrace_log.otf2` is not the anchor file");
            assert!(
                not_an_anchor || error.starts_with(&format!("`{name}`{location} is damaged at byte ")),
                "{length}: {error}"
            );
        }
        fs::write(copy.file(name), bytes).unwrap();
    }
}

#[test]
fn receivers_that_do_not_exist_are_named_with_location_and_event() {
    let copy = Copy::of(&sample("rows-columns-16"));
    let path = copy.file("eztrace_log/0.evt");
    let mut bytes = fs::read(&path).unwrap();
    // The first MPI_ISEND: type, length, one byte of receiver, one byte of communicator …
    let place = bytes.windows(6).position(|bytes| bytes[0] == 15 && bytes[2] == 1 && bytes[4] == 1).unwrap();
    bytes[place + 3] = 99;
    fs::write(&path, bytes).unwrap();
    let error = copy.refused();
    assert!(
        error.starts_with("event ") && error.contains(" of location 0 in `eztrace_log/0.evt`: "),
        "{error}"
    );
    assert!(error.contains("the receiver is rank 99 of communicator 4, which has only 2 members"), "{error}");
}
