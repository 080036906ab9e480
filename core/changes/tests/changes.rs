//! The lines reported for single changes of a small machine.

use hopmap_changes::{Machine, Missing, Thresholds, changes, health, keep_down};
use hopmap_model::{
    CostModel, Endpoint, Forward, Levels, Link, LinkState, Matrix, Measurements, Node, NodeState, ProbePhase,
    Sample, Slot, SystemGraph,
};

/// Two leaves under two spines, two hosts each, two cores per host.
fn machine() -> SystemGraph {
    let mut nodes: Vec<Node> = (0..4).map(|host| Node::host(format!("h{host}"))).collect();
    nodes.extend(["leaf0", "leaf1", "spine0", "spine1"].map(Node::switch));
    let ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)];
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links: ends.into_iter().flat_map(|(a, b)| [link(a, b), link(b, a)]).collect(),
        slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: vec![
                (0..8).map(|slot| slot / 2).collect(),
                (0..8).map(|slot| slot / 4).collect(),
                vec![0; 8],
            ],
        }),
        calibration: Vec::new(),
    }
}

fn link(source: u32, destination: u32) -> Link {
    Link { latency_s: Some(1e-6), bandwidth_bytes_per_s: Some(12.5e9), ..Link::new(source, destination) }
}

fn lines(change: impl FnOnce(&mut SystemGraph)) -> Vec<String> {
    let before = machine();
    let mut after = machine();
    change(&mut after);
    after.check().unwrap();
    let machine = |system| Machine { system, measurements: None };
    let (before, after) = (machine(before), machine(after));
    let found = changes(&before.snapshot(), &after.snapshot(), &Thresholds::default());
    found.iter().map(ToString::to_string).collect()
}

fn levels(system: &mut SystemGraph) -> &mut Levels {
    match &mut system.cost {
        CostModel::Levels(levels) => levels,
        _ => panic!("no levels"),
    }
}

#[test]
fn every_kind_of_change_is_one_line() {
    assert_eq!(lines(|_| {}), [""; 0]);
    assert_eq!(lines(|s| s.nodes[1].state = NodeState::Down), ["h1 is down"]);
    assert_eq!(lines(|s| s.nodes[5].state = NodeState::Down), ["leaf1 is down"]);
    assert_eq!(lines(|s| s.slots[7].core = 9), ["h3 has cores 0,9, had 0-1"]);
    assert_eq!(lines(|s| drop(s.links.drain(8..10))), ["leaf0 – spine0: link is gone"]);
    assert_eq!(lines(|s| s.links.truncate(11)), ["spine0 → leaf1: link is gone"]);
    assert_eq!(lines(|s| s.links.push(link(4, 6))), ["leaf0 → spine0: 2 links, were 1"]);
    assert_eq!(
        lines(|s| s.links.iter_mut().take(2).for_each(|link| link.bandwidth_bytes_per_s = Some(1e9))),
        ["h0 – leaf0: link of 1 GB/s, was 12.5 GB/s (-92 %)"]
    );
    assert_eq!(lines(|s| s.links[0].latency_s = Some(1.2e-6)), [""; 0]);
    assert_eq!(lines(|s| s.links[0].latency_s = None), ["h0 → leaf0: link of unknown, was 1 µs"]);
    assert_eq!(lines(|s| levels(s).costs[2] = 101.0), ["level costs are 1, 10, 101, were 1, 10, 100"]);
    assert_eq!(lines(|s| levels(s).groups[1] = vec![0, 0, 1, 1, 1, 1, 1, 1]), ["h1 moved from h0 to h[2-3]"]);
    assert_eq!(lines(|s| levels(s).groups[0][1] = 9), ["h0 groups its cores differently"]);
}

/// The machine with both spines connected to both leaves, and tables that route everything over the first
/// spine.
fn with_tables() -> SystemGraph {
    let mut system = machine();
    system.links.extend([(4, 7), (5, 7)].into_iter().flat_map(|(a, b)| [link(a, b), link(b, a)]));
    let hops = (0..4).flat_map(|host| {
        let (own, other) = if host < 2 { (4, 5) } else { (5, 4) };
        [(own, host, host), (other, host, 6), (6, host, own)]
    });
    let mut forwarding: Vec<Forward> =
        hops.map(|(node, host, next)| entry(&system, node, host, next)).collect();
    forwarding.sort_unstable();
    system.routing.forwarding = forwarding;
    system.check().unwrap();
    system
}

fn entry(system: &SystemGraph, node: u32, host: u32, next: u32) -> Forward {
    let place = |ends: (u32, u32)| {
        system.links.iter().position(|link| (link.source, link.destination) == ends).unwrap() as u32
    };
    Forward { node, last: place((if host < 2 { 4 } else { 5 }, host)), link: place((node, next)) }
}

