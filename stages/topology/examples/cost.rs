//! Cost of probing over the number of hosts: the tournament compared with serial measurement of pairs, and
//! with all ordered pairs at a fixed number of repetitions, as in `network_test2` of PARUS.
//!
//! Connections are simulated on a virtual clock: a message of D bytes takes L + D/S plus noise, its reply L.
//! The code of the probe decides how many messages are sent. `cargo run --release -p hopmap-topology
//! --example cost`

#![expect(clippy::print_stdout, reason = "examples print")]

use std::convert::Infallible;

use hopmap_topology::probe::tournament::{pairs, rounds};
use hopmap_topology::probe::{Sampling, Wire, sample};

/// Repetitions and sizes of `network_test2` according to its documentation.
const PARUS_REPEATS: f64 = 100.0;
/// Round trips of the control connection to start two agents.
const CONTROL_ROUND_TRIPS: f64 = 4.0;

/// A simulated connection with latency L and bandwidth S and occasional disturbances.
struct Played {
    latency: f64,
    bandwidth: f64,
    random: u64,
    spent: f64,
}

impl Played {
    fn message(&mut self, bytes: u64) -> f64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
        let noise = self.latency * 0.2 * -libm::log(1.0 - uniform);
        2.0 * self.latency + bytes as f64 / self.bandwidth + noise
    }
}

impl Wire for Played {
    type Error = Infallible;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Infallible> {
        for _ in 0..messages {
            let time = self.message(bytes);
            self.spent += time;
            times.push(time);
        }
        Ok(())
    }
}

fn sampling(sizes: &[u64]) -> Sampling {
    Sampling {
        sizes: sizes.to_vec(),
        warm_up: 3,
        warm_up_bytes: 1 << 12,
        batch: 20,
        most: 1000,
        calm_batches: 3,
        tolerance: 0.02,
        seconds: 0.1,
    }
}

/// Seconds of one meeting: both directions.
fn meeting(latency: f64, bandwidth: f64, random: u64, sampling: &Sampling) -> f64 {
    let mut way = Played { latency, bandwidth, random, spent: 0.0 };
    for _ in 0..2 {
        let Ok(_) = sample(&mut way, sampling);
    }
    way.spent + CONTROL_ROUND_TRIPS * 2.0 * latency
}

fn main() {
    let small = sampling(&[1, 64, 1 << 10, 1 << 13, 1 << 16]);
    for (name, latency, bandwidth) in
        [("InfiniBand, 1.5 us, 12 GB/s", 1.5e-6, 12e9), ("TCP, 30 us, 1.2 GB/s", 3e-5, 1.2e9)]
    {
        println!("{name}\n{:>6} {:>12} {:>12} {:>14}", "hosts", "tournament", "serial", "all ordered");
        for hosts in [8, 16, 32, 64, 136, 256, 512, 1000] {
            let (mut tournament, mut serial) = (0.0, 0.0);
            for round in 0..rounds(hosts) {
                let mut longest = 0.0_f64;
                for (a, b) in pairs(hosts, round) {
                    let one = meeting(latency, bandwidth, u64::from(a) << 32 | u64::from(b), &small);
                    serial += one;
                    longest = longest.max(one);
                }
                tournament += longest;
            }
            let ordered: f64 = small
                .sizes
                .iter()
                .map(|&bytes| PARUS_REPEATS * (2.0 * latency + bytes as f64 / bandwidth))
                .sum::<f64>()
                * f64::from(hosts)
                * f64::from(hosts);
            println!("{hosts:>6} {tournament:>10.2} s {serial:>10.2} s {ordered:>12.2} s");
        }
    }
}
