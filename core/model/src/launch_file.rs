//! Text files that launchers read.

use crate::Artifact;

/// A text file that starts the ranks where a mapping puts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFile {
    /// File name, such as `rankfile`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The command that uses it. `{file}` stands for the path of the file, `{program}` for the program and its arguments.
    pub command: String,
}

impl Artifact for LaunchFile {
    const KIND: &'static str = "launch-file";
}
