//! Writes one HTML page with all views of made-up data: `cargo run -p hopmap-views --example gallery > gallery.html`.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use hopmap_model::{
    ConvergencePoint, CostModel, Edge, Endpoint, Levels, Link, LinkState, Mapping, Measurements, Metrics,
    Node, NodeKind, NodeState as State, PlacementMetrics, PlacementOrigin, ProbePhase, Process, Processor,
    Routing, Sample, Schedule, ScheduledTask, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_views::{
    DagNode, DriftPoint, IslandSearch, NodeState, Palette, RankOrder, comparison, convergence, dag, drift,
    found_levels, gantt, latencies, levels, matrix, topology,
};

fn main() {
    let small = rows_and_columns(2, 8);
    let machine = tree(2, 4, 2);
    let mapping = pairs_together(&machine);
    let loads: Vec<u64> = (0..machine.links.len() as u64).map(|link| link * link % 17 * 1_300_000).collect();
    let large = stencil(16);
    let large_machine = tree(16, 16, 16);
    let scattered: Vec<u32> = (0..4096).map(|rank| rank * 1025 % 4096).collect();
    let scattered = mapping_of(&scattered, &large_machine);
    let large_loads: Vec<u64> =
        (0..large_machine.links.len() as u64).map(|link| link * 7919 % 1000 * 1_000_000).collect();

    let (time, linear) =
        (Weight::Time { latency_s: 2e-6, bandwidth_bytes_per_s: 1e10 }, Some((1_210_000.0, "linear")));
    let palette = Palette::new(["annealing", "linear", "random"].into_iter());
    let views = [
        matrix(&small, Weight::Bytes, "Communication in rank order", None),
        matrix(
            &small,
            Weight::Bytes,
            "Communication in slot order",
            Some(&RankOrder::in_machine(&mapping.slots(), &machine)),
        ),
        matrix(&large, Weight::Messages, "Communication in rank order", None),
        matrix(
            &large,
            time,
            "Communication in slot order",
            Some(&RankOrder::in_machine(&scattered.slots(), &large_machine)),
        ),
        matrix(&stencil(4), Weight::Bytes, "A stencil on 64 ranks", None),
        matrix(
            &TaskGraph { processes: vec![Process::default()], ..TaskGraph::default() },
            Weight::Bytes,
            "One rank",
            None,
        ),
        levels(
            &small,
            &machine,
            [&mapping.slots(), &ranks_in_order(16)],
            Weight::Bytes,
            (["annealing", "linear"], &palette),
        )
        .unwrap_or_default(),
        topology(&machine, Some(&loads), Some(&mapping)),
        topology(&tree(4, 12, 4), None, None),
        topology(&large_machine, Some(&large_loads), Some(&scattered)),
        topology(&without_links(tree(2, 4, 4)), None, None),
        topology(&fat_tree(4, 8, 4), None, None),
        topology(&fabric(), None, None),
        topology(&fabric(), Some(&made_up_loads(&fabric())), Some(&every_third(&fabric()))),
        topology(&torus(8, 8, 1), None, None),
        topology(&torus(4, 4, 1), Some(&made_up_loads(&torus(4, 4, 1))), Some(&every_third(&torus(4, 4, 1)))),
        topology(&torus(16, 16, 1), Some(&made_up_loads(&torus(16, 16, 1))), None),
        topology(&torus(4, 4, 4), None, None),
        topology(&torus(12, 1, 1), None, None),
        topology(&torus(40, 1, 1), Some(&made_up_loads(&torus(40, 1, 1))), None),
        topology(&dragonfly(9, 4, 4), None, None),
        topology(&dragonfly(9, 4, 8), Some(&made_up_loads(&dragonfly(9, 4, 8))), None),
        latencies(&measured(&tree(2, 2, 1), None), Some(&tree(2, 2, 1))),
        latencies(&measured(&tree(4, 8, 1), Some(5)), Some(&tree(4, 8, 1))),
        latencies(&measured(&tree(10, 30, 1), Some(77)), Some(&tree(10, 30, 1))),
        latencies(&measured(&tree(25, 40, 1), None), Some(&tree(25, 40, 1))),
        found_levels(&tree(4, 8, 4), "µs").unwrap_or_default(),
        found_levels(&tree(16, 16, 16), "").unwrap_or_default(),
        drift(&probes()),
        convergence(&searched(&search(1)[..1]), linear, &palette),
        convergence(&searched(&search(4)), linear, &palette),
        convergence(&searched(&search(64)), linear, &palette),
        comparison(&metrics(), "annealing", &palette),
        gantt(&schedule(12, 3, 0.3)),
        gantt(&schedule(400, 24, 0.5)),
        gantt(&schedule(20_000, 64, 0.3)),
        gantt(&schedule(300_000, 2000, 0.9)),
        dag(&pipeline().0, &pipeline().1),
        dag(&sweep().0, &sweep().1),
    ];
    println!(
        "<!doctype html><meta charset=\"utf-8\"><title>Views</title><style>:root{{color-scheme:light dark}}\
         body{{margin:24px;background:#fff}}@media(prefers-color-scheme:dark){{body{{background:#12171e}}}}\
         figure{{margin:0 0 48px}}</style>"
    );
    for view in views {
        println!("<figure>{view}</figure>");
    }
}

