//! Messages to an agent or its coordinator.
#![no_main]

#[path = "../../stages/topology/tests/support/body.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

// The first byte selects sender, receiver and state: before or after the handshake.
fuzz_target!(|data: &[u8]| {
    let Some((way, bytes)) = data.split_first() else { return };
    body::protocol(usize::from(*way), bytes);
});
