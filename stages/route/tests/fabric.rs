//! Tables of whole fabrics: every packet arrives, loads are those that the metrics say, and nothing waits in a cycle.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use hopmap_model::{
    Context, CostModel, Edge, Inputs, Levels, LinkState, Mapping, NodeKind, NodeState, Observer, Outcome,
    Process, Slot, Stage as _, SystemGraph, Tables, TaskGraph, Weight,
};
use hopmap_route::{FabricStage, Instance};
use hopmap_routing::network::cycle;
use hopmap_test_support::Random;

/// Switches, the hosts of each, and cables between them.
fn fabric(hosts: &[usize], cables: &[(usize, usize)]) -> SystemGraph {
    let (mut names, mut switches, mut links) = (String::new(), String::new(), String::new());
    for (switch, &count) in hosts.iter().enumerate() {
        write!(switches, "{{ name = 's{switch}', type = 1 }}, ").unwrap();
        for host in 0..count {
            write!(names, "{{ name = 'h{switch}-{host}', performance = 1 }}, ").unwrap();
            write!(links, "{{ a = 's{switch}', b = 'h{switch}-{host}', bandwidth = 1 }}, ").unwrap();
        }
    }
    for (one, other) in cables {
        write!(links, "{{ a = 's{one}', b = 's{other}', bandwidth = 1 }}, ").unwrap();
    }
    let text = format!("hosts = [{names}]\nswitches = [{switches}]\nlinks = [{links}]\nprocesses = []\n");
    Instance::parse(text.as_bytes(), Path::new("fabric")).unwrap().system
}

/// Leaves with as many hosts as spines.
fn fat_tree(leaves: usize, spines: usize) -> SystemGraph {
    let hosts = [vec![spines; leaves], vec![0; spines]].concat();
    let cables = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, leaves + spine)));
    fabric(&hosts, &cables.collect::<Vec<_>>())
}

fn torus(size: usize) -> SystemGraph {
    let at = |row: usize, column: usize| row % size * size + column % size;
    let cells = (0..size * size).map(|cell| (cell / size, cell % size));
    let cables = cells.flat_map(|(row, column)| {
        [(at(row, column), at(row + 1, column)), (at(row, column), at(row, column + 1))]
    });
    fabric(&vec![1; size * size], &cables.collect::<Vec<_>>())
}

fn irregular(switches: usize, seed: u64) -> SystemGraph {
    let mut random = Random(seed);
    // A ring, so that all are joined.
    let mut cables: Vec<(usize, usize)> =
        (0..switches).map(|switch| (switch, (switch + 1) % switches)).collect();
    for _ in 0..2 * switches {
        let pair = (random.below(switches), random.below(switches));
        let is_known = |&known: &(usize, usize)| known == pair || known == (pair.1, pair.0);
        if pair.0 != pair.1 && !cables.iter().any(is_known) {
            cables.push(pair);
        }
    }
    fabric(&vec![2; switches], &cables)
}

fn route(system: &SystemGraph, params: &str) -> Result<(SystemGraph, Tables), String> {
    let mut inputs = Inputs::new();
    inputs.connect("system", Arc::new(system.clone()), String::new(), String::new());
    let params = serde_json::from_str(params).unwrap();
    let outcome =
        FabricStage::run(params, inputs, &Context::detached()).map_err(|error| error.to_string())?;
    let Outcome::Done(outputs) = outcome else { panic!("not done") };
    let system = outputs.get("system").unwrap().downcast_ref::<SystemGraph>().unwrap().clone();
    let tables = outputs.get("tables").unwrap().downcast_ref::<Tables>().unwrap().clone();
    Ok((system, tables))
}

/// Follows all packets by the entries alone; the load of the busiest link between switches, and whether links can wait in a cycle.
fn followed(system: &SystemGraph, tables: &Tables) -> (u64, bool) {
    let ports: HashMap<(u32, u32), u32> = (0..)
        .zip(&system.links)
        .map(|(index, link)| ((link.source, link.source_port.unwrap()), index))
        .collect();
    let entries: HashMap<(u32, u32), u32> =
        tables.entries.iter().map(|entry| ((entry.switch, entry.destination), entry.output_port)).collect();
    let hosts = (0..system.nodes.len() as u32).filter(|&node| {
        system.nodes[node as usize].kind == NodeKind::Host
            && system.nodes[node as usize].state == NodeState::Up
    });
    let hosts: Vec<u32> = hosts.collect();
    let (mut loads, mut routes) = (BTreeMap::<u32, u64>::new(), Vec::new());
    for &source in &hosts {
        for &destination in hosts.iter().filter(|host| **host != source) {
            let first = (0..).zip(&system.links).find(|(_, link)| link.source == source).unwrap().0;
            let mut route = vec![first];
            loop {
                let link = &system.links[*route.last().unwrap() as usize];
                assert!(link.state == LinkState::Up && route.len() <= system.nodes.len());
                if link.destination == destination {
                    break;
                }
                route.push(ports[&(link.destination, entries[&(link.destination, destination)])]);
            }
            for &link in &route[1..route.len() - 1] {
                *loads.entry(link).or_default() += 1;
            }
            routes.push(route);
        }
    }
    let has_cycle = !cycle(system.links.len(), routes.iter().map(Vec::as_slice)).is_empty();
    (loads.into_values().max().unwrap_or_default(), has_cycle)
}

