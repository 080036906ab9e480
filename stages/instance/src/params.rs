//! Parameters of the stages: the keys of `with` in a pipeline file.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `instance/qaplib`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QaplibParams {
    /// The instance, such as `tai27e01.dat`: a number n, then two matrices of n × n numbers, A and B.
    pub file: InputPath,
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
}

fn first_seed() -> u64 {
    1
}

fn a_kilobyte() -> u64 {
    1024
}
