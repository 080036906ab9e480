//! Prefixes of launchers and loggers before lines, and files that were joined, in every text format.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use hopmap_test_support::{PREFIXES, with_prefix};
use hopmap_trace::Format;

use super::flight_recorder::flight_recorder;
use super::kineto::kineto;
use super::{Files, ipm, paraver, record, simgrid, tau, training};

/// A sample of every text format, and its files that are text.
fn texts() -> Vec<(Format, Files)> {
    vec![
        (Format::Chakra, training::chakra()),
        (Format::Csv, Files::one("source,destination,messages,bytes\n0,1,2,3\n1,0,4,5\n")),
        (Format::DenseMatrix, Files::one("0 1 2\n3 0 4\n5 6 0\n")),
        (Format::FlightRecorder, flight_recorder()),
        (Format::Ipm, Files::one(ipm::sample())),
        (Format::Kineto, kineto()),
        (
            Format::MatrixMarket,
            Files::one("%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 100\n3 1 7\n"),
        ),
        (Format::NcclInspector, training::inspector()),
        (Format::OpenmpiMonitoring, record::profiles()),
        (Format::Paraver, Files::one(format!("{}{}", paraver::HEADER, paraver::RECORDS))),
        (Format::Simgrid, Files::one(simgrid::TAGGED)),
        (Format::Simgrid, Files::new(&simgrid::INDEX)),
        (Format::Tau, tau::sample()),
    ]
}

/// The files of a sample that are text.
fn paths(files: &Files) -> Vec<PathBuf> {
    let is_text = |name: &&String| !name.contains(".et") && *name != "tau.conf";
    files.names.iter().filter(is_text).map(|name| files.path(name)).collect()
}

/// Once such a file had "only lines of other programs", an unknown format, or no messages.
#[test]
fn a_prefix_of_every_line_is_named_with_the_command_that_deletes_it() {
    let Some(sed) = hopmap_test_support::program("sed") else { return };
    for prefix in PREFIXES {
        for (format, files) in texts() {
            let whole = files.auto();
            for path in paths(&files) {
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, with_prefix(&text, prefix, None)).unwrap();
            }
            let what = format!("{format:?} behind {prefix:?}");
            let (problem, help) = match files.auto().result {
                // Rows of a matrix may have names, and tags may have text between them.
                Ok(graph) if [Format::DenseMatrix, Format::Ipm].contains(&format) => {
                    assert_eq!(Ok(graph), whole.result, "{what}");
                    continue;
                }
                result => result.expect_err(&what),
            };
            assert!(problem.contains(prefix.trim()), "{what}: {problem}");
            let script = help.split('\'').nth(1).unwrap_or_else(|| panic!("{what}: {problem}{help}"));
            for path in paths(&files) {
                assert!(Command::new(&sed).args(["-E", "-i", script]).arg(path).status().unwrap().success());
            }
            assert_eq!(files.auto().result, whole.result, "{what}: {script}");
        }
    }
}

/// Once such a line counted as one of another program, and its row was lost.
#[test]
fn no_row_is_lost_behind_a_prefix() {
    for (format, files) in texts() {
        let whole = files.auto();
        for path in paths(&files) {
            let text = fs::read_to_string(&path).unwrap();
            for (prefix, line) in
                PREFIXES.iter().flat_map(|prefix| (0..text.lines().count()).map(move |line| (prefix, line)))
            {
                fs::write(&path, with_prefix(&text, prefix, Some(line))).unwrap();
                if let Ok(graph) = files.auto().result {
                    assert_eq!(Ok(graph), whole.result, "{format:?}: line {} behind {prefix:?}", line + 1);
                }
            }
            fs::write(&path, text).unwrap();
        }
    }
}

#[test]
fn files_that_were_joined_are_added_up_or_refused() {
    for (format, files) in texts() {
        let whole = files.auto();
        for path in paths(&files) {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.clone() + &text).unwrap();
            let read = files.auto();
            match format {
                Format::Csv => {
                    let twice: Vec<_> =
                        whole.pairs().into_iter().map(|(s, d, m, b)| (s, d, 2 * m, 2 * b)).collect();
                    assert_eq!(read.pairs(), twice);
                    let said = "warning: names of the columns between the lines, as in files that were joined, skipped: 1, the first in line 4";
                    assert_eq!(read.log[1], said);
                }
                // The files of an index may be listed several times.
                _ => assert!(
                    read.result.is_err() || read.result == whole.result,
                    "{format:?} {}",
                    path.display()
                ),
            }
            fs::write(&path, text).unwrap();
        }
    }
}

/// Once such lines were refused without a way out, or `3 1,0,1,5` without the command that repairs it.
#[test]
fn messages_between_numbers_are_skipped_and_rows_behind_numbers_named() {
    let csv =
        |line: &str| Files::one(format!("source,destination,messages,bytes\n0,1,2,3\n{line}\n1,0,4,5\n"));
    let whole = csv("# nothing").auto().result;
    for line in ["====", "done", "WARNING: slow", "Reading", "finished."] {
        let read = csv(line).auto();
        assert_eq!(read.result, whole, "{line}");
        assert!(
            read.log.iter().any(|said| said.contains("skipped: 1, the first in line 3")),
            "{:?}",
            read.log
        );
    }
    for (line, what) in [("(2 rows)", "1 values"), ("total,,6,8", "`total` is not an integer")] {
        let (problem, help) = csv(line).auto().result.unwrap_err();
        assert!(problem.contains(&format!(":3: {what}")) || problem.contains(what), "{problem}");
        assert!(help.contains("delete the line if it is a sum"), "{help}");
    }
    let (problem, help) = csv("3 1,0,4,5").auto().result.unwrap_err();
    assert!(problem.contains(":3: the row `1,0,4,5` is behind `3 `") && help.contains("sed -E"), "{problem}");
    let (problem, _) = Files::one("0 0 1 2\n1 3 0 4\n2 5 6 0\n").auto().result.unwrap_err();
    assert!(problem.contains("may be those of the rows") && problem.contains("sed -E"), "{problem}");
    let wide: Vec<u8> = "source,destination\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files = Files::one("x");
    fs::write(&paths(&files)[0], wide).unwrap();
    let (problem, help) = files.auto().result.unwrap_err();
    assert!(problem.contains("UTF-16") && help.contains("iconv -f UTF-16LE"), "{problem}");
}
