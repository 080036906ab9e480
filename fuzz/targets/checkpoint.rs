//! Arbitrary process images, page maps and other checkpoint files.
#![no_main]

#[path = "../../stages/checkpoint/tests/support/images.rs"]
mod images;

use libfuzzer_sys::fuzz_target;

// The first two bytes select the reader.
fuzz_target!(|data: &[u8]| images::anything(data));
