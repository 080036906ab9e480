//! `hopmap checkpoint restore` and `verify`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure, Mistake, shown};
use hopmap_model::Context;
use hopmap_text::{bytes, counted};
use serde_json::json;

use super::work::{Work, number, unless_interrupted};
use crate::error::CheckpointError;
use crate::store::{Affected, Damage, RestoreOptions, Store, Verified, in_words};

/// Restore a checkpoint and verify every byte.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder is written under a temporary name and renamed when every byte has been verified.

Examples:
  hopmap checkpoint restore store latest -o restart
  hopmap checkpoint restore store latest --name my-job -o - | my-program --restart-from -
  hopmap checkpoint restore store 7 --file rank3.dat -o - > rank3.dat")]
pub struct Restore {
    /// Folder of the store.
    store: PathBuf,
    /// Number of the checkpoint, or `latest`.
    checkpoint: String,
    /// With `latest`: the last checkpoint with this name.
    #[arg(long)]
    name: Option<String>,
    /// Where to write it: a folder that is missing or empty, or `-` for one file on standard output.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// The file to write to standard output, if the checkpoint has several.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Do not flush the files to disk: faster, but not safe against a power failure.
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
            let help = "`--file` writes one file to standard output: add `-o -`";
            return Err(Mistake::new("`--file` cannot be combined with an output folder", help).into());
        }
        let options = RestoreOptions { unsynced: self.no_sync };
        let restored = unless_interrupted(store.restore(&lock, number, &self.out, options, cx), cx)?;
        let (place, files) = (shown(&self.out), restored.files);
        let mut answer = Answer::of(
            &json!({ "number": number, "files": files, "bytes": restored.bytes, "folder": place }),
        );
        let (seconds, bytes) = (begin.elapsed().as_secs_f64(), bytes(restored.bytes));
        let files = counted(files, "file");
        answer.line(format!("checkpoint {number}: {files}, {bytes} in {place} in {seconds:.2} s"));
        Ok(answer)
    }
}

/// Verify that checkpoints can be restored, and report which ones damage affects.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --deep every byte on disk is compared with its checksum. Ends with 1 if something is damaged or missing, and names every checkpoint \
that needs it; the others can be restored.

Examples:
  hopmap checkpoint verify store
  hopmap checkpoint verify store --deep --only 7,8
  hopmap checkpoint verify store --discard     # then add the latest state again")]
pub struct Verify {
    /// Folder of the store.
    store: PathBuf,
    /// Also decode everything and verify every file, as a restore does.
    #[arg(long)]
    deep: bool,
    /// Verify only these checkpoints, with the data they depend on.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    only: Vec<u32>,
    /// Then remove damaged blocks from the packs, so that later checkpoints store that data again; and repair
    /// damaged ends of packs, which are stored twice.
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    work: Work,
}

impl Command for Verify {
    const NAME: &'static str = "verify";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let lock = self.work.read_lock(&store, cx)?;
        let only = (!self.only.is_empty()).then_some(self.only.as_slice());
        let verified = unless_interrupted(store.verify(&lock, self.deep, only, cx), cx)?;
        drop(lock);
        verified.warnings.iter().for_each(|warning| cx.log(warning));
        let mut answer = Answer::of(&verified);
        describe(&verified, &mut answer);
        if self.discard
            && let Err(error) = self.discard(&store, &mut answer, cx)
        {
            return Err(Failure::from(error).after(answer));
        }
        let is_intact = verified.damaged().is_empty() && verified.worn.is_empty();
        Ok(answer.ending(if is_intact { Exit::Done } else { Exit::Failed }))
    }
}

impl Verify {
    fn discard(&self, store: &Store, answer: &mut Answer, cx: &Context<'_>) -> Result<(), CheckpointError> {
        let lock = self.work.lock(store, Self::NAME, cx)?;
        let mended = unless_interrupted(store.discard_damaged(&lock, cx), cx)?;
        answer.line(format!("blocks discarded: {}", mended.discarded.len()));
        if !mended.repaired.is_empty() {
            answer.line(format!("packs repaired: {}", in_words(&mended.repaired)));
        }
        Ok(())
    }
}

fn describe(verified: &Verified, answer: &mut Answer) {
    verified.problems.iter().for_each(|damage| damage_lines(damage, answer));
    let (intact, damaged) = (verified.intact(), verified.damaged());
    if !damaged.is_empty() {
        answer.line(format!("damaged: {}", in_words(&damaged)));
    }
    answer.line(format!("intact: {}", in_words(&intact)));
    if !verified.unneeded.is_empty() {
        answer.line(format!("packs that no checkpoint needs: {}", in_words(&verified.unneeded)));
    }
    let how = if verified.deep { "decoded and compared" } else { "compared" };
    answer.line(format!("{} blocks, {} {how}", verified.blocks, bytes(verified.bytes)));
}

fn damage_lines(damage: &Damage, answer: &mut Answer) {
    let place = shown(&damage.path);
    let at = damage.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
    let block = damage.block.map(|block| format!(", block {block}")).unwrap_or_default();
    answer.line(format!("{place}{block}{at}: {}", damage.what));
    damage.checkpoints.iter().for_each(|affected| answer.line(affected_line(affected)));
}

fn affected_line(affected: &Affected) -> String {
    const MOST: usize = 3;
    if affected.files.is_empty() {
        return format!("  checkpoint {}: no file can be restored", affected.number);
    }
    let names: Vec<String> =
        affected.files.iter().take(MOST).map(|path| path.display().to_string()).collect();
    let rest = affected.files.len().saturating_sub(MOST);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("  checkpoint {}: {} in {}{rest}", affected.number, bytes(affected.bytes), names.join(", "))
}
