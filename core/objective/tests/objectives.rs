//! Costs and deltas of every objective, against the metrics and against recomputed costs.

use hopmap_model::{
    CostModel, Edge, Levels, Link, Matrix, Node, NodeKind, Paths, Process, RouteCosts, RouteMetric, Slot,
    SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::{Assignment, Constraints, Deltas, Location, Objective, Pin, Problem, Quality, random};
use proptest::prelude::*;

const RANKS: usize = 6;
const SLOTS: u32 = 8;

/// Links of four hosts: under two switches and a root; with the last host directly under the root; in a
/// chain.
#[derive(Debug, Clone, Copy)]
enum Network {
    Even,
    Uneven,
    Chain,
    /// Two links to one switch.
    Parallel,
    /// Three fully connected switches.
    Triangle,
}

/// Bandwidths of links with short ratios, so that weighted sums are exact.
const BANDWIDTHS: [f64; 5] = [1e9, 1.25e8, 1e7, 5e8, 2.5e8];

/// Costs of a tree whose innermost groups are hosts, or pairs of hosts; or those of a matrix.
#[derive(Debug, Clone)]
enum Costs {
    Hosts,
    PairsOfHosts,
    Matrix(Vec<u8>),
    /// Links between hosts, and nothing inside them.
    Hops,
}

fn machine(network: Network, costs: &Costs) -> SystemGraph {
    let ends: &[(u32, u32)] = match network {
        Network::Even => &[(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)],
        Network::Uneven => &[(0, 4), (1, 4), (2, 5), (3, 6), (4, 6), (5, 6)],
        Network::Chain => &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)],
        Network::Parallel => &[(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 6), (5, 6)],
        Network::Triangle => &[(0, 4), (1, 5), (2, 6), (3, 6), (4, 5), (5, 6), (6, 4)],
    };
    let link = |(source, destination): (u32, u32)| Link {
        bandwidth_bytes_per_s: Some(BANDWIDTHS[(2 * source + destination) as usize % BANDWIDTHS.len()]),
        ..Link::new(source, destination)
    };
    let groups = |size: u32| (0..SLOTS).map(|slot| slot / size).collect();
    let kind = |node: u32| if node < 4 { NodeKind::Host } else { NodeKind::Switch };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..7).map(|node| Node::new(format!("n{node}"), kind(node))).collect(),
        links: ends.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).map(link).collect(),
        slots: (0..SLOTS).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
        cost: match costs {
            Costs::Hosts => CostModel::Levels(Levels {
                costs: vec![1.0, 5.0, 20.0],
                groups: [2, 4, 8].map(groups).to_vec(),
            }),
            Costs::PairsOfHosts => {
                CostModel::Levels(Levels { costs: vec![2.0, 7.0], groups: [4, 8].map(groups).to_vec() })
            }
            Costs::Hops => CostModel::Routes(RouteCosts {
                metric: RouteMetric::Hops,
                inside: Levels { costs: vec![0.5], groups: vec![groups(2)] },
            }),
            Costs::Matrix(costs) => {
                CostModel::Matrix(Matrix { costs: costs.iter().map(|&cost| f64::from(cost)).collect() })
            }
        },
        calibration: Vec::new(),
    }
}

fn program(edges: &[(u32, u32, u64)]) -> TaskGraph {
    let mut edges: Vec<_> = edges
        .iter()
        .map(|&(source, destination, bytes)| Edge { source, destination, messages: bytes % 4, bytes })
        .collect();
    edges.sort_by_key(Edge::pair);
    edges.dedup_by_key(|edge| edge.pair());
    TaskGraph { processes: vec![Process::default(); RANKS], edges, ..TaskGraph::default() }
}

fn machines() -> impl Strategy<Value = SystemGraph> {
    use Network::{Chain, Even, Parallel, Triangle, Uneven};
    let network = prop::sample::select(vec![Even, Uneven, Chain, Parallel, Triangle]);
    let matrix = prop::collection::vec(0u8..50, 64).prop_map(Costs::Matrix);
    let costs = prop_oneof![Just(Costs::Hosts), Just(Costs::PairsOfHosts), matrix, Just(Costs::Hops)];
    (network, costs).prop_map(|(network, costs)| machine(network, &costs))
}

