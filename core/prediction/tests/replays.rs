//! Replays of small programs with known times.

use hopmap_collectives::Algorithms;
use hopmap_model::{
    Collective, CollectiveOperation, CostModel, Envelope, Levels, Link, Mapping, Node, Prediction, Program,
    ProgramBuilder, Routing, Slot, SystemGraph, Weight,
};
use hopmap_prediction::{Costs, NetworkError, Options, PairRates, Rate, ReplayError, Sharing, replay};
use hopmap_random::{Pcg64, SeedableRng};

use crate::machines::{self, Shape};

/// A star of hosts with links of 1000 B/s and 0.25 s.
fn star(hosts: u32, slots: u32, share_core: bool) -> SystemGraph {
    let mut random = Pcg64::seed_from_u64(0);
    machines::machine(Shape::Star, hosts, (slots, share_core), &mut random, &mut |_| (0.25, 1000.0))
}

/// Slots without links, all of one level.
fn unlinked(slots: u32) -> SystemGraph {
    SystemGraph {
        nodes: (0..slots).map(|host| Node::host(format!("h{host}"))).collect(),
        links: Vec::new(),
        slots: (0..slots).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; slots as usize]] }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

fn linear(system: &SystemGraph, ranks: u32) -> Mapping {
    Mapping::new(&(0..ranks).collect::<Vec<_>>(), system, Weight::Bytes).unwrap()
}

fn run(program: ProgramBuilder, system: &SystemGraph, options: &Options) -> Result<Prediction, ReplayError> {
    let program = program.finish().unwrap();
    replay(&program, system, &linear(system, program.ranks()), options, &|| false)
}

fn finishes(prediction: &Prediction) -> Vec<f64> {
    prediction.ranks.iter().map(|rank| rank.finish_s).collect()
}

fn to(peer: u32) -> Envelope {
    Envelope { peer, tag: 0, communicator: 0 }
}

fn rendezvous() -> Options {
    Options { costs: Costs { eager_limit: 0, detached_limit: 0, ..Costs::default() }, ..Options::default() }
}

/// Links are shared by messages of any size.
fn shared() -> Options {
    Options { packet_bytes: 0, ..Options::default() }
}

/// Two ranks send 1000 bytes to a third one.
fn two_into_one() -> ProgramBuilder {
    let mut program = ProgramBuilder::new(3);
    for source in [0, 1] {
        program.send(source, to(2), 1000);
        program.recv(2, to(source), 1000);
    }
    program
}

#[test]
fn two_messages_into_one_host_share_its_link() {
    let prediction = run(two_into_one(), &star(3, 1, false), &shared()).unwrap();
    assert_eq!(finishes(&prediction), [0.0, 0.0, 2.5]);
    assert!(prediction.is_contended && prediction.complete);
    let incoming = prediction.links.iter().find(|link| link.destination == "h2").unwrap();
    assert_eq!((incoming.bytes, incoming.saturated), (2000.0, 0.8));
    let outgoing = prediction.links.iter().find(|link| link.source == "h0").unwrap();
    assert_eq!((outgoing.bytes, outgoing.saturated), (1000.0, 0.0));
    let critical = |part: &str| prediction.metrics[&format!("critical_{part}_s")];
    let parts = ["computation", "overhead", "latency", "bandwidth", "waiting"].map(critical);
    assert_eq!(parts, [0.0, 0.0, 0.5, 1.0, 1.0]);
    prediction.check().unwrap();
}

