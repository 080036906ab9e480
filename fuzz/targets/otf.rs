//! OTF 1 archives with one arbitrary file.
#![no_main]

mod archive;
#[path = "../../stages/trace/tests/support/body.rs"]
mod body;

use std::sync::LazyLock;

use archive::Archive;
use libfuzzer_sys::fuzz_target;

static ARCHIVE: LazyLock<Archive> = LazyLock::new(|| Archive::of("otf-ring-4/plain"));

fuzz_target!(|data: &[u8]| ARCHIVE.with(data, body::otf));
