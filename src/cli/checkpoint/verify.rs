//! `hopmap checkpoint verify`: whether checkpoints can be given back.

use std::path::PathBuf;

use clap::Args;

use super::amounts::bytes;
use super::{Exit, Failure, Output, Work, open};
use crate::cli::output::shown;
use crate::registry::checkpoint::store::{Affected, Problem, Verified, in_words};

/// Arguments of `checkpoint verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --deep every byte on disk is compared with its checksum. Ends with 1 if something is damaged or missing, and names every checkpoint
that needs it; the others can be restored.

Examples:
  hopmap checkpoint verify store
  hopmap checkpoint verify store --deep --only 7,8
  hopmap checkpoint verify store --discard     # then add the last state once more: it is stored whole again")]
pub(super) struct Arguments {
    /// Folder of the store.
    store: PathBuf,
    /// Decode everything as well, and compare every file as a restore does.
    #[arg(long)]
    deep: bool,
    /// Look at these checkpoints only, and at what they need.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    only: Vec<u32>,
    /// Then take damaged blocks out of the packs, so that what is added from now on is stored anew where it was told by them; and
    /// repair damaged ends of packs, which they have twice.
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    work: Work,
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let lock = arguments.work.read_lock(&store)?;
    let only = (!arguments.only.is_empty()).then_some(arguments.only.as_slice());
    let verified = arguments.work.run(output, |cx| store.verify(&lock, arguments.deep, only, cx))?;
    if output.is_json() {
        output.json(&verified);
    }
    print(&verified, output);
    drop(lock);
    if arguments.discard {
        let lock = arguments.work.lock(&store, "checkpoint verify")?;
        let mended = arguments.work.run(output, |cx| store.discard_damaged(&lock, cx))?;
        output.line(format!("blocks discarded: {}", mended.discarded.len()));
        if !mended.repaired.is_empty() {
            output.line(format!("packs repaired: {}", in_words(&mended.repaired)));
        }
    }
    let whole = verified.damaged().is_empty() && verified.worn.is_empty();
    Ok(if whole { Exit::Done } else { Exit::Failed })
}

fn print(verified: &Verified, output: Output) {
    verified.warnings.iter().for_each(|warning| output.note(warning));
    verified.problems.iter().for_each(|problem| problem_lines(problem, output));
    let (whole, damaged) = (verified.whole(), verified.damaged());
    if !damaged.is_empty() {
        output.line(format!("damaged: {}", in_words(&damaged)));
    }
    output.line(format!("whole: {}", in_words(&whole)));
    if !verified.unneeded.is_empty() {
        output.line(format!("packs that no checkpoint needs: {}", in_words(&verified.unneeded)));
    }
    let how = if verified.deep { "decoded and compared" } else { "compared" };
    output.line(format!("{} blocks, {} {how}", verified.blocks, bytes(verified.bytes)));
}

fn problem_lines(problem: &Problem, output: Output) {
    let place = shown(&problem.path);
    let at = problem.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
    let block = problem.block.map(|block| format!(", block {block}")).unwrap_or_default();
    output.line(format!("{place}{block}{at}: {}", problem.what));
    problem.checkpoints.iter().for_each(|affected| output.line(affected_line(affected)));
}

fn affected_line(affected: &Affected) -> String {
    const MOST: usize = 3;
    if affected.files.is_empty() {
        return format!("  checkpoint {}: nothing of it can be restored", affected.number);
    }
    let names: Vec<String> =
        affected.files.iter().take(MOST).map(|path| path.display().to_string()).collect();
    let rest = affected.files.len().saturating_sub(MOST);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("  checkpoint {}: {} in {}{rest}", affected.number, bytes(affected.bytes), names.join(", "))
}
