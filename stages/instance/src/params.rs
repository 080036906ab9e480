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
    /// The matrix that contains the flows; the other one contains the costs between slots. QAPLIB writes the
    /// cost as `Σ a_ij · b_p(i)p(j)`: with `a`, rank i runs on slot p(i). With `b` ranks and slots are
    /// exchanged; the minimum cost is the same.
    #[serde(default)]
    pub flow: FlowMatrix,
}

/// The matrix of a file that contains the flows.
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
    /// Sizes of the nested groups of facilities, outermost first. `[5, 3, 5]` is 5 groups of 3 subgroups of
    /// 5 facilities, 75 in total, like `tai75e`. `tai27e` is `[3, 3, 3]`, `tai45e` `[3, 3, 5]`, `tai125e`
    /// `[5, 5, 5]`, `tai175e` `[5, 5, 7]`, `tai343e` `[7, 7, 7]`, `tai729e` `[9, 9, 9]`.
    pub groups: [u32; 3],
    /// Random seed.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

/// Parameters of `instance/stencil`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StencilParams {
    /// Extents of the grid in two or three dimensions: `4x4`, `8x8x4`. Ranks are numbered with the last
    /// dimension fastest.
    pub shape: String,
    /// Whether the grid is periodic in every dimension.
    #[serde(default)]
    pub periodic: bool,
    /// Bytes of the message from a rank to each neighbour.
    #[serde(default = "hopmap_model::number::<1024, u64>")]
    pub bytes: u64,
    /// Neighbourhood of a rank. `star` is the next rank on both sides of every dimension (5- and 7-point
    /// stencils, including the rank itself). `box` adds the neighbours across edges and corners (9- and
    /// 27-point stencils), with messages of the same size.
    #[serde(default, skip_serializing_if = "Neighbours::is_star")]
    pub neighbours: Neighbours,
}

/// Neighbourhood of a rank.
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
    /// Omitted from the key, so that results from before this parameter existed are found.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_star(&self) -> bool {
        *self == Self::Star
    }
}

/// Parameters of `instance/graph`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphParams {
    /// A graph in METIS format (`.graph`), plain or compressed with gzip. Vertex i is rank i − 1. An edge of
    /// weight w is one message of w bytes in each direction, so F counts it twice: the process mapping cost
    /// J over undirected edges is F / 2.
    pub path: InputPath,
}

/// Parameters of `instance/geometric`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeometricParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank away from the border; 8 if `radius` is not set either.
    #[serde(default)]
    pub degree: Option<f64>,
    /// Maximum distance of neighbours, in sides of the square or cube; instead of `degree`.
    #[serde(default)]
    pub radius: Option<f64>,
    /// 2 for points in a square, 3 for points in a cube.
    #[serde(default = "two")]
    pub dimensions: u8,
    /// Bytes between neighbours. `equal` is `bytes` for all; `closeness` is `bytes` · (1 − distance /
    /// radius), at least 1.
    #[serde(default)]
    pub weights: GeometricWeights,
    /// Bytes of the message between neighbours in each direction.
    #[serde(default = "hopmap_model::number::<1024, u32>")]
    pub bytes: u32,
    /// Random seed.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

/// Bytes between neighbours of a random geometric graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GeometricWeights {
    /// The same for all.
    #[default]
    Equal,
    /// More for closer neighbours.
    Closeness,
}

/// Parameters of `instance/random`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomGraphParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank.
    #[serde(default = "hopmap_model::number::<8, f64>")]
    pub degree: f64,
    /// Minimum and maximum bytes of the message between neighbours in each direction, uniformly distributed.
    #[serde(default = "up_to_a_thousand")]
    pub bytes: [u32; 2],
    /// Random seed.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

/// Parameters of `instance/power-law`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerLawParams {
    /// Number of ranks.
    pub n: u32,
    /// Mean number of neighbours of a rank.
    #[serde(default = "hopmap_model::number::<8, f64>")]
    pub degree: f64,
    /// Exponent of the power law, above 2: the fraction of ranks with k neighbours falls as k to the minus
    /// this. Smaller exponents give larger hubs.
    #[serde(default = "two_and_a_half")]
    pub exponent: f64,
    /// Minimum and maximum bytes of the message between neighbours in each direction, uniformly distributed.
    #[serde(default = "up_to_a_thousand")]
    pub bytes: [u32; 2],
    /// Random seed.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

fn two() -> u8 {
    2
}

fn two_and_a_half() -> f64 {
    2.5
}

fn up_to_a_thousand() -> [u32; 2] {
    [1, 1000]
}
