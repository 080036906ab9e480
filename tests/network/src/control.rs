//! Messages between a network and its users: one JSON value per line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::description::{Description, check_latency, check_rate};
use crate::error::Error;

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
    /// How late frames were since this was asked last.
    Lateness,
    /// The switch panics at the next frame; for tests.
    Fault,
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
            Self::Counters | Self::Lateness | Self::Fault => Ok(()),
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
    /// Quantile of the lateness in seconds: all frames but a fraction of [`MAX_LATE`](crate::MAX_LATE) are at most this late.
    Lateness(f64),
    /// It cannot be done.
    Refused(String),
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
