use serde::{Deserialize, Serialize};

/// Bytes that wait for a shared link before frames are dropped. With smaller queues TCP waits 200 ms for its time-out again and again.
const QUEUE: u64 = 4 << 20;

/// A directed link between two nodes, with a queue in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// Seconds from one end to the other.
    pub latency_s: f64,
    /// Bytes per second; none for no limit.
    pub bytes_per_s: Option<f64>,
    /// Bytes that may wait; frames that find more are dropped.
    pub queue_bytes: u64,
}

impl Link {
    /// A link with the default queue of 4 MiB.
    #[must_use]
    pub fn new(from: usize, to: usize, latency_s: f64, bytes_per_s: Option<f64>) -> Self {
        Self { from, to, latency_s, bytes_per_s, queue_bytes: QUEUE }
    }
}
