//! What the parameters of all schedulers say of the processors.

use hopmap_model::{DelayModel, InputPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the processors are and what messages between them take, as every scheduler is told it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineParams {
    /// Number of processors.
    pub processors: Option<u32>,
    /// How fast every processor is.
    pub speeds: Vec<f64>,
    /// When every processor can begin.
    pub available: Vec<f64>,
    /// What a message takes at least.
    pub latency: Option<f64>,
    /// Bytes in a unit of time.
    pub bandwidth: Option<f64>,
    /// Where the times of messages on a connected machine come from.
    pub distance: Option<Distance>,
    /// Durations that PARUS measured.
    pub procs: Option<InputPath>,
    /// Times of messages that PARUS measured.
    pub network: Option<InputPath>,
    /// What is done between measured lengths.
    pub lookup: Lookup,
    /// Whether the first process of the files of PARUS is its coordinator.
    pub coordinator: bool,
    /// What a message costs.
    pub model: DelayModel,
    /// Whether ranks stay together.
    pub ranks: Ranks,
}

/// Where the times of messages on a connected machine come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// From its links: the sum of their latencies, and bytes over the narrowest bandwidth.
    Links,
    /// From its costs: as many times `latency` and bytes over `bandwidth`.
    Costs,
}

/// What a message takes whose length was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lookup {
    /// On the line between the lengths on either side; beyond the longest, on the line through the last two.
    #[default]
    Linear,
    /// As much as the next longer one that was measured; beyond the longest, as much as that. What PARUS does.
    Parus,
}

/// Whether the tasks of a rank stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranks {
    /// All tasks of a rank run on one slot, which no other rank takes.
    #[default]
    Together,
    /// Every task runs where it likes, as if it belonged to no rank.
    Free,
}

/// Declares the parameters of a stage, and beside its own those that say what the processors are. Serde can flatten a struct into
/// another only where it lets unknown keys pass.
macro_rules! with_machine {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($fields)*
            /// Number of processors. Needless with a `system` or `procs`; with one of them, only the first so many are used.
            #[serde(default)]
            pub processors: Option<u32>,
            /// How fast every processor is: a task of work w takes w / speed. All 1 by default.
            #[serde(default)]
            pub speeds: Vec<f64>,
            /// When every processor can begin. All 0 by default.
            #[serde(default)]
            pub available: Vec<f64>,
            /// What a message between two processors takes at least; 0 by default. Of a `system`: for every message beside what its links
            /// take, or for a distance of cost 1.
            #[serde(default)]
            pub latency: Option<f64>,
            /// Bytes that a message moves in a unit of time. By default 1 where the weights of edges are times, and 1.25e9 (10 Gbit/s)
            /// where they are bytes. Of a `system`: over links that do not say it, or over a distance of cost 1.
            #[serde(default)]
            pub bandwidth: Option<f64>,
            /// Where the times of messages on a `system` come from. By default from its links if all of them say their bandwidth.
            #[serde(default)]
            pub distance: Option<$crate::Distance>,
            /// Durations of a test on every process, `procs.vct` of PARUS: a task of weight w takes w · duration / size of the test.
            #[serde(default)]
            pub procs: Option<hopmap_model::InputPath>,
            /// What messages between all processes take, `network.*` of PARUS as text or netCDF.
            #[serde(default)]
            pub network: Option<hopmap_model::InputPath>,
            /// What a message takes whose length is not in `network`.
            #[serde(default)]
            pub lookup: $crate::Lookup,
            /// Whether the first process in `procs` and `network` is the coordinator of PARUS, which runs no task.
            #[serde(default)]
            pub coordinator: bool,
            /// What a message costs. By default `receive`, the model of PARUS, where `procs` or `network` is given, and `overlap` elsewhere.
            #[serde(default)]
            pub model: Option<hopmap_model::DelayModel>,
            /// Whether all tasks of a rank stay together, as those of a trace have to.
            #[serde(default)]
            pub ranks: $crate::Ranks,
        }

        impl From<&$name> for $crate::MachineParams {
            fn from(params: &$name) -> Self {
                Self {
                    processors: params.processors,
                    speeds: params.speeds.clone(),
                    available: params.available.clone(),
                    latency: params.latency,
                    bandwidth: params.bandwidth,
                    distance: params.distance,
                    procs: params.procs.clone(),
                    network: params.network.clone(),
                    lookup: params.lookup,
                    coordinator: params.coordinator,
                    model: params.model.unwrap_or(match params.procs.is_some() || params.network.is_some() {
                        true => hopmap_model::DelayModel::Receive,
                        false => hopmap_model::DelayModel::Overlap,
                    }),
                    ranks: params.ranks,
                }
            }
        }
    };
}

pub(crate) use with_machine;
