//! Every view of every size is valid XML, the same each time, and small.

use std::collections::BTreeMap;

use hopmap_model::{
    CheckpointDelta, ConvergencePoint, CostModel, DeltaRule, Deltas, Edge, Endpoint, HostSlots, Levels, Link,
    LinkState, Mapping, Measurements, Metrics, Node, NodeKind, NodeState as State, Phase, Placement,
    PlacementMetrics, PlacementOrigin, Prediction, ProbePhase, Process, Processor, RankTimes, Routing,
    RuleTotals, Sample, Schedule, ScheduledTask, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_views::{
    DagNode, DriftPoint, IslandSearch, NodeState, Palette, RankOrder, comparison, convergence, correlation,
    dag, drift, found_levels, gantt, groups, latencies, matrix, rank_times, topology,
};
use proptest::prelude::*;

const NASTY: &str = "<b>&\"'\u{0}\u{7}]]>é漢";

/// The text of all elements, after checking what every picture promises.
fn check(picture: &str, limit: usize) -> String {
    assert!(picture.len() < limit, "{} bytes", picture.len());
    let document = roxmltree::Document::parse(picture).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.attribute("role"), Some("img"));
    assert_eq!(root.first_element_child().unwrap().tag_name().name(), "title");
    assert!(
        document
            .descendants()
            .all(|node| node.tag_name().name() != "script" && node.attribute("id").is_none())
    );
    // Renderers without CSS variables drew black, or nothing.
    assert!(!picture.contains("var(--"), "a colour is a variable");
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "a number is missing");
    document.descendants().filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

fn graph(ranks: u32, neighbours: u32) -> TaskGraph {
    let mut edges: Vec<Edge> = (0..ranks)
        .flat_map(|source| {
            (0..neighbours).map(move |step| {
                let destination = (source + 1 + step * step * 31) % ranks;
                Edge {
                    source,
                    destination,
                    messages: u64::from(step) + 1,
                    bytes: u64::from(source % 97 + 1) << (step % 30),
                }
            })
        })
        .collect();
    edges.sort_by_key(Edge::pair);
    edges.dedup_by_key(|edge| edge.pair());
    TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() }
}

/// Hosts below leaf switches below a root, or no links at all.
fn machine(leaves: u32, hosts: u32, cores: u32, linked: bool, name: &str) -> SystemGraph {
    let all = leaves * hosts;
    let node = |prefix: &str, index: u32, kind| Node::new(format!("{name}{prefix}{index}"), kind);
    let mut nodes: Vec<Node> = (0..all).map(|index| node("n", index, NodeKind::Host)).collect();
    let mut links = Vec::new();
    if linked {
        nodes.extend((0..leaves).map(|index| node("s", index, NodeKind::Switch)));
        nodes.push(node("root", 0, NodeKind::Switch));
        let up = (0..all)
            .map(|host| (host, all + host / hosts))
            .chain((0..leaves).map(|leaf| (all + leaf, all + leaves)));
        let link = |source, destination| Link::new(source, destination);
        links = up.flat_map(|(a, b)| [link(a, b), link(b, a)]).collect();
    }
    let slots = all * cores;
    let groups = [cores, cores * hosts, slots].map(|size| (0..slots).map(|slot| slot / size).collect());
    let cost = CostModel::Levels(Levels { costs: vec![1.0, 10.0, 100.0], groups: groups.into() });
    let slots = (0..slots).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect();
    SystemGraph { nodes, links, slots, cost, routing: Routing::default(), calibration: Vec::new() }
}

fn scattered(system: &SystemGraph) -> Mapping {
    let count = system.slots.len() as u32;
    let slots: Vec<u32> =
        (0..count).map(|rank| (u64::from(rank) * 48_271 % u64::from(count)) as u32).collect();
    Mapping::new(&slots, system, Weight::Bytes).unwrap()
}