fn ranks_in_order(ranks: u32) -> Vec<u32> {
    (0..ranks).collect()
}

fn graph(ranks: u32, pairs: impl Iterator<Item = (u32, u32, u64, u64)>) -> TaskGraph {
    let edge = |(source, destination, messages, bytes)| Edge { source, destination, messages, bytes };
    let mut edges: Vec<Edge> = pairs.map(edge).collect();
    edges.sort_by_key(Edge::pair);
    edges.dedup_by_key(|edge| edge.pair());
    TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() }
}

/// Neighbours in a row exchange little, those in a column much.
fn rows_and_columns(rows: u32, columns: u32) -> TaskGraph {
    let rank = move |row: u32, column: u32| row * columns + column;
    let along = (0..rows).flat_map(move |row| {
        (1..columns).flat_map(move |column| {
            let (left, right) = (rank(row, column - 1), rank(row, column));
            [(left, right, 24, 55_296), (right, left, 12, 49_152)]
        })
    });
    let across = (1..rows).flat_map(move |row| {
        (0..columns).flat_map(move |column| {
            let (upper, lower) = (rank(row - 1, column), rank(row, column));
            [(upper, lower, 24, 983_040), (lower, upper, 24, 835_584)]
        })
    });
    graph(rows * columns, along.chain(across))
}

/// A three-dimensional stencil of `side`³ ranks.
fn stencil(side: u32) -> TaskGraph {
    let ranks = side * side * side;
    let pairs = (0..ranks).flat_map(move |rank| {
        [1, side, side * side].into_iter().zip([1_u64, 40, 900]).flat_map(move |(step, factor)| {
            let other = rank + step;
            let inside = rank / step % side + 1 < side;
            [(rank, other), (other, rank)]
                .into_iter()
                .filter(move |_| inside)
                .map(move |(from, to)| (from, to, 100 * factor, 8192 * factor))
        })
    });
    graph(ranks, pairs)
}

