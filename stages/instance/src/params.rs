//! Parameters of the stages: the keys of `with` in a pipeline file.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `instance/qaplib`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QaplibParams {
    /// The instance, such as `tai27e01.dat`: a number n, then two matrices of n × n numbers, A and B.
    pub path: InputPath,
    /// A solution to check, such as `nug12.sln`: n, a cost, then a permutation or its inverse.
    #[serde(default)]
    pub solution: Option<InputPath>,
    /// Which of the two matrices is what the ranks send; the other is what the way between two slots costs. `a` is how
    /// QAPLIB writes the cost, `Σ a_ij · b_p(i)p(j)`: rank i runs on slot p(i). With `b` rank and slot change places; the
    /// cost of the best placement is the same.
    #[serde(default)]
    pub flow: FlowMatrix,
}

/// Which matrix of a file is what the ranks send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowMatrix {
    /// The first one.
    #[default]
    A,
    /// The second one.
    B,
}

/// Parameters of `instance/taillard-e`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaillardEParams {
    /// How the facilities are grouped, from the outside in: `[5, 3, 5]` is 5 groups of 3 subgroups of 5 facilities, 75 in
    /// all, like `tai75e`. `tai27e` is `[3, 3, 3]`, `tai45e` `[3, 3, 5]`, `tai125e` `[5, 5, 5]`, `tai175e` `[5, 5, 7]`,
    /// `tai343e` `[7, 7, 7]`, `tai729e` `[9, 9, 9]`.
    pub groups: [u32; 3],
    /// Another seed gives another instance.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// Parameters of `instance/stencil`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StencilParams {
    /// Ranks along every dimension of the grid, two or three of them: `4x4`, `8x8x4`. Along the last one ranks count up.
    pub shape: String,
    /// Whether the two ends of every dimension are neighbours.
    #[serde(default)]
    pub periodic: bool,
    /// Bytes that a rank sends to each neighbour, in one message.
    #[serde(default = "a_kilobyte")]
    pub bytes: u64,
    /// Who is a neighbour: `star` is the next rank along every dimension, on both sides (5- and 7-point stencils, with the rank
    /// itself); `box` also takes those across edges and corners (9- and 27-point stencils), with messages of the same size.
    #[serde(default, skip_serializing_if = "Neighbours::is_star")]
    pub neighbours: Neighbours,
}

/// Which ranks around one are its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Neighbours {
    /// One step along one dimension.
    #[default]
    Star,
    /// Up to one step along every dimension.
    Box,
}

impl Neighbours {
    /// Left out of the key, so that results from before there was a choice are found.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_star(&self) -> bool {
        *self == Self::Star
    }
}

/// Parameters of `instance/graph`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphParams {
    /// A graph in the format of METIS (`.graph`), plain or packed with gzip. Vertex i is rank i − 1. An edge of weight w is one
    /// message of w bytes each way, so F counts it twice: the cost J of process mapping, over undirected edges, is F / 2.
    pub path: InputPath,
}

/// Parameters of `instance/geometric`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeometricParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank that is not at the border; 8 without it and without `radius`.
    #[serde(default)]
    pub degree: Option<f64>,
    /// Up to which distance ranks are neighbours, in sides of the square or cube; in place of `degree`.
    #[serde(default)]
    pub radius: Option<f64>,
    /// 2 for points in a square, 3 for points in a cube.
    #[serde(default = "two")]
    pub dimensions: u8,
    /// What neighbours send: `equal` is `bytes` for all, `closeness` is `bytes` times 1 − distance / radius, at least 1.
    #[serde(default)]
    pub weights: GeometricWeights,
    /// Bytes that neighbours send each other, in one message each way.
    #[serde(default = "a_small_kilobyte")]
    pub bytes: u32,
    /// Another seed gives another graph.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// What neighbours of a random geometric graph send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GeometricWeights {
    /// All the same.
    #[default]
    Equal,
    /// The closer, the more.
    Closeness,
}

/// Parameters of `instance/random`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomGraphParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank.
    #[serde(default = "eight")]
    pub degree: f64,
    /// Least and largest number of bytes that neighbours send each other, in one message each way; each equally likely.
    #[serde(default = "up_to_a_thousand")]
    pub bytes: [u32; 2],
    /// Another seed gives another graph.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// Parameters of `instance/power-law`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerLawParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank.
    #[serde(default = "eight")]
    pub degree: f64,
    /// The share of ranks with k neighbours falls as k to the minus this; above 2. The smaller, the more the largest ranks have.
    #[serde(default = "two_and_a_half")]
    pub exponent: f64,
    /// Least and largest number of bytes that neighbours send each other, in one message each way; each equally likely.
    #[serde(default = "up_to_a_thousand")]
    pub bytes: [u32; 2],
    /// Another seed gives another graph.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

fn first_seed() -> u64 {
    1
}

fn a_kilobyte() -> u64 {
    1024
}

fn a_small_kilobyte() -> u32 {
    1024
}

fn two() -> u8 {
    2
}

fn eight() -> f64 {
    8.0
}

fn two_and_a_half() -> f64 {
    2.5
}

fn up_to_a_thousand() -> [u32; 2] {
    [1, 1000]
}
