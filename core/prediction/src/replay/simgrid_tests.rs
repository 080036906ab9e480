//! Times that SimGrid prints in its own tests.

use hopmap_model::{Envelope, Program, ProgramBuilder};

use super::{Options, Replay};
use crate::costs::Costs;
use crate::network::{Network, Rate};
use crate::sharing::Sharing;

/// Hosts of `small_platform.xml`: their speed in flop/s.
const TREMBLAY: f64 = 98.095e6;
const JUPITER: f64 = 76.296e6;
const FAFARD: f64 = 76.296e6;

/// The links of the routes between Tremblay, Jupiter and Fafard, 9, 4, 3, 2, 0, 1 and 8, by bandwidth in MB/s and
/// latency in microseconds. They have one capacity for both directions, and messages load them with 5 % in the
/// direction of the acknowledgements: with the same links in both directions, 1.05 times their bytes.
const LINKS: [(f64, f64); 7] = [
    (7.20975, 1461.517),
    (10.099_625, 479.78),
    (34.285_625, 514.433),
    (118.6825, 136.931),
    (41.279_125, 59.904),
    (34.285_625, 514.433),
    (8.158, 270.544),
];

fn small_platform() -> Network<'static> {
    let rate = |(bandwidth, latency): (f64, f64)| Rate {
        latency_s: latency * 1e-6,
        bandwidth_bytes_per_s: bandwidth * 1e6 / 1.05,
    };
    let (short, long, longest): (&[u32], &[u32], &[u32]) =
        (&[0], &[1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6]);
    let routes = [(0, 1, short), (1, 0, short), (0, 2, long), (2, 0, long), (1, 2, longest), (2, 1, longest)];
    Network::of_routes(&LINKS.map(rate), &routes)
}

fn smpi() -> Options {
    // The weights have the bandwidths without acknowledgements.
    let sharing = Sharing::Rtt { bytes_per_link: 8775.0 / 1.05 };
    Options { sharing, packet_bytes: 0, costs: Costs::smpi_defaults(), ..Options::default() }
}

/// End of every rank.
fn times(program: &Program, network: Network<'_>, options: &Options) -> Vec<f64> {
    let slots = (0..program.ranks()).collect();
    let mut replay = Replay::new(program, network, slots, options, &|| false);
    replay.execute().unwrap();
    replay.ranks.iter().map(|rank| rank.time).collect()
}

fn to(peer: u32, tag: u32) -> Envelope {
    Envelope { peer, tag, communicator: 0 }
}

/// Compares in the digits that SimGrid prints.
fn assert_printed(found: &[f64], expected: &[&str]) {
    let found: Vec<String> = found.iter().map(|time| format!("{time:.6}")).collect();
    assert_eq!(found, expected);
}

/// `actions_with_isend.txt` of `replay.tesh`.
#[test]
fn the_replay_with_isend_takes_as_long_as_in_simgrid() {
    let mut program = ProgramBuilder::new(3);
    program.compute(0, 1e9 / TREMBLAY);
    program.send(0, to(1, 0), 1_000_000);
    program.compute(0, 1e9 / TREMBLAY);
    program.recv(0, to(2, 2), 1_000_000);
    let receive = program.irecv(1, to(0, 0), 1_000_000);
    program.compute(1, 5e8 / JUPITER);
    program.test(1, receive);
    program.compute(1, 5e8 / JUPITER);
    program.wait(1, receive);
    program.send(1, to(2, 1), 1_000_000);
    program.compute(2, 2e9 / FAFARD);
    let receive = program.irecv(2, to(1, 1), 1_000_000);
    program.compute(2, 2.5e8 / FAFARD);
    program.test(2, receive);
    program.compute(2, 2.5e8 / FAFARD);
    program.wait(2, receive);
    program.isend(2, to(0, 2), 1_000_000);
    program.compute(2, 5e8 / FAFARD);
    let program = program.finish().unwrap();
    let found = times(&program, small_platform(), &smpi());
    assert_printed(&found, &["32.927150", "26.408540", "39.320741"]);
}

/// `actions0.txt` and `actions1.txt`.
#[test]
fn the_replay_of_split_traces_takes_as_long_as_in_simgrid() {
    let mut program = ProgramBuilder::new(2);
    program.send(0, to(1, 0), 1_000_000);
    program.recv(0, to(1, 1), 1_000_000);
    program.send(0, to(1, 2), 1_000_000);
    program.recv(1, to(0, 0), 1_000_000);
    program.compute(1, 1e9 / JUPITER);
    program.isend(1, to(0, 1), 1_000_000);
    let receive = program.irecv(1, to(0, 2), 1_000_000);
    program.wait(1, receive);
    let program = program.finish().unwrap();
    assert_printed(&times(&program, small_platform(), &smpi()), &["13.622360", "13.622360"]);
}

/// `actions_waitall.txt`.
#[test]
fn the_replay_with_waitall_takes_as_long_as_in_simgrid() {
    let mut program = ProgramBuilder::new(3);
    program.irecv(0, to(1, 0), 2000);
    program.isend(1, to(0, 0), 2000);
    program.irecv(2, to(1, 1), 3000);
    program.irecv(0, to(2, 2), 3000);
    program.isend(1, to(2, 1), 3000);
    program.isend(2, to(0, 2), 3000);
    (0..3).for_each(|rank| program.waitall(rank));
    let program = program.finish().unwrap();
    let found = times(&program, small_platform(), &smpi());
    assert_printed(&[found.into_iter().fold(0.0, f64::max)], &["0.006258"]);
}

fn one_message(rate: Rate, bytes: u64, costs: Costs) -> f64 {
    let mut program = ProgramBuilder::new(2);
    program.send(0, to(1, 0), bytes);
    program.recv(1, to(0, 0), bytes);
    let network = Network::of_routes(&[rate], &[(0, 1, &[0])]);
    let sharing = Sharing::Rtt { bytes_per_link: 0.0 };
    times(
        &program.finish().unwrap(),
        network,
        &Options { sharing, packet_bytes: 0, costs, ..Options::default() },
    )[1]
}

/// `cm02-tcpgamma.tesh`: 10¹⁰ bytes over a link of 10¹⁰ B/s, for some latencies and windows.
#[test]
fn the_window_of_a_connection_bounds_its_rate_as_in_simgrid() {
    let seconds = |latency_s, window| {
        let costs = Costs { window_bytes: window, ..Costs::default() };
        one_message(Rate { latency_s, bandwidth_bytes_per_s: 1e10 }, 10_000_000_000, costs)
    };
    let window = Some(4_194_304.0);
    let found = [
        seconds(0.0, window),
        seconds(1e-5, window),
        seconds(1e-3, window),
        seconds(0.1, window),
        seconds(1e-3, None),
    ];
    assert_printed(&found, &["1.000000", "1.000010", "4.769372", "476.937158", "1.001000"]);
}

/// The example of `Models.rst` for LV08: 100 kB over a link of 1 Mbit/s and 10 ms, with acknowledgements.
#[test]
fn the_documented_time_of_simgrids_tcp_model_is_that_of_its_factors() {
    let factors = |factor| crate::costs::Factors::new([(0, factor)]);
    let costs = Costs { latency_factor: factors(13.01), bandwidth_factor: factors(0.97), ..Costs::default() };
    let rate = Rate { latency_s: 0.01, bandwidth_bytes_per_s: 1e6 / 8.0 / 1.05 };
    assert_printed(&[one_message(rate, 100_000, costs)], &["0.996079"]);
}
