//! `hopmap checkpoint prune`, `pin` and `unpin`: which checkpoints stay.

use std::path::PathBuf;

use clap::Args;

use super::amounts::bytes;
use super::{Exit, Failure, Output, Work, open};
use crate::cli::failure::Mistake;
use crate::registry::checkpoint::store::{Keep, Pruned, in_words};

/// Arguments of `checkpoint prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint stays if one of the rules keeps it; pinned ones always do. What those that stay are told by is kept as long as it is needed.
Works on a full disk; ends with 1 if something that nobody needs is left because there is no room to write a pack again.

Examples:
  hopmap checkpoint prune store --keep-last 5
  hopmap checkpoint prune store --keep-last 2 --keep-every 10 --dry-run
  hopmap checkpoint prune store --remove 3,4")]
pub(super) struct Arguments {
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

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let rules = arguments.keep_last.is_some() || arguments.keep_every.is_some();
    let pins = !arguments.pin.is_empty() || !arguments.unpin.is_empty();
    if !rules && !pins && arguments.remove.is_empty() {
        let help = "say which stay, such as `--keep-last 5`, or which go, such as `--remove 3`";
        return Err(Mistake::new("nothing says which checkpoints stay", help).into());
    }
    let lock = arguments.work.lock(&store, "checkpoint prune")?;
    let keep = Keep {
        last: arguments.keep_last,
        every: arguments.keep_every,
        pinned: arguments.pin.clone(),
        unpinned: arguments.unpin.clone(),
        remove: arguments.remove.clone(),
    };
    let pruned = arguments.work.run(output, |cx| {
        if arguments.dry_run {
            return store.prune(&lock, &keep, true, cx);
        }
        if pins {
            // What is refused changes no pins.
            store.prune(&lock, &keep, true, cx)?;
            arguments.unpin.iter().try_for_each(|&number| store.unpin(&lock, number).map(drop))?;
            arguments.pin.iter().try_for_each(|&number| store.pin(&lock, number))?;
        }
        store.prune(&lock, &keep, false, cx)
    })?;
    if output.is_json() {
        output.json(&pruned);
    }
    print(&pruned, output);
    Ok(if pruned.left.is_empty() { Exit::Done } else { Exit::Failed })
}

fn print(pruned: &Pruned, output: Output) {
    pruned.notes.iter().for_each(|note| output.note(note));
    // How much hollow blocks take is known when they have been written.
    let (would, about) = if pruned.dry_run { ("would be ", "about ") } else { ("", "") };
    output.line(format!("{would}removed: {}", in_words(&pruned.removed)));
    output.line(format!("{would}kept: {}", in_words(&pruned.kept)));
    output.line(format!("{would}freed: {about}{}", bytes(pruned.freed)));
    if !pruned.left.is_empty() {
        output.line(format!("packs not written again: {}", in_words(&pruned.left)));
    }
}
