//! `hopmap checkpoint restore`: a checkpoint as it was.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hopmap_command::{Answer, Command, Failure, Mistake, shown};
use hopmap_model::Context;
use serde_json::json;

use super::amounts::bytes;
use super::work::{Work, number, unless_interrupted};
use crate::store::{RestoreOptions, Store};

/// Give a checkpoint back, compared with what was added.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder is written beside its place and renamed when every byte was compared with what was added.

Examples:
  hopmap checkpoint restore store latest -o restart
  hopmap checkpoint restore store latest --name my-job -o - | my-program --restart-from -
  hopmap checkpoint restore store 7 --file rank3.dat -o - > rank3.dat")]
pub struct Restore {
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

impl Command for Restore {
    const NAME: &'static str = "restore";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, out: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let begin = Instant::now();
        let lock = self.work.read_lock(&store, cx)?;
        let number = number(&store, &self.checkpoint, self.name.as_deref())?;
        if self.out == Path::new("-") {
            unless_interrupted(store.restore_file(&lock, number, self.file.as_deref(), out, cx), cx)?;
            return Ok(Answer::default());
        }
        if self.file.is_some() {
            let help = "with --file there is one file, which goes to standard output: `-o -`";
            return Err(Mistake::new("a folder has all files", help).into());
        }
        let options = RestoreOptions { unsynced: self.no_sync };
        let restored = unless_interrupted(store.restore(&lock, number, &self.out, options, cx), cx)?;
        let (place, files) = (shown(&self.out), restored.files);
        let mut answer = Answer::of(
            &json!({ "number": number, "files": files, "bytes": restored.bytes, "folder": place }),
        );
        let (seconds, ending) = (begin.elapsed().as_secs_f64(), if files == 1 { "" } else { "s" });
        answer.line(format!(
            "checkpoint {number}: {files} file{ending}, {} in {place} in {seconds:.2} s",
            bytes(restored.bytes)
        ));
        Ok(answer)
    }
}
