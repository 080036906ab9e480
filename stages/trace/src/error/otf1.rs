//! An OTF 1 archive that cannot be read.

use std::path::PathBuf;

use hopmap_text::FileError;
use miette::Diagnostic;

use super::list;

/// An OTF 1 archive that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum OtfError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A folder holds no master file, or several.
    #[error("`{}` holds {} master files{}", path.display(), if names.is_empty() { "no" } else { "several" }, list(names))]
    #[diagnostic(help("give the master file, whose name ends in `.otf`"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The master files in it.
        names: Vec<String>,
    },
    /// The archive is in the format after OTF 1.
    #[error("`{}` is an OTF2 archive", path.display())]
    #[diagnostic(help("use the stage `trace/otf2`: the master file of an OTF 1 archive ends in `.otf`"))]
    Otf2 {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a master file.
    #[error("`{}` is not the master file of an OTF 1 archive: {reason}", path.display())]
    #[diagnostic(help(
        "the master file NAME.otf lies beside NAME.0.def and NAME.1.events, NAME.2.events and so on"
    ))]
    NotAMaster {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The archive is written in a way that is not read.
    #[error("`{}` {what}, which is not supported", path.display())]
    Unsupported {
        /// The master file.
        path: PathBuf,
        /// What it does.
        what: &'static str,
    },
    /// The definitions are not there.
    #[error("`{}` is missing, and so is the same with `.z`", path.display())]
    #[diagnostic(help(
        "copy all files of the archive; VampirTrace writes the definitions when `vtunify` has run"
    ))]
    NoDefinitions {
        /// The file.
        path: PathBuf,
    },
    /// The events of a stream are not there.
    #[error("`{}` is missing (stream {stream:x}), and so is the same with `.z`", path.display())]
    #[diagnostic(help(
        "copy all files of the archive; if the stream has no events, make an empty file of that name"
    ))]
    NoEvents {
        /// The file.
        path: PathBuf,
        /// The stream whose file it is.
        stream: u32,
    },
    /// The user or a deadline stopped the reading. Half a trace is no answer.
    #[error("stopped after {done} of {total} streams")]
    Stopped {
        /// Streams read.
        done: usize,
        /// Streams there are.
        total: usize,
    },
}
