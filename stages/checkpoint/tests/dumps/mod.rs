//! Real series of images without DMTCP: a program computes, and its memory is dumped page by page.
//!
//! The program is the test binary itself, started again; it waits during the dump, so images contain neither
//! the memory of tests nor traces of the dump.
#![allow(dead_code, reason = "not every test needs all")]

mod compute;
mod memory;

use std::fs;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compute::Computation;
pub(crate) use compute::Kind;

/// The kind of computation, and the number of steps.
const TASK: &str = "HOPMAP_COMPUTE";

/// The line that signals that the memory can be read.
const READY: &str = "ready to be read";

/// Creates a series in an existing folder: `01/ckpt_KIND.dmtcp` and so on. Returns the folders of the
/// checkpoints, in order.
pub(crate) fn dump_series(folder: &Path, kind: Kind, count: usize) -> Vec<PathBuf> {
    let folders: Vec<_> = (1..=count).map(|number| folder.join(format!("{number:02}"))).collect();
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::program"), "--exact", "--ignored", "--nocapture"])
        .env(TASK, format!("{}:{count}", kind.name()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    for folder in &folders {
        assert!(lines.any(|line| line.unwrap() == READY), "the program ended");
        fs::create_dir(folder).unwrap();
        memory::dump(program.id(), &image(folder, kind), kind.name());
        program.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    }
    lines.for_each(drop);
    assert!(program.wait().unwrap().success());
    folders
}

/// Path of the image of a checkpoint.
pub(crate) fn image(checkpoint: &Path, kind: Kind) -> PathBuf {
    checkpoint.join(format!("ckpt_{}.dmtcp", kind.name()))
}

#[test]
#[ignore = "the program that `dump_series` starts"]
fn program() {
    let task = std::env::var(TASK).unwrap();
    let (kind, count) = task.split_once(':').unwrap();
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).unwrap();
    let mut computation = Computation::new(kind);
    for _ in 0..count.parse().unwrap() {
        computation.advance();
        writeln!(stdout(), "{READY}").unwrap();
        stdin().lock().read_line(&mut String::new()).unwrap();
    }
    computation.check();
}
