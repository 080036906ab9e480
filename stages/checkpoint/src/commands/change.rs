//! The commands that change a store: `hopmap checkpoint init`, `add` and `prune`.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure, Mistake, shown};
use hopmap_durable::DurableError;
use hopmap_launchers::shell_word;
use hopmap_model::Context;
use hopmap_text::bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::work::{Work, now, times, unless_interrupted};
use crate::error::CheckpointError;
use crate::params::{Matching, StoreRule};
use crate::store::{
    AddOptions, Added, DeltaSettings, Keep, Pruned, Settings, Source, Store, WriteLock, in_words,
};

/// Create an empty store.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap checkpoint init /scratch/me/checkpoints")]
pub struct Init {
    /// Folder of the store; it must be missing or empty.
    store: PathBuf,
    /// Maximum length of delta chains. More takes fewer bytes, but restores are slower.
    #[arg(long, value_name = "BLOCKS", default_value_t = Settings::default().depth)]
    depth: u8,
    /// Fraction of a patch that ADCA must save before it changes the base.
    #[arg(long, value_name = "FRACTION", default_value_t = Settings::default().epsilon)]
    epsilon: f64,
    /// Store every COUNT-th checkpoint of a name in full: damage affects at most COUNT checkpoints, but each
    /// full one takes as many bytes as the first [default: never].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    whole_every: Option<u32>,
    /// Encode each checkpoint against one base, as in the papers on ADCA and HBICT, uncompressed: `first`,
    /// `incremental`, `adca-literal` or `adca-immediate`.
    #[arg(long, default_value = "block-wise", value_parser = StoreRule::of_name)]
    rule: StoreRule,
    /// Size of a block with a rule, in bytes: a power of two from 256 to 16384 [default: 4096].
    #[arg(long, value_name = "BYTES")]
    block_bytes: Option<u32>,
    /// With a rule, find equal blocks anywhere in the base, as stdchk does, not only at the same place, as
    /// HBICT does.
    #[arg(long)]
    anywhere: bool,
}

impl Command for Init {
    const NAME: &'static str = "init";

    fn run(&self, _: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::init(&self.store, self.settings()?)?;
        let mut answer = Answer::of(&json!({ "store": shown(store.folder()), "settings": store.settings() }));
        let store = shown(&self.store);
        answer.line(format!(
            "created an empty store in {store}; next: hopmap checkpoint add {} CHECKPOINT",
            shell_word(&store)
        ));
        Ok(answer)
    }
}

