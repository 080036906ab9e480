//! `hopmap checkpoint prune`, `pin` and `unpin`: which checkpoints stay.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure, Mistake};
use hopmap_model::Context;

use super::amounts::bytes;
use super::work::{Work, unless_interrupted};
use crate::CheckpointError;
use crate::store::{Keep, Pruned, Store, WriteLock, in_words};

/// Remove checkpoints, and what no other needs of them.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint stays if one of the rules keeps it; pinned ones always do. What those that stay are told by is kept as long as it is needed.
Works on a full disk; ends with 1 if something that nobody needs is left because there is no room to write a pack again.

Examples:
  hopmap checkpoint prune store --keep-last 5
  hopmap checkpoint prune store --keep-last 2 --keep-every 10 --dry-run
  hopmap checkpoint prune store --remove 3,4")]
pub struct Prune {
    /// Folder of the store.
    store: PathBuf,
    /// Keep so many of the last ones of every name.
    #[arg(long, value_name = "COUNT")]
    keep_last: Option<usize>,
    /// Keep those whose numbers are multiples of this.
    #[arg(long, value_name = "NUMBER")]
    keep_every: Option<u32>,
    /// Keep these, now and in all prunes to come.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pin: Vec<u32>,
    /// Keep these only as long as a rule does.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    unpin: Vec<u32>,
    /// Remove these, whatever the rules say.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    remove: Vec<u32>,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    work: Work,
}

impl Command for Prune {
    const NAME: &'static str = "prune";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let rules = self.keep_last.is_some() || self.keep_every.is_some();
        if !rules && !self.changes_pins() && self.remove.is_empty() {
            let help = "say which stay, such as `--keep-last 5`, or which go, such as `--remove 3`";
            return Err(Mistake::new("nothing says which checkpoints stay", help).into());
        }
        let lock = self.work.lock(&store, Self::NAME, cx)?;
        let pruned = unless_interrupted(self.prune(&store, &lock, cx), cx)?;
        pruned.notes.iter().for_each(|note| cx.log(note));
        let mut answer = Answer::of(&pruned);
        describe(&pruned, &mut answer);
        Ok(answer.ending(if pruned.left.is_empty() { Exit::Done } else { Exit::Failed }))
    }
}

impl Prune {
    fn changes_pins(&self) -> bool {
        !self.pin.is_empty() || !self.unpin.is_empty()
    }

    fn prune(&self, store: &Store, lock: &WriteLock, cx: &Context<'_>) -> Result<Pruned, CheckpointError> {
        let keep = Keep {
            last: self.keep_last,
            every: self.keep_every,
            pinned: self.pin.clone(),
            unpinned: self.unpin.clone(),
            remove: self.remove.clone(),
        };
        if self.changes_pins() && !self.dry_run {
            // What is refused changes no pins.
            store.prune(lock, &keep, true, cx)?;
            self.unpin.iter().try_for_each(|&number| store.unpin(lock, number).map(drop))?;
            self.pin.iter().try_for_each(|&number| store.pin(lock, number))?;
        }
        store.prune(lock, &keep, self.dry_run, cx)
    }
}

fn describe(pruned: &Pruned, answer: &mut Answer) {
    // How much hollow blocks take is known when they have been written.
    let (would, about) = if pruned.dry_run { ("would be ", "about ") } else { ("", "") };
    answer.line(format!("{would}removed: {}", in_words(&pruned.removed)));
    answer.line(format!("{would}kept: {}", in_words(&pruned.kept)));
    answer.line(format!("{would}freed: {about}{}", bytes(pruned.freed)));
    if !pruned.left.is_empty() {
        answer.line(format!("packs not written again: {}", in_words(&pruned.left)));
    }
}
