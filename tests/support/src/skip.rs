//! Skips of tests that do not run everywhere; they fail in CI.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Records that the running test, or a part of it, is skipped.
///
/// Appends a line to the file `HOPMAP_SKIPPED`: package and test, a tab, the reason.
///
/// # Panics
///
/// If `CI=true`, where nothing may be skipped.
pub fn skipped(reason: impl Display) {
    note(&reason.to_string());
    assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "skipped where CI=true: {reason}");
}

#[expect(clippy::print_stderr, reason = "skipped tests are reported")]
fn note(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(list) = env::var_os("HOPMAP_SKIPPED") else { return };
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    // One write, so that lines of concurrent tests are not interleaved.
    let line = format!("{package} {}\t{reason}\n", thread.name().unwrap_or("?"));
    let file = OpenOptions::new().append(true).create(true).open(&list);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot write {}: {written:?}", list.display());
}

/// The folder with real data (`HOPMAP_DATA`), or a skip.
#[must_use]
pub fn given_data() -> Option<PathBuf> {
    let data = env::var_os("HOPMAP_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped("HOPMAP_DATA is not set");
    }
    data
}

/// Whether `HOPMAP_SYSTEM_TESTS=1` enables tests with installed programs, or a skip.
#[must_use]
pub fn system_tests() -> bool {
    let wanted = env::var_os("HOPMAP_SYSTEM_TESTS").is_some_and(|value| value == "1");
    if !wanted {
        skipped("HOPMAP_SYSTEM_TESTS is not 1");
    }
    wanted
}

/// Whether this is a soak; otherwise records a skip, also in CI.
#[must_use]
pub fn only_in_a_soak() -> bool {
    let soak = crate::seeds::soak();
    if !soak {
        note("HOPMAP_SOAK is not set");
    }
    soak
}

/// The path of a program in `PATH` or the system folders, or a skip.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|path| Path::is_file(path));
    if found.is_none() {
        skipped(format_args!("{name} not found"));
    }
    found
}
