//! Parameters of the stages.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An artifact that was made before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredParams {
    /// The folder of the artifact, as `hopmap exec --out` and `hopmap show` name it.
    pub artifact: InputPath,
}
