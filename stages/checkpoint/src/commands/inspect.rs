//! The commands that show the contents of a store: `hopmap checkpoint list`, `explain` and `stats`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure};
use hopmap_model::Context;
use hopmap_text::bytes;

use super::work::{Work, number, time, times, unless_interrupted};
use crate::store::{Delta, Explained, ExplainedFile, Listed, Statistics, Store};
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
        listed.iter().for_each(|line| answer.line(listed_line(line)));
        let is_damaged = listed.iter().any(|line| line.damaged.is_some());
        Ok(answer.ending(if is_damaged { Exit::Failed } else { Exit::Done }))
    }
}

fn listed_line(line: &Listed) -> String {
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

/// Show why a checkpoint takes its size on disk.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint explain store 7")]
pub struct Explain {
    /// Folder of the store.
    store: PathBuf,
    /// Number of the checkpoint, or `latest`.
    checkpoint: String,
    /// With `latest`: the last checkpoint with this name.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    work: Work,
}

impl Command for Explain {
    const NAME: &'static str = "explain";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let lock = self.work.read_lock(&store, cx)?;
        let number = number(&store, &self.checkpoint, self.name.as_deref())?;
        let explained = unless_interrupted(store.explain(&lock, number), cx)?;
        let mut answer = Answer::of(&explained);
        describe_explained(&explained, &mut answer);
        Ok(answer)
    }
}

fn describe_explained(explained: &Explained, answer: &mut Answer) {
    let part = |part: u64| match explained.bytes {
        0 => String::new(),
        total => format!(" ({:.1} %)", 100.0 * part as f64 / total as f64),
    };
    let compared = match explained.earlier {
        0 => "with no other: stored in full".to_owned(),
        earlier => format!("with checkpoint {earlier}"),
    };
    answer.line(format!("checkpoint {}, compared {compared}", explained.number));
    for (name, count) in [
        ("bytes", explained.bytes),
        ("zeros", explained.zero),
        ("unchanged", explained.unchanged),
        ("known", explained.known),
        ("new", explained.new),
    ] {
        let part = if name == "bytes" { String::new() } else { part(count) };
        answer.line(format!("{name:<10} {:>9}{part}", bytes(count)));
    }
    let ratio = times(explained.bytes, explained.stored);
    answer.line(format!("stored     {:>9} ({ratio})", bytes(explained.stored)));
    if let Some(Delta { bytes: count, blocks, depth, .. }) = explained.delta {
        answer.line(format!("delta      {:>9} in {blocks} blocks, depth {depth}", bytes(count)));
    }
    for &(base, count, stored) in &explained.bases {
        let (count, stored) = (bytes(count), bytes(stored));
        answer.line(format!("  {count} of the new bytes encoded against checkpoint {base}, in {stored}"));
    }
    if explained.comparisons.0 > 0 {
        let (all, changed) = explained.comparisons;
        answer.line(format!("ADCA compared bases {all} times and changed them {changed} times"));
    }
    answer.line(format!("its bytes are from  {}", list(&explained.brought)));
    answer.line(format!("chains              {}", list(&explained.depths)));
    answer.line(format!("codecs              {}", list(&explained.codecs)));
    explained.files.iter().for_each(|file| answer.line(file_line(file)));
}

/// Bytes by category.
fn list<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    counts.iter().map(|(of, &count)| format!("{of}: {}", bytes(count))).collect::<Vec<_>>().join(", ")
}

fn file_line(file: &ExplainedFile) -> String {
    let zero = if file.zero > 0 { format!(", {} zeros", bytes(file.zero)) } else { String::new() };
    let (path, format) = (file.path.display(), &file.format);
    let [all, own, before] = [file.bytes, file.own, file.before].map(bytes);
    format!("  {path} ({format}): {all}{zero}, {own} of this checkpoint, {before} of earlier ones")
}

/// Show the size of a store.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint stats store")]
pub struct Stats {
    /// Folder of the store.
    store: PathBuf,
    #[command(flatten)]
    work: Work,
}

impl Command for Stats {
    const NAME: &'static str = "stats";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let lock = self.work.read_lock(&store, cx)?;
        let statistics = unless_interrupted(store.statistics(&lock), cx)?;
        let mut answer = Answer::of(&statistics);
        describe_statistics(&statistics, &mut answer);
        statistics.damaged.iter().for_each(|damaged| cx.log(damaged));
        Ok(answer.ending(if statistics.damaged.is_empty() { Exit::Done } else { Exit::Failed }))
    }
}

fn describe_statistics(statistics: &Statistics, answer: &mut Answer) {
    let stored = statistics.packs + statistics.manifests;
    answer.line(format!("checkpoints  {}", statistics.checkpoints));
    answer.line(format!("bytes        {}", bytes(statistics.bytes)));
    answer.line(format!("on disk      {} ({})", bytes(stored), times(statistics.bytes, stored)));
    answer.line(format!("  manifests  {}", bytes(statistics.manifests)));
    answer.line(format!("  index      {}", bytes(statistics.index)));
    answer.line(format!("chunks       {} in {} blocks", statistics.chunks, statistics.blocks));
    for share in &statistics.codecs {
        let (blocks, ratio) = (share.blocks, times(share.bytes, share.stored));
        let (size, part) = (bytes(share.bytes), bytes(share.stored));
        answer.line(format!("  {:<12} {blocks} blocks, {size} in {part} ({ratio})", share.codec));
    }
    if !statistics.depths.is_empty() {
        let depths = statistics.depths.iter().map(|(depth, blocks)| format!("{depth}: {blocks} blocks"));
        answer.line(format!("chains       {}", depths.collect::<Vec<_>>().join(", ")));
    }
    if let (Some(prunable), Some(unneeded)) = (statistics.prunable, statistics.unneeded) {
        let freed = match (prunable, unneeded) {
            (0, 0) => "nothing: all data is needed".to_owned(),
            (0, _) => {
                let unneeded = bytes(unneeded);
                format!("nothing: the unneeded {unneeded} are less than a quarter of their packs")
            }
            _ => format!("about {}", bytes(prunable)),
        };
        answer.line(format!("a prune would free {freed}"));
    }
}
