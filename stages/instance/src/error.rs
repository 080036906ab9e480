//! What can be wrong with an instance.

use miette::Diagnostic;

/// Most facilities of an instance: both matrices have so many rows and columns.
pub(crate) const MAX_SIZE: u32 = 1 << 12;

/// Most ranks of a stencil.
pub(crate) const MAX_STENCIL_RANKS: u32 = 1 << 20;

/// Most ranks of a generated graph.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// Most pairs of ranks that send to each other.
pub(crate) const MAX_PAIRS: u64 = 1 << 26;

/// An instance that cannot be read or made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InstanceError {
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
    #[error("shape `{shape}` has more than {MAX_STENCIL_RANKS} ranks")]
    #[diagnostic(help("the number of ranks is the product of all dimensions: make some of them smaller"))]
    TooManyRanks {
        /// The parameter.
        shape: String,
    },
    /// There are no ranks, or too many.
    #[error("n is {n}")]
    #[diagnostic(help("give a number of ranks from 1 to {MAX_RANKS}"))]
    Ranks {
        /// The parameter.
        n: u32,
    },
    /// No rank can have so many neighbours.
    #[error("degree is {degree}, and not from 0 to {most}")]
    #[diagnostic(help("degree is the mean number of neighbours of a rank: less than there are ranks"))]
    Degree {
        /// The parameter.
        degree: f64,
        /// Ranks but one.
        most: f64,
    },
    /// The radius is no distance.
    #[error("radius is {radius}")]
    #[diagnostic(help("give a part of a side of the square, such as 0.05, or `degree` in its place"))]
    Radius {
        /// The parameter.
        radius: f64,
    },
    /// There are two ways to say who is a neighbour.
    #[error("radius and degree are given")]
    #[diagnostic(help("give one of them: degree stands for the radius that makes it"))]
    RadiusAndDegree,
    /// Points lie in a square or a cube.
    #[error("dimensions is {dimensions}")]
    #[diagnostic(help("give 2 for a square, 3 for a cube"))]
    Dimensions {
        /// The parameter.
        dimensions: u8,
    },
    /// The graph would be too large.
    #[error("there would be more than {MAX_PAIRS} pairs of neighbours")]
    #[diagnostic(help("pairs are n · degree / 2: make one of them smaller"))]
    TooManyPairs,
    /// The exponent makes no power law.
    #[error("exponent is {exponent}")]
    #[diagnostic(help(
        "give a number above 2, up to 100: from 2 down the mean degree has no end; 2.1 to 3 is usual"
    ))]
    Exponent {
        /// The parameter.
        exponent: f64,
    },
    /// The range of bytes is empty or too large.
    #[error("bytes is [{least}, {most}]")]
    #[diagnostic(help("give the least and the largest number of bytes of a message, up to 2^30"))]
    Sizes {
        /// The first number.
        least: u32,
        /// The second number.
        most: u32,
    },
    /// The messages of a stencil are too large.
    #[error("{bytes} bytes to every neighbour exceed 64 bits in all")]
    #[diagnostic(help("the bytes of all messages together stay below 2^64"))]
    Bytes {
        /// The parameter.
        bytes: u64,
    },
}
