//! Compares choices with the best of all subsets, found by independent code.

use hopmap_model::{Context, NodeKind, SystemGraph};
use hopmap_select::{Criterion, Method, Request, Selection, select};
use proptest::prelude::*;

use crate::common;

/// The mean cost between the slots of two hosts, both ways.
fn distance(system: &SystemGraph, a: u32, b: u32) -> f64 {
    let slots = |host: u32| {
        (0..system.slots.len()).filter(move |&slot| system.slots[slot].host == host).map(|slot| slot as u32)
    };
    let costs = slots(a)
        .flat_map(|x| slots(b).map(move |y| system.costs().between(x, y) + system.costs().between(y, x)));
    let costs: Vec<f64> = costs.collect();
    costs.iter().sum::<f64>() / (2.0 * costs.len() as f64)
}

fn pairs<'h>(a: &'h [u32], b: &'h [u32]) -> impl Iterator<Item = (u32, u32)> + 'h {
    a.iter().flat_map(move |&x| b.iter().map(move |&y| (x, y)))
}

/// The nodes on the unique path between two nodes of a tree, including its ends.
fn way(system: &SystemGraph, from: u32, to: u32, before: u32) -> Option<Vec<u32>> {
    if from == to {
        return Some(vec![to]);
    }
    let next = system.links.iter().filter(|link| link.source == from && link.destination != before);
    next.map(|link| link.destination).find_map(|node| {
        let mut rest = way(system, node, to, from)?;
        rest.push(from);
        Some(rest)
    })
}

fn width(system: &SystemGraph, a: u32, b: u32) -> f64 {
    let way = way(system, a, b, u32::MAX).unwrap();
    let link = |pair: &[u32]| {
        let joins = |l: &&hopmap_model::Link| l.source == pair[1] && l.destination == pair[0];
        system.links.iter().find(joins).unwrap().bandwidth_bytes_per_s.unwrap()
    };
    way.windows(2).map(link).fold(f64::INFINITY, f64::min)
}

/// The value of a choice; host nodes are identified by index.
fn value(system: &SystemGraph, free: &[u32], chosen: &[u32], criterion: Criterion) -> f64 {
    let far = pairs(free, free).filter(|(a, b)| a != b).map(|(a, b)| distance(system, a, b));
    let far = far.fold(0.0, f64::max);
    let rest: Vec<u32> = free.iter().copied().filter(|host| !chosen.contains(host)).collect();
    let within = || pairs(chosen, chosen).filter(|(a, b)| a < b);
    match criterion {
        Criterion::TotalDistance => within().map(|(a, b)| distance(system, a, b)).sum(),
        Criterion::Cut => pairs(chosen, &rest).map(|(a, b)| far - distance(system, a, b)).sum(),
        Criterion::BottleneckBandwidth => {
            within().map(|(a, b)| width(system, a, b)).fold(f64::INFINITY, f64::min)
        }
        Criterion::Switches => {
            let mut on_way: Vec<u32> =
                within().flat_map(|(a, b)| way(system, a, b, u32::MAX).unwrap()).collect();
            on_way.sort_unstable();
            on_way.dedup();
            let is_switch = |node: &&u32| system.nodes[**node as usize].kind == NodeKind::Switch;
            on_way.iter().filter(is_switch).count() as f64
        }
    }
}

/// The best value of all subsets.
fn best(system: &SystemGraph, free: &[u32], count: usize, criterion: Criterion) -> f64 {
    let subsets = (0u32..1 << free.len()).filter(|bits| bits.count_ones() as usize == count);
    let values = subsets.map(|bits| {
        let chosen: Vec<u32> = (0..free.len()).filter(|i| bits >> i & 1 == 1).map(|i| free[i]).collect();
        value(system, free, &chosen, criterion)
    });
    match criterion {
        Criterion::BottleneckBandwidth => values.fold(f64::NEG_INFINITY, f64::max),
        _ => values.fold(f64::INFINITY, f64::min),
    }
}

fn request(free: &[u32], count: usize, criterion: Criterion, method: Method) -> Request {
    Request { free: free.to_vec(), count, criterion, method, seed: 1, starts: 4, roomy: false }
}

fn choose(
    system: &SystemGraph,
    free: &[u32],
    count: usize,
    criterion: Criterion,
    method: Method,
) -> Selection {
    let selection = select(system, &request(free, count, criterion, method), &Context::detached()).unwrap();
    assert_eq!(selection.hosts.len(), count);
    assert!(selection.hosts.is_sorted_by(|a, b| a < b) && selection.hosts.iter().all(|h| free.contains(h)));
    let expected = value(system, free, &selection.hosts, criterion);
    assert!(is_near(selection.value, expected), "reported {}, expected {expected}", selection.value);
    let first = value(system, free, &free[..count], criterion);
    assert!(is_near(selection.of_first, first), "reported {}, expected {first}", selection.of_first);
    selection
}

fn is_near(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq() || (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1e-3)
}

fn machine() -> impl Strategy<Value = SystemGraph> {
    let leaves = prop::collection::vec(0usize..3, 4);
    let hosts = prop::collection::vec((0usize..4, 1u32..3), 2..11);
    let widths = prop::collection::vec(prop::sample::select(vec![1e9, 2e9, 5e9]), 1..9);
    (leaves, hosts, widths).prop_map(|(leaves, hosts, widths)| {
        let pods = leaves.iter().max().unwrap() + 1;
        let (leaf_of, slots): (Vec<usize>, Vec<u32>) = hosts.into_iter().unzip();
        let mut leaf_of = leaf_of;
        leaf_of.sort_unstable();
        assert!(pods <= 3);
        common::tree(&leaf_of, &leaves, &slots, &widths)
    })
}

