//! The most that this machine carries without late frames and with 30 % of its processors idle, as the table of README.md.
//!
//! Streams of 100 Mbit/s from hosts of the first half to hosts of the second, through the root of a tree of shared links; twice as
//! many until the measurement is refused three times.

#![expect(clippy::print_stdout, reason = "a table")]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use hopmap_test_network::{Description, Measured, Network, address};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hopmap-test-network");
const RATE: f64 = 12.5e6;
const SECONDS: u64 = 5;

fn main() -> Result<(), hopmap_test_network::Error> {
    println!(
        "| hosts | links | streams | frames/s | links passed/s | idle | latest ms |\n|---|---|---|---|---|---|---|"
    );
    for children in [[2, 2, 2], [4, 4, 4], [5, 5, 8]] {
        let most: usize = children.iter().product();
        // Links above the hosts are fast enough that every stream gets its rate.
        let rates = [RATE, 100.0 * RATE];
        let description = Description::tree_links(&children, &rates, &[20e-6]);
        let network = Network::start_with(Path::new(PROGRAM), &description)?;
        let mut streams = 1;
        while let Some(measured) = (streams <= most / 2).then(|| carried(&network, streams)).flatten() {
            let per_s = |count: u64| count / SECONDS;
            println!(
                "| {most} | {} | {streams} | {} | {} | {:.0} % | {:.1} |",
                description.links.len(),
                per_s(measured.counters.delivered),
                per_s(measured.counters.delivered) * description.route(0, most - 1).len() as u64,
                measured.idle * 100.0,
                measured.counters.latest_s * 1e3
            );
            streams *= 2;
        }
    }
    Ok(())
}

/// What happened while `streams` streams ran; none if the network was too busy each time.
fn carried(network: &Network, streams: usize) -> Option<Measured> {
    let half = network.hosts() / 2;
    let start = |host: usize, words: &[&str]| {
        network.command(host, PROGRAM).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let mut running: Vec<Child> = Vec::new();
    for stream in 0..streams {
        running.extend(start(half + stream, &["pong", &format!("{}:7000", address(half + stream))]));
    }
    std::thread::sleep(Duration::from_millis(500));
    for stream in 0..streams {
        let words = ["ping", &format!("{}:7000", address(half + stream)), "100000", "--bytes", "262144"];
        running.extend(start(stream, &words));
    }
    std::thread::sleep(Duration::from_secs(1));
    let measured =
        (0..3).find_map(|_| network.measure(|| std::thread::sleep(Duration::from_secs(SECONDS))).ok());
    for child in &mut running {
        let _ = child.kill().and_then(|()| child.wait());
    }
    measured.map(|((), measured)| measured)
}
