//! Files that hopmap recognises, but that have no communication matrix.

use std::path::Path;

use hopmap_text::{FileError, head};

use super::reader::Sample;

/// A known format that does not contain a communication matrix.
pub(super) struct Foreign {
    pub(super) what: &'static str,
    pub(super) why: &'static str,
    pub(super) instead: &'static str,
}

const MPIP: Foreign = Foreign {
    what: "an mpiP report",
    why: "it has totals per call site, but no receivers",
    instead: "record the program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which record sender and receiver",
};

const HPCTOOLKIT: Foreign = Foreign {
    what: "an HPCToolkit database",
    why: "it contains time samples, but no messages",
    instead: "record the program with Score-P, EZTrace or TAU (TAU_COMM_MATRIX=1), which record sender and receiver",
};

const VTUNE: Foreign = Foreign {
    what: "a report of VTune",
    why: "it contains times per process and function, but no pairs of processes",
    instead: "record the program with Score-P or EZTrace, or export the matrix of Intel Trace Analyzer as CSV with the \
              columns source, destination, messages and bytes",
};

const APS: Foreign = Foreign {
    what: "a report of Intel APS",
    why: "its volumes are rounded to megabytes, and it leaves small pairs out",
    instead: "record the program with `hopmap record`, Score-P or EZTrace, which count every message",
};

const SLOG2: Foreign = Foreign {
    what: "an SLOG-2 file",
    why: "it is a rendering of a CLOG-2 file, in which nearby messages are merged",
    instead: "pass the original `.clog2` file",
};

pub(super) const SYMMETRISED: Foreign = Foreign {
    what: "a matrix of profile2mat.pl",
    why: "it has half of the sum of both directions instead of each",
    instead: "pass the profiles of Open MPI's monitoring that it was made from (`PREFIX.RANK.prof`)",
};

const PICKLE: Foreign = Foreign {
    what: "a pickle of Python, such as a dump of PyTorch's flight recorder",
    why: "a pickle may run any program when it is read",
    instead: "convert dumps of your own: `for file in nccl_trace_rank_*; do python3 -c 'import json, pickle, sys; \
              json.dump(pickle.load(sys.stdin.buffer), sys.stdout, sort_keys=True)' < $file > $file.json; done`; or \
              dump JSON with the handler `/handler/dump_nccl_trace_json` of PyTorch's worker server",
};

const COMPRESSED: Foreign = Foreign {
    what: "compressed",
    why: "hopmap unpacks only text files that gzip packed whole",
    instead: "decompress it first, for example with `gunzip`; unpack a TAU profile (`.ppk`) with `paraprof --dump`",
};

/// Names of files that identify an HPCToolkit database.
const OF_HPCTOOLKIT: [&str; 4] = ["experiment.xml", "meta.db", "profile.db", "cct.db"];

/// A folder of a known format without a matrix.
pub(super) fn foreign_folder(path: &Path) -> Result<Option<Foreign>, FileError> {
    if OF_HPCTOOLKIT.iter().any(|name| path.join(name).is_file()) {
        return Ok(Some(HPCTOOLKIT));
    }
    let entries = std::fs::read_dir(path).map_err(|error| FileError::unreadable(path, &error))?;
    Ok(entries.filter_map(Result::ok).find_map(|entry| {
        let extension = entry.path().extension().and_then(|extension| extension.to_str()).map(str::to_owned);
        match extension.as_deref() {
            Some("hpcrun" | "hpctrace") => Some(HPCTOOLKIT),
            _ => head(&entry.path(), 2).is_ok_and(|head| is_pickle(&head)).then_some(PICKLE),
        }
    }))
}

/// The first bytes of pickles with protocol 2 and later.
fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}

/// A file of a known format without a matrix.
pub(super) fn foreign(head: &[u8]) -> Option<Foreign> {
    let text = String::from_utf8_lossy(head);
    let begin = text.trim_start();
    if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(b"BZh") || head.starts_with(b"\xfd7zXZ") {
        Some(COMPRESSED)
    } else if is_pickle(head) {
        Some(PICKLE)
    } else if text.lines().any(|line| ["@ mpiP", "@mpiP"].contains(&line.trim())) {
        Some(MPIP)
    } else if ["HPCTOOLKIT", "HPCPROF", "HPCRUN"].iter().any(|magic| head.starts_with(magic.as_bytes()))
        || (begin.starts_with("<?xml") && text.contains("<HPCToolkitExperiment"))
    {
        Some(HPCTOOLKIT)
    } else if head.get(..16).is_some_and(|head| head.windows(6).any(|part| part == b"SLOG 2")) {
        Some(SLOG2)
    } else if text.lines().any(|line| line.starts_with("| Rank --> Rank ")) {
        Some(APS)
    } else if is_vtune(&text) {
        Some(VTUNE)
    } else {
        None
    }
}

/// A matrix that profile2mat.pl wrote next to the profiles, `PREFIX_size_all.mat` and others.
pub(super) fn is_symmetrised(sample: &Sample<'_>) -> bool {
    let is_named = sample.path.extension().is_some_and(|extension| extension == "mat");
    let numbers = |line: &str| line.split_whitespace().all(|word| word.parse::<f64>().is_ok());
    is_named && sample.first_line().is_some_and(numbers)
}

/// The header of `vtune -report … -format csv`, with any separator.
fn is_vtune(text: &str) -> bool {
    text.lines().take(5).any(|line| {
        let columns: Vec<&str> =
            line.split(['\t', ',', ';']).map(|column| column.trim_matches('"')).collect();
        let is = |name: &str| columns.iter().any(|column| *column == name || column.starts_with(name));
        is("CPU Time") && ["Function", "Process", "Module", "Thread", "Source"].into_iter().any(is)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_formats_are_named() {
        for (head, what) in [
            (&b"\x1f\x8b\x08"[..], "compressed"),
            (b"@ mpiP\n@ Command : ./a.out\n@ Version : 3.5.0\n", MPIP.what),
            (b"srun: queued\nstep 10 residual 1.0\n@ mpiP\r\n@ Command : ./a.out\n", MPIP.what),
            (b"HPCTOOLKITmeta\x04\x00", HPCTOOLKIT.what),
            (
                b"<?xml version=\"1.0\"?>\n<!DOCTYPE HPCToolkitExperiment>\n<HPCToolkitExperiment>",
                HPCTOOLKIT.what,
            ),
            (b"\x00\x0aSLOG 2.0.6\x00\x00\x00\x00\x00", SLOG2.what),
            (
                b"| Data Transfers\n|-----\n| Rank --> Rank   Time(sec)  Volume(MB)\n  0003 --> 0000 1 2\n",
                APS.what,
            ),
            (b"Function\tCPU Time\tModule\nmain\t1.5\ta.out\n", VTUNE.what),
            (b"Process,CPU Time:Self,PID\na.out,1.5,17\n", VTUNE.what),
        ] {
            let found = foreign(head).map(|foreign| foreign.what);
            assert_eq!(found, Some(what), "{}", String::from_utf8_lossy(head));
        }
    }
}