/// The first one arrives after 1.5 s, as if it were alone, and the receiver computes while the second one is on the link.
#[test]
fn two_messages_of_one_packet_pass_a_link_one_after_the_other() {
    let mut program = ProgramBuilder::new(3);
    for source in [0, 1] {
        program.send(source, to(2), 1000);
        program.recv(2, to(source), 1000);
        program.compute(2, 0.75);
    }
    let program = program.finish().unwrap();
    let system = star(3, 1, false);
    let prediction = |options: &Options| {
        replay(&program, &system, &linear(&system, program.ranks()), options, &|| false).unwrap()
    };
    let queued = prediction(&Options::default());
    assert_eq!((queued.seconds(), prediction(&shared()).seconds()), (3.25, 4.0));
    let incoming = queued.links.iter().find(|link| link.destination == "h2").unwrap();
    assert_eq!((incoming.bytes, incoming.saturated), (2000.0, 2.0 / 3.25));
}

/// The long message waits for the packet that is on its link, and shares the link with the one that comes later.
#[test]
fn packets_and_long_messages_never_exceed_the_capacity_of_a_link() {
    let mut program = ProgramBuilder::new(4);
    program.send(0, to(3), 1000);
    program.compute(1, 0.25);
    program.send(1, to(3), 2000);
    program.compute(2, 1.5);
    program.send(2, to(3), 1000);
    for (source, bytes) in [(0, 1000), (2, 1000), (1, 2000)] {
        program.recv(3, to(source), bytes);
    }
    // The first packet is on the link from 0.25 to 1.25 s, the long message from then on, alone until 2 s.
    let prediction = run(program, &star(4, 1, false), &Options::default()).unwrap();
    assert_eq!(finishes(&prediction), [0.0, 0.25, 1.5, 4.25]);
}

#[test]
fn only_a_send_of_the_eager_limit_waits_for_its_receive() {
    for (bytes, sender) in [(999, 0.0), (1000, 4.5)] {
        let mut program = ProgramBuilder::new(2);
        program.send(0, to(1), bytes);
        program.compute(1, 3.0);
        program.recv(1, to(0), bytes);
        let costs = Costs { eager_limit: 1000, detached_limit: 1000, ..Costs::default() };
        let options = Options { costs, ..Options::default() };
        let prediction = run(program, &star(2, 1, false), &options).unwrap();
        let receiver = if sender > 0.0 { 4.5 } else { 3.0 };
        assert_eq!(finishes(&prediction), [sender, receiver]);
        let [first, second] = [prediction.ranks[0], prediction.ranks[1]];
        assert_eq!((first.sending_s, second.computing_s, second.waiting_s), (sender, 3.0, receiver - 3.0));
    }
}

#[test]
fn a_detached_message_is_transferred_when_its_receive_is_posted() {
    let mut program = ProgramBuilder::new(2);
    program.send(0, to(1), 1000);
    program.compute(1, 3.0);
    program.recv(1, to(0), 1000);
    let costs = Costs { eager_limit: 0, detached_limit: 2000, ..Costs::default() };
    let prediction = run(program, &star(2, 1, false), &Options { costs, ..Options::default() }).unwrap();
    assert_eq!(finishes(&prediction), [0.0, 4.5]);
}

#[test]
fn messages_inside_a_host_use_its_memory() {
    let memory = Rate { latency_s: 0.5, bandwidth_bytes_per_s: 2000.0 };
    let prediction =
        run(two_into_one(), &star(1, 3, false), &Options { memory, ..Options::default() }).unwrap();
    assert_eq!((prediction.seconds(), prediction.links.len()), (1.5, 0));
}

#[test]
fn overheads_are_paid_at_both_ends() {
    let mut program = ProgramBuilder::new(2);
    program.send(0, to(1), 1000);
    let request = program.isend(0, to(1), 1000);
    program.wait(0, request);
    (0..2).for_each(|_| program.recv(1, to(0), 1000));
    let costs = Costs {
        send: "0:0.125:0.001".parse().unwrap(),
        isend: "0:0.5:0".parse().unwrap(),
        recv: "0:2:0".parse().unwrap(),
        ..Costs::default()
    };
    let prediction = run(program, &star(2, 1, false), &Options { costs, ..shared() }).unwrap();
    // The first message leaves after 1.125 s and shares the link with the second from 2.125 to 3.125 s.
    assert_eq!(prediction.ranks[0].finish_s, 1.625);
    assert_eq!(finishes(&prediction), [1.625, 7.125]);
    assert_eq!(prediction.ranks[1].sending_s, 4.0);
}

