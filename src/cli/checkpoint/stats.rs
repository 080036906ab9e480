//! `hopmap checkpoint stats`: what a store takes.

use std::path::PathBuf;

use clap::Args;

use super::amounts::{bytes, times};
use super::{Exit, Failure, Output, Work, open};
use crate::registry::checkpoint::store::Statistics;

/// Arguments of `checkpoint stats`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint stats store")]
pub(super) struct Arguments {
    /// Folder of the store.
    store: PathBuf,
    #[command(flatten)]
    work: Work,
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let lock = arguments.work.read_lock(&store)?;
    let statistics = arguments.work.run(output, |_| store.statistics(&lock))?;
    if output.is_json() {
        output.json(&statistics);
    }
    print(&statistics, output);
    Ok(if statistics.damaged.is_empty() { Exit::Done } else { Exit::Failed })
}

fn print(statistics: &Statistics, output: Output) {
    let stored = statistics.packs + statistics.manifests;
    output.line(format!("checkpoints  {}", statistics.checkpoints));
    output.line(format!("bytes        {}", bytes(statistics.bytes)));
    output.line(format!("on disk      {} ({})", bytes(stored), times(statistics.bytes, stored)));
    output.line(format!("  manifests  {}", bytes(statistics.manifests)));
    output.line(format!("  index      {}", bytes(statistics.index)));
    output.line(format!("chunks       {} in {} blocks", statistics.chunks, statistics.blocks));
    for share in &statistics.codecs {
        let (whole, part) = (share.bytes, share.stored);
        let line =
            format!("{} blocks, {} in {} ({})", share.blocks, bytes(whole), bytes(part), times(whole, part));
        output.line(format!("  {:<12} {line}", share.codec));
    }
    if !statistics.depths.is_empty() {
        let depths = statistics.depths.iter().map(|(depth, blocks)| format!("{depth}: {blocks} blocks"));
        output.line(format!("chains       {}", depths.collect::<Vec<_>>().join(", ")));
    }
    if let (Some(prunable), Some(unneeded)) = (statistics.prunable, statistics.unneeded) {
        let freed = match (prunable, unneeded) {
            (0, 0) => "nothing now: the checkpoints need everything".to_owned(),
            (0, _) => format!(
                "nothing now: the {} not needed are less than a quarter of their packs",
                bytes(unneeded)
            ),
            _ => format!("about {} now", bytes(prunable)),
        };
        output.line(format!("a prune would free {freed}"));
    }
    statistics.damaged.iter().for_each(|damaged| output.note(damaged));
}
