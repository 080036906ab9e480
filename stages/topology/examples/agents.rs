//! Message times between two agents over loopback, and between the cores of this host: `cargo run --release
//! -p hopmap-topology --example agents`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints measurements")]

use std::time::Duration;

use hopmap_topology::agent::{Agent, AgentConnection, AgentSettings, Token};
use hopmap_topology::probe::{Sampling, Timing};

fn main() {
    let token = Token::random().unwrap();
    let start = |host: &str| {
        let settings = AgentSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            host: host.into(),
            lifetime: Duration::from_mins(1),
            token: token.clone(),
        };
        let agent = Agent::bind(settings, |refused| println!("{refused}")).unwrap();
        let address = agent.address();
        std::thread::spawn(move || agent.serve());
        address
    };
    let (first, second) = (start("a"), start("b"));
    let sampling = Sampling {
        sizes: vec![1, 64, 4096, 1 << 16, 1 << 20, 1 << 22],
        warm_up: 20,
        warm_up_bytes: 4 << 20,
        batch: 20,
        most: 2000,
        calm_batches: 5,
        tolerance: 0.01,
        seconds: 0.5,
    };
    let mut connection = AgentConnection::connect(first, &token, Duration::from_secs(5)).unwrap();
    println!("{:?}", connection.describe().unwrap());
    for _ in 0..5 {
        show("loopback", &connection.measure(second, &sampling, 30.0).unwrap());
    }
    for _ in 0..5 {
        for pair in connection.cores(None, false, &sampling, 30.0).unwrap() {
            show(&format!("cores {}-{}", pair.source, pair.destination), &pair.timings);
        }
    }
}

fn show(what: &str, timings: &[Timing]) {
    let texts = timings.iter().map(|timing| {
        let [minimum, _, median, _, _] = timing.times.map(|time| time * 1e6);
        format!("{} B {minimum:.2}/{median:.2} µs ({})", timing.bytes, timing.messages)
    });
    println!("{what}: {}", texts.collect::<Vec<_>>().join(", "));
}