/// The hosts of a machine, every pair with a latency of its own; some hosts did not answer.
fn measured(system: &SystemGraph, down: u32) -> Measurements {
    let hosts: Vec<&str> = system.hosts().map(|host| system.nodes[host.0 as usize].name.as_str()).collect();
    let is_up = |host: u32| down == 0 || host % down != 1;
    let endpoint = |(host, name): (usize, &&str)| Endpoint {
        host: (*name).to_owned(),
        core: 0,
        state: if is_up(host as u32) { State::Up } else { State::Down },
    };
    let count = hosts.len() as u32;
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    let sample = |(source, destination): (u32, u32)| {
        let noise = f64::from((source * 7919 + destination * 104_729) % 97) * 1e-9;
        let time = 1e-6 * f64::from(1 + (source ^ destination)) + noise;
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes: 1,
            messages: 10,
            minimum_s: time,
            first_decile_s: time,
            median_s: time,
            ninth_decile_s: time,
            maximum_s: time,
        }
    };
    let samples = pairs.filter(|&(a, b)| is_up(a) && is_up(b)).map(sample).collect();
    Measurements {
        endpoints: hosts.iter().enumerate().map(endpoint).collect(),
        samples,
        ..Measurements::default()
    }
}

#[test]
fn measured_machines_of_every_size_are_small() {
    for (leaves, hosts) in [(1, 1), (2, 2), (5, 8), (6, 50), (40, 25)] {
        for name in ["", NASTY] {
            let system = machine(leaves, hosts, 2, true, name);
            for down in [0, 7] {
                let measured = measured(&system, down);
                let text = check(&latencies(&measured, Some(&system)), 300_000);
                assert_eq!(text.contains(" down"), down > 0 && leaves * hosts > 1);
                check(&latencies(&measured, None), 300_000);
            }
            check(&found_levels(&system, NASTY).unwrap(), 100_000);
        }
    }
    let text = check(&latencies(&measured(&machine(40, 25, 1, true, ""), 0), None), 300_000);
    assert!(text.contains("1,000 hosts · 5 × 5 hosts in a cell"), "{text}");
    check(&latencies(&Measurements::default(), None), 10_000);
}

