//! Reproducibility: what a result was made of as a file for people and git, and everything made again to compare.
//!
//! A [`Lock`] says of every cell what went into it and what came out. It holds no path of this machine, no time and no
//! number of threads: it stays as it is until a result changes, or what the result was made of.

mod again;
mod compare;
mod describe;
mod error;
mod file;
mod request;
mod rows;

pub use again::{Again, Remade, RemadeArtifact, SecondStore, Verdict};
pub use compare::{Difference, Differences, OutputDifference, before_a_run, outputs};
pub use describe::{Expected, Unfinished, Unknown, describe, expect, lock};
pub use error::LockError;
pub use file::{Ending, Lock, LockedCell, LockedFile};
pub use request::{REQUEST, Request};
