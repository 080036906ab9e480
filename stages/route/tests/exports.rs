//! What devices do with an exported file: every packet takes the route that the tables had. The files are read with code of these tests,
//! by the rules of the devices.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use hopmap_model::{NodeKind, SystemGraph, TableEntry, Tables};
use hopmap_route::{ExportFormat, ExportParams, Family, Instance, export};
use hopmap_test_support::Random;

/// Names of the nodes on the way from one host to another, by their names.
type Routes = BTreeMap<(String, String), Vec<String>>;

/// What a switch does: the output port for an input port and a destination.
type Forward<'a> = &'a dyn Fn(&str, u32, &str) -> Option<u32>;

/// A ring of switches with chords and parallel cables, and up to three hosts at each.
fn fabric(random: &mut Random, switch_type: usize) -> SystemGraph {
    let switches = 3 + random.below(5);
    let (mut hosts, mut links, mut cables) = (String::new(), String::new(), 0);
    for switch in 0..switches {
        for host in 0..random.below(3) + usize::from(switch < 2) {
            write!(hosts, "{{ name = 'h{switch}-{host}', performance = 1 }}, ").unwrap();
            write!(links, "{{ a = 's{switch}', b = 'h{switch}-{host}', bandwidth = 1 }}, ").unwrap();
        }
        for (index, step) in [1, 1 + random.below(switches - 1)].into_iter().enumerate() {
            let (port, other) = (4 + index, (switch + step) % switches);
            let cable = format!("a = 's{switch}', b = 's{other}', a_port = {port}, b_port = {}", cables + 6);
            write!(links, "{{ {cable}, bandwidth = 1 }}, ").unwrap();
            cables += 1;
        }
    }
    let mut names = String::new();
    for switch in 0..switches {
        write!(names, "{{ name = 's{switch}', type = {switch_type} }}, ").unwrap();
    }
    let text = format!("hosts = [{hosts}]\nswitches = [{names}]\nlinks = [{links}]\nprocesses = []\n");
    Instance::parse(text.as_bytes(), Path::new("fabric")).unwrap().system
}

/// Random routes without loops that agree at every table, and the tables.
fn routed(system: &SystemGraph, random: &mut Random, per_port: bool) -> (Routes, Tables) {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let hosts: Vec<u32> = (0..system.nodes.len() as u32).filter(|&node| is_host(node)).collect();
    let name = |node: u32| system.nodes[node as usize].name.clone();
    let (mut routes, mut entries) = (Routes::new(), BTreeMap::new());
    for &source in &hosts {
        for &destination in hosts.iter().filter(|host| **host != source) {
            // A random walk may get stuck between entries of earlier routes.
            for _ in 0..200 {
                let mut new = Vec::new();
                let mut link = system.links.iter().find(|link| link.source == source).unwrap();
                let mut path = vec![source, link.destination];
                while link.destination != destination {
                    let switch = link.destination;
                    let key = (switch, link.destination_port.filter(|_| per_port), destination);
                    let leaving: Vec<_> = system
                        .links
                        .iter()
                        .filter(|next| next.source == switch)
                        .filter(|next| next.destination == destination || !is_host(next.destination))
                        .filter(|next| !path.contains(&next.destination))
                        .filter(|next| entries.get(&key).is_none_or(|&port| next.source_port == Some(port)))
                        .collect();
                    let Some(&next) = leaving.get(random.below(leaving.len())) else { break };
                    new.push((key, next.source_port.unwrap()));
                    path.push(next.destination);
                    link = next;
                }
                if link.destination == destination {
                    entries.extend(new);
                    routes.insert((name(source), name(destination)), path.into_iter().map(name).collect());
                    break;
                }
            }
        }
    }
    let entry = |((switch, input_port, destination), output_port)| TableEntry {
        switch,
        input_port,
        destination,
        output_port,
    };
    let mut entries: Vec<TableEntry> = entries.into_iter().map(entry).collect();
    if per_port {
        share(&mut entries, random);
    }
    entries.sort_unstable();
    assert!(routes.len() * 10 >= hosts.len() * (hosts.len() - 1) * 8, "{} routes", routes.len());
    (routes, Tables { entries, metrics: BTreeMap::new() })
}

