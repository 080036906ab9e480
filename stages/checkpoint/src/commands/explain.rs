//! `hopmap checkpoint explain`: why a checkpoint takes what it takes.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Failure};
use hopmap_model::Context;

use super::amounts::{bytes, times};
use super::work::{Work, number, unless_interrupted};
use crate::store::{Explained, ExplainedFile, Store};

/// Say why a checkpoint takes what it takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint explain store 7")]
pub struct Explain {
    /// Folder of the store.
    store: PathBuf,
    /// Number of the checkpoint, or `latest`.
    checkpoint: String,
    /// Of which `latest` is meant: the checkpoints that were added with this name.
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
        describe(&explained, &mut answer);
        Ok(answer)
    }
}

fn describe(explained: &Explained, answer: &mut Answer) {
    let part = |part: u64| match explained.bytes {
        0 => String::new(),
        whole => format!(" ({:.1} %)", 100.0 * part as f64 / whole as f64),
    };
    let compared = match explained.earlier {
        0 => "with nothing: it is stored whole".to_owned(),
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
        answer.line(format!(
            "{name:<10} {:>9}{}",
            bytes(count),
            if name == "bytes" { String::new() } else { part(count) }
        ));
    }
    answer.line(format!(
        "{:<10} {:>9} ({})",
        "stored",
        bytes(explained.stored),
        times(explained.bytes, explained.stored)
    ));
    if let Some(delta) = explained.delta {
        answer.line(format!(
            "delta      {:>9} in {} blocks, depth {}",
            bytes(delta.bytes),
            delta.blocks,
            delta.depth
        ));
    }
    for &(base, count, stored) in &explained.bases {
        answer.line(format!(
            "  {} of the new by versions of checkpoint {base}, in {}",
            bytes(count),
            bytes(stored)
        ));
    }
    if explained.comparisons.0 > 0 {
        let (all, changed) = explained.comparisons;
        answer.line(format!("ADCA compared bases {all} times and changed them {changed} times"));
    }
    let list = |pairs: Vec<String>| pairs.join(", ");
    let brought = explained.brought.iter().map(|(pack, count)| format!("{pack}: {}", bytes(*count)));
    answer.line(format!("its bytes are from  {}", list(brought.collect())));
    let depths = explained.depths.iter().map(|(depth, count)| format!("{depth}: {}", bytes(*count)));
    answer.line(format!("chains              {}", list(depths.collect())));
    let codecs = explained.codecs.iter().map(|(codec, count)| format!("{codec}: {}", bytes(*count)));
    answer.line(format!("codecs              {}", list(codecs.collect())));
    explained.files.iter().for_each(|file| answer.line(file_line(file)));
}

fn file_line(file: &ExplainedFile) -> String {
    let zero = if file.zero > 0 { format!(", {} zeros", bytes(file.zero)) } else { String::new() };
    format!(
        "  {} ({}): {}{zero}, {} of this checkpoint, {} of earlier ones",
        file.path.display(),
        file.format,
        bytes(file.bytes),
        bytes(file.own),
        bytes(file.before)
    )
}
