//! Parameters of the stages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine whose network is a regular tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticParams {
    /// Branches of every level of the tree, innermost first: `tree:2x4x2` is two cores a host, four hosts a switch, two
    /// switches under a root. `tree:2:4:2` means the same (the hierarchy of `KaHIP`).
    pub shape: String,
    /// Cost between two slots that first meet on a level, innermost first, one for every level, never falling (the distances
    /// of `KaHIP`).
    pub costs: Vec<f64>,
    /// How many of the innermost levels lie inside a host. With 0 every slot is a host of its own.
    #[serde(default = "one")]
    pub host_level: u32,
    /// Names of the hosts in slot order. Without them hosts are called `host_prefix` and a number.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What the names of hosts begin with where `hosts` is not given.
    #[serde(default = "host")]
    pub host_prefix: String,
}

fn one() -> u32 {
    1
}

fn host() -> String {
    "host".to_owned()
}