/// Tasks of all lengths with pauses between them, each waiting for the one before it on its processor or for another.
fn schedule(tasks: u32, processors: u32, name: &str) -> Schedule {
    let noise = |index: u32| f64::from(index.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
    let begin = |processor: u32| (f64::from(processor % 3), 0, None);
    let mut free: Vec<(f64, u32, Option<u32>)> = (0..processors).map(begin).collect();
    let mut schedule = Schedule {
        processors: (0..processors)
            .map(|one| Processor { name: format!("{name}{one}"), available: f64::from(one % 3), slot: None })
            .collect(),
        names: (0..tasks).map(|task| format!("{name}{task}")).collect(),
        complete: true,
        ..Schedule::default()
    };
    for task in 0..tasks {
        let processor = (noise(task + 5) * f64::from(processors)) as u32 % processors;
        let (time, turn, before) = free[processor as usize];
        let parent = task.checked_sub(1 + task % (2 * processors));
        let arrival = parent.map_or(0.0, |one| schedule.tasks[one as usize].finish + noise(task + 7));
        let (start, waits_for) = if arrival > time { (arrival, parent) } else { (time, before) };
        let finish = start + (2.0 * noise(task) - 0.1).max(0.0);
        free[processor as usize] = (finish, turn + 1, Some(task));
        let process = Some(processor);
        schedule.tasks.push(ScheduledTask { processor, turn, start, finish, waits_for, process });
    }
    schedule.check().unwrap();
    schedule.metrics.insert("lower_bound".into(), schedule.makespan() * 0.7);
    schedule
}

#[test]
fn every_rank_has_a_bar_until_there_are_too_many() {
    let rank = |rank: u32| RankTimes {
        slot: rank,
        computing_s: 1.0,
        sending_s: 0.25,
        waiting_s: f64::from(rank % 3),
        finish_s: 1.25 + f64::from(rank % 3),
    };
    for (ranks, bars) in [(0, 0), (1, 1), (180, 180), (181, 91), (100_000, 180)] {
        let ranks = (0..ranks).map(rank).collect();
        let text = check(&rank_times(&Prediction { ranks, ..Prediction::default() }), 200_000);
        // The text of a title occurs twice.
        assert_eq!(text.matches("computing 1 s").count(), 2 * bars, "{text}");
    }
}

#[test]
fn run_times_are_drawn_against_the_metrics_that_all_mappings_have() {
    let row = |sample: u32| {
        let size = f64::from(sample) + 1.0;
        let values = [
            ("measured_s", size),
            ("measured_low_s", 0.9 * size),
            ("measured_high_s", 1.2 * size),
            ("predicted_s", 1.1 * size),
            ("F", 1e9 / size),
            ("max_link_load_bytes", 7.0),
        ];
        let mut values = BTreeMap::from(values.map(|(name, value)| (name.to_owned(), value)));
        if sample > 0 {
            values.insert("dilation_max".to_owned(), 4.0);
        }
        PlacementMetrics { origin: PlacementOrigin::Mapping, sample, values }
    };
    let drawn = |count: u32| {
        let summary = BTreeMap::from([("kendall_beyond_noise_F".to_owned(), -1.0)]);
        check(&correlation(&Metrics { placements: (0..count).map(row).collect(), summary }), 1_000_000)
    };
    let text = drawn(12);
    assert!(
        text.contains("12 mappings") && text.contains("τ -1.00") && text.contains("predicted_s"),
        "{text}"
    );
    assert!(text.contains("mapping 2: measured 3 s, max_link_load_bytes 7 B"), "{text}");
    assert!(!text.contains("dilation_max") && !text.contains("measured_low_s"), "{text}");
    assert!(text.find("predicted_s") < text.find("F\n"), "predictions come first: {text}");
    drawn(0);
    drawn(1);
    drawn(10_000);
}

#[test]
fn schedules_of_every_size_are_small() {
    for (tasks, processors) in [
        (0, 1),
        (1, 1),
        (30, 3),
        (2000, 20),
        (2001, 20),
        (30_000, 128),
        (30_000, 129),
        (200_000, 7),
        (20_000, 10_000),
    ] {
        let text = check(&gantt(&schedule(tasks, processors, "")), 700_000);
        assert!(tasks < 2 || text.contains("above the optimum"), "{text}");
    }
    let small = schedule(300, 20, NASTY);
    let text = check(&gantt(&small), 200_000);
    // Every task has a box with its times in the tooltip; the text of a title occurs twice.
    assert_eq!(text.matches(&format!(" on {}", &NASTY[..5])).count(), 2 * 300, "{text}");
}

#[test]
fn a_year_of_probes_is_small() {
    let point = |probe: u32| DriftPoint {
        time: 1.7e9 + f64::from(probe) * 900.0,
        medians: (1..5)
            .map(|level| f64::from(level) * 1e-6 * (1.0 + f64::from(probe % 17) / 100.0))
            .collect(),
        largest_ratio: 1.0 + f64::from(probe % 29) / 20.0,
        hosts_down: u32::from(probe.is_multiple_of(50)),
        published: probe.is_multiple_of(300),
    };
    let points: Vec<DriftPoint> = (0..35_000).map(point).collect();
    assert!(check(&drift(&points), 300_000).contains("35,000 probes"));
    check(&drift(&points[..1]), 10_000);
    check(&drift(&[]), 10_000);
}

#[test]
fn the_matrix_of_65_536_ranks_is_small() {
    let graph = graph(65_536, 40);
    let text = check(&matrix(&graph, Weight::Bytes, NASTY, None), 400_000);
    assert!(text.contains("65,536 ranks") && text.contains("328 × 328 ranks in a cell"));
    let hosts = (0..4096).map(|host| 16 * host..16 * host + 16).collect();
    let order = RankOrder { ranks: (0..65_536).rev().collect(), levels: vec![hosts] };
    check(&matrix(&graph, Weight::Messages, "slot order", Some(&order)), 400_000);
}

#[test]
fn the_densest_matrices_are_small() {
    for ranks in [64, 65, 200, 201] {
        let weight = Weight::Time { latency_s: 1e-6, bandwidth_bytes_per_s: 1e9 };
        check(&matrix(&graph(ranks, 500), weight, "dense", None), 500_000);
        let noise = |pair: u32| Edge {
            source: pair / ranks,
            destination: pair % ranks,
            messages: 1,
            bytes: 1 << (pair.wrapping_mul(2_654_435_761) >> 27),
        };
        let edges = (0..ranks * ranks).map(noise).collect();
        let graph =
            TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() };
        let picture = matrix(&graph, Weight::Bytes, "noise", None);
        check(&picture, 500_000);
    }
}

