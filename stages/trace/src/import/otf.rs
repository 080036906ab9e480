//! OTF archives, with the defaults of `trace/otf2` and `trace/otf`.

use std::path::Path;

use super::reader::{Reader, Sample};
use crate::archive::has_extension;
use crate::selection::{Request, Select};
use crate::{otf1, otf2};

pub(super) static OTF2: Reader = Reader {
    recognises: |sample| {
        sample.head.get(2..6) == Some(b"OTF2")
            || is_anchor(sample)
            || has(sample, "otf2")
            || is_nested(sample)
    },
    files: otf2::files,
    read: |path, options, cx| {
        let request = Request { select: &Select::default(), phases: None, sizes: false };
        let (reader, complete) = (crate::params::Reader::Auto, !options.allow_truncated);
        let (collectives, algorithms) = (options.collectives, options.algorithms);
        otf2::read(path, otf2::Options { reader, collectives, algorithms, request, complete }, cx)
    },
    ..Reader::BINARY
};

pub(super) static OTF1: Reader = Reader {
    recognises: |sample| (is_master(&sample.text) || has(sample, "otf")) && !has(sample, "otf2"),
    files: otf1::files,
    read: |path, _, cx| {
        let request = Request { select: &Select::default(), phases: None, sizes: false };
        otf1::read(path, &request, cx)
    },
    ..Reader::BINARY
};

/// Whether a file is named like an anchor file, even if it is damaged.
fn is_anchor(sample: &Sample<'_>) -> bool {
    !sample.is_folder && has_extension(sample.path, "otf2")
}

/// Whether a folder has a file with this extension.
fn has(sample: &Sample<'_>, extension: &str) -> bool {
    let is_one = |path: &Path| path.extension().is_some_and(|found| found == extension);
    sample.is_folder
        && std::fs::read_dir(sample.path)
            .is_ok_and(|entries| entries.filter_map(Result::ok).any(|entry| is_one(&entry.path())))
}

/// EZTrace 2.0 writes archives into subfolders. What is wrong with them, or that there are several, is said when they
/// are read.
fn is_nested(sample: &Sample<'_>) -> bool {
    sample.is_folder && otf2::is_archive(sample.path)
}

/// A master file lists streams and their processes in hexadecimal: `1:1,2`.
fn is_master(text: &str) -> bool {
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