/// Moves entries that several ports have into the table of the switch, which then serves the ports that know nothing else.
fn share(entries: &mut Vec<TableEntry>, random: &mut Random) {
    for chosen in entries.clone() {
        let of_switch =
            |entry: &TableEntry| (entry.switch, entry.destination) == (chosen.switch, chosen.destination);
        let has_own = entries.iter().any(|entry| of_switch(entry) && entry.input_port.is_none());
        if !has_own && random.below(3) == 0 {
            entries.retain(|entry| !(of_switch(entry) && entry.output_port == chosen.output_port));
            entries.push(TableEntry { input_port: None, ..chosen });
        }
    }
}

/// The routes that packets take.
fn walked(system: &SystemGraph, routes: &Routes, forward: Forward<'_>) -> Routes {
    let name = |node: u32| system.nodes[node as usize].name.as_str();
    let walk = |(source, destination): &(String, String)| {
        let mut link = system.links.iter().find(|link| name(link.source) == source)?;
        let mut path = vec![source.clone(), name(link.destination).to_owned()];
        while name(link.destination) != destination && path.len() <= system.nodes.len() {
            let switch = link.destination;
            let port = forward(name(switch), link.destination_port?, destination)?;
            link =
                system.links.iter().find(|link| (link.source, link.source_port) == (switch, Some(port)))?;
            path.push(name(link.destination).to_owned());
        }
        Some(((source.clone(), destination.clone()), path))
    };
    routes.keys().filter_map(walk).collect()
}

fn written(system: &SystemGraph, tables: &Tables, format: ExportFormat, family: Family) -> String {
    export::write(system, tables, &ExportParams { format, family, lids: None }).unwrap().text
}

/// The daemon's tables: a port that has one asks no other.
fn replay_fmd(system: &SystemGraph, tables: &Tables, routes: &Routes) -> Routes {
    let text = written(system, tables, ExportFormat::Fmd, Family::Cps);
    let mut entries: HashMap<(String, String), HashMap<String, u32>> = HashMap::new();
    let (mut switch, mut table) = (String::new(), String::new());
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["SWITCH", _, name, ..] => name.clone_into(&mut switch),
            ["ROUTING_TABLE", "dev08", name] => {
                name.clone_into(&mut table);
                entries.insert((switch.clone(), table.clone()), HashMap::new());
            }
            ["RANGE", "0", "0xff", "DROP"] => {
                entries.get_mut(&(switch.clone(), table.clone())).unwrap().clear();
            }
            ["DESTID", end, port] => {
                let host = end.rsplit_once('.').unwrap().0.to_owned();
                let own = entries.get_mut(&(switch.clone(), table.clone())).unwrap();
                own.insert(host, port.parse().unwrap());
            }
            _ => {}
        }
    }
    walked(system, routes, &|switch, input, destination| {
        let table = |name: String| entries.get(&(switch.to_owned(), name));
        let own = table(input.to_string()).or_else(|| table("GLOBAL".to_owned()))?;
        own.get(destination).copied()
    })
}

/// Device ids: hosts from 1 in their order.
fn ids(system: &SystemGraph) -> HashMap<String, u32> {
    let hosts = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    hosts.map(|node| node.name.clone()).zip(1..).collect()
}

fn replay_rio(system: &SystemGraph, tables: &Tables, routes: &Routes) -> Routes {
    let text = written(system, tables, ExportFormat::Rio, Family::Cps);
    let mut entries: HashMap<(String, u32), u32> = HashMap::new();
    let mut switch = "";
    let hexadecimal = |word: &str| u32::from_str_radix(word, 16).unwrap();
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["#", name, _] => switch = name,
            [destination, port] => {
                entries.insert((switch.to_owned(), hexadecimal(destination)), hexadecimal(port));
            }
            _ => panic!("{line}"),
        }
    }
    let ids = ids(system);
    walked(system, routes, &|switch, _, destination| {
        entries.get(&(switch.to_owned(), ids[destination])).copied()
    })
}

