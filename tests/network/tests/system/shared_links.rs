//! Links are shared: streams over one link slow each other down, those on disjoint routes do not.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use hopmap_test_network::{Description, Link, Network};
use hopmap_test_support::program;

use crate::support::{self, Pong, assert_half_round_trip, ping, start, succeeded, wanted};

/// 100 Mbit/s.
const RATE: f64 = 12.5e6;

/// Seconds that streams last: long enough for a mean in `make soak`.
fn seconds() -> f64 {
    if hopmap_test_support::soak() { 20.0 } else { 3.0 }
}

/// Measures rates until they are as expected. What else runs on this machine can only make streams slower, so a few tries may fail.
/// In no try may streams of equal length end before `links` links could have carried all of them.
fn assert_rates(
    network: &Network,
    streams: &[(usize, usize)],
    links: usize,
    is_expected: impl Fn(&[f64]) -> bool,
) {
    let mut tries = Vec::new();
    while tries.len() < 8 {
        let rates = rates(network, streams);
        let last = rates.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(last * rates.len() as f64 <= 1.05 * RATE * links as f64, "{rates:?}");
        if is_expected(&rates) {
            return;
        }
        tries.push(rates);
    }
    panic!("{streams:?}: {tries:?}");
}

/// The mean rates of TCP streams that start together, in bytes per second.
fn rates(network: &Network, streams: &[(usize, usize)]) -> Vec<f64> {
    let bytes = 1 << 18;
    std::thread::scope(|scope| {
        let stream = |&(from, to): &(usize, usize)| {
            scope.spawn(move || {
                let begin = Instant::now();
                let count = (seconds() * RATE / f64::from(bytes)) as u32;
                succeeded(ping(network, from, to, &[&count.to_string(), "--bytes", &bytes.to_string()]));
                // Five more exchanges warm up.
                f64::from(count + 5) * f64::from(bytes) / begin.elapsed().as_secs_f64()
            })
        };
        let streams: Vec<_> = streams.iter().map(stream).collect();
        streams.into_iter().map(|stream| stream.join().unwrap()).collect()
    })
}

/// Four racks of two hosts: one stream alone, two over one uplink, and two from one rack whose routes have no link in common.
#[test]
fn streams_over_one_uplink_get_half_of_it_and_others_all_of_it() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::tree_links(&[4, 2], &[8.0 * RATE, RATE], &[20e-6]));
    let _pongs: Vec<Pong> = (0..8).map(|host| Pong::start(&network, host)).collect();
    // Frames that are late on a busy machine lower a mean over 3 s; streams that share a link would get half of it.
    let (whole, tolerance) = if hopmap_test_support::soak() { (0.9, 0.1) } else { (0.7, 0.2) };
    let is_whole = |rates: &[f64]| rates.iter().all(|rate| *rate >= whole * RATE);
    assert_rates(&network, &[(0, 2)], 1, is_whole);
    // TCP is fair in the long run: in 3 s, a stream has got 65 % of a link.
    let is_fair = |rates: &[f64]| rates.iter().all(|rate| (rate / RATE - 0.5).abs() <= tolerance);
    assert_rates(&network, &[(0, 2), (1, 4)], 1, is_fair);
    assert_rates(&network, &[(0, 2), (4, 6)], 2, is_whole);
}

#[test]
fn the_latencies_of_a_route_add_up() {
    let Some(_alone) = wanted() else { return };
    let tree = Description::tree_links(&[2, 2, 2], &[], &[100e-6, 200e-6, 400e-6]);
    let network = start(&tree);
    for host in [1, 2, 7] {
        let _pong = Pong::start(&network, host);
        let latency = tree.latency_s(0, host);
        assert_half_round_trip(&network, (0, host), 1, latency, 0.1 + 50e-6 / latency);
    }
}

/// The far host always has a message on its way of 200 ms to the link that both share. Messages that the near one sends after it
/// get there before it, so they do not wait for it; booked for the route at once, each would take up to 200 ms.
#[test]
fn streams_of_unequal_latency_leave_a_link_in_the_order_of_arrival() {
    let Some(_alone) = wanted() else { return };
    let (far, near, to, switch) = (0, 1, 2, 3);
    let latencies = [(far, switch, 200e-3), (near, switch, 1e-3), (switch, to, 0.0)];
    let both = latencies.into_iter().flat_map(|(a, b, latency_s)| [(a, b, latency_s), (b, a, 0.0)]);
    let links = both.map(|(from, to, latency_s)| Link::new(from, to, latency_s, Some(RATE)));
    let network = start(&Description::links(3, 1, links.collect()));
    let _pong = Pong::start(&network, to);
    std::thread::scope(|scope| {
        let far = scope.spawn(|| succeeded(ping(&network, far, to, &["20"])));
        std::thread::sleep(Duration::from_millis(500));
        assert_half_round_trip(&network, (near, to), 1, 0.5e-3, 0.15);
        assert!(!far.is_finished(), "messages of the near host waited for those of the far one");
        let halves = far.join().unwrap();
        let shortest: f64 = halves.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!((0.1..0.105).contains(&shortest), "{halves}");
    });
}

