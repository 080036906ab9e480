//! Output of a program for `map/external`.
#![no_main]

#[path = "../../stages/map/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

// The first byte is the expected count of numbers.
fuzz_target!(|data: &[u8]| {
    let Some((n, bytes)) = data.split_first() else { return };
    body::answer(bytes, usize::from(*n));
});
