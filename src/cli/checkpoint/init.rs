//! `hopmap checkpoint init`: an empty store.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, Output, rule};
use crate::cli::failure::Mistake;
use crate::cli::output::shown;
use crate::registry::checkpoint::store::{DeltaSettings, Settings, Store};
use crate::registry::checkpoint::{Matching, StoreRule};

/// Arguments of `checkpoint init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap checkpoint init /scratch/me/checkpoints")]
pub(super) struct Arguments {
    /// Folder of the store, which is missing or empty.
    store: PathBuf,
    /// Most blocks that have to be decoded, one after the other, before a chunk that is told by others. More takes fewer bytes and
    /// longer to restore.
    #[arg(long, value_name = "BLOCKS", default_value_t = Settings::default().depth)]
    depth: u8,
    /// What part of a patch ADCA has to save before it changes the base.
    #[arg(long, value_name = "PART", default_value_t = Settings::default().epsilon)]
    epsilon: f64,
    /// Store a checkpoint whole after so many of a name, told by none before: damage touches no more than these. Takes as many bytes
    /// as the first every time [default: never].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    whole_every: Option<u32>,
    /// Store whole checkpoints as deltas against one base each, as the papers on ADCA and HBICT have it, uncompressed: `first`, `incremental`,
    /// `adca-literal` or `adca-immediate`.
    #[arg(long, default_value = "block-wise", value_parser = rule)]
    rule: StoreRule,
    /// Bytes of a block where there is a rule: 256 to 16384 and a power of two [default: 4096].
    #[arg(long, value_name = "BYTES")]
    block: Option<u32>,
    /// Where there is a rule, store no block that the base has anywhere, as stdchk does; HBICT looks at the same place.
    #[arg(long)]
    anywhere: bool,
}

/// A number that nobody else knows.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(super) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let deltas = DeltaSettings::of(arguments.rule);
    if deltas.is_none() && (arguments.block.is_some() || arguments.anywhere) {
        let help = "name a rule as well, such as `--rule adca-immediate`";
        return Err(
            Mistake::new("`--block` and `--anywhere` belong to a rule for whole checkpoints", help).into()
        );
    }
    let deltas = deltas.map(|deltas| DeltaSettings {
        block: arguments.block.unwrap_or(deltas.block),
        matching: if arguments.anywhere { Matching::Anywhere } else { Matching::Place },
        ..deltas
    });
    let settings = Settings {
        deltas,
        depth: arguments.depth,
        epsilon: arguments.epsilon,
        whole_every: arguments.whole_every.unwrap_or(0),
        seed: seed(),
        ..Settings::default()
    };
    let store = Store::init(&arguments.store, settings)?;
    if output.is_json() {
        output.json(&json!({ "store": shown(store.folder()), "settings": store.settings() }));
    }
    let store = shown(&arguments.store);
    output.line(format!("an empty store in {store}; next: hopmap checkpoint add {store} FOLDER"));
    Ok(Exit::Done)
}
