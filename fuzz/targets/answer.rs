//! What a program may answer to `map/external`.
#![no_main]

#[path = "../../stages/map/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

// The first byte says how many numbers are due.
fuzz_target!(|data: &[u8]| {
    let Some((n, bytes)) = data.split_first() else { return };
    body::answer(bytes, usize::from(*n));
});