#[test]
fn ranks_on_one_core_share_it() {
    let mut program = ProgramBuilder::new(2);
    program.compute(0, 1.0);
    program.compute(1, 3.0);
    let prediction = run(program, &star(1, 2, true), &Options::default()).unwrap();
    assert_eq!(finishes(&prediction), [2.0, 4.0]);
    assert_eq!(prediction.ranks[1].computing_s, 4.0);
    assert_eq!(prediction.metrics["critical_waiting_s"], 1.0);
}

#[test]
fn slower_hosts_take_longer_to_compute() {
    let mut system = star(2, 1, false);
    system.nodes[0].traits.performance = Some(2.0);
    system.nodes[1].traits.performance = Some(0.5);
    let mut program = ProgramBuilder::new(2);
    (0..2).for_each(|rank| program.compute(rank, 1.0));
    assert_eq!(finishes(&run(program, &system, &Options::default()).unwrap()), [1.0, 4.0]);
}

#[test]
fn a_test_takes_its_time_and_may_complete_the_request() {
    for (polls, finish) in [(1, 1.5), (40, 4.0)] {
        let mut program = ProgramBuilder::new(2);
        program.send(0, to(1), 1000);
        let request = program.irecv(1, to(0), 1000);
        (0..polls).for_each(|_| program.test(1, request));
        program.wait(1, request);
        let costs = Costs { test_s: 0.1, ..Costs::default() };
        let prediction = run(program, &star(2, 1, false), &Options { costs, ..Options::default() }).unwrap();
        let found = prediction.seconds();
        // 15 of 40 tests find the request active; the 16th completes it, and the rest have nothing to do.
        assert!((found - finish).abs() < 1e-9, "{found}");
    }
}

#[test]
fn without_links_messages_do_not_share_and_the_result_says_so() {
    let rate = Rate { latency_s: 0.5, bandwidth_bytes_per_s: 1000.0 };
    for pairs in [PairRates::Levels(vec![rate]), PairRates::Matrix(vec![rate; 9])] {
        let options = Options { pairs: Some(pairs), ..Options::default() };
        let prediction = run(two_into_one(), &unlinked(3), &options).unwrap();
        assert_eq!((prediction.seconds(), prediction.is_contended), (1.5, false));
    }
}

/// LogGP parameters in nanoseconds: latency, overhead at both ends, and time per byte beyond the first.
fn log_gp(latency: f64, overhead: f64, per_byte: f64) -> Options {
    let rate = Rate { latency_s: latency, bandwidth_bytes_per_s: per_byte.recip() };
    let overhead = || hopmap_prediction::Overhead::new([(0, overhead, 0.0)]);
    let costs = Costs { send: overhead(), isend: overhead(), recv: overhead(), ..Costs::default() };
    Options { pairs: Some(PairRates::Levels(vec![rate])), costs, ..Options::default() }
}

/// The example of LogGOPSim's README: a binomial tree of 8 hosts reduces 1024 bytes.
#[test]
fn the_reduction_of_loggopsim_ends_when_it_says() {
    let mut program = ProgramBuilder::new(8);
    for distance in [4, 2, 1] {
        for rank in distance..2 * distance {
            program.send(rank, to(rank - distance), 1023);
            program.recv(rank - distance, to(rank), 1023);
        }
    }
    let prediction = run(program, &unlinked(8), &log_gp(2500.0, 1500.0, 6.0)).unwrap();
    let expected = [34914.0, 24776.0, 13138.0, 13138.0, 1500.0, 1500.0, 1500.0, 1500.0];
    for (found, expected) in finishes(&prediction).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }
}