fn programs() -> impl Strategy<Value = TaskGraph> {
    let rank = 0..RANKS as u32;
    prop::collection::vec((rank.clone(), rank, 0u64..1000), 0..20).prop_map(|edges| program(&edges))
}

fn objectives() -> impl Strategy<Value = Objective> {
    let weight = || prop_oneof![2 => Just(0.0), 1 => Just(1.0), 1 => Just(0.5), 1 => (1u32..1000).prop_map(|w| f64::from(w) / 100.0)];
    // A second weighs as much as the bytes that pass in it, or one metric would be lost beside the other.
    let of_weights = |weights| {
        let objective = Objective::of_weights(weights);
        Objective { max_link_time: 1e8 * objective.max_link_time, ..objective }
    };
    let sums = Objective::NAMES.map(|_| weight()).prop_map(of_weights);
    let sums = sums.prop_filter("something counts", |objective| objective.check().is_ok());
    let alone = (0..Objective::NAMES.len()).prop_map(|index| {
        let mut weights = Objective::NAMES.map(|_| 0.0);
        weights[index] = 1.0;
        Objective::of_weights(weights)
    });
    prop_oneof![4 => alone, 1 => sums]
}

/// The objective value from the metrics of a mapping.
fn measured(
    objective: &Objective,
    graph: &TaskGraph,
    system: &SystemGraph,
    slots: &[u32],
    weight: Weight,
) -> f64 {
    let paths = Paths::new(system);
    let quality = Quality::new(graph, system, paths.as_ref(), slots, weight).unwrap();
    objective.of_metrics(&quality.metrics()).unwrap()
}

proptest! {
    #[test]
    fn costs_equal_the_metrics_and_deltas_their_changes(
        graph in programs(),
        system in machines(),
        objective in objectives(),
        weight in prop_oneof![Just(Weight::Bytes), Just(Weight::Messages)],
        seed in any::<u8>(),
        exchanges in prop::collection::vec((0..RANKS as u32, 0..SLOTS), 1..30),
    ) {
        let problem = Problem::with_objective(&graph, &system, weight, &objective).unwrap();
        let mut assignment = Assignment::new(&problem, &random(RANKS, SLOTS as usize, [seed; 32])).unwrap();
        for (rank, slot) in exchanges {
            let slots = assignment.slots().to_vec();
            let real = measured(&objective, &graph, &system, &slots, weight);
            let cost = problem.real(assignment.cost());
            prop_assert!((cost - real).abs() <= 1e-8 * real, "{} is not {}", cost, real);
            let mut after = slots;
            if let Some(other) = assignment.rank_at(slot) {
                after[other as usize] = after[rank as usize];
            }
            after[rank as usize] = slot;
            let delta = assignment.delta(rank, slot);
            prop_assert_eq!(assignment.cost() + delta, problem.cost(&after));
            assignment.exchange(rank, slot, delta);
            prop_assert_eq!(assignment.cost(), problem.cost(&after));
        }
    }

    #[test]
    fn deltas_of_all_exchanges_stay_correct(
        graph in programs(),
        system in machines(),
        objective in objectives(),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 1..10),
    ) {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let start = Assignment::new(&problem, &random(RANKS, SLOTS as usize, [5; 32])).unwrap();
        let mut deltas = Deltas::new(start, |_| true).unwrap();
        prop_assume!(deltas.movers() > 0);
        for draw in draws {
            let mut pairs = Vec::new();
            for (mover, &rank) in problem.movable().iter().enumerate() {
                for (index, &delta) in deltas.row(mover).iter().enumerate() {
                    let unit = mover + 1 + index;
                    prop_assert_eq!(delta, deltas.assignment().delta(rank, deltas.slots()[unit]));
                    pairs.push((mover, unit));
                }
            }
            let (mover, unit) = pairs[draw.index(pairs.len())];
            deltas.exchange(mover, unit);
        }
    }

    #[test]
    fn ranks_that_are_not_movers_never_affect_the_cost(graph in programs(), system in machines(), objective in objectives()) {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let assignment = Assignment::new(&problem, &[0, 1, 2, 3, 4, 5]).unwrap();
        for rank in (0..RANKS as u32).filter(|rank| !problem.movable().contains(rank)) {
            for slot in [6, 7] {
                prop_assert_eq!(assignment.delta(rank, slot), 0);
            }
        }
    }

    #[test]
    fn slots_of_an_innermost_group_are_interchangeable(
        graph in programs(), system in machines(), objective in objectives(), rank in 0..RANKS as u32
    ) {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let assignment = Assignment::new(&problem, &[0, 2, 4, 6, 1, 7]).unwrap();
        let distance = problem.distance();
        prop_assume!(distance.levels() > 0);
        for &slot in &distance.order()[distance.group(0, assignment.slot_of(rank))] {
            prop_assert_eq!(assignment.delta(rank, slot), 0);
        }
    }
}

