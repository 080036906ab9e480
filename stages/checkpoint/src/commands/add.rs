//! `hopmap checkpoint add`: one more checkpoint.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hopmap_command::{Answer, Command, Failure, Mistake};
use hopmap_durable::DurableError;
use hopmap_model::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::amounts::{bytes, now, times};
use super::work::{Work, rule, unless_interrupted};
use crate::store::{AddOptions, Added, Source, Store};
use crate::{CheckpointError, StoreRule};

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
    /// Store it whole, told by no checkpoint before: damage of those does not touch it, nor what is added after it.
    #[arg(long)]
    whole: bool,
    /// The rule that the store has to have; another one is an error. `checkpoint init` gives a store its rule.
    #[arg(long, value_parser = rule)]
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
