//! What a network and those who use it tell each other: one JSON value a line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::description::{check_latency, check_rate};

/// The socket that takes requests, as the hosts see it.
pub const CONTROL: &str = "/run/hopmap-test-network";

/// A change of a running network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A new latency of an ordered pair of hosts.
    Latency {
        /// The host that sends.
        from: usize,
        /// The host that receives.
        to: usize,
        /// Seconds one way.
        seconds: f64,
    },
    /// A new rate of an ordered pair of hosts.
    Rate {
        /// The host that sends.
        from: usize,
        /// The host that receives.
        to: usize,
        /// Bytes per second; none for no limit.
        bytes_per_s: Option<f64>,
    },
    /// Nothing comes from or to this host any more.
    Cut {
        /// The host.
        host: usize,
    },
    /// A host that was cut is there again.
    Join {
        /// The host.
        host: usize,
    },
    /// What the switch has done so far.
    Counters,
}

impl Request {
    /// Whether a network of so many hosts can do it.
    pub fn check(&self, hosts: usize) -> Result<(), Error> {
        let host = |host: usize| match host < hosts {
            true => Ok(()),
            false => Err(Error::Refused(format!(
                "no host h{host}: the network has h0 to h{}",
                hosts.saturating_sub(1)
            ))),
        };
        match *self {
            Self::Latency { from, to, seconds } => {
                host(from).and(host(to)).and_then(|()| check_latency(seconds))
            }
            Self::Rate { from, to, bytes_per_s } => {
                host(from).and(host(to)).and_then(|()| check_rate(bytes_per_s))
            }
            Self::Cut { host: which } | Self::Join { host: which } => host(which),
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

/// What a switch has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames delivered.
    pub delivered: u64,
    /// Frames that met a host that was cut, a queue that was full, or an interface that would not take them.
    pub dropped: u64,
    /// Seconds of processor time of the switch, up to when it last had nothing to do.
    pub cpu_s: f64,
    /// What a message takes beyond the latency, in seconds, measured at the start; the switch takes it off every latency.
    pub base_s: f64,
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
        let message = |request: Request| request.check(3).unwrap_err().to_string();
        assert_eq!(message(Request::Cut { host: 3 }), "no host h3: the network has h0 to h2");
        assert_eq!(
            message(Request::Latency { from: 0, to: 1, seconds: 11.0 }),
            "a latency is 0 to 10 s, not 11"
        );
        assert_eq!(
            message(Request::Rate { from: 0, to: 7, bytes_per_s: None }),
            "no host h7: the network has h0 to h2"
        );
        Request::Join { host: 2 }.check(3).unwrap();
    }
}
