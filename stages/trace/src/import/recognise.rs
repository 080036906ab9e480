//! What a file or folder is, by what is in it.

use std::io::Read;
use std::path::Path;

use hopmap_model::open_input;
use hopmap_text::FileError;

use super::{clog2, ipm, paraver, simgrid, tau};
use crate::{Format, ImportError};

/// So much of a file is looked at.
const LOOKED_AT: u64 = 1 << 16;

/// Something that is known but gives no task graph here.
struct Foreign {
    what: &'static str,
    why: &'static str,
    instead: &'static str,
}

const MPIP: Foreign = Foreign {
    what: "an mpiP report",
    why: "it sums up messages per call site, and does not say to whom they went",
    instead: "record the program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which keep sender and receiver",
};

const HPCTOOLKIT: Foreign = Foreign {
    what: "an HPCToolkit database",
    why: "it holds samples of where time goes, and no messages",
    instead: "record the program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which keep sender and receiver",
};

const VTUNE: Foreign = Foreign {
    what: "a report of VTune",
    why: "it holds times per process and function, and no pairs of processes",
    instead: "record the program with Score-P or EZTrace, or export the matrix of Intel Trace Analyzer as CSV with the \
              columns source, destination, messages and bytes",
};

const SLOG2: Foreign = Foreign {
    what: "an SLOG-2 file",
    why: "it is made from a CLOG-2 file for drawing, and joins messages that lie close together",
    instead: "give the `.clog2` file it was made from",
};

const OTF2: Foreign = Foreign {
    what: "an OTF2 archive",
    why: "such archives have a stage of their own",
    instead: "use the stage `trace/otf2`",
};

const OTF1: Foreign = Foreign {
    what: "an OTF 1 archive",
    why: "such archives have a stage of their own",
    instead: "use the stage `trace/otf`",
};

const COMPRESSED: Foreign = Foreign {
    what: "compressed",
    why: "only plain files are read",
    instead: "unpack it first, for example with `gunzip`; a packed profile of TAU (`.ppk`) with `paraprof --dump`",
};

/// Names of files that only HPCToolkit writes.
const OF_HPCTOOLKIT: [&str; 4] = ["experiment.xml", "meta.db", "profile.db", "cct.db"];

/// Says what lies at a path, or why it is not read.
pub(super) fn recognise(path: &Path) -> Result<Format, ImportError> {
    if path.is_dir() {
        return folder(path);
    }
    let failed = |error| FileError::unreadable(path, &error);
    let mut head = Vec::new();
    open_input(path).map_err(failed)?.take(LOOKED_AT).read_to_end(&mut head).map_err(failed)?;
    match foreign(&head) {
        Some(foreign) => Err(refuse(path, &foreign)),
        None => known(&head, path).ok_or_else(|| ImportError::Unknown { path: path.to_owned() }),
    }
}

fn refuse(path: &Path, foreign: &Foreign) -> ImportError {
    let Foreign { what, why, instead } = *foreign;
    ImportError::Refused { path: path.to_owned(), what, why, instead }
}

fn folder(path: &Path) -> Result<Format, ImportError> {
    if tau::is_folder(path) {
        return Ok(Format::Tau);
    }
    if OF_HPCTOOLKIT.iter().any(|name| path.join(name).is_file()) {
        return Err(refuse(path, &HPCTOOLKIT));
    }
    let entries =
        std::fs::read_dir(path).map_err(|error| FileError::unreadable(path, &error))?.filter_map(Result::ok);
    let mut found: Vec<Foreign> = Vec::new();
    for entry in entries {
        match Path::new(&entry.file_name()).extension().and_then(|extension| extension.to_str()) {
            Some("otf2") => found.push(OTF2),
            Some("otf") => found.push(OTF1),
            Some("hpcrun" | "hpctrace") => found.push(HPCTOOLKIT),
            _ => {}
        }
    }
    match found.first() {
        Some(foreign) => Err(refuse(path, foreign)),
        None => Err(ImportError::Unknown { path: path.to_owned() }),
    }
}

/// What is known to give no graph here.
fn foreign(head: &[u8]) -> Option<Foreign> {
    let text = String::from_utf8_lossy(head);
    let begin = text.trim_start();
    if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(b"BZh") || head.starts_with(b"\xfd7zXZ") {
        Some(COMPRESSED)
    } else if begin.starts_with("@ mpiP") || begin.starts_with("@mpiP") {
        Some(MPIP)
    } else if ["HPCTOOLKIT", "HPCPROF", "HPCRUN"].iter().any(|magic| head.starts_with(magic.as_bytes()))
        || (begin.starts_with("<?xml") && text.contains("<HPCToolkitExperiment"))
    {
        Some(HPCTOOLKIT)
    } else if head.get(..16).is_some_and(|head| head.windows(6).any(|part| part == b"SLOG 2")) {
        Some(SLOG2)
    } else if head.get(2..6) == Some(b"OTF2") {
        Some(OTF2)
    } else if is_otf1_master(&text) {
        Some(OTF1)
    } else if is_vtune(&text) {
        Some(VTUNE)
    } else {
        None
    }
}