#[test]
fn nothing_and_one_rank_have_a_picture() {
    for ranks in [0, 1] {
        let graph = TaskGraph { processes: vec![Process::default(); ranks], ..TaskGraph::default() };
        assert!(check(&matrix(&graph, Weight::Bytes, "empty", None), 10_000).contains("no messages"));
        check(&matrix(&graph, Weight::Bytes, "empty", Some(&RankOrder::default())), 10_000);
    }
    let own = Edge { source: 0, destination: 0, messages: 1, bytes: 40 };
    let graph = TaskGraph { processes: vec![Process::default()], edges: vec![own], ..TaskGraph::default() };
    assert!(check(&matrix(&graph, Weight::Bytes, "self", None), 10_000).contains("0 → 0: 40 B in 1 message"));
    let nothing = SystemGraph {
        nodes: Vec::new(),
        links: Vec::new(),
        slots: Vec::new(),
        cost: CostModel::Levels(Levels::default()),
        routing: Routing::default(),
        calibration: Vec::new(),
    };
    check(&topology(&nothing, None, None), 10_000);
    check(&topology(&machine(1, 1, 1, false, ""), None, None), 10_000);
    check(
        &topology(&machine(1, 1, 1, true, ""), Some(&[]), Some(&scattered(&machine(1, 1, 1, true, "")))),
        10_000,
    );
    let palette = Palette::new([NASTY].into_iter());
    let nothing = ConvergencePoint { island: 0, evaluations: 0, cost: 0.0 };
    check(&convergence(&IslandSearch::default(), Some((1.0, NASTY)), &palette), 10_000);
    let search = IslandSearch { name: NASTY, points: &[nothing], evaluations: 0 };
    check(&convergence(&search, Some((0.0, NASTY)), &palette), 10_000);
    check(&comparison(&Metrics::default(), NASTY, &palette), 10_000);
    check(&dag(&[], &[(0, 1)]), 10_000);
}

#[test]
fn ten_thousand_hosts_are_small() {
    for (leaves, hosts) in [(100, 100), (1, 10_000), (10_000, 1), (16, 625)] {
        for linked in [true, false] {
            let system = machine(leaves, hosts, 4, linked, "");
            let loads: Vec<u64> = (0..system.links.len() as u64).collect();
            check(&topology(&system, Some(&loads), Some(&scattered(&system))), 200_000);
        }
    }
}

/// Cables of a bandwidth, a link each way.
fn cables(links: &mut Vec<Link>, a: u32, b: u32, bandwidth: f64, count: u32) {
    for _ in 0..count {
        let link = Link { bandwidth_bytes_per_s: Some(bandwidth), ..Link::new(a, b) };
        links.extend([link, link.reversed()]);
    }
}

/// Hosts below leaves that are linked to two spines by several cables.
fn fabric(leaves: u32, hosts: u32) -> SystemGraph {
    let mut system = machine(leaves, hosts, 2, true, "");
    let all = leaves * hosts;
    system.nodes.push(Node::switch("second"));
    system.links.clear();
    for host in 0..all {
        cables(&mut system.links, host, all + host / hosts, 4e9, 1);
    }
    for leaf in 0..leaves {
        cables(&mut system.links, all + leaf, all + leaves, 4e9, 4);
        cables(&mut system.links, all + leaf, all + leaves + 1, 12.5e9, 1);
    }
    system
}

#[test]
fn three_hundred_hosts_are_all_there() {
    for (leaves, hosts) in [(1, 300), (25, 12), (75, 4), (3, 100)] {
        let mut system = fabric(leaves, hosts);
        let text = check(&topology(&system, None, Some(&scattered(&system))), 300_000);
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        // Where there is no room for names they are in the tooltips.
        let is_named = |host: u32| {
            let name = format!("n{host}");
            lines.contains(name.as_str()) || text.contains(&format!("{name} · "))
        };
        assert!((0..300).all(is_named));
        assert!(text.contains("s0 – root0: 4 × 32 Gb/s\n"), "{leaves}");
        assert!(text.contains("s0 – second: 100 Gb/s\n") && !text.contains("down"));
        assert!(text.contains("link: 32 Gb/s"));
        system.nodes[7].state = State::Down;
        let down = system.links.len() - 3;
        system.links[down].state = LinkState::Down;
        let loads: Vec<u64> = (0..system.links.len() as u64).map(|link| link << 20).collect();
        let text = check(&topology(&system, Some(&loads), None), 300_000);
        assert!(text.contains("300 hosts · 1 of them down"));
        assert!(text.contains("n7 · down") && text.contains(", 1 down · "), "{text}");
        assert!(text.contains("of parallel cables the busiest"));
    }
}

