use serde::{Deserialize, Serialize};

/// A frame that is delivered more seconds than this after it was due is late.
pub const LATE_S: f64 = 1e-3;

/// The largest fraction of the frames that may be late.
///
/// It is not zero, as a virtual machine takes a processor away for 1 to 4 ms a few times a second, whatever else runs. Of 6,800
/// frames at 90 % idle, 12 were late.
pub const MAX_LATE: f64 = 0.005;

/// What a network has done so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames delivered.
    pub delivered: u64,
    /// Frames that met a node that was cut, a queue that was full, or an interface that would not take them.
    pub dropped: u64,
    /// Frames delivered more than [`LATE_S`] after they were due: this machine was too busy.
    pub late: u64,
    /// The longest time by which a frame was late, in seconds.
    pub latest_s: f64,
    /// Seconds of processor time of the switch, up to when it last had nothing to do.
    pub cpu_s: f64,
    /// What a message takes beyond the latency, in seconds, measured at the start; the switch takes it off every latency.
    pub base_s: f64,
    /// By link, in the order of the description.
    pub links: Vec<LinkCounters>,
}

impl Counters {
    /// What happened since earlier counters of the same network.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let link = |(now, before): (&LinkCounters, &LinkCounters)| LinkCounters {
            bytes: now.bytes - before.bytes,
            busy_s: now.busy_s - before.busy_s,
            dropped: now.dropped - before.dropped,
            longest_queue_bytes: now.longest_queue_bytes,
        };
        Self {
            delivered: self.delivered - before.delivered,
            dropped: self.dropped - before.dropped,
            late: self.late - before.late,
            cpu_s: self.cpu_s - before.cpu_s,
            links: self.links.iter().zip(&before.links).map(link).collect(),
            latest_s: self.latest_s,
            base_s: self.base_s,
        }
    }
}

/// What has happened on a link so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes of frames, Ethernet headers included.
    pub bytes: u64,
    /// Seconds in which it sent.
    pub busy_s: f64,
    /// Frames dropped.
    pub dropped: u64,
    /// The most bytes that a frame had to wait for.
    pub longest_queue_bytes: u64,
}

/// What happened during a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What the network did; `latest_s` and the longest queues are those since it began.
    pub counters: Counters,
    /// The idle fraction of the processors of this machine.
    pub idle: f64,
}