/// A root, leaf switches, hosts below each, cores in each.
fn tree(leaves: u32, hosts: u32, cores: u32) -> SystemGraph {
    let all = leaves * hosts;
    let mut nodes: Vec<Node> = (0..all).map(|host| Node::host(format!("n{host:03}"))).collect();
    nodes.extend((0..leaves).map(|leaf| Node::switch(format!("leaf{leaf}"))));
    nodes.push(Node::switch("root"));
    let up = (0..all)
        .map(|host| (host, all + host / hosts))
        .chain((0..leaves).map(|leaf| (all + leaf, all + leaves)));
    let slots = all * cores;
    SystemGraph {
        nodes,
        links: up.flat_map(|(a, b)| [link(a, b), link(b, a)]).collect(),
        slots: (0..slots).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: vec![
                (0..slots).map(|slot| slot / cores).collect(),
                (0..slots).map(|slot| slot / (cores * hosts)).collect(),
                vec![0; slots as usize],
            ],
        }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// Every leaf switch is linked to every spine.
fn fat_tree(leaves: u32, hosts: u32, spines: u32) -> SystemGraph {
    let mut system = tree(leaves, hosts, 2);
    let all = leaves * hosts;
    system.nodes.pop();
    system.nodes.extend((0..spines).map(|spine| Node::switch(format!("spine{spine}"))));
    system.links.retain(|link| link.source < all + leaves && link.destination < all + leaves);
    for leaf in 0..leaves {
        for spine in 0..spines {
            system.links.push(link(all + leaf, all + leaves + spine));
            system.links.push(link(all + leaves + spine, all + leaf));
        }
    }
    system
}

/// 281 hosts below 21 switches, with four above: not as regular as it was planned, and not all of it is up.
fn fabric() -> SystemGraph {
    const LEAVES: u32 = 21;
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    let cable = |links: &mut Vec<Link>, a: u32, b: u32, bandwidth: f64, count: u32| {
        for _ in 0..count {
            let link = Link { bandwidth_bytes_per_s: Some(bandwidth), ..Link::new(a, b) };
            links.extend([link, link.reversed()]);
        }
    };
    for host in 0..281 {
        nodes.push(Node::host(format!("node{:03}", host + 1)));
    }
    for leaf in 0..LEAVES {
        nodes.push(Node::switch(format!("Voltaire 4036 # 4036-{:04X}", 0x8C9E + leaf * 77)));
    }
    nodes.extend((0..4).map(|spine| Node::switch(format!("spine-{spine}"))));
    for host in 0..281 {
        let leaf = if host < 250 { host / 14 } else { 17 + host % 4 };
        cable(&mut links, host, 281 + leaf.min(LEAVES - 1), if host % 50 == 3 { 2e9 } else { 4e9 }, 1);
    }
    for leaf in 0..LEAVES {
        for spine in 0..4 {
            let count = if (leaf + spine) % 5 == 0 { 4 } else { 2 };
            cable(&mut links, 281 + leaf, 281 + LEAVES + spine, if leaf < 4 { 8e9 } else { 4e9 }, count);
        }
    }
    for host in [17, 18, 200] {
        nodes[host].state = State::Down;
    }
    for link in links.iter_mut().filter(|link| link.source.max(link.destination) == 281 + LEAVES + 3) {
        if link.source.min(link.destination) == 285 {
            link.state = LinkState::Down;
        }
    }
    of_hosts(nodes, links)
}

/// A torus with these numbers of hosts along its three dimensions.
fn torus(across: u32, down: u32, planes: u32) -> SystemGraph {
    let sizes = [across, down, planes];
    let count = across * down * planes;
    let mut links = Vec::new();
    for host in 0..count {
        let mut step = 1;
        for size in sizes {
            let place = host / step % size;
            if size > 1 {
                let next = host - place * step + (place + 1) % size * step;
                let link = Link { bandwidth_bytes_per_s: Some(12.5e9), ..Link::new(host, next) };
                links.extend([link, link.reversed()]);
            }
            step *= size;
        }
    }
    of_hosts((0..count).map(|host| Node::host(format!("n{host:02}"))).collect(), links)
}

/// Groups of switches that are all linked to each other, with one cable between every two groups.
fn dragonfly(groups: u32, switches: u32, hosts: u32) -> SystemGraph {
    let count = groups * switches * hosts;
    let mut nodes: Vec<Node> = (0..count).map(|host| Node::host(format!("c{host}"))).collect();
    nodes.extend(
        (0..groups * switches)
            .map(|index| Node::switch(format!("r{}-{}", index / switches, index % switches))),
    );
    let mut links = Vec::new();
    let mut cable = |a: u32, b: u32, bandwidth: f64| {
        let link = Link { bandwidth_bytes_per_s: Some(bandwidth), ..Link::new(a, b) };
        links.extend([link, link.reversed()]);
    };
    (0..count).for_each(|host| cable(host, count + host / hosts, 25e9));
    for a in 0..groups * switches {
        for b in a + 1..groups * switches {
            let (from, to) = (a / switches, b / switches);
            let is_between = from < to
                && (to - from - 1) % switches == a % switches
                && (groups - to + from - 1) % switches == b % switches;
            if from == to || is_between {
                cable(count + a, count + b, if from == to { 50e9 } else { 25e9 });
            }
        }
    }
    of_hosts(nodes, links)
}

/// A slot on every host; costs are levels that say nothing.
fn of_hosts(nodes: Vec<Node>, links: Vec<Link>) -> SystemGraph {
    let hosts = nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u32;
    SystemGraph {
        nodes,
        links,
        slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; hosts as usize]] }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

fn made_up_loads(system: &SystemGraph) -> Vec<u64> {
    (0..system.links.len() as u64).map(|link| (link * 7919 % 1000).pow(2) * 1000).collect()
}

fn every_third(system: &SystemGraph) -> Mapping {
    let slots: Vec<u32> = (0..system.slots.len() as u32).filter(|slot| slot % 3 != 1).collect();
    mapping_of(&slots, system)
}