#[test]
fn the_smaller_sum_breaks_ties_of_the_maximum() {
    // Ranks 0 and 1 exchange most and stay apart; the slots of 2 and 3 do not affect the maxima.
    let graph = program(&[(0, 1, 900), (2, 3, 10)]);
    let system = machine(Network::Even, &Costs::Hosts);
    for objective in [Objective::T, Objective::MAX_LINK_LOAD, Objective::MAX_LINK_TIME] {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let near = problem.cost(&[0, 4, 2, 3, 1, 5]);
        let far = problem.cost(&[0, 4, 2, 1, 3, 5]);
        assert!(near < far);
        assert!((problem.real(near) - problem.real(far)).abs() < 1e-9);
    }
}

#[test]
fn constraints_hold_for_every_objective() {
    let graph = program(&[(0, 1, 900), (2, 3, 10), (1, 2, 5)]);
    let system = machine(Network::Even, &Costs::Hosts);
    let pin = Pin { rank: 0, place: Location::Slot(3) };
    let constraints = Constraints { pinned: vec![pin], forbidden: vec!["n3".into()], closed: Vec::new() };
    for objective in [Objective::T, Objective::MAX_LINK_LOAD, Objective::MAX_LINK_TIME, Objective::HOP_BYTES]
    {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let problem = problem.with_constraints(&constraints, &system).unwrap();
        let assignment = Assignment::new(&problem, &problem.linear()).unwrap();
        assert_eq!([assignment.delta(0, 1), assignment.delta(1, 6)], [Assignment::NEVER; 2]);
        assert_ne!(assignment.delta(1, 5), Assignment::NEVER);
    }
}

proptest! {
    /// The norm with exponent 8 of at most 16 links or 6 ranks is at most 16^(1/8) times the maximum.
    #[test]
    fn norms_are_near_the_maxima_and_depend_on_the_mapping_alone(
        graph in programs(),
        system in machines(),
        objective in objectives(),
        seed in any::<u8>(),
        exchanges in prop::collection::vec((0..RANKS as u32, 0..SLOTS), 1..30),
    ) {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let has_maximum = objective.t + objective.max_link_load + objective.max_link_time > 0.0;
        let smooth = problem.smoothed(3);
        prop_assert_eq!(smooth.is_some(), has_maximum);
        let Some(smooth) = smooth else { return Ok(()) };
        let mut assignment = Assignment::new(&smooth, &random(RANKS, SLOTS as usize, [seed; 32])).unwrap();
        for (rank, slot) in exchanges {
            let (before, delta) = (assignment.cost(), assignment.delta(rank, slot));
            assignment.exchange(rank, slot, delta);
            prop_assert_eq!(assignment.cost(), smooth.cost(assignment.slots()));
            // Where a number is much smaller than before, the difference of powers has lost its digits.
            let error = (assignment.cost() - before - delta).abs() as f64;
            prop_assert!(error <= 2.0 + 0.02 * before as f64, "{} {} {}", before, delta, assignment.cost());
            let [norm, maximum] = [&smooth, &problem].map(|problem| problem.real(problem.cost(assignment.slots())));
            prop_assert!(norm >= (1.0 - 1e-6) * maximum && norm <= 1.42 * maximum, "{} {}", norm, maximum);
        }
    }
}

