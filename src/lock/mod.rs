//! Reproducibility: what a result was made of as a file for people and git, and everything made again to compare.
//!
//! A [`Lock`] says of every cell what went into it and what came out. It holds no path of this machine, no time and no
//! number of threads: it stays as it is until a result changes, or what the result was made of.
//!
//! # Parts
//!
//! `src/lock` describes a pipeline (`describe`: what goes in, without running anything), writes that with the results as a lock file
//! (`file`), holds one against the other (`compare`), and makes everything again in a second store (`again`). For all of it the world is
//! taken to be as it was seen last (`Store::trust_observations`), so that what depends on an observation can be planned and compared.
//! Every run leaves `request.json` in its folder: text, parameters and folders, with which it can be planned again.
//!
//! `src/archive` packs a run. Input files get places at which the pipeline finds them (`inputs`): values of parameters are looked at
//! from folders of other names, which tells paths from text and what they are relative to. `read` believes nothing: names, kinds and
//! sizes of the whole directory are looked at before anything is read, and no file is read further than its directory says.

mod again;
mod compare;
mod describe;
mod file;

pub use again::{Again, Remade, RemadeArtifact, SecondStore, Verdict};
pub use compare::{Difference, Differences, OutputDifference, before_a_run, outputs};
pub use describe::{Expected, REQUEST, Request, Unfinished, Unknown, describe, expect, lock};
pub use file::{Ending, Lock, LockError, LockedCell, LockedFile};
