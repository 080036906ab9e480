//! Parameters of `schedule/mapping`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The slots that the ranks of a schedule run on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappingParams {}
