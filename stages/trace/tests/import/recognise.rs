//! Formats are recognised by contents, not by file name.

use hopmap_trace::Format;

use super::{Files, import_path};

#[test]
fn a_csv_matrix_is_recognised() {
    let files = Files::one("# by hand\nbytes,messages,source,destination\n8,1,0,2\n4,1,0,2\n");
    let read = files.auto();
    assert_eq!(read.pairs(), [(0, 2, 2, 12)]);
    assert_eq!(read.log, ["format: csv"]);
    assert_eq!(crate::support::read_csv(&files.path("trace")).unwrap(), *read.graph());
    assert_eq!(files.read(|params| params.ranks = Some(9)).graph().ranks(), 9);
    let wrong = Files::one("source,destination,bytes\n0,1,1\n");
    assert_eq!(wrong.refused(), "trace: column `messages` is missing");
}

#[test]
fn the_format_can_be_set() {
    let files = Files::one("source,destination,messages,bytes\n0,1,1,1\n");
    let refused = import_path(&files.path("trace"), Format::MatrixMarket).unwrap_err().to_string();
    assert!(refused.ends_with("1: not the first line of a Matrix Market matrix"), "{refused}");
}

/// The error message with the hint.
fn error(files: &Files) -> String {
    let (message, help) = files.auto().result.unwrap_err();
    message + &help
}

#[test]
fn formats_without_pairs_are_rejected_by_name() {
    let one = |bytes: &[u8]| error(&Files::one(bytes));
    assert_eq!(
        one(b"@ mpiP\n@ Command : ./lu.S.8\n@ Version                  : 3.5.0\n"),
        "`trace` is an mpiP report: it has totals per call site, but no receivers | record the \
         program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which record sender and receiver"
    );
    assert_eq!(
        one(b"Process\tCPU Time\tPID\nlu.S.8\t1.5\t4711\n"),
        "`trace` is a report of VTune: it contains times per process and function, but no pairs of processes | record the \
         program with Score-P or EZTrace, or export the matrix of Intel Trace Analyzer as CSV with the columns source, \
         destination, messages and bytes"
    );
    assert_eq!(
        one(b"\x00\x0aSLOG 2.0.6 and more bytes"),
        "`trace` is an SLOG-2 file: it is a rendering of a CLOG-2 file, in which nearby messages \
         are merged | pass the original `.clog2` file"
    );
    assert!(
        one(b"\x1f\x8b\x08\x00")
            .starts_with("`trace` is compressed: hopmap unpacks only text files that gzip packed whole")
    );
    let hpctoolkit = "is an HPCToolkit database: it contains time samples, but no messages";
    assert!(one(b"HPCTOOLKITprof\x04\x00").contains(hpctoolkit));
    assert!(error(&Files::new(&[("experiment.xml", "<HPCToolkitExperiment/>")])).contains(hpctoolkit));
    assert!(error(&Files::new(&[("meta.db", ""), ("profile.db", "")])).contains(hpctoolkit));
    let symmetrised =
        "is a matrix of profile2mat.pl: it has half of the sum of both directions instead of each";
    let matrix = Files::new(&[("x_size_all.mat", "0 5.5\n5.5 0\n")]);
    let error = import_path(&matrix.path("x_size_all.mat"), Format::Auto).unwrap_err().to_string();
    assert!(error.ends_with(symmetrised), "{error}");
}

#[test]
fn reading_can_be_interrupted() {
    let files = Files::one("%%MatrixMarket matrix coordinate integer general\n1 1 0\n");
    let listener = crate::support::Listener { stop_after: Some(0), ..Default::default() };
    listener.progress.lock().unwrap().push((0, 0));
    let params = hopmap_trace::ImportParams::new(hopmap_model::InputPath::new(files.trace()));
    let error = super::import(params, &hopmap_model::Context::new(1, None, &listener)).unwrap_err();
    assert!(error.to_string().ends_with("trace:1: reading was cancelled here"));
}

#[test]
fn errors_of_unknown_formats_list_the_supported_ones() {
    for (bytes, what) in [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("mpirun: a\n", "has only lines of other programs, the first `mpirun: a`"),
        ("# rank bytes\n\n# 2\n", "has only comments and messages, the first `# rank bytes`"),
    ] {
        assert!(error(&Files::one(bytes)).starts_with(&format!("`trace` {what} | ")));
    }
    assert!(error(&Files::one(super::packed(""))).starts_with("`trace` is a packed file without content | "));
    for bytes in ["hello\n", "\u{0}\u{1}\u{2}"] {
        let message = error(&Files::one(bytes));
        assert!(
            message.starts_with("`trace` has an unknown format | supported formats: chakra, clog2, csv, "),
            "{message}"
        );
        assert!(message.ends_with("; set one with `format`"), "{message}");
    }
    assert!(error(&Files::new(&[("notes.txt", "")])).contains("has an unknown format"));
    let missing = import_path(&Files::one("").path("none"), Format::Auto).unwrap_err();
    assert!(missing.to_string().contains(": cannot be read: "), "{missing}");
}
