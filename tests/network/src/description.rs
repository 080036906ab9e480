use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The most hosts a network can have: those of the last byte of an address.
const MOST_HOSTS: usize = 200;
/// The longest latency, in seconds.
const LONGEST: f64 = 10.0;

/// Hosts, and what frames meet on their way between them.
///
/// A frame of `bytes` (Ethernet header included) that is sent at `t` arrives at `max(t, free) + bytes / rate + latency`, where
/// `free` is when the last byte of the frame before it, of the same ordered pair of hosts, has gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// `latencies_s[a][b]`: seconds from `a` to `b`, one way. What is on the diagonal has no meaning.
    pub latencies_s: Vec<Vec<f64>>,
    /// `rates[a][b]`: bytes per second from `a` to `b`; none where the rate is not limited.
    pub rates: Vec<Vec<Option<f64>>>,
}

impl Description {
    /// Hosts that all have the same latency, in seconds, and no limit of rates.
    #[must_use]
    pub fn uniform(hosts: usize, latency_s: f64) -> Self {
        Self::of(hosts, |_, _| latency_s)
    }

    /// The hosts of a tree of switches, without a limit of rates.
    ///
    /// `children` from the root down: `[2, 2, 3]` are two racks of two switches of three hosts. `latencies_s` from the leaves
    /// up: seconds one way between hosts of one switch, of one rack, of different racks. Where it has fewer values than there are
    /// levels, the last one stands for all above it.
    #[must_use]
    pub fn tree(children: &[usize], latencies_s: &[f64]) -> Self {
        let level = |a: usize, b: usize| {
            let (mut a, mut b, mut level) = (a, b, 0);
            for size in children.iter().rev() {
                (a, b) = (a / size, b / size);
                if a == b {
                    break;
                }
                level += 1;
            }
            level
        };
        let latency = |level: usize| latencies_s.get(level).or(latencies_s.last()).copied().unwrap_or(0.0);
        // So many that they are refused are as good as any more.
        let hosts = children.iter().fold(1_usize, |hosts, &size| hosts.saturating_mul(size));
        Self::of(hosts.min(MOST_HOSTS + 1), |a, b| latency(level(a, b)))
    }

    /// Hosts with the latency, in seconds, that a function tells of every ordered pair.
    #[must_use]
    pub fn of(hosts: usize, latency_s: impl Fn(usize, usize) -> f64) -> Self {
        let row = |a: usize| (0..hosts).map(|b| if a == b { 0.0 } else { latency_s(a, b) }).collect();
        Self { latencies_s: (0..hosts).map(row).collect(), rates: vec![vec![None; hosts]; hosts] }
    }

    /// The same with one rate, in bytes per second, between all hosts.
    #[must_use]
    pub fn with_rate(mut self, bytes_per_s: f64) -> Self {
        self.rates.iter_mut().flatten().for_each(|rate| *rate = Some(bytes_per_s));
        self
    }

    /// The number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.latencies_s.len()
    }

    /// Whether a network can be made of it.
    pub fn check(&self) -> Result<(), Error> {
        let hosts = self.hosts();
        if !(2..=MOST_HOSTS).contains(&hosts) {
            return Err(Error::Description(format!("a network has 2 to {MOST_HOSTS} hosts")));
        }
        if self.latencies_s.iter().any(|row| row.len() != hosts) {
            return Err(Error::Description(format!("`latencies_s` is not {hosts} times {hosts}")));
        }
        if self.rates.len() != hosts || self.rates.iter().any(|row| row.len() != hosts) {
            return Err(Error::Description(format!("`rates` is not {hosts} times {hosts}")));
        }
        self.latencies_s.iter().flatten().try_for_each(|&latency| check_latency(latency))?;
        self.rates.iter().flatten().try_for_each(|&rate| check_rate(rate))
    }
}

/// Whether a latency, in seconds, is one.
pub(crate) fn check_latency(seconds: f64) -> Result<(), Error> {
    match (0.0..=LONGEST).contains(&seconds) {
        true => Ok(()),
        false => Err(Error::Description(format!("a latency is 0 to {LONGEST} s, not {seconds}"))),
    }
}

/// Whether a rate, in bytes per second, is one.
pub(crate) fn check_rate(rate: Option<f64>) -> Result<(), Error> {
    match rate {
        Some(rate) if !(1.0..=1e12).contains(&rate) => {
            Err(Error::Description(format!("a rate is 1 to 1e12 bytes per second, not {rate}")))
        }
        _ => Ok(()),
    }
}

/// The name of a host.
#[must_use]
pub fn host_name(host: usize) -> String {
    format!("h{host}")
}

/// The address of a host.
#[must_use]
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(host + 1).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_a_tree_are_those_of_the_lowest_common_switch() {
        let tree = Description::tree(&[2, 2, 2], &[1.0, 2.0, 3.0]);
        assert_eq!(tree.hosts(), 8);
        assert_eq!(tree.latencies_s[0], [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(tree.latencies_s[6], [3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 0.0, 1.0]);
        tree.check().unwrap();
        let uneven = Description::tree(&[2, 3], &[1.0]);
        assert_eq!(uneven.latencies_s[2], [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let message = |description: &Description| description.check().unwrap_err().to_string();
        assert_eq!(message(&Description::uniform(1, 0.0)), "a network has 2 to 200 hosts");
        assert_eq!(message(&Description::uniform(201, 0.0)), "a network has 2 to 200 hosts");
        assert_eq!(message(&Description::uniform(2, -1.0)), "a latency is 0 to 10 s, not -1");
        assert_eq!(message(&Description::uniform(2, f64::NAN)), "a latency is 0 to 10 s, not NaN");
        assert_eq!(message(&Description::tree(&[usize::MAX, 2], &[])), "a network has 2 to 200 hosts");
        let slow = Description::uniform(2, 0.0).with_rate(0.0);
        assert_eq!(message(&slow), "a rate is 1 to 1e12 bytes per second, not 0");
        let mut ragged = Description::uniform(2, 0.0);
        ragged.latencies_s[1].pop();
        assert_eq!(message(&ragged), "`latencies_s` is not 2 times 2");
    }
}