/// The dissemination of a byte among 16 hosts, 22 µs in LogGOPSim.
#[test]
fn the_barrier_of_loggopsim_ends_when_it_says() {
    let mut program = ProgramBuilder::new(16);
    let barrier = Collective { communicator: 0, operation: CollectiveOperation::Barrier, root: None };
    (0..16).for_each(|rank| program.collective(rank, barrier, 0));
    let prediction = run(program, &unlinked(16), &log_gp(2500.0, 1500.0, 6.0)).unwrap();
    assert_eq!(finishes(&prediction), [22000.0; 16]);
}

/// Collective operations take the time of their algorithms, in every communicator.
#[test]
fn collective_operations_are_messages_of_their_algorithms() {
    let time = |operation, root, bytes: u64, chosen| {
        let mut program = ProgramBuilder::new(5);
        let communicator = program.communicator(vec![4, 2, 0, 1]);
        let collective = Collective { communicator, operation, root };
        [4, 2, 0, 1].into_iter().for_each(|rank| program.collective(rank, collective, bytes));
        let mut options = log_gp(1.0, 0.0, 0.001);
        options.algorithms = chosen;
        run(program, &unlinked(5), &options).unwrap().seconds()
    };
    let usual = Algorithms::default();
    // Two rounds of a binomial tree; two rounds of recursive doubling, of one and two blocks; three of a ring.
    assert_eq!(time(CollectiveOperation::Broadcast, Some(3), 1000, usual), 4.0);
    assert_eq!(time(CollectiveOperation::AllGather, None, 1000, usual), 5.0);
    let ring = Algorithms { allgather: Some(hopmap_collectives::Algorithm::Ring), ..usual };
    assert_eq!(time(CollectiveOperation::AllGather, None, 1000, ring), 6.0);
}

fn crossed_sends() -> ProgramBuilder {
    let mut program = ProgramBuilder::new(3);
    for rank in 0..3 {
        program.compute(rank, 1.0);
        program.send(rank, to((rank + 1) % 3), 5000);
    }
    (0..3).for_each(|rank| program.recv(rank, to((rank + 2) % 3), 5000));
    program
}

#[test]
fn a_deadlock_names_the_ranks_of_its_cycle() {
    assert!(run(crossed_sends(), &star(3, 1, false), &Options::default()).is_ok());
    let error = run(crossed_sends(), &star(3, 1, false), &rendezvous()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the program ends in a deadlock: rank 0 waits in send (operation 1) to send to rank 1, \
         rank 1 waits in send (operation 1) to send to rank 2, rank 2 waits in send (operation 1) to send to rank 0"
    );
}

#[test]
fn a_single_host_needs_no_links() {
    let mut program = ProgramBuilder::new(2);
    program.send(0, to(1), 1000);
    program.recv(1, to(0), 1000);
    let options =
        Options { memory: Rate { latency_s: 1.0, bandwidth_bytes_per_s: 1000.0 }, ..Options::default() };
    let mut system = unlinked(2);
    system.nodes.truncate(1);
    system.slots = vec![Slot { host: 0, core: 0 }, Slot { host: 0, core: 1 }];
    let prediction = run(program, &system, &options).unwrap();
    assert_eq!(prediction.seconds(), 2.0);
}

#[test]
fn a_machine_that_lacks_a_rate_or_route_is_refused_by_name() {
    let error = |system: &SystemGraph| {
        let mut program = ProgramBuilder::new(2);
        program.send(0, to(1), 1);
        program.recv(1, to(0), 1);
        run(program, system, &Options::default()).unwrap_err()
    };
    assert!(matches!(error(&unlinked(2)), ReplayError::Network(NetworkError::NoRates)));
    let mut system = star(2, 1, false);
    system.links[0] = Link { bandwidth_bytes_per_s: None, ..system.links[0] };
    assert_eq!(error(&system).to_string(), "the link from `h0` to `s2` has no bandwidth");
    system.links.truncate(2);
    assert_eq!(error(&system).to_string(), "host `h0` cannot reach host `h1`");
}

