//! Logs that end early, packed files, and lines of other programs before a file.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::paraver::{HEADER, RECORDS};
use super::simgrid::TAGGED;
use super::{Files, clog2, ipm, training};

/// Reads what is before the end of a log.
fn lenient(files: &Files) -> super::Read {
    files.read(|params| params.allow_truncated = true)
}

const WAY_OUT: &str = "`allow_truncated = true`";
const WARNING: &str = "warning: files that end within a line or record, which is left out: 1";

#[test]
fn a_cut_log_is_read_up_to_its_last_whole_line() {
    for (whole, header) in [(format!("{HEADER}{RECORDS}"), HEADER.len()), (TAGGED.to_owned(), 0)] {
        for end in header + 30..whole.len() {
            let text = &whole[..end];
            let lines = text.rfind('\n').map_or(0, |end| end + 1);
            let (cut, complete) = (Files::one(text), Files::one(&whole[..lines]));
            let (cut_read, complete) = (lenient(&cut), complete.auto());
            assert_eq!(
                cut_read.result.as_ref().map(super::pairs).ok(),
                complete.result.as_ref().map(super::pairs).ok(),
                "{text}"
            );
            let has_warning = cut_read.log.iter().any(|line| line == WARNING);
            assert_eq!(has_warning, lines < end, "{text}");
            if let Err((problem, help)) = cut.auto().result {
                let is_of_last_line = problem.starts_with(&format!("trace:{}:", text.lines().count()));
                assert!(!is_of_last_line || help.contains(WAY_OUT), "{text}: {problem}{help}");
            }
        }
    }
}

#[test]
fn a_cut_clog_is_read_up_to_its_end() {
    let files = clog2::sample();
    let whole = std::fs::read(files.trace()).unwrap();
    let cut = Files::one(&whole[..1024 + 10]);
    let (problem, help) = cut.auto().result.unwrap_err();
    assert!(problem.contains("the file is truncated") && help.contains(WAY_OUT), "{problem}{help}");
    let read = lenient(&cut);
    assert!(read.log.iter().any(|line| line == WARNING), "{:?}", read.log);
    assert_eq!(read.pairs(), []);
}

#[test]
fn a_cut_log_of_the_inspector_is_read_up_to_its_last_record() {
    let (files, whole) = (training::inspector(), training::inspector().auto());
    let path = files.path("n1.log");
    let log = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&log[..], &log[..99]].concat()).unwrap();
    let (problem, help) = files.auto().result.unwrap_err();
    assert!(problem.starts_with("n1.log:5:") && help.contains(WAY_OUT), "{problem}{help}");
    let read = lenient(&files);
    assert_eq!((read.pairs(), &read.log), (whole.pairs(), &vec![whole.log[0].clone(), WARNING.to_owned()]));
}

/// Text formats with a sample of each.
fn texts() -> [(&'static str, String); 6] {
    [
        ("csv", "source,destination,messages,bytes\n0,1,2,3\n".into()),
        ("dense-matrix", "0 1 2\n3 0 4\n5 6 0\n".into()),
        ("ipm", ipm::sample()),
        ("matrix-market", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 100\n".into()),
        ("paraver", format!("{HEADER}{RECORDS}")),
        ("simgrid", TAGGED.into()),
    ]
}

#[test]
fn packed_texts_are_read_as_if_they_were_not() {
    for (format, text) in texts() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        let read = Files::one(packed.finish().unwrap()).auto();
        assert_eq!(read.log.first(), Some(&format!("format: {format}")));
        assert_eq!(read.pairs(), Files::one(text).auto().pairs(), "{format}");
    }
}

#[test]
fn lines_of_other_programs_before_a_file_are_named() {
    for (format, text) in texts() {
        if ["dense-matrix", "ipm"].contains(&format) {
            continue;
        }
        let files = Files::one(format!("[node01] WARNING: no memory\n\nstarted\n{text}"));
        let (problem, help) = files.auto().result.unwrap_err();
        let expected = format!("`trace` has an unknown format, but is `{format}` from line ");
        assert!(problem.starts_with(&expected), "{problem}");
        assert!(help.contains("delete what is before that line: `[node01] WARNING: no memory`"), "{help}");
    }
}
