//! Arbitrary host lists and output of sinfo.
#![no_main]

#[path = "../../core/formats/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| body::hosts(data));
