//! Metrics of a mapping beside the placements it has to beat.

use std::collections::BTreeMap;

use crate::Artifact;

/// Metrics of one mapping beside linear, round-robin and random placements of the same ranks on the same machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    /// One row for the mapping, one for linear, one for round-robin, one for every random sample.
    pub placements: Vec<PlacementMetrics>,
    /// Medians and ratios by name, such as `F_over_linear`.
    pub summary: BTreeMap<String, f64>,
}

/// The metrics of one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementMetrics {
    /// Where the placement comes from.
    pub origin: PlacementOrigin,
    /// Number of the random sample; zero for others.
    pub sample: u32,
    /// Values by the name of the metric, such as `F`. One that the machine does not define is missing.
    pub values: BTreeMap<String, f64>,
}

/// Where a placement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementOrigin {
    /// The mapping under evaluation.
    Mapping,
    /// Rank `i` on slot `i`.
    Linear,
    /// Rank `i` on the host of its turn.
    RoundRobin,
    /// Ranks on slots drawn at random.
    Random,
}

impl PlacementOrigin {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mapping, Self::Linear, Self::RoundRobin, Self::Random];

    /// Name in tables and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mapping => "mapping",
            Self::Linear => "linear",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
        }
    }
}

impl Artifact for Metrics {
    const KIND: &'static str = "metrics";
}
