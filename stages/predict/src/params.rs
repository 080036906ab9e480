//! Parameters of predictions.

use std::str::FromStr;

use hopmap_collectives::Algorithms;
use hopmap_model::{Error, SystemGraph, is_bandwidth, is_time, require};
use hopmap_prediction::{Costs, CostsSyntaxError, Options, PairRates, Rate, Sharing, has_rates};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest timeline.
const MOST_INTERVALS: usize = 200_000;

/// Declares the parameters of a stage with their defaults: those of messages, and its own. `flatten` is not used: serde
/// would accept unknown keys.
macro_rules! with_messages {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$of_own:meta])* pub $own:ident: $type:ty = $default:expr,)*
    }) => {
        hopmap_model::parameters! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$of_own])* pub $own: $type = $default,)*
                /// Costs of messages at both ends. By default those of the machine if it is calibrated (`topology/probe`);
                /// otherwise only the network costs time.
                pub costs: MessageCosts,
                /// Latency of messages within a host, in seconds. By default that of the calibration, or 500 ns.
                pub memory_latency_s: Option<f64>,
                /// Bandwidth of messages within a host, in bytes per second; all ranks of the host share it. By default that
                /// of the calibration, or 10 GB/s.
                pub memory_bandwidth_bytes_per_s: Option<f64>,
                /// Latency and bandwidth between slots of a machine whose links have no rates, or without links, by the level on which they first meet,
                /// innermost first. Messages then do not share anything.
                pub levels: Vec<PairRateParams>,
                /// Algorithms of collective operations, such as `{ allreduce = "ring" }`. All others follow the rules of
                /// MPICH, or of Open MPI with `{ rules = "open-mpi" }`.
                pub algorithms: Algorithms,
            }
        }

        impl From<&$name> for BoundParams {
            fn from(params: &$name) -> Self {
                Self {
                    costs: params.costs.clone(),
                    memory_latency_s: params.memory_latency_s,
                    memory_bandwidth_bytes_per_s: params.memory_bandwidth_bytes_per_s,
                    levels: params.levels.clone(),
                    algorithms: params.algorithms,
                }
            }
        }
    };
}

with_messages! {
    /// Parameters of `predict/bound`.
    pub struct BoundParams {}
}

with_messages! {
    /// Parameters of `predict/time`.
    pub struct TimeParams {
        /// How messages share a link. `max-min`: equally. `rtt`: in inverse proportion to the latency of their
        /// routes, as TCP connections do and as in the model CM02 of `SimGrid`.
        pub sharing: SharingName = SharingName::default(),
        /// Messages up to this size are one packet: links serve them in the order of arrival. Longer ones share links. Only
        /// with `max-min`; 0 turns it off.
        pub packet_bytes: u64 = Options::PACKET_BYTES,
        /// Also predict the linear and the round-robin mapping, to compare with.
        pub baselines: bool = true,
        /// Record what every rank does when, for the report and ui.perfetto.dev; at most 200,000 intervals.
        pub timeline: bool = false,
    }
}

/// How messages share links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharingName {
    /// Equally.
    #[default]
    MaxMin,
    /// In inverse proportion to the latency of their routes.
    Rtt,
}

/// Costs of messages at both ends, in the notation of SMPI. Each replaces that of the calibration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageCosts {
    /// Time in a blocking send, by bytes of the message: `bytes:seconds:seconds_per_byte;…`. A segment applies
    /// above its bytes. `smpi/os` of SMPI.
    pub send: String,
    /// Time in a nonblocking send, in the same format. `smpi/ois` of SMPI.
    pub isend: String,
    /// Time of the receiver after the arrival, in the same format. `smpi/or` of SMPI.
    pub recv: String,
    /// Factor of the latency, by bytes: `bytes:factor;…`. `smpi/lat-factor` of SMPI.
    pub latency_factor: String,
    /// Factor of the bandwidth, by bytes, in the same format. `smpi/bw-factor` of SMPI.
    pub bandwidth_factor: String,
    /// Shorter messages do not wait for their receive; longer ones do. By default that of the calibration, or
    /// 65536, that of Open MPI over TCP.
    pub eager_limit: Option<u64>,
}

