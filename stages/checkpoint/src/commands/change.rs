//! The commands that change a store: `hopmap checkpoint init`, `add` and `prune`.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure, Mistake, shown};
use hopmap_durable::DurableError;
use hopmap_model::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::work::{Work, bytes, now, times, unless_interrupted};
use crate::store::{
    AddOptions, Added, DeltaSettings, Keep, Pruned, Settings, Source, Store, WriteLock, in_words,
};
use crate::{CheckpointError, Matching, StoreRule};

/// Make an empty store.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap checkpoint init /scratch/me/checkpoints")]
pub struct Init {
    /// Folder of the store, which is missing or empty.
    store: PathBuf,
    /// Most blocks that have to be decoded, one after the other, before a chunk that is a delta against others. More takes fewer bytes and
    /// longer to restore.
    #[arg(long, value_name = "BLOCKS", default_value_t = Settings::default().depth)]
    depth: u8,
    /// What part of a patch ADCA has to save before it changes the base.
    #[arg(long, value_name = "PART", default_value_t = Settings::default().epsilon)]
    epsilon: f64,
    /// Store a checkpoint whole after so many of a name, as a delta against none before: damage touches no more than these. Takes as many bytes
    /// as the first every time [default: never].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    whole_every: Option<u32>,
    /// Store whole checkpoints as deltas against one base each, as the papers on ADCA and HBICT have it, uncompressed: `first`, `incremental`,
    /// `adca-literal` or `adca-immediate`.
    #[arg(long, default_value = "block-wise", value_parser = StoreRule::of_name)]
    rule: StoreRule,
    /// Bytes of a block where there is a rule: 256 to 16384 and a power of two [default: 4096].
    #[arg(long, alias = "block", value_name = "BYTES")]
    block_bytes: Option<u32>,
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
        if deltas.is_none() && (self.block_bytes.is_some() || self.anywhere) {
            let help = "name a rule as well, such as `--rule adca-immediate`";
            let message = "`--block-bytes` and `--anywhere` belong to a rule for whole checkpoints";
            return Err(Mistake::new(message, help));
        }
        let deltas = deltas.map(|deltas| DeltaSettings {
            block: self.block_bytes.unwrap_or(deltas.block),
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

/// Add a checkpoint: a folder, or a stream.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint is a folder with everything in it: images, side files, scripts. Images of DMTCP and pages of CRIU are compared page by page
at the same addresses, all other files by their contents. The checkpoint is on disk when the command ends.

Examples:
  hopmap checkpoint add store ckpt_lammps_00003
  my-program --checkpoint-to - | hopmap checkpoint add store - --name my-program")]
pub struct Add {
    /// Folder of the store.
    store: PathBuf,
    /// Folder of the checkpoint; `-` for a stream on standard input, which becomes a checkpoint of one file.
    checkpoint: PathBuf,
    /// What to call it. It is compared with the last checkpoint of the same name; a stream's file gets this name.
    #[arg(long, default_value = "")]
    name: String,
    /// Store new data in half the time and some more bytes, 2 to 7 in 100 of them.
    #[arg(long)]
    quick: bool,
    /// Store it whole, as a delta against no checkpoint before: damage of those does not touch it, nor what is added after it.
    #[arg(long)]
    whole: bool,
    /// The rule that the store has to have; another one is an error. `checkpoint init` gives a store its rule.
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
    /// Name and contents of a stream, if it is to be one.
    fn stream(&self) -> Result<Option<(String, File)>, Failure> {
        if self.checkpoint != Path::new("-") {
            if self.checkpoint.is_file() {
                let message = format!("{} is a file", self.checkpoint.display());
                let help = "a checkpoint is a folder; give a single file as a stream: `hopmap checkpoint add STORE - < FILE`";
                return Err(Mistake::new(message, help).into());
            }
            self.refuse_itself()?;
            return Ok(None);
        }
        let name = if self.name.is_empty() { "checkpoint" } else { &self.name };
        if name.contains('/') || [".", ".."].contains(&name) {
            return Err(Mistake::new(format!("`{name}` is no name of a file"), "name it without `/`").into());
        }
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input
            .map_err(DurableError::io("read", Path::new("standard input")))
            .map_err(CheckpointError::from)?;
        Ok(Some((name.to_owned(), File::from(input))))
    }

    /// A checkpoint that holds the store would grow by what it adds.
    fn refuse_itself(&self) -> Result<(), Failure> {
        let (Ok(store), Ok(checkpoint)) = (self.store.canonicalize(), self.checkpoint.canonicalize()) else {
            return Ok(());
        };
        if store.starts_with(&checkpoint) {
            let message = format!("the store is in {}", self.checkpoint.display());
            return Err(Mistake::new(message, "name the folder of the checkpoint alone").into());
        }
        Ok(())
    }
}

/// Standard input that Ctrl-C ends also while nothing comes.
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

/// Bytes that the checkpoint takes on disk.
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

/// Remove checkpoints, and what no other needs of them.
#[derive(Debug, Args)]
#[command(after_help = "\
A checkpoint stays if one of the rules keeps it; pinned ones always do. What those that stay are deltas against is kept as long as it is needed.
Works on a full disk; ends with 1 if something that nobody needs is left because there is no room to write a pack again.

Examples:
  hopmap checkpoint prune store --keep-last 5
  hopmap checkpoint prune store --keep-last 2 --keep-every 10 --dry-run
  hopmap checkpoint prune store --remove 3,4")]
pub struct Prune {
    /// Folder of the store.
    store: PathBuf,
    /// Keep so many of the last ones of every name.
    #[arg(long, value_name = "COUNT")]
    keep_last: Option<usize>,
    /// Keep those whose numbers are multiples of this.
    #[arg(long, value_name = "NUMBER")]
    keep_every: Option<u32>,
    /// Keep these, now and in all prunes to come.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pin: Vec<u32>,
    /// Keep these only as long as a rule does.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    unpin: Vec<u32>,
    /// Remove these, whatever the rules say.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    remove: Vec<u32>,
    /// Only say what would be removed.
    #[arg(long)]
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
            let help = "say which stay, such as `--keep-last 5`, or which go, such as `--remove 3`";
            return Err(Mistake::new("nothing says which checkpoints stay", help).into());
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
            // What is refused changes no pins.
            store.prune(lock, &keep, true, cx)?;
            self.unpin.iter().try_for_each(|&number| store.unpin(lock, number).map(drop))?;
            self.pin.iter().try_for_each(|&number| store.pin(lock, number))?;
        }
        store.prune(lock, &keep, self.dry_run, cx)
    }
}

fn describe(pruned: &Pruned, answer: &mut Answer) {
    // How much sparse blocks take is known when they have been written.
    let (would, about) = if pruned.dry_run { ("would be ", "about ") } else { ("", "") };
    answer.line(format!("{would}removed: {}", in_words(&pruned.removed)));
    answer.line(format!("{would}kept: {}", in_words(&pruned.kept)));
    answer.line(format!("{would}freed: {about}{}", bytes(pruned.freed)));
    if !pruned.left.is_empty() {
        answer.line(format!("packs not written again: {}", in_words(&pruned.left)));
    }
}
