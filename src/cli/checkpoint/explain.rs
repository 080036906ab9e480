//! `hopmap checkpoint explain`: why a checkpoint takes what it takes.

use std::path::PathBuf;

use clap::Args;

use super::amounts::{bytes, times};
use super::{Exit, Failure, Output, Work, number, open};
use crate::registry::checkpoint::store::{Explained, ExplainedFile};

/// Arguments of `checkpoint explain`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap checkpoint explain store 7")]
pub(super) struct Arguments {
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

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let store = open(&arguments.store)?;
    let lock = arguments.work.read_lock(&store)?;
    let number = number(&store, &arguments.checkpoint, arguments.name.as_deref())?;
    let explained = arguments.work.run(output, |_| store.explain(&lock, number))?;
    if output.is_json() {
        output.json(&explained);
    }
    print(&explained, output);
    Ok(Exit::Done)
}

fn print(explained: &Explained, output: Output) {
    let part = |part: u64| match explained.bytes {
        0 => String::new(),
        whole => format!(" ({:.1} %)", 100.0 * part as f64 / whole as f64),
    };
    let compared = match explained.earlier {
        0 => "with nothing: it is stored whole".to_owned(),
        earlier => format!("with checkpoint {earlier}"),
    };
    output.line(format!("checkpoint {}, compared {compared}", explained.number));
    for (name, count) in [
        ("bytes", explained.bytes),
        ("zeros", explained.zero),
        ("unchanged", explained.unchanged),
        ("known", explained.known),
        ("new", explained.new),
    ] {
        output.line(format!(
            "{name:<10} {:>9}{}",
            bytes(count),
            if name == "bytes" { String::new() } else { part(count) }
        ));
    }
    output.line(format!(
        "{:<10} {:>9} ({})",
        "stored",
        bytes(explained.stored),
        times(explained.bytes, explained.stored)
    ));
    if let Some(delta) = explained.delta {
        output.line(format!(
            "delta      {:>9} in {} blocks, depth {}",
            bytes(delta.bytes),
            delta.blocks,
            delta.depth
        ));
    }
    for &(base, count, stored) in &explained.bases {
        output.line(format!(
            "  {} of the new by versions of checkpoint {base}, in {}",
            bytes(count),
            bytes(stored)
        ));
    }
    if explained.comparisons.0 > 0 {
        let (all, changed) = explained.comparisons;
        output.line(format!("ADCA compared bases {all} times and changed them {changed} times"));
    }
    let list = |pairs: Vec<String>| pairs.join(", ");
    let brought = explained.brought.iter().map(|(pack, count)| format!("{pack}: {}", bytes(*count)));
    output.line(format!("its bytes are from  {}", list(brought.collect())));
    let depths = explained.depths.iter().map(|(depth, count)| format!("{depth}: {}", bytes(*count)));
    output.line(format!("chains              {}", list(depths.collect())));
    let codecs = explained.codecs.iter().map(|(codec, count)| format!("{codec}: {}", bytes(*count)));
    output.line(format!("codecs              {}", list(codecs.collect())));
    explained.files.iter().for_each(|file| output.line(file_line(file)));
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
