//! What can be wrong with a graph or the sizes of parts.

use miette::Diagnostic;

/// A graph that is none, or parts that it has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum PartitionError {
    /// The arrays of a graph do not fit each other.
    #[error("the offsets of the edges do not rise from zero to their number, {edges}, vertex by vertex")]
    Offsets {
        /// Number of edges, both directions counted.
        edges: usize,
    },
    /// Edges, weights or vertices are more or fewer than there should be.
    #[error("{what}: {found} instead of {expected}")]
    Length {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A graph that 32-bit numbers cannot count.
    #[error("{count} {what} are more than a graph can have")]
    #[diagnostic(help("vertices, and edges of both directions, are numbered with 32 bits"))]
    TooMany {
        /// Vertices or edges.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
    /// An edge leads nowhere.
    #[error("an edge of vertex {vertex} leads to vertex {target}, but there are {vertices}")]
    NoSuchVertex {
        /// Where it begins.
        vertex: usize,
        /// Where it leads.
        target: u32,
        /// Number of vertices.
        vertices: usize,
    },
    /// An edge weighs less than nothing.
    #[error("an edge of vertex {vertex} weighs {weight}")]
    #[diagnostic(help("weights are zero or more"))]
    NegativeWeight {
        /// Where the edge begins.
        vertex: usize,
        /// Its weight.
        weight: i64,
    },
    /// The parts do not add up to the graph.
    #[error("parts of {parts} vertices in all cannot hold the {vertices} of the graph")]
    #[diagnostic(help("the sizes of the parts have to add up to the weight of all vertices"))]
    Sizes {
        /// Sum of the sizes.
        parts: u64,
        /// Weight of all vertices.
        vertices: u64,
    },
    /// A partitioner of others is not there.
    #[error("{partitioner} is not installed: there is no program `{program}`")]
    #[diagnostic(help("install it (Debian: `apt install {package}`), or use `partitioner = \"own\"`"))]
    NotInstalled {
        /// Its name.
        partitioner: &'static str,
        /// The program that is missing.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A partitioner of others gave up.
    #[error("{partitioner} cannot cut the graph: {problem}")]
    #[diagnostic(help("`partitioner = \"own\"` takes every graph"))]
    Foreign {
        /// Its name.
        partitioner: &'static str,
        /// What it says.
        problem: String,
    },
}