/// Latency and bandwidth between slots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairRateParams {
    /// Latency in seconds.
    pub latency_s: f64,
    /// Bandwidth in bytes per second.
    pub bandwidth_bytes_per_s: f64,
}

impl BoundParams {
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.costs.replace(Costs::default())?;
        let latencies = self.levels.iter().map(|level| level.latency_s).chain(self.memory_latency_s);
        for latency in latencies {
            require(is_time(latency), "latency_s", latency, "0 to 1e12")?;
        }
        let bandwidths = self.levels.iter().map(|level| level.bandwidth_bytes_per_s);
        for bandwidth in bandwidths.chain(self.memory_bandwidth_bytes_per_s) {
            let is_right = is_bandwidth(bandwidth);
            require(is_right, "bandwidth_bytes_per_s", bandwidth, "1e-9 to 1e30")?;
        }
        Ok(self.algorithms.check()?)
    }

    /// The options of a replay on a machine, in which messages share links equally.
    pub(crate) fn options(&self, system: &SystemGraph) -> Result<Options, Error> {
        if !self.levels.is_empty() && has_rates(system) {
            return Err(LevelsWithLinks.into());
        }
        let rate = |latency_s, bandwidth_bytes_per_s| Rate { latency_s, bandwidth_bytes_per_s };
        let rates = self.levels.iter().map(|level| rate(level.latency_s, level.bandwidth_bytes_per_s));
        let Options { costs, memory, .. } = Options::of_machine(system);
        Ok(Options {
            costs: self.costs.replace(costs)?,
            memory: rate(
                self.memory_latency_s.unwrap_or(memory.latency_s),
                self.memory_bandwidth_bytes_per_s.unwrap_or(memory.bandwidth_bytes_per_s),
            ),
            pairs: (!self.levels.is_empty()).then(|| PairRates::Levels(rates.collect())),
            algorithms: self.algorithms,
            ..Options::default()
        })
    }
}

/// `levels` for a machine that has links.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`levels` is for machines whose links have no rates, but messages of this one take its links")]
#[diagnostic(code(predict::levels_with_links), help("remove `levels`; the rates of the links apply"))]
struct LevelsWithLinks;

impl TimeParams {
    /// The options of a replay on a machine.
    pub(crate) fn options(&self, system: &SystemGraph) -> Result<Options, Error> {
        let (sharing, packet_bytes) = match self.sharing {
            SharingName::MaxMin => (Sharing::MaxMin, self.packet_bytes),
            SharingName::Rtt => (Sharing::Rtt { bytes_per_link: 0.0 }, 0),
        };
        Ok(Options {
            sharing,
            packet_bytes,
            intervals: if self.timeline { MOST_INTERVALS } else { 0 },
            ..BoundParams::from(self).options(system)?
        })
    }
}

impl MessageCosts {
    /// Replaces the costs that are given.
    fn replace(&self, costs: Costs) -> Result<Costs, CostsSyntaxError> {
        fn parsed<T: FromStr<Err = CostsSyntaxError>>(text: &str, known: T) -> Result<T, CostsSyntaxError> {
            if text.trim().is_empty() { Ok(known) } else { text.parse() }
        }
        let eager_limit = self.eager_limit.unwrap_or(costs.eager_limit);
        Ok(Costs {
            send: parsed(&self.send, costs.send)?,
            isend: parsed(&self.isend, costs.isend)?,
            recv: parsed(&self.recv, costs.recv)?,
            latency_factor: parsed(&self.latency_factor, costs.latency_factor)?,
            bandwidth_factor: parsed(&self.bandwidth_factor, costs.bandwidth_factor)?,
            eager_limit,
            detached_limit: eager_limit,
            ..Costs::default()
        })
    }
}
