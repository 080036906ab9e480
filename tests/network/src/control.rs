//! What a network and those who use it tell each other: one JSON value a line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::description::{check_latency, check_rate};
use crate::{Description, Error};

/// The socket that takes requests, as the hosts see it.
pub const CONTROL: &str = "/run/hopmap-test-network";

/// A change of a running network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A new latency of the links from one node to another, by their names.
    Latency {
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// Seconds one way.
        seconds: f64,
    },
    /// A new rate of the links from one node to another.
    Rate {
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// Bytes per second; none for no limit.
        bytes_per_s: Option<f64>,
    },
    /// Nothing passes this node any more.
    Cut {
        /// The node.
        node: String,
    },
    /// A node that was cut takes part again.
    Join {
        /// The node.
        node: String,
    },
    /// What the network has done so far.
    Counters,
}

impl Request {
    /// Whether a network can do it.
    pub fn check(&self, network: &Description) -> Result<(), Error> {
        let link = |from: &str, to: &str| {
            let ends = (network.node(from)?, network.node(to)?);
            match network.links.iter().any(|link| (link.from, link.to) == ends) {
                true => Ok(()),
                false => Err(Error::Refused(format!("there is no link from {from} to {to}"))),
            }
        };
        match self {
            Self::Latency { from, to, seconds } => link(from, to).and_then(|()| check_latency(*seconds)),
            Self::Rate { from, to, bytes_per_s } => link(from, to).and_then(|()| check_rate(*bytes_per_s)),
            Self::Cut { node } | Self::Join { node } => network.node(node).map(drop),
            Self::Counters => Ok(()),
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done: it holds for every frame that is sent from now on.
    Done,
    /// What was asked for.
    Counters(Counters),
    /// It cannot be done.
    Refused(String),
}

/// A frame that is delivered more seconds than this after it was due is late.
pub const LATE_S: f64 = 1e-3;

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

/// What the program says on its standard output while a network comes up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The first process of the network, as it is known outside.
    Process(u32),
    /// The network is there.
    Ready,
    /// There is none.
    Failed {
        /// What failed.
        message: String,
        /// What may help.
        help: Option<String>,
    },
}

/// Sends a request to the network behind a socket and waits for its answer.
pub fn ask(socket: &Path, request: &Request) -> Result<Answer, Error> {
    let exchange = || -> io::Result<Answer> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    match exchange().map_err(Error::Gone)? {
        Answer::Refused(message) => Err(Error::Refused(message)),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_what_is_not_there_are_refused() {
        let network = Description::tree_links(&[3], &[], &[0.0]);
        let message = |request: Request| request.check(&network).unwrap_err().to_string();
        let [h0, h1, s0, h3] = ["h0", "h1", "s0", "h3"].map(str::to_owned);
        assert_eq!(message(Request::Cut { node: h3 }), "there is no node h3: the network has h0, h1, h2, s0");
        assert_eq!(
            message(Request::Latency { from: h0.clone(), to: s0.clone(), seconds: 11.0 }),
            "a latency is 0 to 10 s, not 11"
        );
        assert_eq!(
            message(Request::Rate { from: h0, to: h1, bytes_per_s: None }),
            "there is no link from h0 to h1"
        );
        Request::Join { node: s0 }.check(&network).unwrap();
    }
}
