//! Measured machines from the folder `HOPMAP_DATA`.

use std::path::PathBuf;

use hopmap_model::{CostModel, Levels, Matrix, Node, Slot, SystemGraph};
use hopmap_test_support::given_data;
use hopmap_topology::LevelsParams;
use hopmap_topology::levels::levels_of_matrix;

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("topology"))
}

/// One host whose slots have these costs, or one host per slot.
fn machine(count: usize, one_host: bool, costs: Vec<f64>) -> SystemGraph {
    let hosts = if one_host { 1 } else { count };
    let slot = |slot| if one_host { Slot { host: 0, core: slot } } else { Slot { host: slot, core: 0 } };
    SystemGraph {
        nodes: (0..hosts).map(|host| Node::host(format!("n{host}"))).collect(),
        links: Vec::new(),
        slots: (0..count as u32).map(slot).collect(),
        cost: CostModel::Matrix(Matrix { costs }),
        routing: hopmap_model::Routing::default(),
        calibration: Vec::new(),
    }
}

fn levels(system: &SystemGraph) -> Levels {
    let found = levels_of_matrix(system, &LevelsParams::default()).unwrap();
    found.system.check().unwrap();
    match found.system.cost {
        CostModel::Levels(levels) => levels,
        _ => panic!("no levels"),
    }
}

/// Latencies between hardware threads in nanoseconds: the lower triangle of a matrix, empty elsewhere.
fn core_to_core(name: &str) -> Option<Levels> {
    let text = std::fs::read_to_string(data()?.join("core-to-core").join(name)).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap_or(0.0)).collect())
        .collect();
    let count = rows.len();
    let cost = |pair: usize| rows[(pair / count).max(pair % count)][(pair / count).min(pair % count)];
    Some(levels(&machine(count, true, (0..count * count).map(cost).collect())))
}

fn grouped(slots: u32, group: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..slots).map(group).collect()
}

#[test]
fn hardware_threads_core_complexes_and_sockets_are_levels() {
    if data().is_none() {
        return;
    }
    // Two sockets of 64 cores, four of which share a cache. The buffer is allocated on the second socket, so
    // cores of the first one are as far from each other as from the second.
    let rome = core_to_core("Dual AMD EPYC 7742 64-Core Processor.csv").unwrap();
    let socket = |slot: u32| if slot % 128 < 64 { slot % 128 / 4 } else { 16 };
    let expected = [
        grouped(256, |slot| slot % 128),
        grouped(256, |slot| slot % 128 / 4),
        grouped(256, socket),
        vec![0; 256],
    ];
    assert_eq!((rome.costs, rome.groups), (vec![8.05, 25.3, 132.0, 267.0], expected.to_vec()));
    // Two dies of eight cores.
    let ryzen = core_to_core("AMD Ryzen 9 5950X @ 3.40 GHz.csv").unwrap();
    let expected = [grouped(32, |slot| slot % 16), grouped(32, |slot| slot % 16 / 8), vec![0; 32]];
    assert_eq!((ryzen.costs, ryzen.groups), (vec![7.79, 18.1, 85.1], expected.to_vec()));
    // Two sockets of 16 cores; one pair of threads is nearly twice as slow as all others.
    let xeon = core_to_core("Dual Intel(R) Xeon Gold 6242 @ 2.8GHz.csv").unwrap();
    let expected = [grouped(64, |slot| slot % 32), grouped(64, |slot| slot % 32 / 16), vec![0; 64]];
    assert_eq!((xeon.costs, xeon.groups), (vec![7.43, 48.0, 141.0], expected.to_vec()));
    // A mesh with a continuous range from 30 to 57 ns.
    let graviton = core_to_core("AWS Graviton3.csv").unwrap();
    assert_eq!((graviton.costs, graviton.groups), (vec![46.4], vec![vec![0; 64]]));
}

/// Hosts by switch, and the links on the paths between them, from a node file of netloc 2.
fn fabric(name: &str) -> Option<(Vec<u32>, Levels)> {
    let file = data()?.join(format!("netloc/{name}/netloc/IB-fe80:0000:0000:0000-nodes.txt"));
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let nodes: usize = lines[3].parse().unwrap();
    let (described, rest) = lines[4..].split_at(nodes);
    let (edges, paths) = rest.split_at(nodes);
    let hosts: Vec<&str> = described
        .iter()
        .filter(|line| line.split(',').nth(2) == Some("0"))
        .map(|line| line.split(',').next().unwrap())
        .collect();
    let index = |guid: &str| hosts.iter().position(|host| *host == guid);
    let mut switches: Vec<&str> = vec![""; hosts.len()];
    for edge in edges {
        let mut fields = edge.split(',');
        if let Some(host) = index(fields.next().unwrap()) {
            switches[host] = fields.next().unwrap();
        }
    }
    // Groups are numbered by their first members.
    let first = |switch: &str| switches.iter().position(|other| *other == switch).unwrap();
    let firsts: Vec<usize> = switches.iter().map(|switch| first(switch)).collect();
    let mut numbers = firsts.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let switches = firsts.iter().map(|first| numbers.binary_search(first).unwrap() as u32).collect();
    let mut costs = vec![0.0; hosts.len() * hosts.len()];
    for path in &paths[1..] {
        let fields: Vec<&str> = path.split(',').filter(|field| !field.is_empty()).collect();
        if let [source, destination, links @ ..] = &fields[..] {
            costs[index(source).unwrap() * hosts.len() + index(destination).unwrap()] = links.len() as f64;
        }
    }
    Some((switches, levels(&machine(hosts.len(), false, costs))))
}

#[test]
fn hosts_of_a_switch_are_a_group_by_the_hops_of_real_fabrics() {
    if data().is_none() {
        return;
    }
    let (switches, avakas) = fabric("avakas").unwrap();
    assert_eq!((avakas.costs, avakas.groups), (vec![2.0, 4.0], vec![switches, vec![0; 281]]));
    let (switches, plafrim) = fabric("plafrim").unwrap();
    // Between switches it is not a tree: there are 3 to 7 links.
    assert_eq!((plafrim.costs, plafrim.groups), (vec![2.0, 5.0], vec![switches, vec![0; 125]]));
}

/// Eight emulated hosts with injected latencies of 50, 200 and 800 µs, measured on busy cores.
#[test]
fn injected_latencies_are_found_in_measurements() {
    let Some(data) = data() else { return };
    for run in 1..=5 {
        let text =
            std::fs::read_to_string(data.join(format!("probe-samples/tprobe-8-base-{run}.txt"))).unwrap();
        let matrix = text.lines().skip_while(|line| !line.starts_with("# size")).skip(1).take(8);
        let costs = matrix.flat_map(|line| {
            let (minima, _) = line.split_once('|').unwrap();
            minima.split_whitespace().map(|cell| cell.parse().unwrap_or(0.0)).collect::<Vec<f64>>()
        });
        let found = levels(&machine(8, false, costs.collect()));
        assert_eq!(
            found.groups,
            [grouped(8, |host| host / 2), grouped(8, |host| host / 4), vec![0; 8]],
            "{run}"
        );
    }
}