#[test]
fn hosts_without_a_link_are_shown_as_well() {
    let mut system = fabric(10, 10);
    system.links.retain(|link| link.source != 3 && link.destination != 3);
    let text = check(&topology(&system, None, None), 100_000);
    assert!(text.contains("not linked") && text.lines().any(|line| line == "n3"));
}

/// Hosts that are linked to each other: `sizes` along the dimensions, around or not.
fn grid(sizes: &[u32], is_torus: bool) -> SystemGraph {
    let count = sizes.iter().product();
    let mut system = machine(1, count, 1, false, "");
    for host in 0..count {
        let mut step = 1;
        for &size in sizes {
            let place = host / step % size;
            if place + 1 < size || (is_torus && size > 2) {
                let next = host - place * step + (place + 1) % size * step;
                cables(&mut system.links, host, next, 25e9, 1);
            }
            step *= size;
        }
    }
    system
}

#[test]
fn networks_without_switches_are_grids_or_circles() {
    let around = "short lines at the edges lead around";
    for (sizes, is_torus, said) in [
        (&[4, 4][..], true, around),
        (&[16, 16], true, around),
        (&[5, 3], false, "links of 200 Gb/s"),
        (&[4, 3, 5], true, "slanting ones to the next plane"),
        (&[12], true, "links of 200 Gb/s"),
        (&[7], false, "links of 200 Gb/s"),
        (&[2, 2, 2, 2, 2], false, "links of 200 Gb/s"),
    ] {
        let mut system = grid(sizes, is_torus);
        let count = system.nodes.len();
        let text = check(&topology(&system, None, Some(&scattered(&system))), 250_000);
        assert!(text.contains(said), "{sizes:?}: {text}");
        assert!((0..count).all(|host| text.lines().any(|line| line == format!("n{host}"))), "{sizes:?}");
        // The text of a title occurs twice, as its own and as that of its element.
        assert_eq!(text.matches(" Gb/s").count(), system.links.len() + 2, "{sizes:?}");
        system.nodes[1].state = State::Down;
        let loads: Vec<u64> = (0..system.links.len() as u64).collect();
        let text = check(&topology(&system, Some(&loads), None), 250_000);
        assert!(text.contains("1 of them down"));
    }
    // Too many to be drawn one by one, and all to all.
    check(&topology(&grid(&[64, 64], true), None, None), 400_000);
    let mut all = machine(1, 40, 1, false, NASTY);
    (0..40).for_each(|a| (a + 1..40).for_each(|b| cables(&mut all.links, a, b, 1e9, 1)));
    check(&topology(&all, None, None), 250_000);
}

#[test]
fn switches_that_are_all_linked_to_each_other_are_groups() {
    let mut system = machine(12, 8, 1, true, "");
    system.nodes.pop();
    system.links.retain(|link| link.source.max(link.destination) < 108);
    // Three groups of four, the switches of which are not next to each other.
    for a in 0..12 {
        for b in a + 1..12 {
            if a % 3 == b % 3 || (a, b) == (0, 1) {
                cables(&mut system.links, 96 + a, 96 + b, 1e9, 1);
            }
        }
    }
    let text = check(&topology(&system, None, None), 100_000);
    assert!(text.contains("group 1") && text.contains("group 3") && !text.contains("group 4"), "{text}");
}

#[test]
fn machines_that_are_no_trees_are_small() {
    let node = |index: u32, kind| Node::new(index.to_string(), kind);
    let link = |source, destination| Link::new(source, destination);
    let flat = || CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 2]] });
    let slots = || (0..2).map(|core| Slot { host: 0, core }).collect();
    let host_and_switches = |links: Vec<Link>| SystemGraph {
        nodes: (0..9000)
            .map(|index| node(index, if index == 0 { NodeKind::Host } else { NodeKind::Switch }))
            .collect(),
        links,
        slots: slots(),
        cost: flat(),
        routing: Routing::default(),
        calibration: Vec::new(),
    };
    let chain = host_and_switches(
        (1..9000).flat_map(|index| [link(index - 1, index), link(index, index - 1)]).collect(),
    );
    let apart = host_and_switches(vec![link(5, 5), link(7, 99_999)]);
    let between_all =
        (1..65).flat_map(|leaf| (65..129).flat_map(move |spine| [link(leaf, spine), link(spine, leaf)]));
    let clos = host_and_switches((1..65).map(|leaf| link(0, leaf)).chain(between_all).collect());
    for system in [chain, apart, clos] {
        let loads: Vec<u64> = (0..system.links.len() as u64).map(|link| link << 20).collect();
        check(&topology(&system, Some(&loads), None), 400_000);
        check(&topology(&system, None, None), 400_000);
    }
}

