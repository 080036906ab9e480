//! Loads of links under traffic between all hosts.

use super::network::FabricNetwork;
use super::traffic::{Traffic, reversed};
use super::trees::Trees;

/// Shifts that are counted, if there are more.
const MOST_SHIFTS: usize = 128;

/// The loads of links between switches, in pairs of hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loads {
    /// The largest one; of shifts, in the worst one.
    pub busiest: f64,
    /// The mean over all shifts of the largest one.
    pub mean: f64,
}

/// Follows the routes of all pairs that send.
pub(super) fn loads(network: &FabricNetwork<'_>, trees: &Trees<'_>, traffic: Traffic) -> Loads {
    let hosts = network.hosts.len();
    let mut loads = vec![0_u64; network.channels.len()];
    let follow = |loads: &mut Vec<u64>, source: u32, destination: usize| {
        let mut at = source;
        while let Some(channel) = network.channels.get(trees.channel(destination, at as usize) as usize) {
            loads[trees.channel(destination, at as usize) as usize] += 1;
            at = channel.to;
        }
    };
    let largest = |loads: &[u64]| loads.iter().copied().max().unwrap_or_default() as f64;
    match traffic {
        Traffic::AllToAll => {
            let mut senders = vec![0; network.switches.len()];
            for destination in 0..hosts {
                traffic.senders(network, destination, &mut senders);
                // What passes a switch is known once all farther ones are done.
                for switch in trees.order_to(destination).into_iter().rev() {
                    let passing = senders[switch as usize];
                    let channel = trees.channel(destination, switch as usize) as usize;
                    if let Some(ends) = network.channels.get(channel) {
                        senders[ends.to as usize] += passing;
                        loads[channel] += passing;
                    }
                }
            }
            let busiest = largest(&loads);
            Loads { busiest, mean: busiest }
        }
        Traffic::Shift => {
            let shifts = (hosts - 1).min(MOST_SHIFTS);
            let of_shift = |index: usize| {
                let shift = 1 + index * (hosts - 1) / shifts;
                let mut loads = vec![0; network.channels.len()];
                (0..hosts)
                    .for_each(|host| follow(&mut loads, network.switch_of[host], (host + shift) % hosts));
                largest(&loads)
            };
            let all: Vec<f64> = (0..shifts).map(of_shift).collect();
            let mean = all.iter().sum::<f64>() / shifts as f64;
            Loads { busiest: all.into_iter().fold(0.0, f64::max), mean }
        }
        Traffic::BitReversal => {
            for source in 0..hosts {
                if let Some(destination) = reversed(source, hosts) {
                    follow(&mut loads, network.switch_of[source], destination);
                }
            }
            let busiest = largest(&loads);
            Loads { busiest, mean: busiest }
        }
    }
}