/// A master file lists streams and their processes in hexadecimal: `1:1,2`.
fn is_otf1_master(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(8).peekable();
    let hexadecimal = |number: &str| {
        !number.is_empty() && number.len() <= 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    lines.peek().is_some()
        && lines.all(|line| {
            let parts = line.split_once(':');
            parts.is_some_and(|(stream, processes)| {
                hexadecimal(stream) && processes.trim_end_matches(',').split(',').all(hexadecimal)
            })
        })
}

/// The header of `vtune -report … -format csv`, whatever stands between the columns.
fn is_vtune(text: &str) -> bool {
    text.lines().take(5).any(|line| {
        let columns: Vec<&str> =
            line.split(['\t', ',', ';']).map(|column| column.trim_matches('"')).collect();
        let is = |name: &str| columns.iter().any(|column| *column == name || column.starts_with(name));
        is("CPU Time") && ["Function", "Process", "Module", "Thread", "Source"].into_iter().any(is)
    })
}

/// What is read here. An index lists other files, so its place matters.
fn known(head: &[u8], path: &Path) -> Option<Format> {
    if head.starts_with(clog2::MAGIC) {
        return Some(Format::Clog2);
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    if starts_with(text, "%%MatrixMarket") {
        return Some(Format::MatrixMarket);
    }
    if text.starts_with(paraver::MAGIC) {
        return Some(Format::Paraver);
    }
    if ipm::is_report(text) {
        return Some(Format::Ipm);
    }
    if tau::is_profile(text) {
        return Some(Format::Tau);
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if is_csv(first) {
        return Some(Format::Csv);
    }
    if simgrid::is_action(first) || simgrid::is_index(path, first) {
        return Some(Format::Simgrid);
    }
    None
}

fn starts_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// Whether a line names columns of a matrix; which are right is said when it is read.
fn is_csv(line: &str) -> bool {
    let names = ["source", "destination", "messages", "bytes"];
    let columns = line.split([',', ';', '\t']).map(|column| column.trim().trim_matches('"'));
    columns.filter(|column| names.contains(column)).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_foreign_is_named() {
        for (head, what) in [
            (&b"\x1f\x8b\x08"[..], "compressed"),
            (b"@ mpiP\n@ Command : ./a.out\n@ Version : 3.5.0\n", MPIP.what),
            (b"HPCTOOLKITmeta\x04\x00", HPCTOOLKIT.what),
            (
                b"<?xml version=\"1.0\"?>\n<!DOCTYPE HPCToolkitExperiment>\n<HPCToolkitExperiment>",
                HPCTOOLKIT.what,
            ),
            (b"\x00\x0aSLOG 2.0.6\x00\x00\x00\x00\x00", SLOG2.what),
            (b"\x03\x42OTF2\x02", OTF2.what),
            (b"1:1\n2:2\na:10002,3\n", OTF1.what),
            (b"Function\tCPU Time\tModule\nmain\t1.5\ta.out\n", VTUNE.what),
            (b"Process,CPU Time:Self,PID\na.out,1.5,17\n", VTUNE.what),
        ] {
            let found = foreign(head).map(|foreign| foreign.what);
            assert_eq!(found, Some(what), "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn what_is_known_is_not_foreign() {
        for (head, format) in [
            ("%%MatrixMarket matrix coordinate real general\n", Some(Format::MatrixMarket)),
            ("%%matrixmarket matrix array real general\n", Some(Format::MatrixMarket)),
            ("# made by hand\n\nbytes, messages,source ,destination\n", Some(Format::Csv)),
            ("\u{feff}\"source\",\"destination\",messages,bytes\n", Some(Format::Csv)),
            ("#Paraver (12/03/2024 at 10:11):5000_ns:0:1:1(1:0)\n", Some(Format::Paraver)),
            ("# a remark\n0 init\n0 send 1 5 8\n", Some(Format::Simgrid)),
            ("3 compute 1e6\n", Some(Format::Simgrid)),
            ("<?xml version=\"1.0\"?>\n<ipm_job_profile>\n", Some(Format::Ipm)),
            ("12 templated_functions_MULTI_TIME\n", Some(Format::Tau)),
            ("CLOG-02.44\0is_big_endian=\0TRUE \0", Some(Format::Clog2)),
            ("", None),
            ("hello, world\n", None),
        ] {
            assert!(foreign(head.as_bytes()).is_none(), "{head}");
            assert_eq!(known(head.as_bytes(), Path::new("trace")), format, "{head}");
        }
    }
}
