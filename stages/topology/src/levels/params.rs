//! Parameters of `topology/levels`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LevelsError;

/// How far apart two levels are if nobody says otherwise: above the noise of shortest times, below what a switch adds.
const GAP: f64 = 1.15;
/// Levels that are closer than this are never told apart.
pub(super) const LEAST_GAP: f64 = 1.01;

/// The levels of a machine that was measured or has a cost for every pair of slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelsParams {
    /// What two slots cost: the latency between them, or the time of a message of `bytes` bytes, in microseconds. A matrix
    /// keeps its unit.
    #[serde(default)]
    pub cost: LevelCost,
    /// Bytes of the message whose `time` is the cost.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// A level costs at least so many times as much as the one further in; what is closer is one level. Where the two directions
    /// of pairs differ by more, it is that.
    #[serde(default = "gap")]
    pub gap: f64,
}

/// What two slots cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelCost {
    /// The latency between them.
    #[default]
    Latency,
    /// The time of a message.
    Time,
}

impl Default for LevelsParams {
    fn default() -> Self {
        Self { cost: LevelCost::Latency, bytes: None, gap: GAP }
    }
}

impl LevelsParams {
    /// Checks what the types cannot say.
    pub(crate) fn check(&self) -> Result<(), LevelsError> {
        if !(self.gap.is_finite() && self.gap >= LEAST_GAP) {
            return Err(LevelsError::Gap { gap: self.gap });
        }
        match (self.cost, self.bytes) {
            (LevelCost::Time, None) => Err(LevelsError::NoBytes),
            (LevelCost::Latency, Some(bytes)) => Err(LevelsError::BytesOfLatency { bytes }),
            _ => Ok(()),
        }
    }
}

fn gap() -> f64 {
    GAP
}
