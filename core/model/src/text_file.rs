//! Text files that other programs read.

use crate::Artifact;

/// A text file in a format of other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// File name, such as `matrix.csv`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Artifact for TextFile {
    const KIND: &'static str = "text-file";
}
