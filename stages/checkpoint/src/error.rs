//! Errors of checkpoint stores and series.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::codec::CodecError;
use crate::cut::CutError;
use crate::series::SeriesError;
use crate::tree::TreeError;

/// Why an operation on a checkpoint store failed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CheckpointError {
    /// An operation on a file failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// An operation on a folder failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tree(#[from] TreeError),
    /// Another process has locked the store.
    #[error("{} is locked by {holder}", path.display())]
    #[diagnostic(code(checkpoint::busy), help("wait for it to end: `--wait 600` waits up to ten minutes"))]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it.
        holder: String,
    },
    /// A file that cannot be added.
    #[error("{} cannot be added", path.display())]
    #[diagnostic(code(checkpoint::cut), forward(source))]
    Cut {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: CutError,
    },
    /// A block that cannot be encoded or decoded.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Codec(#[from] CodecError),
    /// The folder is not a store.
    #[error("{} is not a checkpoint store", .0.display())]
    #[diagnostic(code(checkpoint::no_store), help("create one with `hopmap checkpoint init`"))]
    NoStore(PathBuf),
    /// The folder is a store already.
    #[error("{} is already a checkpoint store", .0.display())]
    #[diagnostic(
        code(checkpoint::is_store),
        help("add checkpoints with `hopmap checkpoint add`; nothing was changed")
    )]
    IsStore(PathBuf),
    /// The output folder is not empty.
    #[error("{} is not an empty folder", .0.display())]
    #[diagnostic(
        code(checkpoint::not_empty),
        help("use a folder that does not exist yet; nothing was changed")
    )]
    NotEmpty(PathBuf),
    /// A setting out of its range.
    #[error("`{name}` must be {range}")]
    #[diagnostic(code(checkpoint::setting), help("nothing was changed"))]
    Setting {
        /// Its name.
        name: &'static str,
        /// The allowed range.
        range: &'static str,
    },
    /// The settings of the store cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::damaged_settings),
        help(
            "it is a small text file: recreate it as `hopmap checkpoint init` does in an empty folder, with the old `seed`, a `next` above all numbers, and without `removed`"
        )
    )]
    DamagedSettings {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The checkpoint does not exist.
    #[error("there is no checkpoint {number}")]
    #[diagnostic(code(checkpoint::no_checkpoint), help("available: {there}"))]
    NoCheckpoint {
        /// Its number.
        number: u32,
        /// The existing checkpoints as text.
        there: String,
    },
    /// The folders of a store do not match.
    #[error("the manifests of checkpoints {lost} are missing in {}", path.display())]
    #[diagnostic(
        code(checkpoint::not_together),
        help(
            "check that the whole store is mounted and was copied: `packs`, `checkpoints` and `store.json` belong together; no pack was removed"
        )
    )]
    NotTogether {
        /// The folder of the manifests.
        path: PathBuf,
        /// The checkpoints as text.
        lost: String,
    },
    /// A damaged manifest.
    #[error("checkpoint {number} cannot be read: {}: {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::damaged_manifest),
        help("restore another one; `hopmap checkpoint verify` lists those that are intact")
    )]
    DamagedManifest {
        /// The file.
        path: PathBuf,
        /// The checkpoint.
        number: u32,
        /// The cause.
        reason: &'static str,
    },
    /// A damaged pack.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::damaged_pack),
        help("`hopmap checkpoint verify` lists the checkpoints that need it; all others are intact")
    )]
    DamagedPack {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: &'static str,
    },
    /// A damaged block.
    #[error("block {block} of {} cannot be used: {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::damaged_block),
        help("`hopmap checkpoint verify` lists the checkpoints that need it; all others are intact")
    )]
    DamagedBlock {
        /// The pack.
        path: PathBuf,
        /// Its number in the pack.
        block: u32,
        /// The cause.
        reason: &'static str,
    },
    /// Damage in the delta chain of a checkpoint.
    #[error("checkpoint {number} cannot be restored: checkpoint {damaged} in its delta chain is damaged")]
    #[diagnostic(
        code(checkpoint::damaged_chain),
        help(
            "checkpoints that depend on it: {others}; restore another one, and add the latest state with `--whole`"
        )
    )]
    DamagedChain {
        /// The checkpoint.
        number: u32,
        /// The checkpoint whose delta is damaged.
        damaged: u32,
        /// The checkpoints that depend on it, as text.
        others: String,
        /// The damage.
        source: Box<Self>,
    },
    /// The next delta may be encoded against the checkpoint.
    #[error("checkpoint {0} may be the base of the next checkpoint")]
    #[diagnostic(
        code(checkpoint::is_base),
        help(
            "add a checkpoint with `--whole` first, which starts a new chain; retention rules always keep such a base; nothing was changed"
        )
    )]
    IsBase(u32),
    /// The store has another rule.
    #[error("the rule of {} is `{rule}`, not `{asked}`", path.display())]
    #[diagnostic(
        code(checkpoint::other_rule),
        help(
            "the rule of a store cannot be changed: omit the rule, or create another store with `hopmap checkpoint init --rule {asked}`; nothing was stored"
        )
    )]
    OtherRule {
        /// The store.
        path: PathBuf,
        /// Its rule.
        rule: &'static str,
        /// The requested rule.
        asked: &'static str,
    },
    /// ADCA has to read a checkpoint twice.
    #[error(
        "a stream can be read only once, but ADCA compares a checkpoint with its bases before it stores it"
    )]
    #[diagnostic(
        code(checkpoint::read_twice),
        help(
            "write it to a file and add its folder, or create a store with the rule `first`, `incremental` or `block-wise`; nothing was stored"
        )
    )]
    ReadTwice,
    /// A checkpoint that cannot be compared with its bases.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compare(#[from] Box<DeltaError>),
    /// A restored file that differs from the added one.
    #[error("{} differs from the added file: its digest does not match", .0.display())]
    #[diagnostic(
        code(checkpoint::wrong_contents),
        help(
            "the file was discarded; `hopmap checkpoint verify --deep` lists the checkpoints that are intact"
        )
    )]
    WrongContents(PathBuf),
    /// A file that was modified while it was read.
    #[error("{} changed while it was read", .0.display())]
    #[diagnostic(
        code(checkpoint::changed),
        help("add the checkpoint when it is complete; nothing was stored")
    )]
    Changed(PathBuf),
    /// A stream without bytes.
    #[error("the stream is empty")]
    #[diagnostic(
        code(checkpoint::empty_stream),
        help("the program that should write it failed, or wrote elsewhere; nothing was stored")
    )]
    EmptyStream,
    /// The disk is too small.
    #[error("checkpoint {number} takes {needed} bytes, but only {free} bytes are free on the disk")]
    #[diagnostic(code(checkpoint::too_large), help("restore it to another disk; nothing was written"))]
    TooLarge {
        /// The checkpoint.
        number: u32,
        /// Its size in bytes.
        needed: u64,
        /// Free bytes.
        free: u64,
    },
    /// A stream needs a single file.
    #[error("checkpoint {number} has {files} files, but only one can be written to a stream")]
    #[diagnostic(code(checkpoint::several_files), help("select one with --file, or restore to a folder"))]
    SeveralFiles {
        /// The checkpoint.
        number: u32,
        /// Its number of files.
        files: usize,
    },
    /// The file does not exist.
    #[error("checkpoint {number} has no file `{}`", path.display())]
    #[diagnostic(code(checkpoint::no_file), help("`hopmap checkpoint explain` lists its files"))]
    NoFile {
        /// The checkpoint.
        number: u32,
        /// The requested path.
        path: PathBuf,
    },
    /// The list of pinned checkpoints cannot be read.
    #[error("{} cannot be used: {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::damaged_pins),
        help(
            "it lists the pinned checkpoints: recreate it, for example as `{{\"pinned\": [3, 5]}}`; nothing was changed"
        )
    )]
    DamagedPins {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A pinned checkpoint cannot be removed.
    #[error("checkpoint {0} is pinned")]
    #[diagnostic(code(checkpoint::pinned), help("unpin it first; nothing was changed"))]
    Pinned(u32),
    /// All checkpoints would be removed.
    #[error("no checkpoint would be left")]
    #[diagnostic(
        code(checkpoint::nothing_kept),
        help("keep at least one, or remove the folder of the store; nothing was changed")
    )]
    NothingKept,
    /// The data that kept checkpoints need is unknown.
    #[error("the data that the kept checkpoints need is unknown: {0}")]
    #[diagnostic(
        code(checkpoint::needs_unknown),
        help(
            "also remove the checkpoints that `hopmap checkpoint verify` lists as damaged; nothing was changed"
        )
    )]
    NeedsUnknown(String),
    /// The user interrupted the command.
    #[error("interrupted")]
    #[diagnostic(code(checkpoint::interrupted), help("nothing was changed"))]
    Interrupted,
}

/// Why the deltas of a series could not be computed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DeltaError {
    /// The series was not found.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Series(#[from] SeriesError),
    /// An I/O error.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A file that cannot be compared.
    #[error("{} cannot be compared", path.display())]
    #[diagnostic(
        code(checkpoint::file),
        help("with `align = \"position\"` images are compared like any other file, even if truncated")
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: CutError,
    },
    /// A list without entries.
    #[error("`{0}` is an empty list")]
    #[diagnostic(code(checkpoint::nothing))]
    Nothing(&'static str),
    /// A value is both given and to be measured.
    #[error("`{0}` and `target` cannot be combined: `target` measures it")]
    #[diagnostic(
        code(checkpoint::measured_and_given),
        help("omit `target` to use the given value, or omit the value to measure it")
    )]
    MeasuredAndGiven(&'static str),
}
