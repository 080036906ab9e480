//! Properties of all machines: order is ignored, old data are restored exactly, and swapping both sides
//! reverses a difference.

use std::collections::BTreeMap;

use hopmap_changes::{Change, Machine, Missing, Thresholds, changes, keep_down};
use hopmap_model::{
    CostModel, Endpoint, Fit, Levels, Link, Matrix, Measurements, Node, NodeState, ProbePhase, RouteCosts,
    RouteMetric, Sample, Slot, SystemGraph,
};
use proptest::prelude::*;

/// Machines of up to four switches with up to four hosts of up to three cores.
fn machines() -> impl Strategy<Value = Machine> {
    let switches = prop::collection::vec(prop::collection::vec(1_u32..4, 1..5), 1..5);
    let form = prop::sample::select(vec![Form::Levels, Form::Matrix, Form::Routes]);
    (switches, any::<bool>(), form, any::<bool>()).prop_map(|(switches, made_up, form, measured)| {
        let system = system(&switches, made_up, form);
        let measurements = measured.then(|| measured_of(&system));
        Machine { system, measurements }
    })
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Levels,
    Matrix,
    Routes,
}

fn system(switches: &[Vec<u32>], made_up: bool, form: Form) -> SystemGraph {
    let hosts: usize = switches.iter().map(Vec::len).sum();
    let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::host(format!("h{host}"))).collect();
    let (mut links, mut slots) = (Vec::new(), Vec::new());
    let mut groups = vec![Vec::new(); 3];
    let root = (hosts + switches.len()) as u32;
    let mut host = 0;
    for (index, cores) in switches.iter().enumerate() {
        let switch = (hosts + index) as u32;
        nodes.push(Node::switch(if made_up { format!("level-1-{index}") } else { format!("leaf{index}") }));
        for &count in cores {
            links.extend(both(host, switch, 1e9));
            for core in 0..count {
                slots.push(Slot { host, core });
                groups[0].push(host);
                groups[1].push(index as u32);
                groups[2].push(0);
            }
            host += 1;
        }
        links.extend(both(switch, root, 4e9));
        links.extend(both(switch, root, 4e9));
    }
    nodes.push(Node::switch(if made_up { "level-2-0" } else { "spine" }));
    let levels = SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links,
        slots,
        cost: CostModel::Levels(Levels { costs: vec![1.0, 10.0, 100.0], groups }),
        calibration: Vec::new(),
    };
    match form {
        Form::Matrix => {
            let slots: Vec<u32> = (0..levels.slots.len() as u32).collect();
            SystemGraph { cost: CostModel::Matrix(Matrix { costs: levels.costs().block(&slots) }), ..levels }
        }
        Form::Levels => levels,
        Form::Routes => {
            let CostModel::Levels(Levels { groups, .. }) = &levels.cost else { unreachable!() };
            let inside = Levels { costs: vec![0.0], groups: vec![groups[0].clone()] };
            let cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
            SystemGraph { cost, ..levels }
        }
    }
}

fn of_slots(levels: &Levels, slots: &[u32], number: impl Fn(u32) -> u32) -> Levels {
    let groups = |groups: &Vec<u32>| slots.iter().map(|&slot| number(groups[slot as usize])).collect();
    Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
}

fn both(a: u32, b: u32, bandwidth: f64) -> [Link; 2] {
    [(a, b), (b, a)].map(|(source, destination)| Link {
        latency_s: Some(1e-6),
        bandwidth_bytes_per_s: Some(bandwidth),
        ..Link::new(source, destination)
    })
}

fn measured_of(system: &SystemGraph) -> Measurements {
    let hosts: Vec<(u32, u32, u32)> = system.hosts().collect();
    let endpoint = |&(node, ..): &(u32, u32, u32)| Endpoint {
        host: system.nodes[node as usize].name.clone(),
        core: 0,
        state: NodeState::Up,
    };
    let mut measured =
        Measurements { endpoints: hosts.iter().map(endpoint).collect(), ..Measurements::default() };
    let costs = system.costs();
    for (source, a) in (0..).zip(&hosts) {
        for (destination, b) in (0..).zip(&hosts).filter(|(b, _)| *b != source) {
            let time = 40e-6 * costs.between(a.1, b.1).max(1.0) * f64::from(1 + source.min(destination));
            measured.samples.push(Sample {
                source,
                destination,
                phase: ProbePhase::Latency,
                bytes: 1,
                messages: 100,
                minimum_s: time,
                first_decile_s: time * 1.01,
                median_s: time * 1.1,
                ninth_decile_s: time * 1.2,
                maximum_s: time * 9.0,
            });
            let (latency_s, bandwidth_bytes_per_s) = (time, Some(1e9));
            measured.fits.push(Fit { source, destination, from_bytes: 1, latency_s, bandwidth_bytes_per_s });
        }
    }
    measured
}

