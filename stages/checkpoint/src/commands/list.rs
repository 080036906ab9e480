//! `hopmap checkpoint list`: which checkpoints there are.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure};
use hopmap_model::Context;

use super::amounts::{bytes, time, times};
use crate::store::{Listed, Store};
use crate::tree::Time;

/// List the checkpoints of a store.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint list store")]
pub struct List {
    /// Folder of the store.
    store: PathBuf,
}

impl Command for List {
    const NAME: &'static str = "list";
    const IS_STOPPABLE: bool = false;

    fn run(&self, _: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let listed = Store::open(&self.store)?.list()?;
        let mut answer = Answer::of(&listed);
        match listed.is_empty() {
            true => answer.line("no checkpoints yet"),
            false => answer.line(format!(
                "{:>6}  {:<20}  {:>9}  {:>9}  {:>8}  files  name",
                "number", "added", "bytes", "stored", ""
            )),
        }
        listed.iter().for_each(|line| answer.line(in_words(line)));
        let is_damaged = listed.iter().any(|line| line.damaged.is_some());
        Ok(answer.ending(if is_damaged { Exit::Failed } else { Exit::Done }))
    }
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
