//! What a search minimises.

use crate::ObjectiveError;

/// What a search minimises: a weighted sum of metrics in their units, those of [`Quality`](crate::Quality).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Weight of F.
    pub f: f64,
    /// Weight of T.
    pub t: f64,
    /// Weight of hop-bytes.
    pub hop_bytes: f64,
    /// Weight of the bytes over the busiest directed link.
    pub max_link_load: f64,
}

impl Objective {
    const NOTHING: Self = Self { f: 0.0, t: 0.0, hop_bytes: 0.0, max_link_load: 0.0 };
    /// F alone.
    pub const F: Self = Self { f: 1.0, ..Self::NOTHING };
    /// T alone.
    pub const T: Self = Self { t: 1.0, ..Self::NOTHING };
    /// Hop-bytes alone.
    pub const HOP_BYTES: Self = Self { hop_bytes: 1.0, ..Self::NOTHING };
    /// The bytes over the busiest directed link alone.
    pub const MAX_LINK_LOAD: Self = Self { max_link_load: 1.0, ..Self::NOTHING };

    /// Checks that weights are finite and not negative, and that some metric counts.
    pub fn check(&self) -> Result<(), ObjectiveError> {
        let weights = [self.f, self.t, self.hop_bytes, self.max_link_load];
        if let Some(&weight) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            return Err(ObjectiveError::ObjectiveWeight { weight });
        }
        if weights.iter().all(|&weight| weight == 0.0) { Err(ObjectiveError::NoObjective) } else { Ok(()) }
    }

    /// Whether what it counts follows from the cost between slots alone.
    pub(crate) fn counts_costs(&self) -> bool {
        self.f > 0.0 || self.t > 0.0
    }
}

impl Default for Objective {
    fn default() -> Self {
        Self::F
    }
}
