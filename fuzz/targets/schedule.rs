//! Arbitrary task graphs, schedules and parameters of PARUS and other tools.
#![no_main]

#[path = "../../stages/schedule/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

// The first byte selects the format.
fuzz_target!(|data: &[u8]| {
    if let Some((kind, bytes)) = data.split_first() {
        let _ = body::file(usize::from(*kind), bytes);
    }
});
