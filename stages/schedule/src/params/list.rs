//! Parameters of `schedule/list`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::with_machine;

with_machine! {
    /// A list heuristic.
    pub struct ListParams {
        /// Which one; `best` tries all and takes the best.
        #[serde(default)]
        pub heuristic: Heuristic,
    }
}

/// A list heuristic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// The best of all.
    #[default]
    Best,
    /// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002).
    Heft,
}
