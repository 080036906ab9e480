//! Logs that end early, packed files, and lines of other programs before a file.

use super::paraver::{HEADER, RECORDS};
use super::simgrid::TAGGED;
use super::{Files, clog2, ipm, packed, tau, training};

/// Reads what is before the end of a log.
fn lenient(files: &Files) -> super::Read {
    files.read(|params| params.allow_truncated = true)
}

const WAY_OUT: &str = "`allow_truncated = true`";
const WARNING: &str = "warning: files that end within a line or record, which is left out: 1";

/// Whether nothing that counts is missing in a last line without its end, as editors leave it.
fn is_whole(line: &str) -> bool {
    let fields = line.split(':').count();
    line.ends_with(" finalize")
        || [("1:", 8), ("3:", 15)]
            .iter()
            .any(|&(kind, all)| line.starts_with(kind) && fields == all && !line.ends_with(':'))
}

#[test]
fn a_cut_log_is_read_up_to_its_last_whole_line() {
    for (whole, header) in [(format!("{HEADER}{RECORDS}"), HEADER.len()), (TAGGED.to_owned(), 0)] {
        for end in header + 30..whole.len() {
            let text = &whole[..end];
            let lines = text.rfind('\n').map_or(0, |end| end + 1);
            if is_whole(&text[lines..]) {
                let (read, complete) = (Files::one(text).auto(), Files::one(format!("{text}\n")).auto());
                assert_eq!(read.pairs(), complete.pairs(), "{text}");
                continue;
            }
            let (cut, complete) = (Files::one(text), Files::one(&whole[..lines]));
            let (cut_read, complete) = (lenient(&cut), lenient(&complete));
            assert_eq!(
                cut_read.result.as_ref().map(super::pairs).ok(),
                complete.result.as_ref().map(super::pairs).ok(),
                "{text}"
            );
            let has_warning = cut_read.log.iter().any(|line| line == WARNING);
            assert_eq!(has_warning, lines < end, "{text}");
            let refused = cut.auto().result.err();
            let is_named = refused
                .is_some_and(|(problem, help)| problem.starts_with("trace:") && help.contains(WAY_OUT));
            assert_eq!(is_named, lines < end, "{text}");
        }
    }
}

/// Part of a number is a number, and a trace may be cut between two lines.
#[test]
fn the_begin_of_a_number_does_not_count() {
    let profiles = tau::sample();
    let profile = std::fs::read_to_string(profiles.path("profile.0.0.0")).unwrap();
    std::fs::write(profiles.path("profile.0.0.0"), profile.trim_end().trim_end_matches("56")).unwrap();
    let (problem, help) = profiles.auto().result.unwrap_err();
    assert!(problem.ends_with("the line is cut off") && help.contains("record it again"), "{problem}{help}");
    let index = [
        ("trace", "a\nb\n"),
        ("a", "0 init\n0 send 1 0 9 1\n0 finalize\n"),
        ("b", "1 init\n1 recv 0 0 9 1\n"),
    ];
    let (problem, help) = Files::new(&index).auto().result.unwrap_err();
    assert_eq!(problem, "b:2: the last action of rank 1 is not `finalize`, as of other ranks");
    assert!(help.contains(WAY_OUT), "{help}");
    let read = lenient(&Files::new(&index));
    assert_eq!(read.pairs(), [(0, 1, 1, 36)]);
    assert_eq!(read.log[1], "warning: ranks that do not end with `finalize`, unlike others: 1");
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
        let read = Files::one(packed(&text)).auto();
        assert_eq!(read.log.first(), Some(&format!("format: {format}")));
        assert_eq!(read.pairs(), Files::one(text).auto().pairs(), "{format}");
    }
}

/// Packed files may be cut, and those of ranks be packed.
#[test]
fn packed_files_of_ranks_are_read_and_cut_ones_have_a_way_out() {
    let lines =
        [("p.0.prof", "E\t0\t1\t40 bytes\t2 msgs sent\n"), ("p.1.prof", "# POINT TO POINT\n# COLLECTIVES\n")];
    let tau = ["profile.0.0.0", "profile.1.0.0", "profile.1.0.1"];
    for (files, names) in [(tau::sample(), &tau[..]), (Files::new(&lines), &["p.0.prof", "p.1.prof"])] {
        let pairs = files.auto().pairs();
        for name in names {
            let content = packed(std::fs::read(files.path(name)).unwrap());
            std::fs::write(files.path(&format!("{name}.gz")), content).unwrap();
            assert_eq!(files.auto().pairs(), pairs, "{name} beside the packed one");
            std::fs::remove_file(files.path(name)).unwrap();
        }
        assert_eq!(files.auto().pairs(), pairs);
    }
    let trace = packed(TAGGED);
    let cut = Files::one(&trace[..trace.len() - 12]);
    let (problem, help) = cut.auto().result.unwrap_err();
    assert!(problem.contains("cannot be read") && help.contains(WAY_OUT), "{problem}{help}");
    let read = lenient(&cut);
    assert!(read.log.iter().any(|line| line == WARNING), "{:?}", read.log);
}

#[test]
fn lines_of_other_programs_before_a_file_are_named() {
    for (format, text) in texts() {
        if ["dense-matrix", "ipm"].contains(&format) {
            continue;
        }
        let files = Files::one(format!("[node01] WARNING: no memory\n\nstarted\n{text}"));
        if ["csv", "matrix-market"].contains(&format) {
            assert_eq!(files.auto().pairs(), Files::one(text).auto().pairs());
            continue;
        }
        let (problem, help) = files.auto().result.unwrap_err();
        let expected = format!("`trace` has an unknown format, but is `{format}` from line ");
        assert!(problem.starts_with(&expected), "{problem}");
        assert!(help.contains("delete what is before that line: `[node01] WARNING: no memory`"), "{help}");
    }
}
