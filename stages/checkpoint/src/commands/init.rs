//! `hopmap checkpoint init`: an empty store.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hopmap_command::{Answer, Command, Failure, Mistake, shown};
use hopmap_model::Context;
use serde_json::json;

use super::work::rule;
use crate::store::{DeltaSettings, Settings, Store};
use crate::{Matching, StoreRule};

/// Make an empty store.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap checkpoint init /scratch/me/checkpoints")]
pub struct Init {
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

impl Command for Init {
    const NAME: &'static str = "init";

    fn run(&self, _: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::init(&self.store, self.settings()?)?;
        let mut answer = Answer::of(&json!({ "store": shown(store.folder()), "settings": store.settings() }));
        let store = shown(&self.store);
        answer.line(format!("an empty store in {store}; next: hopmap checkpoint add {store} FOLDER"));
        Ok(answer)
    }
}

impl Init {
    fn settings(&self) -> Result<Settings, Mistake> {
        let deltas = DeltaSettings::of(self.rule);
        if deltas.is_none() && (self.block.is_some() || self.anywhere) {
            let help = "name a rule as well, such as `--rule adca-immediate`";
            let message = "`--block` and `--anywhere` belong to a rule for whole checkpoints";
            return Err(Mistake::new(message, help));
        }
        let deltas = deltas.map(|deltas| DeltaSettings {
            block: self.block.unwrap_or(deltas.block),
            matching: if self.anywhere { Matching::Anywhere } else { Matching::Place },
            ..deltas
        });
        Ok(Settings {
            deltas,
            depth: self.depth,
            epsilon: self.epsilon,
            whole_every: self.whole_every.unwrap_or(0),
            seed: seed(),
            ..Settings::default()
        })
    }
}

/// A number that nobody else knows.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
