//! Arbitrary instances of streams and networks.
#![no_main]

#[path = "../../stages/route/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = body::file(0, data, "");
});