/// The same machine with nodes, hosts, links and endpoints in another order, and other numbers of groups and
/// generated switches.
fn shuffled(machine: &Machine, seed: u64) -> Machine {
    let old = &machine.system;
    let mix =
        |index: u64| (index + 1).wrapping_mul(seed | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
    let order = |count: usize| {
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&index| (mix(u64::from(index)), index));
        order
    };
    let nodes = order(old.nodes.len());
    let new_id: BTreeMap<u32, u32> = nodes.iter().copied().zip(0..).collect();
    let renamed = |&node: &u32| {
        let mut node = old.nodes[node as usize].clone();
        if let Some(number) = node.name.strip_prefix("level-1-") {
            node.name = format!("level-1-{}", 90 - number.parse::<u32>().unwrap());
        }
        node
    };
    let links = order(old.links.len()).into_iter().map(|link| {
        let link = old.links[link as usize];
        Link { source: new_id[&link.source], destination: new_id[&link.destination], ..link }
    });
    let hosts: Vec<(u32, u32, u32)> = old.hosts().collect();
    let slots: Vec<u32> = order(hosts.len())
        .into_iter()
        .flat_map(|host| {
            let (_, first, count) = hosts[host as usize];
            (first..first + count).rev()
        })
        .collect();
    let cost = match &old.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: old.costs().block(&slots) }),
        CostModel::Levels(levels) => CostModel::Levels(of_slots(levels, &slots, |group| 1000 - group)),
        CostModel::Routes(routes) => CostModel::Routes(RouteCosts {
            metric: routes.metric,
            inside: of_slots(&routes.inside, &slots, |group| 1000 - group),
        }),
    };
    let system = SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: nodes.iter().map(renamed).collect(),
        links: links.collect(),
        slots: slots
            .iter()
            .map(|&slot| {
                let Slot { host, core } = old.slots[slot as usize];
                Slot { host: new_id[&host], core }
            })
            .collect(),
        cost,
        calibration: Vec::new(),
    };
    system.check().unwrap();
    Machine {
        system,
        measurements: machine.measurements.as_ref().map(|old| shuffled_measurements(old, &order)),
    }
}

fn shuffled_measurements(old: &Measurements, order: &dyn Fn(usize) -> Vec<u32>) -> Measurements {
    let endpoints = order(old.endpoints.len());
    let new_id: BTreeMap<u32, u32> = endpoints.iter().copied().zip(0..).collect();
    let mut samples: Vec<Sample> = old
        .samples
        .iter()
        .map(|s| Sample { source: new_id[&s.source], destination: new_id[&s.destination], ..*s })
        .collect();
    samples.sort_by_key(|s| (s.source, s.destination));
    let mut fits: Vec<Fit> = old
        .fits
        .iter()
        .map(|f| Fit { source: new_id[&f.source], destination: new_id[&f.destination], ..*f })
        .collect();
    fits.sort_by_key(|f| (f.source, f.destination));
    Measurements {
        endpoints: endpoints.iter().map(|&id| old.endpoints[id as usize].clone()).collect(),
        samples,
        fits,
        ..Measurements::default()
    }
}

/// The machine as a source describes it that gets no answer from a host: without its slots and samples.
/// `named`: the system graph lists the host; `wired`: it has the links of the host.
fn silent(machine: &Machine, host: &str, named: bool, wired: bool) -> Machine {
    let old = &machine.system;
    let id = old.nodes.iter().position(|node| node.name == host).unwrap() as u32;
    let kept: Vec<u32> =
        (0..old.slots.len() as u32).filter(|&slot| old.slots[slot as usize].host != id).collect();
    let keeps = |node: u32| named || node != id;
    let ids: BTreeMap<u32, u32> = (0..old.nodes.len() as u32).filter(|&node| keeps(node)).zip(0..).collect();
    let mut nodes: Vec<Node> = ids.keys().map(|&node| old.nodes[node as usize].clone()).collect();
    if named {
        nodes[ids[&id] as usize].state = NodeState::Down;
    }
    let has_link = |link: &&Link| (wired && named) || (link.source != id && link.destination != id);
    let links = old.links.iter().filter(has_link).map(|link| Link {
        source: ids[&link.source],
        destination: ids[&link.destination],
        ..*link
    });
    let cost = match &old.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: old.costs().block(&kept) }),
        CostModel::Levels(levels) => CostModel::Levels(of_slots(levels, &kept, |group| group)),
        CostModel::Routes(routes) => CostModel::Routes(RouteCosts {
            metric: routes.metric,
            inside: of_slots(&routes.inside, &kept, |group| group),
        }),
    };
    let slot = |&slot: &u32| Slot { host: ids[&old.slots[slot as usize].host], ..old.slots[slot as usize] };
    let system = SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links: links.collect(),
        slots: kept.iter().map(slot).collect(),
        cost,
        calibration: Vec::new(),
    };
    system.check().unwrap();
    let measurements = machine.measurements.clone().map(|mut measured| {
        let is_of =
            |endpoint: u32| machine.measurements.as_ref().unwrap().endpoints[endpoint as usize].host == host;
        measured.samples.retain(|sample| !is_of(sample.source) && !is_of(sample.destination));
        measured.fits.retain(|fit| !is_of(fit.source) && !is_of(fit.destination));
        let endpoint = measured.endpoints.iter_mut().find(|endpoint| endpoint.host == host).unwrap();
        endpoint.state = NodeState::Down;
        measured
    });
    Machine { system, measurements }
}

