//! Checkpoint stores with one arbitrary file.
#![no_main]

#[path = "../../stages/checkpoint/tests/support/store.rs"]
mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use hopmap_checkpoint::store::Store;
use libfuzzer_sys::fuzz_target;
use support::{Sample, restore_files, verify};

struct Site {
    sample: Sample,
    files: Vec<(PathBuf, Vec<u8>)>,
}

static SITE: LazyLock<Site> = LazyLock::new(|| {
    let sample = Sample::new(3, 1);
    let files = sample.files();
    Site { sample, files }
});

// The first byte selects the file. If it is odd, the bytes after the next two replace the file. If it is
// even, they are XORed into the file, at the offset in the next two bytes.
fuzz_target!(|data: &[u8]| {
    let [which, low, high, bytes @ ..] = data else { return };
    let (path, original) = &SITE.files[usize::from(*which / 2) % SITE.files.len()];
    let mut changed = bytes.to_vec();
    if which % 2 == 0 {
        changed.clone_from(original);
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (original.len() + 1);
        changed.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old ^= new);
    }
    fs::write(path, changed).unwrap();
    if let Ok(store) = Store::open(&SITE.sample.path()) {
        let found = verify(&store, true);
        for state in found.checkpoints {
            let restored = restore_files(&store, state.number, &SITE.sample.versions[&state.number]);
            assert_eq!(restored.is_ok(), state.whole);
        }
    }
    fs::write(path, original).unwrap();
});
