//! `hopmap checkpoint stats`: what a store takes.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure};
use hopmap_model::Context;

use super::amounts::{bytes, times};
use super::work::{Work, unless_interrupted};
use crate::store::{Statistics, Store};

/// Say what a store takes.
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
        describe(&statistics, &mut answer);
        statistics.damaged.iter().for_each(|damaged| cx.log(damaged));
        Ok(answer.ending(if statistics.damaged.is_empty() { Exit::Done } else { Exit::Failed }))
    }
}

fn describe(statistics: &Statistics, answer: &mut Answer) {
    let stored = statistics.packs + statistics.manifests;
    answer.line(format!("checkpoints  {}", statistics.checkpoints));
    answer.line(format!("bytes        {}", bytes(statistics.bytes)));
    answer.line(format!("on disk      {} ({})", bytes(stored), times(statistics.bytes, stored)));
    answer.line(format!("  manifests  {}", bytes(statistics.manifests)));
    answer.line(format!("  index      {}", bytes(statistics.index)));
    answer.line(format!("chunks       {} in {} blocks", statistics.chunks, statistics.blocks));
    for share in &statistics.codecs {
        let (whole, part) = (share.bytes, share.stored);
        let line =
            format!("{} blocks, {} in {} ({})", share.blocks, bytes(whole), bytes(part), times(whole, part));
        answer.line(format!("  {:<12} {line}", share.codec));
    }
    if !statistics.depths.is_empty() {
        let depths = statistics.depths.iter().map(|(depth, blocks)| format!("{depth}: {blocks} blocks"));
        answer.line(format!("chains       {}", depths.collect::<Vec<_>>().join(", ")));
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
        answer.line(format!("a prune would free {freed}"));
    }
}
