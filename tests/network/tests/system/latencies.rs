//! Latencies and rates are those that were asked for.

use crate::support::{Pong, assert_half_round_trip, ping, racks, start, succeeded, wanted};
use hopmap_test_network::Description;

#[test]
fn latencies_are_those_of_the_description() {
    let Some(_alone) = wanted() else { return };
    let network = start(&racks());
    for (host, latency) in [(1, 200e-6), (2, 500e-6), (3, 500e-6), (4, 1000e-6), (7, 1000e-6)] {
        let _pong = Pong::start(&network, host);
        assert_half_round_trip(&network, (0, host), 1, latency, 0.15);
    }
    let _pong = Pong::start(&network, 6);
    assert_half_round_trip(&network, (7, 6), 1, 200e-6, 0.15);
}

#[test]
fn a_change_of_one_pair_is_seen_on_that_pair_only() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(4, 300e-6));
    let _pongs = [1, 2, 3].map(|host| Pong::start(&network, host));
    network.set_latency(0, 1, 600e-6).unwrap();
    network.set_latency(1, 0, 600e-6).unwrap();
    // Other ways there than back: a round trip has both.
    network.set_latency(0, 3, 900e-6).unwrap();
    for (from, to, latency) in
        [(0, 1, 600e-6), (0, 2, 300e-6), (0, 3, 600e-6), (2, 1, 300e-6), (1, 3, 300e-6), (2, 3, 300e-6)]
    {
        assert_half_round_trip(&network, (from, to), 1, latency, 0.15);
    }
}

#[test]
fn rates_are_those_of_the_description() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(3, 200e-6).with_rate(12.5e6));
    network.set_rate(0, 2, Some(50e6)).unwrap();
    let _pongs = [1, 2].map(|host| Pong::start(&network, host));
    let bytes = 1 << 20;
    for (to, rate) in [(1, 12.5e6), (2, 50e6)] {
        assert_half_round_trip(&network, (0, to), bytes, bytes as f64 / rate / 2.0, 0.1);
    }
}

#[test]
fn a_host_that_is_cut_off_does_not_answer() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(3, 200e-6));
    let _pongs = [1, 2].map(|host| Pong::start(&network, host));
    network.cut(1).unwrap();
    let output = ping(&network, 0, 1, &["10", "--timeout", "0.5"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(complaint.contains("10.77.0.2:7000: connection timed out"), "{complaint}");
    succeeded(ping(&network, 0, 2, &["10"]));
    network.join(1).unwrap();
    succeeded(ping(&network, 0, 1, &["10"]));
    assert!(network.counters().unwrap().dropped > 0);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let message = |result: Result<(), hopmap_test_network::Error>| result.unwrap_err().to_string();
    assert_eq!(message(network.set_latency(0, 2, 1.0)), "the network has no node 2");
    assert_eq!(message(network.set_latency(0, 1, -1.0)), "a latency is 0 to 10 s, not -1");
    assert_eq!(message(network.set_rate(0, 1, Some(0.0))), "a rate is 1 to 1e12 bytes per second, not 0");
}
