//! What can be wrong with an instance.

use std::path::PathBuf;

use miette::Diagnostic;

use crate::problem::MAX_SIZE;
use crate::stencil::MAX_RANKS;

/// An instance that cannot be read or made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InstanceError {
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Something in a file is not what has to stand there.
    #[error("`{}`, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong.
        what: String,
        /// How to mend it.
        #[help]
        hint: &'static str,
    },
    /// Somebody stopped the reading.
    #[error("stopped in `{}`, line {line}", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
        /// How far it was read.
        line: u64,
    },
    /// The sum of all flows is too large.
    #[error("`{}`: the sum of all flows exceeds 64 bits", path.display())]
    #[diagnostic(help(
        "flows become bytes, which are whole numbers below 2^64 in all: divide them by a common factor"
    ))]
    Overflow {
        /// The file.
        path: PathBuf,
    },
    /// The sizes of the groups make no instance.
    #[error("groups {groups:?} make {size} facilities")]
    #[diagnostic(help(
        "`groups` are three numbers above zero, from the outside in, whose product is from 2 to {MAX_SIZE}: [3, 3, 3] is \
         like tai27e, [9, 9, 9] like tai729e"
    ))]
    Groups {
        /// The parameter.
        groups: [u32; 3],
        /// Their product.
        size: u128,
    },
    /// The shape of a stencil is no grid.
    #[error("shape `{shape}` is no grid of two or three dimensions")]
    #[diagnostic(help("write the ranks along every dimension: `4x4`, `8x8x4`"))]
    Shape {
        /// The parameter.
        shape: String,
    },
    /// A grid has too many ranks.
    #[error("shape `{shape}` has more than {MAX_RANKS} ranks")]
    #[diagnostic(help("the number of ranks is the product of all dimensions: make some of them smaller"))]
    TooManyRanks {
        /// The parameter.
        shape: String,
    },
    /// The messages of a stencil are too large.
    #[error("{bytes} bytes to every neighbour exceed 64 bits in all")]
    #[diagnostic(help("the bytes of all messages together stay below 2^64"))]
    Bytes {
        /// The parameter.
        bytes: u64,
    },
}