#[test]
fn names_show_as_they_are() {
    let shown = NASTY.replace(['\u{0}', '\u{7}'], "\u{fffd}");
    let system = machine(2, 2, 1, true, NASTY);
    assert!(check(&topology(&system, None, Some(&scattered(&system))), 50_000).contains(&shown));
    let node = DagNode { name: NASTY.into(), kind: NASTY.into(), reason: NASTY.into(), ..DagNode::default() };
    assert!(check(&dag(&[node.clone(), node], &[(0, 1)]), 50_000).contains(&shown));
    let values: BTreeMap<String, f64> = [(NASTY.to_owned(), 2.0)].into();
    let placement = |origin| PlacementMetrics { origin, sample: 0, values: values.clone() };
    let placements = PlacementOrigin::NAMES.map(|(origin, _)| placement(origin)).into();
    let metrics = Metrics { placements, summary: BTreeMap::new() };
    assert!(check(&comparison(&metrics, NASTY, &Palette::default()), 50_000).contains(&shown));
}

#[test]
fn long_searches_and_pipelines_are_small() {
    let points: Vec<ConvergencePoint> = (0..1000_u32)
        .flat_map(|island| (0..1000_u32).map(move |step| (island, step)))
        .map(|(island, step)| ConvergencePoint {
            island,
            evaluations: u64::from(step) * 1000,
            cost: 1e9 / f64::from(step + 1) + f64::from(island),
        })
        .collect();
    let search = IslandSearch { name: "annealing", points: &points, evaluations: 0 };
    check(&convergence(&search, Some((2e9, "linear")), &Palette::default()), 400_000);
    let nodes: Vec<DagNode> = (0..10_000)
        .map(|index| DagNode {
            name: format!("placement[seed={index}]"),
            kind: "map/annealing".into(),
            state: NodeState::Run,
            label: "ran".into(),
            reason: "seed changed".into(),
            group: format!("g{}", index % 500),
            ..DagNode::default()
        })
        .collect();
    let edges: Vec<(u32, u32)> = (0..9999).map(|index| (index, index + 1)).collect();
    check(&dag(&nodes, &edges), 400_000);
    check(&dag(&nodes[..200], &edges), 400_000);
    let all: Vec<(u32, u32)> = (0..200).flat_map(|from| (from + 1..200).map(move |to| (from, to))).collect();
    assert!(check(&dag(&nodes[..200], &all), 600_000).contains("3,000 of 19,900 edges"));
}

#[test]
fn a_mapping_that_names_other_hosts_is_no_reason_to_fail() {
    let system = machine(2, 2, 2, true, "");
    let mut mapping = scattered(&system);
    mapping.hosts[0] = HostSlots { host: "elsewhere".into(), first_slot: 0, slots: 2 };
    mapping.ranks.push(Placement { slot: 99, host: 99, core: None });
    check(&topology(&system, Some(&[7]), Some(&mapping)), 50_000);
}

proptest! {
    #[test]
    fn pictures_are_valid_and_repeat(
        ranks in 1_u32..90,
        neighbours in 0_u32..20,
        leaves in 1_u32..5,
        hosts in 1_u32..30,
        edges in prop::collection::vec((0_u32..30, 0_u32..30), 0..60),
    ) {
        let graph = graph(ranks, neighbours);
        let system = machine(leaves, hosts, 2, true, "");
        let mapping = scattered(&system);
        let nodes: Vec<DagNode> = (0..30).map(|index| DagNode { name: index.to_string(), ..DagNode::default() }).collect();
        let draw = || [
            matrix(&graph, Weight::Bytes, "m", None),
            matrix(&graph, Weight::Bytes, "m", Some(&RankOrder::in_machine(&mapping.slots(), &system))),
            topology(&system, None, Some(&mapping)),
            dag(&nodes, &edges),
        ];
        let pictures = draw();
        for picture in &pictures {
            check(picture, 500_000);
        }
        prop_assert_eq!(pictures, draw());
    }
}