#[test]
fn a_mapping_of_another_program_is_refused() {
    let system = star(3, 1, false);
    let program = ProgramBuilder::new(2).finish().unwrap();
    let found = |mapping: &Mapping| replay(&program, &system, mapping, &Options::default(), &|| false);
    assert!(matches!(found(&linear(&system, 3)), Err(ReplayError::OtherMapping { what: "ranks", .. })));
    let other = star(4, 1, false);
    assert!(matches!(found(&linear(&other, 2)), Err(ReplayError::OtherMapping { what: "slots", .. })));
    assert!(found(&linear(&system, 2)).is_ok());
}

/// Many ranks that exchange many messages, for checks of whole replays.
fn exchange(ranks: u32, iterations: u32) -> Program {
    let mut program = ProgramBuilder::new(ranks);
    for _ in 0..iterations {
        for rank in 0..ranks {
            let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            program.irecv(rank, to(left), 3000);
            program.isend(rank, to(right), 3000);
            program.waitall(rank);
            program.compute(rank, 1e-3 * f64::from(rank % 7));
        }
    }
    program.finish().unwrap()
}

/// Also without events, when ranks run ahead of the clock.
#[test]
fn an_interrupt_ends_a_replay_with_what_was_reached() {
    let program = exchange(16, 2000);
    let rate = Rate { latency_s: 0.5, bandwidth_bytes_per_s: 1000.0 };
    let options = Options { pairs: Some(PairRates::Levels(vec![rate])), ..Options::default() };
    for system in [star(16, 1, false), unlinked(16)] {
        let mapping = linear(&system, 16);
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let partial = replay(&program, &system, &mapping, &options, &stop).unwrap();
        assert!(!partial.complete && asked.get() == 3);
        let whole = replay(&program, &system, &mapping, &options, &|| false).unwrap();
        assert!(whole.complete && 0.0 < partial.seconds() && partial.seconds() < whole.seconds());
        partial.check().unwrap();
    }
}

#[test]
fn replays_are_reproducible_and_timelines_bounded() {
    let (program, system) = (exchange(16, 20), star(16, 1, false));
    let mapping = linear(&system, 16);
    let run = |intervals, sharing| {
        let options = Options { intervals, sharing, ..Options::default() };
        replay(&program, &system, &mapping, &options, &|| false).unwrap()
    };
    let rtt = Sharing::Rtt { bytes_per_link: 0.0 };
    assert_eq!(run(100, rtt), run(100, rtt));
    // All routes have the same latency.
    assert_eq!(run(0, rtt).ranks, run(0, Sharing::MaxMin).ranks);
    let (some, all) = (run(100, rtt), run(1_000_000, rtt));
    assert_eq!(some.intervals.len(), 100);
    assert!(all.intervals.len() > 500);
    all.check().unwrap();
    for (rank, times) in (0..).zip(&all.ranks) {
        let own = all.intervals.iter().filter(|interval| interval.rank == rank);
        let sum: f64 = own.map(|interval| interval.finish_s - interval.start_s).sum();
        assert!((sum - times.finish_s).abs() < 1e-9, "{sum} of {}", times.finish_s);
    }
}

/// A producer may not run ahead of its consumer by more than the bound on its memory.
#[test]
fn a_producer_without_end_ends_when_it_would_anyway() {
    let mut program = ProgramBuilder::new(2);
    for _ in 0..5000 {
        program.compute(0, 0.001);
        program.send(0, to(1), 1);
        program.recv(1, to(0), 1);
        program.compute(1, 0.002);
    }
    let prediction = run(program, &star(2, 1, false), &Options::default()).unwrap();
    let [sender, receiver] = [0, 1].map(|rank: usize| prediction.ranks[rank].finish_s);
    assert!((sender - 5.0).abs() < 1e-9, "{sender}");
    assert!((receiver - (0.001 + 0.501 + 10.0)).abs() < 1e-9, "{receiver}");
}
