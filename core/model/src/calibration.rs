//! Measured costs of messages that do not belong to a link.

use miette::Diagnostic;

use crate::faults::{is_bandwidth, is_cost};

/// A cost of messages that are longer than `above_bytes`, up to the next row of the same cost:
/// `value + per_byte · bytes`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibratedCost {
    /// What it is.
    pub cost: CostName,
    /// Longest message to which it does not apply; the first row of a cost applies to all shorter messages too.
    pub above_bytes: u64,
    /// The value for an empty message.
    pub value: f64,
    /// What every byte adds.
    pub per_byte: f64,
}

crate::named_values! {
    /// What a calibrated cost is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CostName {
        /// Seconds in a blocking send that does not wait for its receiver.
        Send = "send",
        /// Seconds in a nonblocking send.
        Isend = "isend",
        /// Seconds in the receive of a message that has arrived.
        Recv = "recv",
        /// Factor of the latency of a route.
        LatencyFactor = "latency-factor",
        /// Factor of the bandwidth of a route.
        BandwidthFactor = "bandwidth-factor",
        /// Bytes of the shortest message that waits for its receiver.
        EagerLimit = "eager-limit",
        /// Latency of messages within a host, in seconds.
        MemoryLatency = "memory-latency",
        /// Bandwidth of messages within a host, in bytes per second.
        MemoryBandwidth = "memory-bandwidth",
    }
}

impl CostName {
    fn must_be_positive(self) -> bool {
        matches!(self, Self::LatencyFactor | Self::BandwidthFactor | Self::MemoryBandwidth)
    }
}

/// Costs that are not sorted by name and length, repeated, or not valid numbers.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("calibrated cost {0} is invalid, out of order or a duplicate")]
#[diagnostic(
    code(model::calibration),
    help("costs are from 0 to 1e30, factors and bandwidths from 1e-9; rows are sorted by cost and bytes")
)]
pub struct CalibrationError(pub usize);

/// Checks the calibration of a machine.
pub(crate) fn check(costs: &[CalibratedCost]) -> Result<(), CalibrationError> {
    let is_valid = |cost: &CalibratedCost| {
        is_cost(cost.value)
            && is_cost(cost.per_byte)
            && (is_bandwidth(cost.value) || !cost.cost.must_be_positive())
    };
    if let Some(index) = costs.iter().position(|cost| !is_valid(cost)) {
        return Err(CalibrationError(index));
    }
    let key = |cost: &CalibratedCost| (cost.cost, cost.above_bytes);
    match costs.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
        Some(index) => Err(CalibrationError(index + 1)),
        None => Ok(()),
    }
}
