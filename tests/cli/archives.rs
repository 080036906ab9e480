//! Broken and foreign archives: one clear message with file, place and hint; never a panic, a hang or a wrong matrix.

use std::path::Path;

use crate::sandbox::{Sandbox, project};

/// A sandbox with a copy of a sample archive.
fn with_archive() -> Sandbox {
    let sandbox = Sandbox::new();
    copy(&project().join("sample-traces/rows-columns-16"), &sandbox.path().join("a"));
    sandbox
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &place) } else { std::fs::copy(&path, &place).map(drop).unwrap() }
    }
}

/// The output of reading the archive.
fn read(sandbox: &Sandbox) -> String {
    sandbox.seen(&["exec", "trace/otf2", "-p", "path=a/eztrace_log.otf2", "--out", "graph"])
}

/// Cuts a file to some of its bytes.
fn cut(sandbox: &Sandbox, name: &str, length: usize) {
    let path = sandbox.path().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(length);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_missing_archive() {
    insta::assert_snapshot!(read(&Sandbox::new()), @r"
    ------- stderr -------
    error[trace::read]: cannot read `DIR/a/eztrace_log.otf2`
      `-> No such file or directory (os error 2)
    [exit code 1]
    ");
}

#[test]
fn a_folder_with_one_archive_is_read_and_one_with_several_is_not() {
    let sandbox = with_archive();
    let read = |sandbox: &Sandbox| sandbox.seen(&["exec", "trace/otf2", "-p", "path=a", "--out", "graph"]);
    insta::assert_snapshot!(read(&sandbox), @r#"
    task-graph DIGEST graph
    ------- stderr -------
    16 processes, 16 locations, 7416 events, 889 messages
    collective operations: 35, expanded to 361 messages
    warning: messages from ranks to themselves (EZTrace also records those on intercommunicators like this): 1
    "#);
    sandbox.write("a/other.otf2", "");
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a` contains several anchor files: eztrace_log.otf2, other.otf2
      help: pass the path of the anchor file (`.otf2`)
    [exit code 1]
    ");
    sandbox.write("empty/notes.txt", "");
    insta::assert_snapshot!(sandbox.seen(&["exec", "trace/otf2", "-p", "path=empty", "--out", "graph"]), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/empty` does not contain anchor files
      help: pass the path of the anchor file (`.otf2`)
    [exit code 1]
    ");
}

#[test]
fn an_otf_1_file() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.otf", "1:1\n2:2\n");
    insta::assert_snapshot!(sandbox.seen(&["exec", "trace/otf2", "-p", "path=ring.otf", "--out", "graph"]), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/ring.otf` is an OTF 1 archive
      help: use the stage `trace/otf`; the extension of OTF2 anchor files is `.otf2`
    [exit code 1]
    ");
}

#[test]
fn an_otf_1_archive_and_faults_in_it() {
    let sandbox = with_archive();
    copy(&project().join("sample-traces/otf-ring-4/plain"), &sandbox.path().join("ring"));
    let read = |sandbox: &Sandbox, archive: &str| {
        sandbox.seen(&["exec", "trace/otf", "-p", &format!("path={archive}"), "--out", "graph"])
    };
    insta::assert_snapshot!(read(&sandbox, "ring"), @r#"
    task-graph DIGEST graph
    ------- stderr -------
    4 processes, 2 streams, 324 events, 60 messages
    collective operations, which are not counted: 16
    remote memory accesses, which are not counted: 16
    "#);
    insta::assert_snapshot!(read(&sandbox, "a/eztrace_log.otf2"), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a/eztrace_log.otf2` is an OTF2 archive
      help: use the stage `trace/otf2`; the extension of OTF 1 master files is `.otf`
    [exit code 1]
    ");
    cut(&sandbox, "ring/ring.1.events", 100);
    insta::assert_snapshot!(read(&sandbox, "ring"), @r"
    ------- stderr -------
    error[text::file]: DIR/ring/ring.1.events:18: the line is cut off
      help: the file is damaged, incompletely copied, or not an OTF 1 file; check it with `otfprint`
    [exit code 1]
    ");
    sandbox.write("ring/ring.1.events", "3e8\n*1\nS2L\n");
    insta::assert_snapshot!(read(&sandbox, "ring"), @r"
    ------- stderr -------
    error[text::file]: DIR/ring/ring.1.events:3: `S2L`: missing number
      help: the file is damaged, incompletely copied, or not an OTF 1 file; check it with `otfprint`
    [exit code 1]
    ");
    std::fs::remove_file(sandbox.path().join("ring/ring.1.events")).unwrap();
    insta::assert_snapshot!(read(&sandbox, "ring"), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/ring/ring.1.events` is missing (stream 1), also with `.z`
      help: copy all files of the archive; if the stream does not have events, create an empty file with this name
    [exit code 1]
    ");
}

#[test]
fn a_file_that_is_not_an_archive() {
    let sandbox = with_archive();
    sandbox.write("a/eztrace_log.otf2", "this is not an archive at all");
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a/eztrace_log.otf2` is not the anchor file of an OTF2 archive: it does not start like one
      help: the anchor file has the extension `.otf2` and is in one folder with a `.def` file and a folder of the same name
    [exit code 1]
    ");
}

#[test]
fn an_empty_and_a_truncated_anchor() {
    let sandbox = with_archive();
    cut(&sandbox, "a/eztrace_log.otf2", 40);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log.otf2` is damaged at byte 38: a record exceeds its data
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
    cut(&sandbox, "a/eztrace_log.otf2", 0);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a/eztrace_log.otf2` is not the anchor file of an OTF2 archive: it is empty
      help: the anchor file has the extension `.otf2` and is in one folder with a `.def` file and a folder of the same name
    [exit code 1]
    ");
}

#[test]
fn empty_truncated_and_missing_definitions() {
    let sandbox = with_archive();
    cut(&sandbox, "a/eztrace_log.def", 3000);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log.def` is damaged at byte 3000: the file is truncated
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
    cut(&sandbox, "a/eztrace_log.def", 0);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log.def` is damaged at byte 0: the file is empty
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
    std::fs::remove_file(sandbox.path().join("a/eztrace_log.def")).unwrap();
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a/eztrace_log.def` is missing
      help: an archive consists of the anchor file, NAME.def and the folder NAME: copy all of them
    [exit code 1]
    ");
}

#[test]
fn empty_truncated_and_missing_events() {
    let sandbox = with_archive();
    cut(&sandbox, "a/eztrace_log/134217727.evt", 500);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log/134217727.evt` (location 134217727) is damaged at byte 500: the file is truncated
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
    cut(&sandbox, "a/eztrace_log/134217727.evt", 0);
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log/134217727.evt` (location 134217727) is damaged at byte 0: the file is empty
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
    std::fs::remove_file(sandbox.path().join("a/eztrace_log/134217727.evt")).unwrap();
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::refused]: `DIR/a/eztrace_log/134217727.evt` is missing (location 134217727)
      help: an archive consists of the anchor file, NAME.def and the folder NAME: copy all of them
    [exit code 1]
    ");
}

#[test]
fn damaged_events() {
    let sandbox = with_archive();
    let path = sandbox.path().join("a/eztrace_log/134217727.evt");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300..340].fill(0xee);
    std::fs::write(path, bytes).unwrap();
    insta::assert_snapshot!(read(&sandbox), @r"
    ------- stderr -------
    error[trace::damaged]: `DIR/a/eztrace_log/134217727.evt` (location 134217727) is damaged at byte 10: wrong number of events in a chunk
      help: the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`
    [exit code 1]
    ");
}

#[test]
fn a_csv_file_with_every_kind_of_fault() {
    let sandbox = Sandbox::new();
    let mut seen = String::new();
    for text in [
        "",
        "source,destination,messages\n",
        "source,destination,messages,bytes,extra\n",
        "source,destination,messages,bytes\n0,1,2\n",
        "source,destination,messages,bytes\n0,1,two,3\n",
        "source,destination,messages,bytes\n0,-1,2,3\n",
        "source,destination,messages,bytes\n4294967295,0,1,1\n",
        "source,destination,messages,bytes\n0,1,99999999999999999999,1\n",
        "source,destination,messages,bytes\n",
    ] {
        sandbox.write("m.csv", text);
        seen.push_str(&sandbox.seen(&[
            "exec",
            "trace/import",
            "-p",
            "path=m.csv",
            "-p",
            "format=csv",
            "--out",
            "graph",
        ]));
    }
    insta::assert_snapshot!(seen, @r"
    ------- stderr -------
    error[text::file]: DIR/m.csv: the file does not contain messages
      help: the first line is `source,destination,messages,bytes`, followed by one line per pair of ranks
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv: column `bytes` is missing
      help: expected exactly the columns source, destination, messages and bytes, in any order, separated by commas
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv: column 5 is `extra`
      help: expected exactly the columns source, destination, messages and bytes, in any order, separated by commas
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv:2: 3 values, but the header has 4
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv:2: column 3 (messages): `two` is not an integer
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv:2: column 2 (destination): `-1` is negative
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv:2: column 1 (source): `4294967295` is not a rank below 16777216
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv:2: column 3 (messages): `99999999999999999999` is larger than 18446744073709551615
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ------- stderr -------
    error[text::file]: DIR/m.csv: the file does not contain messages
      help: the first line is `source,destination,messages,bytes`, followed by one line per pair of ranks
    [exit code 1]
    ");
}
