//! What goes wrong with checkpoints.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::codec::CodecError;
use crate::cut::CutError;
use crate::series::SeriesError;
use crate::tree::TreeError;

/// Why something cannot be done with a store of checkpoints.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CheckpointError {
    /// A file could not be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A folder could not be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tree(#[from] TreeError),
    /// Another process has the store.
    #[error("{} is locked by {holder}", path.display())]
    #[diagnostic(help("wait for it to end: `--wait 600` waits up to ten minutes"))]
    Busy {
        /// The lock.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// A file that cannot be taken.
    #[error("{} cannot be added", path.display())]
    #[diagnostic(forward(source))]
    Cut {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CutError,
    },
    /// A block that cannot be encoded or decoded.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Codec(#[from] CodecError),
    /// The store is not there.
    #[error("{} is no store of checkpoints", .0.display())]
    #[diagnostic(help("make one with `hopmap checkpoint init`"))]
    NoStore(PathBuf),
    /// There is a store already.
    #[error("{} is a store of checkpoints already", .0.display())]
    #[diagnostic(help("add to it with `hopmap checkpoint add`; nothing was changed"))]
    IsStore(PathBuf),
    /// There is something where something is to be written.
    #[error("{} is not an empty folder", .0.display())]
    #[diagnostic(help("name a folder that is not there yet; nothing was changed"))]
    NotEmpty(PathBuf),
    /// A setting out of its range.
    #[error("`{name}` has to be {range}")]
    #[diagnostic(help("nothing was changed"))]
    Setting {
        /// Which.
        name: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// The settings of the store cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(help(
        "it is a small text file: write it again as `hopmap checkpoint init` does in an empty folder, with the `seed` it had, a `next` above all numbers, and without `removed`"
    ))]
    DamagedSettings {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No such checkpoint.
    #[error("there is no checkpoint {number}")]
    #[diagnostic(help("there are: {there}"))]
    NoCheckpoint {
        /// Its number.
        number: u32,
        /// Those that are there, in words.
        there: String,
    },
    /// Folders of a store that do not belong together.
    #[error("{} lacks the manifests of checkpoints {lost}", path.display())]
    #[diagnostic(help(
        "is all of it mounted, and was all of it copied? `packs`, `checkpoints` and `store.json` belong together; no pack was removed"
    ))]
    NotTogether {
        /// The folder of the manifests.
        path: PathBuf,
        /// The checkpoints, in words.
        lost: String,
    },
    /// A manifest that cannot be read.
    #[error("checkpoint {number} cannot be read: {}: {reason}", path.display())]
    #[diagnostic(help("restore another one; `hopmap checkpoint verify` tells which are whole"))]
    DamagedManifest {
        /// The file.
        path: PathBuf,
        /// The checkpoint.
        number: u32,
        /// Why.
        reason: &'static str,
    },
    /// A pack that cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(help("`hopmap checkpoint verify` tells which checkpoints need it; the others are whole"))]
    DamagedPack {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// A block that cannot be used.
    #[error("block {block} of {} cannot be used: {reason}", path.display())]
    #[diagnostic(help("`hopmap checkpoint verify` tells which checkpoints need it; the others are whole"))]
    DamagedBlock {
        /// The pack.
        path: PathBuf,
        /// Its number in the pack.
        block: u32,
        /// Why.
        reason: &'static str,
    },
    /// A part of the chain of a checkpoint that cannot be used.
    #[error(
        "checkpoint {number} cannot be restored: of the chain of its bases, checkpoint {damaged} is damaged"
    )]
    #[diagnostic(help(
        "what checkpoint {damaged} has is needed by {others}; restore another one, and add the last state with `--whole`"
    ))]
    DamagedChain {
        /// The checkpoint.
        number: u32,
        /// The checkpoint whose delta is damaged.
        damaged: u32,
        /// Those that need it, in words.
        others: String,
        /// What is damaged.
        source: Box<Self>,
    },
    /// A base that the delta of the next checkpoint may have.
    #[error("checkpoint {0} is a base that the delta of the next checkpoint may have")]
    #[diagnostic(help(
        "add a checkpoint with `--whole` first, which begins anew; rules of a prune keep such a base by themselves; nothing was changed"
    ))]
    IsBase(u32),
    /// The store was made with another rule.
    #[error("the rule of {} is `{rule}`, not `{asked}`", path.display())]
    #[diagnostic(help(
        "a store keeps the rule it was made with: leave out the rule, or make another store with `hopmap checkpoint init --rule {asked}`; nothing was stored"
    ))]
    OtherRule {
        /// The store.
        path: PathBuf,
        /// Its rule.
        rule: &'static str,
        /// What was asked for.
        asked: &'static str,
    },
    /// A stream cannot be compared before it is stored.
    #[error("a stream can be read once, and ADCA compares a checkpoint with two bases before it stores it")]
    #[diagnostic(help(
        "write it to a file and add its folder, or make the store with the rule `first`, `incremental` or `block-wise`; nothing was stored"
    ))]
    ReadTwice,
    /// What is to be added cannot be compared with its bases.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compare(#[from] Box<DeltaError>),
    /// A file that came out as another.
    #[error("{} is not what was added: its digest is another", .0.display())]
    #[diagnostic(help(
        "nothing was kept of it; `hopmap checkpoint verify --deep` tells which checkpoints are whole"
    ))]
    WrongContents(PathBuf),
    /// A file that was written to while it was read.
    #[error("{} changed while it was read", .0.display())]
    #[diagnostic(help("add the checkpoint when it is whole; nothing was stored"))]
    Changed(PathBuf),
    /// A stream without bytes.
    #[error("the stream is empty")]
    #[diagnostic(help(
        "the program that was to write it has failed, or wrote elsewhere; nothing was stored"
    ))]
    EmptyStream,
    /// More than the disk can hold.
    #[error("checkpoint {number} takes {needed} bytes, and the disk has {free} left")]
    #[diagnostic(help("restore it to another disk; nothing was written"))]
    TooLarge {
        /// The checkpoint.
        number: u32,
        /// Bytes it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A stream is one file.
    #[error("checkpoint {number} has {files} files, and a stream is one")]
    #[diagnostic(help("name one with --file, or restore to a folder"))]
    SeveralFiles {
        /// The checkpoint.
        number: u32,
        /// How many there are.
        files: usize,
    },
    /// No such file.
    #[error("checkpoint {number} has no file `{}`", path.display())]
    #[diagnostic(help("`hopmap checkpoint explain` lists its files"))]
    NoFile {
        /// The checkpoint.
        number: u32,
        /// The path asked for.
        path: PathBuf,
    },
    /// The list of pinned checkpoints cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(help(
        "it lists the checkpoints that are pinned: write it again, such as `{{\"pinned\": [3, 5]}}`; nothing was changed"
    ))]
    DamagedPins {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A checkpoint that is pinned is not removed.
    #[error("checkpoint {0} is pinned")]
    #[diagnostic(help("unpin it first; nothing was changed"))]
    Pinned(u32),
    /// No checkpoint would be left.
    #[error("no checkpoint would be left")]
    #[diagnostic(help("keep one at least, or remove the folder of the store; nothing was changed"))]
    NothingKept,
    /// What a checkpoint that stays needs is not known.
    #[error("what the checkpoints that stay need is not known: {0}")]
    #[diagnostic(help(
        "remove the checkpoints that `hopmap checkpoint verify` says are damaged as well; nothing was changed"
    ))]
    NeedsUnknown(String),
    /// The user asked to stop.
    #[error("interrupted")]
    #[diagnostic(help("nothing was changed"))]
    Interrupted,
}

/// Why the deltas of a series are not known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DeltaError {
    /// The checkpoints cannot be found.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Series(#[from] SeriesError),
    /// The system refused something.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A file of a checkpoint that cannot be used.
    #[error("{} cannot be compared", path.display())]
    #[diagnostic(help("with `align = \"position\"` images are compared like any other file, whole or not"))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CutError,
    },
    /// A length of blocks that there is not.
    #[error("`block_bytes` is {0}, but blocks have 256, 512, 1024 … or 65536 bytes")]
    Block(u32),
    /// A list without entries.
    #[error("`{0}` is an empty list")]
    Nothing(&'static str),
    /// A threshold that is no part.
    #[error("`epsilon` is {0}, but has to be at least 0 and below 1: it is a part of the size of a delta")]
    Epsilon(f64),
    /// Seconds or bytes per second that cannot be.
    #[error("`{name}` is {value}, but has to be {least}")]
    Cost {
        /// Name of the parameter.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// What it may be, in words.
        least: &'static str,
    },
    /// The same thing is to be measured and is given.
    #[error("`{0}` is given, and `target` is to be measured")]
    #[diagnostic(help(
        "leave out `target` to use the given time of writing, or the given time to measure it"
    ))]
    MeasuredAndGiven(&'static str),
}
