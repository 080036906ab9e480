//! What a coordinator asks of an agent and what the agent answers, and the limits of both.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::probe::{Sampling, Timing};

/// Most bytes of a message that is timed.
pub const MESSAGE_BYTES: u64 = 64 << 20;
/// Most messages of one batch, and of one size.
pub const MESSAGES: u32 = 1_000_000;
/// Most sizes of one measurement.
pub const SIZES: usize = 64;
/// Most seconds of one measurement.
pub const SECONDS: f64 = 86_400.0;

/// What an agent may be asked for. There is nothing else it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Request {
    /// Who it is.
    Describe,
    /// Time messages to another agent.
    Measure {
        /// Where the other agent listens.
        address: SocketAddr,
        /// What to measure.
        sampling: Sampling,
        /// Seconds for all of it.
        seconds: f64,
    },
    /// Time messages between the cores of the host.
    Cores {
        /// Which cores; all that the agent may use if not said.
        cores: Option<Vec<u32>>,
        /// Whether all pairs of a round are measured at once.
        together: bool,
        /// What to measure.
        sampling: Sampling,
        /// Seconds for all of it.
        seconds: f64,
    },
    /// Stop as soon as this connection is closed.
    End,
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Describe`].
    Description(Description),
    /// To [`Request::Measure`].
    Timings(Vec<Timing>),
    /// To [`Request::Cores`], any number of times, before [`Self::Done`].
    Cores(Vec<CorePair>),
    /// That was all.
    Done,
    /// The request could not be fulfilled; the connection goes on.
    Failed(String),
}

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Name of its host.
    pub host: String,
    /// Cores it may use, as the operating system numbers them.
    pub cores: Vec<u32>,
    /// Version of its program.
    pub version: String,
    /// Seconds until it ends by itself.
    pub seconds_left: f64,
}

/// How long messages took between two cores of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePair {
    /// The core that sent and timed.
    pub source: u32,
    /// The core that answered.
    pub destination: u32,
    /// The times, size by size.
    pub timings: Vec<Timing>,
}

/// Says what is wrong with a measurement that nobody should do, whoever asks for it.
pub(super) fn refusal(sampling: &Sampling, seconds: f64) -> Option<String> {
    let Sampling { sizes, warm_up, warm_up_bytes: _, batch, most, calm_batches: _, tolerance, seconds: each } =
        sampling;
    let within = |seconds: f64| seconds.is_finite() && seconds > 0.0 && seconds <= SECONDS;
    let is_size = |bytes: &u64| (1..=MESSAGE_BYTES).contains(bytes);
    match () {
        () if sizes.is_empty() || sizes.len() > SIZES => {
            Some(format!("{} sizes are asked for; 1 to {SIZES} can be measured", sizes.len()))
        }
        () if !sizes.iter().all(is_size) => Some(format!("messages have 1 to {MESSAGE_BYTES} bytes")),
        () if *most == 0 || *batch == 0 => Some("`batch` and `most` are at least 1".to_owned()),
        () if (*most).max(*warm_up) > MESSAGES => {
            Some(format!("at most {MESSAGES} messages are sent of a size"))
        }
        () if !tolerance.is_finite() => Some("`tolerance` is not a number".to_owned()),
        () if !within(*each) || !within(seconds) => {
            Some(format!("seconds are more than 0 and at most {SECONDS}"))
        }
        () => None,
    }
}