#[test]
fn deltas_of_any_number_of_checkpoints_are_drawn() {
    for checkpoints in [0, 1, 2, 10, 141, 3000] {
        let deltas = deltas_of(checkpoints);
        let picture = hopmap_views::deltas(&deltas, 4096);
        assert_eq!(picture, hopmap_views::deltas(&deltas, 4096));
        let text = check(&picture, 250_000);
        assert!(text.contains(&format!(
            "{} checkpoint",
            if checkpoints == 3000 { "3,000".into() } else { checkpoints.to_string() }
        )));
        if checkpoints == 10 {
            assert!(text.contains("adca immediate: 140 kB, depth 9, Σ b 45, 8 base changes"), "{text}");
            assert!(text.contains("delta against 9"));
        }
    }
    assert!(check(&hopmap_views::deltas(&deltas_of(3), 512), 20_000).contains("0 checkpoints"));
}

/// Two rules over a series whose first checkpoint is much larger than its deltas.
fn deltas_of(checkpoints: u32) -> Deltas {
    let row = |rule, checkpoint: u32| CheckpointDelta {
        rule,
        block: 4096,
        checkpoint,
        name: NASTY.into(),
        base: (checkpoint > 1).then(|| if rule == DeltaRule::First { 1 } else { checkpoint - 1 }),
        full_bytes: 95_000,
        blocks: 24,
        changed_blocks: 1,
        stored_bytes: if checkpoint == 1 { 95_000 } else { 5000 },
        depth: if checkpoint == 1 { 0 } else { checkpoint - 1 },
        write_s: 0.001,
        saving: None,
    };
    let rules = [DeltaRule::First, DeltaRule::AdcaImmediate];
    let checkpoint_rows = |rule| (1..=checkpoints).map(move |number| row(rule, number));
    let totals = |rule| {
        let bases: Vec<u32> = checkpoint_rows(rule).filter_map(|row| row.base).collect();
        RuleTotals {
            rule,
            block: 4096,
            sum_of_bases: bases.iter().map(|&base| u64::from(base)).sum(),
            base_changes: checkpoints.saturating_sub(2),
            full_bytes: 95_000 * u64::from(checkpoints),
            stored_bytes: checkpoint_rows(rule).map(|row| row.stored_bytes).sum(),
            write_s: 0.001 * f64::from(checkpoints),
            depth: checkpoints.saturating_sub(1),
            bases,
        }
    };
    Deltas {
        checkpoints: rules.into_iter().flat_map(checkpoint_rows).collect(),
        rules: rules.map(totals).to_vec(),
        ..Deltas::default()
    }
}

/// A program whose phase has rings of ranks with a stride.
fn rings(ranks: u32, stride: u32, size: u32, name: &str) -> TaskGraph {
    let next = |rank: u32| {
        let member = rank / stride % size;
        rank - member * stride + (member + 1) % size * stride
    };
    let edges = (0..ranks).map(|source| Edge { source, destination: next(source), messages: 1, bytes: 8 });
    let phase = Phase {
        name: Some(name.to_owned()),
        compute_s: vec![None; ranks as usize],
        edges: edges.collect(),
        ..Phase::default()
    };
    TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        phases: vec![phase],
        ..TaskGraph::default()
    }
}

#[test]
fn groups_on_the_fabric_are_counted_and_small() {
    let system = machine(4, 2, 4, true, NASTY);
    let linear = Mapping::new(&(0..32).collect::<Vec<_>>(), &system, Weight::Bytes).unwrap();
    // Rings of two hosts: the first four below one leaf each, those of stride 8 below two.
    let text = check(&groups(&rings(32, 4, 2, "dp"), &system, &linear).unwrap(), 20_000);
    assert!(text.contains("0 of 16 groups cross switches"), "{text}");
    let text = check(&groups(&rings(32, 8, 2, NASTY), &system, &linear).unwrap(), 20_000);
    assert!(text.contains("16 of 16 groups cross switches"), "{text}");
    // Inside hosts, or without switches, there is nothing to see.
    assert_eq!(groups(&rings(32, 1, 4, "tp"), &system, &linear), None);
    let apart = machine(4, 2, 4, false, "");
    let linear = Mapping::new(&(0..32).collect::<Vec<_>>(), &apart, Weight::Bytes).unwrap();
    assert_eq!(groups(&rings(32, 8, 2, "dp"), &apart, &linear), None);
    let large = machine(64, 128, 8, true, "");
    check(&groups(&rings(65_536, 512, 128, "dp"), &large, &scattered(&large)).unwrap(), 1_000_000);
}
