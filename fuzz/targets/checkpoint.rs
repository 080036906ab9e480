//! Images of processes, page maps and other files of checkpoints that hold anything.
#![no_main]

#[path = "../../stages/checkpoint/tests/support/images.rs"]
mod images;

use libfuzzer_sys::fuzz_target;

// The first two bytes say how it is read.
fuzz_target!(|data: &[u8]| images::anything(data));