impl Init {
    fn settings(&self) -> Result<Settings, Mistake> {
        let deltas = DeltaSettings::of(self.rule);
        if deltas.is_none() && (self.block_bytes.is_some() || self.anywhere) {
            let help = "add a rule, such as `--rule adca-immediate`";
            let message = "`--block-bytes` and `--anywhere` require `--rule`";
            return Err(Mistake::new(message, help));
        }
        let deltas = deltas.map(|deltas| DeltaSettings {
            block: self.block_bytes.unwrap_or(deltas.block),
            matching: if self.anywhere { Matching::Anywhere } else { Matching::Address },
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

/// A random seed that cannot be guessed.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Add a checkpoint: a folder, or a stream.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint is a folder with everything in it: images, side files, scripts. Images of DMTCP and pages of CRIU are compared page by page \
at the same addresses, all other files by their contents. The checkpoint is on disk when the command ends.

Examples:
  hopmap checkpoint add store ckpt_lammps_00003
  my-program --checkpoint-to - | hopmap checkpoint add store - --name my-program")]
pub struct Add {
    /// Folder of the store.
    store: PathBuf,
    /// Folder of the checkpoint; `-` reads a stream from standard input as a checkpoint of one file.
    checkpoint: PathBuf,
    /// Name of the series. The checkpoint is encoded against the last one with the same name; the file of a
    /// stream gets this name.
    #[arg(long, default_value = "")]
    name: String,
    /// Store new data in half the time, with 2 to 7 % more bytes.
    #[arg(long)]
    quick: bool,
    /// Store the checkpoint in full, independent of earlier ones and their damage.
    #[arg(long)]
    whole: bool,
    /// Require that the store has this rule, which is set by `checkpoint init`.
    #[arg(long, value_parser = StoreRule::of_name)]
    rule: Option<StoreRule>,
    #[command(flatten)]
    work: Work,
}

impl Command for Add {
    const NAME: &'static str = "add";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let begin = Instant::now();
        let stream = self.stream()?;
        let options = AddOptions {
            name: self.name.clone(),
            created: now(),
            quick: self.quick,
            whole: self.whole,
            rule: self.rule,
        };
        let lock = self.work.lock(&store, Self::NAME, cx)?;
        let source = match &stream {
            None => Source::Folder(&self.checkpoint),
            Some((name, file)) => Source::Stream(name.clone(), Box::new(Input { file, cx })),
        };
        let added = unless_interrupted(store.add(&lock, source, &options, cx), cx)?;
        added.notes.iter().for_each(|note| cx.log(note));
        let mut answer = Answer::of(&as_json(&added));
        answer.line(line(&added, begin.elapsed().as_secs_f64()));
        Ok(answer)
    }
}

impl Add {
    /// Name and contents of a stream, if standard input was requested.
    fn stream(&self) -> Result<Option<(String, File)>, Failure> {
        if self.checkpoint != Path::new("-") {
            if self.checkpoint.is_file() {
                let message = format!("{} is a file", self.checkpoint.display());
                let help = "a checkpoint is a folder; add a single file as a stream: `hopmap checkpoint add STORE - < FILE`";
                return Err(Mistake::new(message, help).into());
            }
            self.refuse_itself()?;
            return Ok(None);
        }
        let name = if self.name.is_empty() { "checkpoint" } else { &self.name };
        if name.contains('/') || [".", ".."].contains(&name) {
            return Err(Mistake::new(format!("`{name}` is not a file name"), "use a name without `/`").into());
        }
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input
            .map_err(DurableError::io("read", Path::new("standard input")))
            .map_err(CheckpointError::from)?;
        Ok(Some((name.to_owned(), File::from(input))))
    }

    /// A checkpoint folder that contains the store would contain what is added.
    fn refuse_itself(&self) -> Result<(), Failure> {
        let (Ok(store), Ok(checkpoint)) = (self.store.canonicalize(), self.checkpoint.canonicalize()) else {
            return Ok(());
        };
        if store.starts_with(&checkpoint) {
            let message = format!("the store is in {}", self.checkpoint.display());
            return Err(
                Mistake::new(message, "use a checkpoint folder that does not contain the store").into()
            );
        }
        Ok(())
    }
}

/// Standard input that Ctrl-C can interrupt while it blocks.
struct Input<'a> {
    file: &'a File,
    cx: &'a Context<'a>,
}

impl Read for Input<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if self.cx.should_stop() {
                return Err(io::Error::other("interrupted"));
            }
            match poll(&mut [PollFd::new(self.file, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.file.read(bytes),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Size of the checkpoint on disk.
fn taken(added: &Added) -> u64 {
    added.pack_bytes + added.manifest_bytes
}

fn line(added: &Added, seconds: f64) -> String {
    let figures = &added.manifest.figures;
    let taken = taken(added);
    format!(
        "checkpoint {}: {}, {} new, {} stored ({}) in {seconds:.2} s",
        added.manifest.number,
        bytes(figures.bytes),
        bytes(figures.new),
        bytes(taken),
        times(figures.bytes, taken),
    )
}

fn as_json(added: &Added) -> serde_json::Value {
    let figures = &added.manifest.figures;
    json!({
        "number": added.manifest.number,
        "compared_with": added.manifest.earlier,
        "bytes": figures.bytes,
        "zero_bytes": figures.zero,
        "unchanged_bytes": figures.unchanged,
        "known_bytes": figures.known,
        "new_bytes": figures.new,
        "stored_bytes": taken(added),
        "notes": added.notes,
    })
}

/// Remove checkpoints that no rule keeps.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint is kept if a rule or a pin keeps it. The data that kept checkpoints depend on is kept too. \
Works on a full disk; exits with 1 if unneeded data remains because there is no space to rewrite a pack.

Examples:
  hopmap checkpoint prune store --keep-last 5
  hopmap checkpoint prune store --keep-last 2 --keep-every 10 --dry-run
  hopmap checkpoint prune store --remove 3,4")]
pub struct Prune {
    /// Folder of the store.
    store: PathBuf,
    /// Keep the last COUNT checkpoints of every name.
    #[arg(long, value_name = "COUNT")]
    keep_last: Option<usize>,
    /// Keep every COUNT-th checkpoint: those whose numbers are multiples of COUNT.
    #[arg(long, value_name = "COUNT")]
    keep_every: Option<u32>,
    /// Keep these checkpoints, now and in later prunes.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pin: Vec<u32>,
    /// Remove the pins of these checkpoints.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    unpin: Vec<u32>,
    /// Remove these checkpoints, even if a rule keeps them.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    remove: Vec<u32>,
    /// Only report what would be removed.
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    work: Work,
}

impl Command for Prune {
    const NAME: &'static str = "prune";

    fn threads(&self) -> Option<usize> {
        Some(self.work.threads())
    }

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let store = Store::open(&self.store)?;
        let rules = self.keep_last.is_some() || self.keep_every.is_some();
        if !rules && !self.changes_pins() && self.remove.is_empty() {
            let help =
                "select checkpoints to keep, such as `--keep-last 5`, or to remove, such as `--remove 3`";
            return Err(Mistake::new("no retention rule given", help).into());
        }
        let lock = self.work.lock(&store, Self::NAME, cx)?;
        let pruned = unless_interrupted(self.prune(&store, &lock, cx), cx)?;
        pruned.notes.iter().for_each(|note| cx.log(note));
        let mut answer = Answer::of(&pruned);
        describe(&pruned, &mut answer);
        Ok(answer.ending(if pruned.left.is_empty() { Exit::Done } else { Exit::Failed }))
    }
}

impl Prune {
    fn changes_pins(&self) -> bool {
        !self.pin.is_empty() || !self.unpin.is_empty()
    }

    fn prune(&self, store: &Store, lock: &WriteLock, cx: &Context<'_>) -> Result<Pruned, CheckpointError> {
        let keep = Keep {
            last: self.keep_last,
            every: self.keep_every,
            pinned: self.pin.clone(),
            unpinned: self.unpin.clone(),
            remove: self.remove.clone(),
        };
        if self.changes_pins() && !self.dry_run {
            // A rejected request must not change pins.
            store.prune(lock, &keep, true, cx)?;
            self.unpin.iter().try_for_each(|&number| store.unpin(lock, number).map(drop))?;
            self.pin.iter().try_for_each(|&number| store.pin(lock, number))?;
        }
        store.prune(lock, &keep, self.dry_run, cx)
    }
}

fn describe(pruned: &Pruned, answer: &mut Answer) {
    // The size of sparse blocks is known only after they are written.
    let (would, about) = if pruned.dry_run { ("would be ", "about ") } else { ("", "") };
    answer.line(format!("{would}removed: {}", in_words(&pruned.removed)));
    answer.line(format!("{would}kept: {}", in_words(&pruned.kept)));
    answer.line(format!("{would}freed: {about}{}", bytes(pruned.freed)));
    if !pruned.left.is_empty() {
        answer.line(format!("packs not rewritten: {}", in_words(&pruned.left)));
    }
}
