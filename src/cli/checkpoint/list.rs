//! `hopmap checkpoint list`: which checkpoints there are.

use std::path::PathBuf;

use clap::Args;

use super::amounts::{bytes, time, times};
use super::{Exit, Failure, Output, open};
use crate::registry::checkpoint::store::Listed;
use crate::registry::checkpoint::tree::Time;

/// Arguments of `checkpoint list`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint list store")]
pub(super) struct Arguments {
    /// Folder of the store.
    store: PathBuf,
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let listed = open(&arguments.store)?.list()?;
    if output.is_json() {
        output.json(&listed);
    }
    match listed.is_empty() {
        true => output.line("no checkpoints yet"),
        false => output.line(format!(
            "{:>6}  {:<20}  {:>9}  {:>9}  {:>8}  files  name",
            "number", "added", "bytes", "stored", ""
        )),
    }
    listed.iter().for_each(|line| output.line(in_words(line)));
    let damaged = listed.iter().any(|line| line.damaged.is_some());
    Ok(if damaged { Exit::Failed } else { Exit::Done })
}

fn in_words(line: &Listed) -> String {
    if let Some(reason) = &line.damaged {
        return format!("{:>6}  damaged: {reason}", line.number);
    }
    let pinned = if line.pinned { " (pinned)" } else { "" };
    let text = format!(
        "{:>6}  {:<20}  {:>9}  {:>9}  {:>8}  {:>5}  {}{pinned}",
        line.number,
        time(Time { seconds: line.created, nanoseconds: 0 }),
        bytes(line.bytes),
        bytes(line.stored),
        times(line.bytes, line.stored),
        line.files,
        line.name
    );
    text.trim_end().to_owned()
}
