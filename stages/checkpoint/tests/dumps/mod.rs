//! Real series of images, made without DMTCP: a program computes and writes its own memory, page by page.
//!
//! The program is the test binary itself, started a second time, so that images hold no memory of other tests.
#![allow(dead_code, reason = "not every test needs all")]

mod compute;
mod memory;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compute::Computation;

/// What the program is to do: kind, number of images, folder.
const TASK: &str = "HOPMAP_DUMP";

/// What the program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Heat spreads over a plane, in doubles: nearly every word of the field changes.
    Heat,
    /// A hash map in which entries change and that grows: a few words change in many pages, and it moves when it grows.
    Map,
    /// A sorted list into which numbers are inserted: all behind them is shifted.
    Sorted,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Heat, Self::Map, Self::Sorted];

    fn name(self) -> &'static str {
        match self {
            Self::Heat => "heat",
            Self::Map => "map",
            Self::Sorted => "sorted",
        }
    }
}

/// Makes a series of so many checkpoints in a folder that is there: `01/ckpt_KIND.dmtcp` and so on. The folders of the
/// checkpoints, in order.
pub(crate) fn dump_series(folder: &Path, kind: Kind, count: usize) -> Vec<PathBuf> {
    let folders: Vec<_> = (1..=count).map(|number| folder.join(format!("{number:02}"))).collect();
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::program"), "--exact", "--ignored"])
        .env(TASK, format!("{}:{count}:{}", kind.name(), folder.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    folders
}

/// Where the image of a checkpoint is.
pub(crate) fn image(checkpoint: &Path, kind: Kind) -> PathBuf {
    checkpoint.join(format!("ckpt_{}.dmtcp", kind.name()))
}

#[test]
#[ignore = "the program that `dump_series` starts"]
fn program() {
    let task = std::env::var(TASK).unwrap();
    let [kind, count, folder] = task.splitn(3, ':').collect::<Vec<_>>().try_into().unwrap();
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).unwrap();
    let mut computation = Computation::new(kind);
    for number in 1..=count.parse().unwrap() {
        let checkpoint = Path::new(folder).join(format!("{number:02}"));
        memory::dump(&image(&checkpoint, kind), kind.name());
        computation.advance();
    }
    computation.check();
}
