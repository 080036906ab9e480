//! What a program did, in a few numbers.

use std::collections::BTreeMap;

use crate::{Artifact, Edge};

/// What a program did, in a few numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSummary {
    /// Totals, shares and imbalances by name, such as `collective_share`. What the trace does not tell is missing.
    pub totals: BTreeMap<String, f64>,
    /// The ranks in their order.
    pub ranks: Vec<RankSummary>,
    /// The pairs with the most bytes, the heaviest first.
    pub heaviest: Vec<Edge>,
    /// The phases in their order, if the trace was read with phases.
    pub phases: Vec<PhaseSummary>,
}

/// What one rank did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankSummary {
    /// Messages to other ranks.
    pub messages_sent: u64,
    /// Bytes to other ranks.
    pub bytes_sent: u64,
    /// Messages from other ranks.
    pub messages_received: u64,
    /// Bytes from other ranks.
    pub bytes_received: u64,
    /// Other ranks that it sends to or receives from.
    pub partners: u32,
    /// Time outside communication, in seconds.
    pub compute_s: Option<f64>,
    /// Time in communication, in seconds.
    pub communication_s: Option<f64>,
    /// Time of that in collective operations, in seconds.
    pub collective_s: Option<f64>,
}

/// What happened in one phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhaseSummary {
    /// Name of the region it stands for, if any.
    pub name: Option<String>,
    /// Messages of all pairs.
    pub messages: u64,
    /// Bytes of all pairs.
    pub bytes: u64,
    /// Time that all ranks computed in it, in seconds.
    pub compute_s: Option<f64>,
}

impl Artifact for TraceSummary {
    const KIND: &'static str = "trace-summary";
}