proptest! {
    #[test]
    fn the_cost_after_a_similar_mapping_is_that_of_the_mapping(
        graph in programs(), system in machines(), objective in objectives(), seed in any::<u8>(),
        exchange in (0..RANKS as u32, 0..SLOTS),
    ) {
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        let mut assignment = Assignment::new(&problem, &random(RANKS, SLOTS as usize, [seed; 32])).unwrap();
        let (before, cost) = (assignment.slots().to_vec(), assignment.cost());
        assignment.exchange(exchange.0, exchange.1, assignment.delta(exchange.0, exchange.1));
        let found = problem.cost_after(&before, cost, assignment.slots());
        prop_assert_eq!(found, problem.cost(assignment.slots()));
    }
}

/// The largest time of a link of the tree [`Network::Even`], by its structure: every link separates hosts.
fn largest_time(graph: &TaskGraph, system: &SystemGraph, slots: &[u32]) -> f64 {
    let below: [&[u32]; 6] = [&[0], &[1], &[2], &[3], &[0, 1], &[2, 3]];
    let host = |rank: u32| slots[rank as usize] / 2;
    let time = |(index, link): (usize, &Link)| {
        let is_below = |rank| below[index / 2].contains(&host(rank));
        // The links to the root have even indices, those back odd ones.
        let passes = |edge: &&Edge| {
            let [source, destination] = [is_below(edge.source), is_below(edge.destination)];
            if index % 2 == 0 { source && !destination } else { !source && destination }
        };
        let bytes: u64 = graph.edges.iter().filter(passes).map(|edge| edge.bytes).sum();
        bytes as f64 / link.bandwidth_bytes_per_s.unwrap()
    };
    system.links.iter().enumerate().map(time).fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn times_of_links_follow_from_the_hosts_that_links_separate(
        graph in programs(), seed in any::<u8>(), rank in 0..RANKS as u32, slot in 0..SLOTS,
    ) {
        let mut system = machine(Network::Even, &Costs::Hosts);
        for (link, factor) in system.links.iter_mut().zip([1.0, 0.37, 1.0 / 3.0].into_iter().cycle()) {
            link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s.map(|bandwidth| factor * bandwidth);
        }
        let problem =
            Problem::with_objective(&graph, &system, Weight::Bytes, &Objective::MAX_LINK_TIME).unwrap();
        let mut assignment = Assignment::new(&problem, &random(RANKS, SLOTS as usize, [seed; 32])).unwrap();
        let delta = assignment.delta(rank, slot);
        assignment.exchange(rank, slot, delta);
        let (cost, real) = (problem.real(assignment.cost()), largest_time(&graph, &system, assignment.slots()));
        prop_assert!((cost - real).abs() <= 1e-8 * real, "{} is not {}", cost, real);
    }
}

#[test]
fn tree_machines_stay_trees() {
    let graph = program(&[(0, 1, 900), (2, 3, 10)]);
    let is_tree = |network, objective: &Objective, costs: &Costs| {
        let problem = Problem::with_objective(&graph, &machine(network, costs), Weight::Bytes, objective);
        problem.unwrap().distance().is_tree()
    };
    assert!(is_tree(Network::Even, &Objective::HOP_BYTES, &Costs::PairsOfHosts));
    assert!(!is_tree(Network::Uneven, &Objective::HOP_BYTES, &Costs::Hosts));
    assert!(is_tree(Network::Even, &Objective::MAX_LINK_LOAD, &Costs::PairsOfHosts));
    let mixed = Objective { max_link_load: 1.0, ..Objective::F };
    assert!(is_tree(Network::Even, &mixed, &Costs::Hosts));
    assert!(is_tree(Network::Even, &mixed, &Costs::PairsOfHosts));
    assert!(!is_tree(Network::Uneven, &Objective::MAX_LINK_LOAD, &Costs::Hosts));
}