fn without_links(mut system: SystemGraph) -> SystemGraph {
    system.links.clear();
    system.nodes.retain(|node| node.kind == NodeKind::Host);
    system
}

fn link(source: u32, destination: u32) -> Link {
    Link::new(source, destination)
}

fn mapping_of(slots: &[u32], system: &SystemGraph) -> Mapping {
    Mapping::new(slots, system, Weight::Bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// The two ranks of a column on one host.
fn pairs_together(system: &SystemGraph) -> Mapping {
    let slots: Vec<u32> = (0..16).map(|rank| rank % 8 * 2 + rank / 8).collect();
    mapping_of(&slots, system)
}

/// What a probe of a tree would find; one host did not answer.
fn measured(system: &SystemGraph, down: Option<u32>) -> Measurements {
    let hosts: Vec<_> = system.hosts().collect();
    let endpoint = |&(host, ..): &(u32, u32, u32)| Endpoint {
        host: system.nodes[host as usize].name.clone(),
        core: 0,
        state: if down == Some(host) { State::Down } else { State::Up },
    };
    let sample = |source: u32, destination: u32| {
        let noise = f64::from((source * 7919 + destination * 104_729) % 97) / 970.0;
        let cost = system.costs().between(hosts[source as usize].1, hosts[destination as usize].1);
        let time = 4e-7 * cost * (1.0 + noise);
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes: 1,
            messages: 100,
            minimum_s: time,
            first_decile_s: time,
            median_s: time,
            ninth_decile_s: time,
            maximum_s: time,
        }
    };
    let count = hosts.len() as u32;
    let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
    let samples =
        pairs.filter(|&(a, b)| a != b && down != Some(a) && down != Some(b)).map(|(a, b)| sample(a, b));
    Measurements {
        endpoints: hosts.iter().map(endpoint).collect(),
        samples: samples.collect(),
        ..Measurements::default()
    }
}

/// A month of probes, every two hours.
fn probes() -> Vec<DriftPoint> {
    let probe = |index: u32| {
        let moved = if index > 240 { 1.4 } else { 1.0 };
        let wobble = 1.0 + f64::from(index * 37 % 23) / 400.0;
        DriftPoint {
            time: 1.790e9 + f64::from(index) * 7200.0,
            medians: vec![2.1e-7, 1.6e-6 * wobble, 2.6e-6 * wobble * moved],
            largest_ratio: 1.02
                + f64::from(index * 13 % 31) / 200.0
                + if (240..252).contains(&index) { 0.4 } else { 0.0 },
            hosts_down: if (100..118).contains(&index) { 1 } else { u32::from(index > 300) * 3 },
            published: [0, 101, 118, 252].contains(&index),
        }
    };
    (0..360).map(probe).collect()
}

fn searched(points: &[ConvergencePoint]) -> IslandSearch<'_> {
    IslandSearch { name: "annealing", points, evaluations: 1 << 22 }
}

fn search(islands: u32) -> Vec<ConvergencePoint> {
    (0..islands)
        .flat_map(|island| {
            (0..60_u32).map(move |step| {
                let evaluations = 1 << (step / 3);
                let share = f64::from(60 - step) / 60.0;
                let wobble = f64::from((island * 37 + step * 11) % 13) * 2e3;
                let floor = 4.3e5 + f64::from(island * 7919 % 64) * 2e3;
                ConvergencePoint { island, evaluations, cost: floor + 9e5 * share * share + wobble * share }
            })
        })
        .collect()
}

fn metrics() -> Metrics {
    let names = ["F", "T", "hop_bytes", "max_link_load_bytes", "dilation_mean", "dilation_max"];
    let linear = [1.21e6, 9.4e4, 4.6e8, 1.4e7, 2.3, 4.0];
    let placement = |origin, sample: u32, factor: &dyn Fn(usize) -> f64| PlacementMetrics {
        origin,
        sample,
        values: names
            .iter()
            .zip(linear)
            .enumerate()
            .map(|(i, (name, v))| ((*name).to_owned(), v * factor(i)))
            .collect(),
    };
    let mapping = [0.36, 0.48, 0.22, 0.41, 0.74, 1.0];
    let mut placements = vec![
        placement(PlacementOrigin::Mapping, 0, &|index| mapping[index]),
        placement(PlacementOrigin::Linear, 0, &|_| 1.0),
    ];
    for sample in 0..20 {
        let spread = f64::from(sample * 7 % 20) / 40.0;
        placements
            .push(placement(PlacementOrigin::Random, sample, &|index| 1.1 + spread + 0.05 * index as f64));
    }
    Metrics { placements, summary: BTreeMap::new() }
}

