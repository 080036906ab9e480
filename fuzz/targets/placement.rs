//! Arbitrary mappings of other tools.
#![no_main]

#[path = "../../stages/map/tests/support/placement.rs"]
mod placement;

use libfuzzer_sys::fuzz_target;

// The first byte is the number of ranks.
fuzz_target!(|data: &[u8]| {
    let Some((ranks, bytes)) = data.split_first() else { return };
    placement::placement(bytes, usize::from(ranks % 9));
});
