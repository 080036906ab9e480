//! Numbers of files replaced by extreme ones, and tests in processes of little memory.

use std::ops::Range;
use std::process::Command;

use crate::seeds::soak;

/// Zero, negative, around the widths of integers, and the largest order of magnitude of a float.
const EXTREMES: [&str; 7] =
    ["0", "-1", "2147483648", "4294967295", "4294967296", "9223372036854775808", "1e308"];

/// Places that a usual run chooses in a file.
const USUAL: usize = 12;

/// Where the numbers of a text are.
fn numbers(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let length = text[at..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        found.push(at..at + length);
        at += length;
    }
    found
}

/// Copies of a file with one number replaced by an extreme one: of a text its decimal numbers, of other files integers of 4 and
/// 8 bytes in both orders. A usual run has some of them, a soak all.
#[must_use]
pub fn with_extreme_numbers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut copies = Vec::new();
    let mut replace = |range: Range<usize>, with: &[u8]| {
        copies.push([&bytes[..range.start], with, &bytes[range.end..]].concat());
    };
    let chosen = |count: usize| (0..count).step_by(if soak() { 1 } else { count.div_ceil(USUAL).max(1) });
    if std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) {
        let numbers = numbers(bytes);
        for index in chosen(numbers.len()) {
            EXTREMES.iter().for_each(|extreme| replace(numbers[index].clone(), extreme.as_bytes()));
        }
        return copies;
    }
    for at in chosen(bytes.len()) {
        for number in [0, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            for width in [4, 8].into_iter().filter(|width| at + width <= bytes.len()) {
                replace(at..at + width, &number.to_le_bytes()[..width]);
                replace(at..at + width, &number.to_be_bytes()[8 - width..]);
            }
        }
    }
    copies
}

/// Whether this process has at most 1 GiB of address space. If not, runs the test that calls this again in such a process.
///
/// # Panics
///
/// If the test fails there, or is ended by a signal: memory ran out.
#[must_use]
pub fn has_little_memory() -> bool {
    const LIMITED: &str = "HOPMAP_LITTLE_MEMORY";
    if std::env::var_os(LIMITED).is_some() {
        return true;
    }
    let thread = std::thread::current();
    let test = thread.name().expect("tests run in threads with their names");
    let this = std::env::current_exe().expect("tests know their program");
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -v 1048576 && exec \"$0\" \"$@\""]).arg(this);
    limited.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    // One thread of a large machine is not to reserve memory for all others.
    let limited = limited.env(LIMITED, "1").env("MALLOC_ARENA_MAX", "1").env("RAYON_NUM_THREADS", "2");
    let output = limited.output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let end = said.char_indices().nth_back(3000).map_or(0, |(at, _)| at);
    let has_run = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(output.status.success() && has_run, "{test}: {}: …{}", output.status, &said[end..]);
    false
}
