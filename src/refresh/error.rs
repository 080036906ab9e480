//! What can go wrong when refreshing.

use std::path::PathBuf;

use hopmap_artifact::ArtifactError;
use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::accepted::AcceptedError;

/// A refresh that did not end as it should. What is published stays what it was, unless it says otherwise.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RefreshError {
    /// The system is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// An artifact is damaged.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Artifact(#[from] ArtifactError),
    /// The accepted state cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Accepted(#[from] AcceptedError),
    /// Another refresh is at it.
    #[error("{} is being refreshed by {holder}", path.display())]
    #[diagnostic(help("wait for it to end: its lock goes when the process does"))]
    Busy {
        /// The publish folder.
        path: PathBuf,
        /// Process, host and command of the holder.
        holder: String,
    },
    /// The folder holds something else.
    #[error("{} holds something that is not a published topology", .0.display())]
    #[diagnostic(help("name a new folder, an empty one, or one that `hopmap topology refresh` made"))]
    Foreign(PathBuf),
    /// Nothing is published.
    #[error("nothing is published in {}", .0.display())]
    #[diagnostic(help("`hopmap topology refresh --publish {}` publishes the machine as it is", .0.display()))]
    Nothing(PathBuf),
    /// What is published or accepted is damaged or missing.
    #[error("{} leads to no sound snapshot", path.display())]
    #[diagnostic(help(
        "see what is in `history`; `--baseline` publishes and accepts the machine as it is now"
    ))]
    Damaged {
        /// `current` or `accepted.json`.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<Self>,
    },
    /// An entry of the history is missing.
    #[error("there is no {}", .0.display())]
    NoEntry(PathBuf),
    /// The machine has no hosts.
    #[error("the pipeline gave a machine without hosts")]
    #[diagnostic(help("see what its source gives: nothing was published"))]
    NoHosts,
    /// Too few hosts are up.
    #[error("only {up} of {hosts} hosts that were up still are ({:.1} %), fewer than --min-coverage asks for: nothing was published", 100.0 * *up as f64 / *hosts as f64)]
    #[diagnostic(help(
        "not up: {missing}; if this is how the machine is now, run once with --baseline or a lower --min-coverage"
    ))]
    Coverage {
        /// Hosts that were up and still are.
        up: usize,
        /// Hosts that were up.
        hosts: usize,
        /// Those that are not up.
        missing: String,
    },
    /// The consumer did not succeed.
    #[error("the consumer {how}: {} is published, but not accepted", entry)]
    #[diagnostic(help("the next refresh runs it again. It said:\n{said}"))]
    Consumer {
        /// How it ended.
        how: String,
        /// The entry that it was told about.
        entry: String,
        /// The end of what it said.
        said: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}
