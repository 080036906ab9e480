//! `hopmap checkpoint restore`: a checkpoint as it was.

use std::fs::File;
use std::io::{self, Stdout, Write, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::amounts::bytes;
use super::{Exit, Failure, Output, Work, number, open};
use crate::cli::failure::Mistake;
use crate::cli::output::shown;
use crate::registry::checkpoint::store::RestoreOptions;

/// Arguments of `checkpoint restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder is written beside its place and renamed when every byte was compared with what was added.

Examples:
  hopmap checkpoint restore store latest -o restart
  hopmap checkpoint restore store latest --name my-job -o - | my-program --restart-from -
  hopmap checkpoint restore store 7 --file rank3.dat -o - > rank3.dat")]
pub(super) struct Arguments {
    /// Folder of the store.
    store: PathBuf,
    /// Number of the checkpoint, or `latest`.
    checkpoint: String,
    /// Of which `latest` is meant: the checkpoints that were added with this name.
    #[arg(long)]
    name: Option<String>,
    /// Where to write it: a folder that is missing or empty, or `-` for one file on standard output.
    #[arg(short, long, value_name = "FOLDER")]
    out: PathBuf,
    /// The file to write to standard output, if the checkpoint has several.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Leave it to the system when the files are put on disk: faster, but not safe against a power failure.
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    work: Work,
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let begin = Instant::now();
    let lock = arguments.work.read_lock(&store)?;
    let number = number(&store, &arguments.checkpoint, arguments.name.as_deref())?;
    if arguments.out == Path::new("-") {
        let file = arguments.file.as_deref();
        let restored = arguments.work.run(output, |cx| {
            let mut out = standard_output();
            store.restore_file(&lock, number, file, &mut out, cx)
        });
        return restored.map(|_| Exit::Done);
    }
    if arguments.file.is_some() {
        let help = "with --file there is one file, which goes to standard output: `-o -`";
        return Err(Mistake::new("a folder has all files", help).into());
    }
    let options = RestoreOptions { unsynced: arguments.no_sync };
    let restored =
        arguments.work.run(output, |cx| store.restore(&lock, number, &arguments.out, options, cx))?;
    if output.is_json() {
        output.json(&json!({ "number": number, "files": restored.files, "bytes": restored.bytes, "folder": shown(&arguments.out) }));
    }
    let (files, seconds) = (restored.files, begin.elapsed().as_secs_f64());
    let place = shown(&arguments.out);
    let ending = if files == 1 { "" } else { "s" };
    output.line(format!(
        "checkpoint {number}: {files} file{ending}, {} in {place} in {seconds:.2} s",
        bytes(restored.bytes)
    ));
    Ok(Exit::Done)
}

/// Standard output without the buffer that looks for the ends of lines.
fn standard_output() -> Standard {
    // A second handle, so that dropping it does not close the first.
    let out = stdout().as_fd().try_clone_to_owned();
    out.map_or_else(|_| Standard::Library(stdout()), |out| Standard::Plain(File::from(out)))
}

enum Standard {
    Plain(File),
    Library(Stdout),
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Library(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Library(out) => out.flush(),
        }
    }
}