fn stage(name: &str, kind: &str, state: NodeState, label: &str, reason: &str) -> DagNode {
    DagNode {
        name: name.into(),
        kind: kind.into(),
        state,
        label: label.into(),
        reason: reason.into(),
        group: name.split('[').next().unwrap_or(name).into(),
        ..DagNode::default()
    }
}

fn pipeline() -> (Vec<DagNode>, Vec<(u32, u32)>) {
    use NodeState::{Blocked, Cached, Failed, Infeasible, Run};
    let nodes = vec![
        stage("program", "trace/otf2", Cached, "cached", ""),
        stage("machine", "topology/synthetic", Run, "ran", "`shape` changed"),
        stage("placement[mapper=annealing,seed=1]", "map/annealing", Run, "ran", "`machine` changed"),
        stage("placement[mapper=composite,seed=1]", "map/composite", Failed, "failed", "no memory left"),
        stage(
            "placement[mapper=exact,seed=1]",
            "map/exact",
            Infeasible,
            "infeasible",
            "512 ranks, 256 slots",
        ),
        stage("launch", "launch/rankfile", Run, "ran", ""),
        stage("quality", "evaluate/mapping", Run, "ran", ""),
        stage("report <&> all", "report/html", Blocked, "blocked", "by placement"),
    ];
    (
        nodes,
        vec![
            (0, 2),
            (1, 2),
            (0, 3),
            (1, 3),
            (0, 4),
            (1, 4),
            (2, 5),
            (2, 6),
            (0, 6),
            (1, 6),
            (3, 7),
            (6, 7),
            (0, 7),
        ],
    )
}

fn sweep() -> (Vec<DagNode>, Vec<(u32, u32)>) {
    let mut nodes = vec![
        stage("program", "trace/otf2", NodeState::Cached, "cached", ""),
        stage("machine", "topology/synthetic", NodeState::Cached, "cached", ""),
    ];
    let mut edges = Vec::new();
    for seed in 0..150_u32 {
        let state = if seed % 50 == 7 { NodeState::Failed } else { NodeState::Run };
        let label = if state == NodeState::Failed { "failed" } else { "ran" };
        nodes.push(stage(&format!("placement[seed={seed}]"), "map/annealing", state, label, ""));
        nodes.push(stage(&format!("quality[seed={seed}]"), "evaluate/mapping", NodeState::Run, "ran", ""));
        let placement = nodes.len() as u32 - 2;
        edges.extend([(0, placement), (1, placement), (placement, placement + 1), (1, placement + 1)]);
    }
    (nodes, edges)
}

/// Tasks in waves, each of which waits for one of the last some, from another processor for a while.
fn schedule(tasks: u32, processors: u32, remote: f64) -> Schedule {
    let noise = |index: u32| f64::from(index.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
    let mut free: Vec<(f64, u32, Option<u32>)> =
        (0..processors).map(|one| (f64::from(one % 3) * 0.7, 0, None)).collect();
    let mut schedule = Schedule {
        processors: (0..processors)
            .map(|one| Processor {
                name: format!("node{:02}:{}", one / 4, one % 4),
                available: free[one as usize].0,
                slot: None,
            })
            .collect(),
        complete: true,
        ..Schedule::default()
    };
    for task in 0..tasks {
        let processor = (task + (noise(task + 3) * 9.0) as u32) % processors;
        let (time, turn, before) = free[processor as usize];
        let parent = (task >= 3 * processors).then(|| task - 1 - task.wrapping_mul(7919) % (2 * processors));
        let arrival = parent.map(|parent| schedule.tasks[parent as usize].finish + remote * noise(task + 7));
        let (start, waits_for) = match arrival {
            Some(arrival) if arrival > time => (arrival, parent),
            _ => (time, before),
        };
        let finish = start + 0.2 + 2.0 * noise(task);
        free[processor as usize] = (finish, turn + 1, Some(task));
        schedule.tasks.push(ScheduledTask { processor, turn, start, finish, waits_for, process: None });
    }
    let makespan = schedule.makespan();
    let bound = if tasks > 12 { makespan * 0.9 } else { makespan };
    schedule.metrics =
        BTreeMap::from([("lower_bound".into(), bound), ("proven".into(), f64::from(u8::from(tasks <= 12)))]);
    schedule
}