/// Register writes in their order; addresses as in Linux's drivers for these switches (`drivers/rapidio/switches`: `idt_gen2.c`,
/// `tsi57x.c`, `idt_gen3.c`). Writes for all ports overwrite what a port had.
fn replay_registers(system: &SystemGraph, tables: &Tables, routes: &Routes, family: Family) -> Routes {
    let text = written(system, tables, ExportFormat::Registers, family);
    let mut entries: HashMap<(String, u32, u32), u32> = HashMap::new();
    let mut state: HashMap<(String, u32), u32> = HashMap::new();
    let ports = 0..32_u32;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [switch, register, value] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let number = |word: &str| u32::from_str_radix(word.strip_prefix("0x").unwrap(), 16).unwrap();
        let (register, value) = (number(register), number(value));
        state.insert((switch.to_owned(), register), value);
        let known = |register: u32| state.get(&(switch.to_owned(), register)).copied();
        // The input port, none for all, and the destination of a write that sets an entry.
        let entry = match (family, register) {
            (Family::Cps, 0x74) => Some((known(0x01_0070).unwrap().checked_sub(1), known(0x70).unwrap())),
            (Family::Tsi57x, 0x1_0074) => Some((None, known(0x1_0070).unwrap())),
            (Family::Tsi57x, 0x1_1074..) if register % 0x100 == 0x74 => {
                Some((Some((register - 0x1_1074) / 0x100), known(register - 4).unwrap()))
            }
            (Family::Rxs, 0x3_1000..0x3_1400) => Some((None, (register - 0x3_1000) / 4)),
            (Family::Rxs, 0x5_1000..) => {
                Some((Some((register - 0x5_1000) / 0x2000), (register - 0x5_1000) % 0x2000 / 4))
            }
            _ => None,
        };
        if let Some((input, destination)) = entry {
            for port in ports.clone().filter(|port| input.is_none_or(|input| input == *port)) {
                entries.insert((switch.to_owned(), port, destination), value);
            }
        }
    }
    let ids = ids(system);
    walked(system, routes, &|switch, input, destination| {
        entries.get(&(switch.to_owned(), input, ids[destination])).copied()
    })
}

/// Tables by local id, in a dump whose own entries lead nowhere.
fn replay_lft(system: &SystemGraph, tables: &Tables, routes: &Routes, random: &mut Random) -> Routes {
    let lids: HashMap<&str, usize> =
        system.nodes.iter().map(|node| node.name.as_str()).zip((0..).map(|index| 3 + 7 * index)).collect();
    let mut dump = String::new();
    for (index, switch) in system.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch) {
        let (lid, name) = (lids[switch.name.as_str()], &switch.name);
        writeln!(dump, "Unicast lids [0x0-0xff] of switch Lid {lid} guid {index:#018x} ({name}):").unwrap();
        for node in &system.nodes {
            let (lid, name, port) = (lids[node.name.as_str()], &node.name, random.below(9));
            writeln!(dump, "{lid:#06x} {port:03} : (port of '{name} HCA-1')").unwrap();
        }
    }
    let text = export::forwarding_tables(system, tables, &dump).unwrap();
    let mut entries: HashMap<(String, usize), u32> = HashMap::new();
    let mut switch = String::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("of switch") {
            let (_, name) = rest.rsplit_once('(').unwrap();
            name.trim_end_matches("):").clone_into(&mut switch);
        } else if let [lid, port, ..] = line.split_whitespace().collect::<Vec<_>>()[..]
            && let Some(lid) = lid.strip_prefix("0x")
        {
            let lid = usize::from_str_radix(lid, 16).unwrap();
            entries.insert((switch.clone(), lid), port.parse().unwrap());
        }
    }
    walked(system, routes, &|switch, _, destination| {
        entries.get(&(switch.to_owned(), lids[destination])).copied()
    })
}

#[test]
fn packets_take_the_routes_of_the_tables_in_every_exported_format() {
    for seed in 0..60 {
        let mut random = Random(seed);
        for per_port in [false, true] {
            let system = fabric(&mut random, if per_port { 2 } else { 1 });
            let (routes, tables) = routed(&system, &mut random, per_port);
            assert_eq!(replay_fmd(&system, &tables, &routes), routes, "fmd, {seed}");
            for family in [Family::Cps, Family::Tsi57x, Family::Rxs] {
                let replayed = replay_registers(&system, &tables, &routes, family);
                assert_eq!(replayed, routes, "{family:?}, {seed}");
            }
            if !per_port {
                assert_eq!(replay_rio(&system, &tables, &routes), routes, "rio, {seed}");
                let replayed = replay_lft(&system, &tables, &routes, &mut random);
                assert_eq!(replayed, routes, "lft, {seed}");
            }
        }
    }
}