#[test]
fn static_routes_are_compared_by_their_destinations() {
    let before = with_tables();
    let mut after = before.clone();
    for other in [entry(&before, 4, 3, 7), entry(&before, 7, 3, 5)] {
        after.routing.forwarding.retain(|entry| (entry.node, entry.last) != (other.node, other.last));
        after.routing.forwarding.push(other);
    }
    after.routing.forwarding.sort_unstable();
    let machine = |system: &SystemGraph| Machine { system: system.clone(), measurements: None };
    let lines = |before: &SystemGraph, after: &SystemGraph| {
        let (before, after) = (machine(before), machine(after));
        let found = changes(&before.snapshot(), &after.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(&before, &before), [""; 0]);
    assert_eq!(lines(&before, &after), ["routes to h3 have changed"]);
    let mut cut = after.clone();
    cut.links[8].state = LinkState::Down;
    assert_eq!(lines(&after, &cut), ["leaf0 → spine0: link is gone"]);
}

#[test]
fn routes_between_other_hosts_stay_when_a_host_is_down() {
    let before = with_tables();
    let mut seen = before.clone();
    seen.nodes[1].state = NodeState::Down;
    seen.links.retain(|link| link.source != 1 && link.destination != 1);
    seen.slots.retain(|slot| slot.host != 1);
    levels(&mut seen).groups.iter_mut().for_each(|groups| drop(groups.drain(2..4)));
    let kept_links: Vec<u32> = (0..before.links.len() as u32)
        .filter(|&link| {
            ![before.links[link as usize].source, before.links[link as usize].destination].contains(&1)
        })
        .collect();
    let place = |link: u32| kept_links.iter().position(|&kept| kept == link).map(|place| place as u32);
    let moved =
        |entry: &Forward| Some(Forward { last: place(entry.last)?, link: place(entry.link)?, ..*entry });
    seen.routing.forwarding = before.routing.forwarding.iter().filter_map(moved).collect();
    seen.check().unwrap();
    let machine = |system: &SystemGraph| Machine { system: system.clone(), measurements: None };
    let (old, new) = (machine(&before), machine(&seen));
    let kept = keep_down(&old.snapshot(), &new.snapshot(), Missing::Down).system;
    kept.check().unwrap();
    assert_eq!(kept.links, before.links);
    let to_h1 = |entry: &&Forward| before.links[entry.last as usize].destination != 1;
    let others: Vec<Forward> = before.routing.forwarding.iter().filter(to_h1).copied().collect();
    assert_eq!(kept.routing.forwarding, others);
}

#[test]
fn a_move_is_reported_once() {
    // A host with its cable and its group.
    let moved = lines(|s| {
        (s.links[2], s.links[3]) = (link(1, 5), link(5, 1));
        levels(s).groups[1] = vec![0, 0, 1, 1, 1, 1, 1, 1];
    });
    assert_eq!(moved, ["h1 moved from leaf0 to leaf1"]);
    // A leaf with all its hosts.
    assert_eq!(
        lines(|s| (s.links[8], s.links[9]) = (link(4, 7), link(7, 4))),
        ["leaf0 moved from spine0 to spine1"]
    );
}

#[test]
fn links_of_a_new_host_are_not_reported() {
    let came = lines(|s| {
        s.nodes.push(Node::host("h4"));
        s.links.extend([link(8, 5), link(5, 8)]);
        s.slots.push(Slot { host: 8, core: 0 });
        let levels = levels(s);
        levels.groups[0].push(7);
        levels.groups[1].push(1);
        levels.groups[2].push(0);
    });
    assert_eq!(came, ["h4 is new, 1 slot"]);
}

#[test]
fn matrices_are_compared_pair_by_pair() {
    let matrix = |change: fn(&mut Vec<f64>)| {
        let tree = machine();
        let mut costs = tree.costs().block(&(0..8).collect::<Vec<u32>>());
        change(&mut costs);
        Machine {
            system: SystemGraph { cost: CostModel::Matrix(Matrix { costs }), ..tree },
            measurements: None,
        }
    };
    let before = matrix(|_| {});
    let lines = |after: &Machine| {
        let found = changes(&before.snapshot(), &after.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(&matrix(|costs| costs[1] = 2.0)), ["inside h0: cost 2, was cost 1 (+100 %)"]);
    assert_eq!(lines(&matrix(|costs| costs[7] = 150.0)), ["h0 → h3: cost 150, was cost 100 (+50 %)"]);
    let both_ways = matrix(|costs| (costs[7], costs[7 * 8]) = (150.0, 150.0));
    assert_eq!(lines(&both_ways), ["h0 – h3: cost 150, was cost 100 (+50 %)"]);
    let tree = Machine { system: machine(), measurements: None };
    assert_eq!(lines(&tree), ["the cost model is levels, was matrix"]);
}

/// A machine whose links have a rate; the rate of large messages varies by a factor.
fn rated(rate: f64, spread: f64) -> Machine {
    let mut machine = measured((0, 0), 1.0);
    machine.system.links.iter_mut().for_each(|link| link.bandwidth_bytes_per_s = Some(rate));
    let measurements = machine.measurements.as_mut().unwrap();
    let large = |sample: &Sample| {
        let minimum_s = f64::from(1 << 20) / rate;
        let median_s = minimum_s * spread;
        let (first_decile_s, ninth_decile_s, maximum_s) = (minimum_s, median_s, median_s);
        let phase = ProbePhase::Isolated;
        Sample {
            phase,
            bytes: 1 << 20,
            minimum_s,
            first_decile_s,
            median_s,
            ninth_decile_s,
            maximum_s,
            ..*sample
        }
    };
    let found: Vec<Sample> = measurements.samples.iter().map(large).collect();
    measurements.samples.extend(found);
    machine
}

#[test]
fn measured_rates_have_to_change_by_more_than_the_spread_of_large_messages() {
    let lines = |before: &Machine, after: &Machine| {
        let found = changes(&before.snapshot(), &after.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // The machine has not changed: rates of one loaded machine vary like this between runs.
    assert_eq!(lines(&rated(588e6, 1.6), &rated(817e6, 1.3)), [""; 0]);
    assert_eq!(lines(&rated(588e6, 1.1), &rated(817e6, 1.2)).len(), 6);
    assert_eq!(lines(&rated(588e6, 5.0), &rated(1200e6, 5.0)).len(), 6);
}

/// All pairs within a leaf take 100 µs, others 400 µs, except one.
fn measured(slow: (u32, u32), factor: f64) -> Machine {
    let endpoint = |host: u32| Endpoint { host: format!("h{host}"), core: 0, state: NodeState::Up };
    let mut measured = Measurements { endpoints: (0..4).map(endpoint).collect(), ..Measurements::default() };
    for source in 0..4 {
        for destination in (0..4).filter(|&other| other != source) {
            let near = if source / 2 == destination / 2 { 200e-6 } else { 800e-6 };
            let is_slow = (source.min(destination), source.max(destination)) == slow;
            let time = if is_slow { near * factor } else { near };
            measured.samples.push(Sample {
                source,
                destination,
                phase: ProbePhase::Latency,
                bytes: 1,
                messages: 100,
                minimum_s: time,
                first_decile_s: time + 4e-6,
                median_s: time * 1.2,
                ninth_decile_s: time * 1.5,
                maximum_s: time * 5.0,
            });
        }
    }
    Machine { system: machine(), measurements: Some(measured) }
}

#[test]
fn only_the_pair_that_drifted_is_reported() {
    let before = measured((0, 0), 1.0);
    let lines = |after: &Machine| {
        let found = changes(&before.snapshot(), &after.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(&measured((1, 3), 1.5)), ["h1 – h3: 600 µs, was 400 µs (+50 %)"]);
    assert_eq!(lines(&measured((0, 1), 0.5)), ["h0 – h1: 50 µs, was 100 µs (-50 %)"]);
    assert_eq!(lines(&measured((1, 3), 1.2)), [""; 0]);
}

/// The topology that a probe derives without `h3`: its neighbour shares no switch any more and is attached to
/// a spine.
fn without_the_last_host(far: f64) -> Machine {
    let mut after = measured((0, 0), 1.0);
    let system = &mut after.system;
    system.nodes[3].state = NodeState::Down;
    system.slots.truncate(6);
    system.links.retain(|link| ![link.source, link.destination].iter().any(|node| [2, 3, 5].contains(node)));
    system.links.extend([link(2, 6), link(6, 2)]);
    let levels = levels(system);
    levels.costs[2] = far;
    levels.groups.iter_mut().for_each(|groups| groups.truncate(6));
    system.check().unwrap();
    let measurements = after.measurements.as_mut().unwrap();
    measurements.endpoints[3].state = NodeState::Down;
    measurements.samples.retain(|sample| sample.source != 3 && sample.destination != 3);
    after
}

#[test]
fn a_host_that_goes_down_does_not_change_the_tree_of_a_measured_machine() {
    let before = measured((0, 0), 1.0);
    let lines = |after: &Machine| {
        let kept = keep_down(&before.snapshot(), &after.snapshot(), Missing::Down);
        let found = changes(&before.snapshot(), &kept.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(&without_the_last_host(100.0)), ["h3 is down"]);
    // Other costs are a change of the machine.
    assert!(lines(&without_the_last_host(200.0)).len() > 1);
}

#[test]
fn health_checks_a_single_machine() {
    let lines = |machine: &Machine| {
        let found = health(&machine.snapshot(), &Thresholds::default());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(&measured((0, 0), 1.0)), [""; 0]);
    assert_eq!(
        lines(&measured((1, 3), 2.0)),
        ["h1 – h3: 800 µs, the median of its level is 400 µs (+100 %)"]
    );
    let mut ill = measured((0, 0), 1.0);
    ill.system.nodes[2].state = NodeState::Down;
    ill.system.nodes[6].state = NodeState::Down;
    ill.system.links.remove(11);
    assert_eq!(
        lines(&ill),
        ["h2 is down", "spine0 is down", "leaf1 → spine0: the link has no reverse direction"]
    );
    assert_eq!(
        ill.snapshot().medians().into_values().map(|s| (s * 1e6) as u32).collect::<Vec<_>>(),
        [100, 400]
    );
    assert!((ill.snapshot().coverage_of(&["h0", "h1", "h2", "h3"]) - 0.75).abs() < 1e-9);
}