/// Hosts of one group may be different switches apart, so exchanges inside the group are searched.
#[test]
fn slots_of_different_hosts_in_a_group_are_groups_of_their_own() {
    let system = machine(Network::Even, &Costs::PairsOfHosts);
    let mixed = Objective { max_link_load: 1.0, ..Objective::F };
    let graph = program(&[(0, 1, 900), (2, 3, 10)]);
    let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &mixed).unwrap();
    let distance = problem.distance();
    assert_eq!((distance.levels(), distance.first_shared_level()), (3, 1));
    assert_eq!([0, 1, 5].map(|slot| distance.group(0, slot).len()), [1; 3]);
    assert_eq!([0, 1, 4].map(|slot| distance.meeting_level(0, slot)), [0, 1, 2]);
    assert_eq!([0, 1, 4].map(|slot| distance.cost(0, slot)), [0, 2, 7]);
    let plain = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    assert_eq!(plain.distance().first_shared_level(), 0);
}

/// Ranks 0 to 2 exchange bytes in no messages, so F by messages does not count them.
#[test]
fn ranks_that_pay_only_in_hops_are_moved() {
    let graph = program(&[(0, 1, 400), (1, 2, 800), (3, 4, 7)]);
    let system = machine(Network::Even, &Costs::Hosts);
    let objective = Objective { hop_bytes: 1.0, ..Objective::F };
    let problem = Problem::with_objective(&graph, &system, Weight::Messages, &objective).unwrap();
    assert_eq!(problem.movable(), [0, 1, 2, 3, 4]);
    let of_costs = Problem::with_objective(&graph, &system, Weight::Messages, &Objective::F).unwrap();
    assert_eq!(of_costs.movable(), [3, 4]);
    // Two ranks of the byte pattern meet on one host if rank 0 moves.
    let far = Assignment::new(&problem, &[0, 4, 5, 2, 3, 7]).unwrap();
    let deltas = Deltas::new(far.clone(), |_| true).unwrap();
    assert_eq!(deltas.movers(), 5);
    assert!(far.delta(0, 6) < 0 && deltas.row(0).contains(&far.delta(0, 6)));
}

#[test]
fn invalid_objectives_are_refused() {
    let graph = program(&[(0, 1, 900)]);
    let mut system = machine(Network::Even, &Costs::Hosts);
    let refused = |objective: Objective, system: &SystemGraph| {
        Problem::with_objective(&graph, system, Weight::Bytes, &objective).unwrap_err().to_string()
    };
    let nothing = Objective { f: 0.0, ..Objective::F };
    assert_eq!(refused(nothing, &system), "no metric of the objective has a weight above zero");
    assert_eq!(refused(Objective { t: -1.0, ..Objective::F }, &system), "a weight of the objective is -1");
    assert_eq!(
        refused(Objective { t: f64::NAN, ..Objective::F }, &system),
        "a weight of the objective is NaN"
    );
    let apart = Objective { f: 1e-30, ..Objective::T };
    assert!(refused(apart, &system).contains("three digits of each weight"));
    system.links[3].bandwidth_bytes_per_s = None;
    assert_eq!(
        refused(Objective::MAX_LINK_TIME, &system),
        "the link from `n4` to `n1` has no bandwidth, so times of links are undefined"
    );
    system.links.clear();
    for objective in [Objective::HOP_BYTES, Objective::MAX_LINK_LOAD, Objective::MAX_LINK_TIME] {
        assert_eq!(
            refused(objective, &system),
            "the machine has no links, so hops and link loads are undefined"
        );
    }
}
