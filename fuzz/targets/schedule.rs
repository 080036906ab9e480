//! Task graphs, schedules and parameters of PARUS and others that hold anything.
#![no_main]

#[path = "../../stages/schedule/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

// The first byte says as what it is read.
fuzz_target!(|data: &[u8]| {
    if let Some((kind, bytes)) = data.split_first() {
        let _ = body::file(usize::from(*kind), bytes);
    }
});
