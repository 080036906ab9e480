//! The messages of a program one by one, and what it did in a few numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Artifact, Edge, Keeper};

/// The messages of a program, one row each, in a Parquet file. There may be more than fit into memory, so they stay on
/// disk.
///
/// Columns of the table `messages`: `time_s` (after the first event of the trace; missing if the trace has no clock),
/// `source` and `destination` (ranks), `tag`, `bytes`, `communicator` (its name or else its number), `operation` (the
/// call that sent it) and `region` (the function that called it), the last two as far as they are known. Rows stand
/// location by location; those of one location are in the order in which it recorded them.
#[derive(Debug, Clone)]
pub struct Events {
    table: PathBuf,
    rows: u64,
    /// Held, never looked at.
    _keeper: Option<Arc<dyn Keeper>>,
}

impl Events {
    /// The messages in a Parquet file that others keep.
    #[must_use]
    pub fn new(table: PathBuf, rows: u64) -> Self {
        Self { table, rows, _keeper: None }
    }

    /// Lets something live as long as the messages do, such as the folder of the file.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { _keeper: Some(Arc::new(keeper)), ..self }
    }

    /// The Parquet file.
    #[must_use]
    pub fn table(&self) -> &Path {
        &self.table
    }

    /// Number of messages.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Artifact for Events {
    const KIND: &'static str = "events";
}

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
