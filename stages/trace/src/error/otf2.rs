//! An OTF2 archive that cannot be read.

use std::path::PathBuf;

use hopmap_artifact::ArtifactError;
use hopmap_model::NotBuilt;
use miette::Diagnostic;

use super::list;
use crate::LIBOTF2;

/// An OTF2 archive that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Otf2Error {
    /// libotf2 is asked for, but not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A folder holds no anchor file, or several.
    #[error("`{}` holds {} anchor files{}", path.display(), if names.is_empty() { "no" } else { "several" }, list(names))]
    #[diagnostic(help("give the anchor file, whose name ends in `.otf2`"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The anchor files in it.
        names: Vec<String>,
    },
    /// The archive is in the format before OTF2.
    #[error("`{}` is an OTF 1 archive", path.display())]
    #[diagnostic(help("use the stage `trace/otf`: the anchor file of an OTF2 archive ends in `.otf2`"))]
    Otf1 {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an anchor file.
    #[error("`{}` is not the anchor file of an OTF2 archive: {reason}", path.display())]
    #[diagnostic(help(
        "the anchor file ends in `.otf2` and lies beside a `.def` file and a folder of the same name"
    ))]
    NotAnAnchor {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The archive is stored in a way that no reader here takes.
    #[error("`{}` {what}, which is not supported", path.display())]
    Unsupported {
        /// The anchor file.
        path: PathBuf,
        /// What it does.
        what: &'static str,
    },
    /// A file of the archive is not there.
    #[error("`{}` is missing{}", path.display(), of_location(*location))]
    #[diagnostic(help(
        "an archive consists of the anchor file, NAME.def and the folder NAME: copy all of them"
    ))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
    },
    /// A file is cut off or its bytes make no sense.
    #[error("`{}`{} is damaged at byte {offset}: {what}", path.display(), of_location(*location))]
    #[diagnostic(help(
        "the trace was not written to its end, or not copied as a whole: copy or record it again, or take what comes before with `allow_truncated = true`"
    ))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// libotf2 refuses a file that looks sound.
    #[error("libotf2 cannot read `{}`{}: {message}", path.display(), of_location(*location))]
    Library {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
        /// What libotf2 says.
        message: String,
    },
    /// The definitions contradict each other.
    #[error("the definitions in `{}` make no sense: {what}", path.display())]
    Definitions {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An event cannot be.
    #[error("event {event} of location {location} in `{}`: {what}", path.display())]
    Event {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// The event, counted from one.
        event: u64,
        /// What is wrong.
        what: String,
    },
    /// A later version of the format is used, which only libotf2 may know.
    #[error("`{}` (location {location}) holds {what} of a kind that the native reader does not know", path.display())]
    #[diagnostic(help("{}", if LIBOTF2.is_built { "read the archive with `reader = \"libotf2\"`".into() } else { format!("libotf2 may know them: {}", LIBOTF2.hint()) }))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// What is not known.
        what: &'static str,
    },
    /// Only the native reader knows what comes before damage.
    #[error("`allow_truncated` and `reader = \"libotf2\"` do not go together")]
    #[diagnostic(help("leave `reader` out: libotf2 reads no archive that is cut off"))]
    TruncatedForLibrary,
    /// Algorithms matter only where operations become messages.
    #[error("`algorithms` are given, but collective operations do not become messages")]
    #[diagnostic(help("add `collectives = \"expand\"`"))]
    NothingToExpand,
    /// A table of what is read cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Table(#[from] ArtifactError),
    /// Sums do not fit.
    #[error("the messages or bytes of all pairs in `{}` exceed 64 bits", path.display())]
    Overflow {
        /// The anchor file.
        path: PathBuf,
    },
    /// The user or a deadline stopped the reading. Half a trace is no answer.
    #[error("stopped after {done} of {total} locations")]
    Stopped {
        /// Locations read.
        done: usize,
        /// Locations there are.
        total: usize,
    },
}

fn of_location(location: Option<u64>) -> String {
    location.map(|location| format!(" (location {location})")).unwrap_or_default()
}