#[test]
fn all_packets_arrive_and_the_metrics_are_right() {
    let mut failed = fat_tree(4, 4);
    for link in &mut failed.links[32..34] {
        link.state = LinkState::Down;
    }
    let fabrics = [fat_tree(4, 4), failed, torus(5), irregular(12, 1), irregular(20, 2)];
    for (number, system) in fabrics.iter().enumerate() {
        for deadlock_free in [true, false] {
            let (system, tables) =
                route(system, &format!(r#"{{"deadlock_free": {deadlock_free}}}"#)).unwrap();
            let (busiest, has_cycle) = followed(&system, &tables);
            let metric = |name: &str| tables.metrics[name];
            assert!((metric("busiest_all_to_all") - busiest as f64).abs() < 1e-9, "{number}");
            assert_eq!(metric("deadlock_free") > 0.0, !has_cycle, "{number}");
            assert!(!has_cycle || !deadlock_free, "{number}");
            assert!(metric("busiest_bound") <= busiest as f64, "{number}");
        }
    }
}

#[test]
fn fat_trees_are_balanced_perfectly_and_tori_without_restrictions_nearly() {
    let (_, tables) = route(&fat_tree(6, 6), "{}").unwrap();
    assert!((tables.metrics["busiest_all_to_all"] - tables.metrics["busiest_bound"]).abs() < 1e-9);
    assert!((tables.metrics["busiest_shift"] - 1.0).abs() < 1e-9, "{:?}", tables.metrics);
    let (_, tables) = route(&torus(6), r#"{"deadlock_free": false}"#).unwrap();
    assert!(
        tables.metrics["busiest_all_to_all"] <= 1.3 * tables.metrics["busiest_bound"],
        "{:?}",
        tables.metrics
    );
}

#[test]
fn shifts_are_not_evened_out_at_the_cost_of_the_busiest_link() {
    for failed in 1..4 {
        let mut system = fat_tree(8, 8);
        let between = |node: u32| system.nodes[node as usize].kind == NodeKind::Switch;
        let links: Vec<usize> = (0..system.links.len())
            .filter(|&link| between(system.links[link].source) && between(system.links[link].destination))
            .collect();
        // Cables of different leaves.
        for cable in 0..failed {
            for link in &links[18 * cable..18 * cable + 2] {
                system.links[*link].state = LinkState::Down;
            }
        }
        let (_, tables) = route(&system, "{}").unwrap();
        assert!(
            (tables.metrics["busiest_all_to_all"] - tables.metrics["busiest_bound"]).abs() < 1e-9,
            "{:?}",
            tables.metrics
        );
    }
}

#[test]
fn what_is_no_fabric_is_refused() {
    let mut lonely = fat_tree(2, 2);
    lonely.nodes.push(hopmap_model::Node::host("lonely"));
    assert!(route(&lonely, "{}").unwrap_err().contains("host `lonely` has no link to and from a switch"));
    let one = fabric(&[1], &[]);
    assert!(route(&one, "{}").unwrap_err().contains("fewer than two hosts"));
    let apart = fabric(&[1, 1], &[]);
    for params in ["{}", r#"{"deadlock_free": false}"#] {
        assert!(route(&apart, params).unwrap_err().contains("no path from host `h0-0` to host `h1-0`"));
    }
}

#[test]
fn products_are_routed_by_dimensions() {
    // Up and down from a root, the busiest link has 2.5 times the bound and more.
    let three = |size: usize| {
        let at = |x: usize, y: usize, z: usize| (x % size * size + y % size) * size + z % size;
        let cells = (0..size.pow(3)).map(|cell| (cell / size / size, cell / size % size, cell % size));
        let cables = cells.flat_map(|(x, y, z)| {
            let here = at(x, y, z);
            [(here, at(x + 1, y, z)), (here, at(x, y + 1, z)), (here, at(x, y, z + 1))]
        });
        fabric(&vec![1; size.pow(3)], &cables.collect::<Vec<_>>())
    };
    let without = |failed: &[(&str, &str)]| {
        let mut system = three(5);
        let name = |node: u32| system.nodes[node as usize].name.as_str();
        let is_failed = |&(a, b): &(u32, u32)| {
            failed.contains(&(name(a), name(b))) || failed.contains(&(name(b), name(a)))
        };
        let down: Vec<bool> =
            system.links.iter().map(|link| is_failed(&(link.source, link.destination))).collect();
        assert_eq!(down.iter().filter(|down| **down).count(), 2 * failed.len());
        system
            .links
            .iter_mut()
            .zip(down)
            .filter(|(_, down)| *down)
            .for_each(|(link, _)| link.state = LinkState::Down);
        system
    };
    // In several lines, and two in the same line, which is cut.
    let apart = without(&[("s0", "s1"), ("s31", "s36"), ("s67", "s92")]);
    let cut = without(&[("s0", "s1"), ("s2", "s3"), ("s67", "s92")]);
    for (system, most) in [(torus(6), 2.0), (apart, 2.2), (cut, 2.2)] {
        let (system, tables) = route(&system, "{}").unwrap();
        let (busiest, has_cycle) = followed(&system, &tables);
        assert!(
            !has_cycle && busiest as f64 <= most * tables.metrics["busiest_bound"],
            "{:?}",
            tables.metrics
        );
    }
}

/// The user has interrupted the run.
struct Interrupted;

impl Observer for Interrupted {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn an_interrupt_leaves_tables_by_which_all_packets_arrive() {
    for system in [fat_tree(4, 4), torus(4), irregular(12, 3)] {
        let mut inputs = Inputs::new();
        inputs.connect("system", Arc::new(system), String::new(), String::new());
        let context = Context::new(1, None, &Interrupted);
        let params = serde_json::from_str("{}").unwrap();
        let Outcome::Partial(outputs) = FabricStage::run(params, inputs, &context).unwrap() else {
            panic!("not partial")
        };
        let system = outputs.get("system").unwrap().downcast_ref::<SystemGraph>().unwrap();
        let tables = outputs.get("tables").unwrap().downcast_ref::<Tables>().unwrap();
        assert!(!followed(system, tables).1);
    }
}

/// Hosts of a leaf that all send to hosts with the same spine.
#[test]
fn the_streams_of_a_program_share_no_link_if_they_need_not() {
    let mut system = fat_tree(4, 4);
    let hosts: Vec<u32> = (0..system.nodes.len() as u32)
        .filter(|&node| system.nodes[node as usize].kind == NodeKind::Host)
        .collect();
    system.slots = hosts.iter().map(|&host| Slot { host, core: 0 }).collect();
    system.cost = CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; hosts.len()]] });
    let (_, general) = route(&system, "{}").unwrap();
    let leaf = |host: usize| host / 4;
    let spine = |host: usize| {
        let of_host = |entry: &&hopmap_model::TableEntry| {
            entry.destination == hosts[host] && system.nodes[entry.switch as usize].name == "s0"
        };
        general.entries.iter().find(of_host).unwrap().output_port
    };
    let busy = (4..16).filter(|&host| spine(host) == spine(4));
    let edges: Vec<Edge> = (0..)
        .zip(busy.take(4))
        .map(|(source, destination)| Edge {
            source,
            destination: destination as u32,
            messages: 1,
            bytes: 1000,
        })
        .collect();
    assert!(edges.len() >= 3 && edges.iter().all(|edge| leaf(edge.destination as usize) > 0));
    let graph = TaskGraph { processes: vec![Process::default(); 16], edges, ..TaskGraph::default() };
    let slots: Vec<u32> = (0..16).collect();
    let mapping = Mapping::new(&slots, &system, Weight::Bytes).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("system", Arc::new(system), String::new(), String::new());
    inputs.connect("task-graph", Arc::new(graph), String::new(), String::new());
    inputs.connect("mapping", Arc::new(mapping), String::new(), String::new());
    let params = serde_json::from_str("{}").unwrap();
    let Outcome::Done(outputs) = FabricStage::run(params, inputs, &Context::detached()).unwrap() else {
        panic!("not done")
    };
    let tables = outputs.get("tables").unwrap().downcast_ref::<Tables>().unwrap();
    assert_eq!(tables.metrics["busiest_program_bytes"], 1000.0);
}