#[test]
fn a_given_route_is_taken_and_a_busy_link_counts_its_bytes() {
    let Some(_alone) = wanted() else { return };
    let pairs = [(0, 2), (2, 0), (1, 2), (2, 1), (0, 3), (3, 1)];
    let links = pairs.map(|(from, to)| Link::new(from, to, if to == 3 { 900e-6 } else { 100e-6 }, None));
    let network = start(&Description::links(2, 2, links.to_vec()).with_route(0, 1, vec![4, 5]));
    let _pong = Pong::start(&network, 1);
    // 1 ms there and 0.2 ms back.
    assert_half_round_trip(&network, (0, 1), 1, 600e-6, 0.15);
    let counters = network.counters().unwrap();
    let passed = |link: usize| counters.links[link].bytes > 0;
    assert_eq!([0, 1, 2, 3, 4, 5].map(passed), [false, true, true, false, true, true]);
    network.cut(3).unwrap();
    let output = ping(&network, 0, 1, &["1", "--timeout", "0.2"]);
    assert!(!output.status.success());
}

#[test]
fn a_machine_that_hopmap_exported_keeps_its_names_and_links() {
    let Some(_alone) = wanted() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.json");
    let machine = r#"{"nodes": [{"name":"node01","kind":"host"}, {"name":"node02","kind":"host"}, {"name":"leaf","kind":"switch"}],
        "links": [{"source":0,"destination":2,"latency_s":2e-4}, {"source":2,"destination":0},
                  {"source":1,"destination":2}, {"source":2,"destination":1,"latency_s":1e-4}]}"#;
    fs::write(&path, machine).unwrap();
    let script = "hostname && $PROGRAM on node02 hostname && $PROGRAM set-latency leaf node02 0.002 && ! $PROGRAM cut node03";
    let run = |words: &[&str]| {
        let mut command = Command::new(support::program());
        command
            .args(["run", "--machine"])
            .arg(&path)
            .args(words)
            .env("PROGRAM", support::program())
            .output()
            .unwrap()
    };
    let output = run(&["--rate", "1e9", "--", "sh", "-c", script]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "node01\nnode02\n");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        complaint,
        "hopmap-test-network: there is no node node03: the network has node01, node02, leaf\n"
    );
    fs::write(&path, machine.replace(r#"{"source":2,"destination":0},"#, "")).unwrap();
    let complaint = String::from_utf8(run(&["--", "true"]).stderr).unwrap();
    let warning =
        "hopmap-test-network: no route between 1 of 2 pairs of hosts, such as from node02 to node01\n";
    assert_eq!(complaint, warning);
    fs::write(&path, &machine[..machine.len() / 2]).unwrap();
    let complaint = String::from_utf8(run(&["--", "true"]).stderr).unwrap();
    assert!(complaint.contains("machine.json: EOF while parsing"), "{complaint}");
}

/// Seconds of 16-rank halo exchanges of 64 KiB by the placement of the ranks, on eight hosts below three levels of switches.
///
/// With real `tbf` queues in place of this network: linear 1.196 s, 2 x 2 blocks 0.955 s, eight random ones 1.474 to 1.887 s.
#[test]
fn a_halo_exchange_orders_placements_as_on_a_tree_of_real_queues() {
    let Some(_alone) = wanted() else { return };
    if program("mpicc.openmpi").is_none() || program("mpirun").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("halo");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../support/programs/halo.c");
    succeeded(Command::new("mpicc.openmpi").args(["-O1", "-o"]).arg(&binary).arg(source).output().unwrap());
    let network = start(&Description::tree_links(&[2, 2, 2], &[RATE], &[20e-6]));
    let slots: Vec<usize> = (0..16).map(|slot| slot / 2).collect();
    let time = |placement: &[usize; 16]| {
        let order: Vec<String> = placement.iter().map(usize::to_string).collect();
        let run = || -> f64 {
            succeeded(network.mpirun(&slots).arg(&binary).args(&order).output().unwrap())
                .trim()
                .parse()
                .unwrap()
        };
        let mut times: Vec<f64> = (0..3).map(|_| run()).collect();
        times.sort_by(f64::total_cmp);
        times[1]
    };
    // The slot of every rank.
    let linear: [usize; 16] = std::array::from_fn(|rank| rank);
    let blocks = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
    let random = [
        [7, 12, 1, 9, 4, 15, 10, 2, 13, 6, 0, 11, 3, 8, 14, 5],
        [10, 3, 14, 6, 9, 0, 13, 5, 2, 15, 8, 1, 12, 7, 4, 11],
    ];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_mins(1) {
        let (blocks, linear, random) = (time(&blocks), time(&linear), random.each_ref().map(time));
        eprintln!("2 x 2 blocks {blocks:.3} s, linear {linear:.3} s, random {random:.3?} s");
        if blocks < 0.95 * linear && random.iter().all(|random| linear < 0.95 * random) {
            return;
        }
    }
    panic!("the order is another one");
}