/// The machine with a host that is marked as down and keeps all its data.
fn marked(machine: &Machine, host: &str) -> Machine {
    let mut machine = machine.clone();
    machine.system.nodes.iter_mut().find(|node| node.name == host).unwrap().state = NodeState::Down;
    for endpoint in machine.measurements.iter_mut().flat_map(|measured| &mut measured.endpoints) {
        if endpoint.host == host {
            endpoint.state = NodeState::Down;
        }
    }
    machine
}

fn differences(before: &Machine, after: &Machine) -> Vec<Change> {
    changes(&before.snapshot(), &after.snapshot(), &Thresholds::default())
}

fn reversed(change: &Change) -> Change {
    match change.clone() {
        Change::HostNew { host, slots } => Change::HostGone { host, slots },
        Change::HostGone { host, slots } => Change::HostNew { host, slots },
        Change::HostDown { host } => Change::HostBack { host },
        Change::HostBack { host } => Change::HostDown { host },
        Change::SwitchNew { switch } => Change::SwitchGone { switch },
        Change::SwitchGone { switch } => Change::SwitchNew { switch },
        Change::Slots { host, before, after } => Change::Slots { host, before: after, after: before },
        Change::Moved { nodes, before, after } => Change::Moved { nodes, before: after, after: before },
        Change::Links { from, to, both, before, after } => {
            Change::Links { from, to, both, before: after, after: before }
        }
        Change::Link { from, to, both, quantity, before, after } => {
            Change::Link { from, to, both, quantity, before: after, after: before }
        }
        Change::CostForm { before, after } => Change::CostForm { before: after, after: before },
        Change::Levels { before, after } => Change::Levels { before: after, after: before },
        Change::Pair { from, to, both, quantity, before, after } => {
            Change::Pair { from, to, both, quantity, before: after, after: before }
        }
        same => same,
    }
}

fn sorted(changes: impl IntoIterator<Item = Change>) -> Vec<String> {
    let mut lines: Vec<String> = changes.into_iter().map(|change| format!("{change:?}")).collect();
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn order_and_numbers_are_ignored(machine in machines(), seed: u64) {
        let other = shuffled(&machine, seed);
        prop_assert_eq!(differences(&machine, &other), []);
        prop_assert_eq!(differences(&other, &machine), []);
    }

    #[test]
    fn a_host_that_is_down_keeps_its_data(
        machine in machines(), which: prop::sample::Index, named: bool, wired: bool,
    ) {
        let hosts: Vec<String> = machine.system.hosts().map(|(node, ..)| machine.system.nodes[node as usize].name.clone()).collect();
        let host = &hosts[which.index(hosts.len())];
        let seen = silent(&machine, host, named, wired);
        let kept = keep_down(&machine.snapshot(), &seen.snapshot(), Missing::Down);
        kept.system.check().unwrap();
        prop_assert_eq!(&kept, &marked(&machine, host));
        prop_assert_eq!(differences(&machine, &kept), [Change::HostDown { host: host.clone() }]);
        prop_assert_eq!(differences(&kept, &machine), [Change::HostBack { host: host.clone() }]);
        // Idempotent: once more, starting from the restored machine.
        let again = keep_down(&kept.snapshot(), &seen.snapshot(), Missing::Down);
        prop_assert_eq!(again, kept);
    }

    #[test]
    fn the_restored_machine_is_valid(before in machines(), after in machines(), which: prop::sample::Index, seed: u64) {
        let before = shuffled(&before, seed);
        let hosts: Vec<String> = after.system.hosts().map(|(node, ..)| after.system.nodes[node as usize].name.clone()).collect();
        let seen = silent(&after, &hosts[which.index(hosts.len())], true, false);
        for missing in [Missing::Down, Missing::Gone] {
            let kept = keep_down(&before.snapshot(), &seen.snapshot(), missing);
            kept.system.check().unwrap();
            kept.measurements.iter().for_each(|measured| measured.check().unwrap());
        }
    }

    #[test]
    fn swapping_both_sides_reverses_all_changes(before in machines(), after in machines(), seed: u64) {
        let after = shuffled(&after, seed);
        let (there, back) = (differences(&before, &after), differences(&after, &before));
        let is_plain = |change: &&Change| !matches!(change, Change::Moved { .. } | Change::Grouping { .. });
        let there = sorted(there.iter().filter(is_plain).map(reversed));
        let back = sorted(back.iter().filter(is_plain).cloned());
        prop_assert_eq!(there, back);
    }
}
