//! Stores of which one file holds anything.
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

// The first byte says which file holds the others; where it is even they are mixed into the file as it was, from the place that the next
// two bytes tell.
fuzz_target!(|data: &[u8]| {
    let [which, low, high, bytes @ ..] = data else { return };
    let (path, whole) = &SITE.files[usize::from(*which / 2) % SITE.files.len()];
    let mut changed = bytes.to_vec();
    if which % 2 == 0 {
        changed.clone_from(whole);
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (whole.len() + 1);
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
    fs::write(path, whole).unwrap();
});