/// Some of the hosts.
fn free_of(system: &SystemGraph, bits: u32) -> Vec<u32> {
    let hosts = system.hosts().count() as u32;
    let free: Vec<u32> = (0..hosts).filter(|host| bits >> host & 1 == 1).collect();
    if free.is_empty() { vec![hosts - 1] } else { free }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_in_a_tree_is_better(system in machine(), bits in any::<u32>(), part in 1usize..11) {
        let free = free_of(&system, bits);
        let count = part.min(free.len());
        for criterion in [Criterion::TotalDistance, Criterion::Cut, Criterion::BottleneckBandwidth, Criterion::Switches] {
            let best = best(&system, &free, count, criterion);
            for method in [Method::Exact, Method::Auto] {
                let selection = choose(&system, &free, count, criterion, method);
                prop_assert!(selection.proven);
                prop_assert!(is_near(selection.value, best), "{criterion:?}: {} versus {best}", selection.value);
            }
        }
        for method in [Method::Greedy, Method::MinCut] {
            for criterion in [Criterion::TotalDistance, Criterion::Cut] {
                let selection = choose(&system, &free, count, criterion, method);
                let best = best(&system, &free, count, criterion);
                prop_assert!(selection.value >= best - 1e-6 * best.abs());
            }
        }
    }

    #[test]
    fn nothing_among_few_hosts_is_better(
        costs in (1usize..11).prop_flat_map(|n| prop::collection::vec(prop::sample::select(vec![0.0, 0.25, 1.0, 1.5, 3.0, 7.0]), n * n)),
        bits in any::<u32>(),
        part in 1usize..11,
    ) {
        let system = common::matrix(costs);
        let free = free_of(&system, bits);
        let count = part.min(free.len());
        for criterion in [Criterion::TotalDistance, Criterion::Cut] {
            let best = best(&system, &free, count, criterion);
            let exact = choose(&system, &free, count, criterion, Method::Exact);
            prop_assert!(exact.proven && is_near(exact.value, best), "{criterion:?}: {} versus {best}", exact.value);
            choose(&system, &free, count, criterion, Method::MinCut);
            let greedy = choose(&system, &free, count, criterion, Method::Greedy);
            prop_assert!(greedy.value >= best - 1e-6 * best.abs());
        }
    }
}

/// Slots of a host may lie in several groups if no other host shares them; otherwise distances are means.
#[test]
fn a_host_across_switches_has_mean_distances() {
    let mut system = common::tree(&[0, 0, 1, 1], &[0, 1], &[2, 2, 2, 2], &[1e9]);
    let hopmap_model::CostModel::Levels(levels) = &mut system.cost else { panic!() };
    // The second core of n1 is under the other leaf.
    levels.groups[0] = vec![0, 0, 1, 8, 2, 2, 3, 3];
    levels.groups[1] = vec![0, 0, 0, 1, 1, 1, 1, 1];
    levels.groups[2] = vec![0, 0, 0, 1, 1, 1, 1, 1];
    system.check().unwrap();
    let free = [0, 1, 2, 3];
    for count in 1..=4 {
        for criterion in [Criterion::TotalDistance, Criterion::Cut] {
            let selection = choose(&system, &free, count, criterion, Method::Auto);
            assert!(selection.proven);
            assert!(is_near(selection.value, best(&system, &free, count, criterion)));
        }
    }
}

/// Points in the plane: a cluster in one corner is found among scattered hosts.
#[test]
fn a_cluster_is_found_and_threads_change_nothing() {
    let points: Vec<(f64, f64)> = (0..120)
        .map(|i| {
            let (x, y) = (f64::from(i * 37 % 101), f64::from(i * 53 % 97));
            if i % 4 == 1 { (x / 20.0, y / 20.0) } else { (x, y + 10.0) }
        })
        .collect();
    let far = |a: &(f64, f64), b: &(f64, f64)| ((a.0 - b.0).powi(2) + (a.1 - b.1).powi(2)).sqrt();
    let costs = points.iter().flat_map(|a| points.iter().map(move |b| far(a, b))).collect();
    let system = common::matrix(costs);
    let free: Vec<u32> = (0..120).collect();
    for (criterion, method) in [
        (Criterion::TotalDistance, Method::Auto),
        (Criterion::Cut, Method::Greedy),
        (Criterion::TotalDistance, Method::MinCut),
    ] {
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                select(&system, &request(&free, 30, criterion, method), &Context::detached()).unwrap()
            })
        };
        let one = with_threads(1);
        assert_eq!(one, with_threads(3));
        if criterion == Criterion::TotalDistance && method == Method::Auto {
            assert_eq!(one.hosts, (0..120).filter(|i| i % 4 == 1).collect::<Vec<_>>());
        }
        assert!(one.value < one.of_first && one.value < one.of_random);
    }
}

#[test]
fn the_exact_method_rejects_long_searches() {
    let costs = (0..300 * 300).map(|i| f64::from(i % 300).mul_add(7.0, f64::from(i / 300)) % 13.0).collect();
    let system = common::matrix(costs);
    let request = request(&(0..300).collect::<Vec<_>>(), 20, Criterion::TotalDistance, Method::Exact);
    let error = select(&system, &request, &Context::detached()).unwrap_err();
    assert!(error.to_string().contains("takes too long"), "{error}");
}
