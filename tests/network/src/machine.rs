//! Machines in the format `graph-json` of `topology/export`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::routes::{Ties, shortest};
use crate::{Description, Error, Link};

#[derive(Debug, Deserialize)]
struct Machine {
    nodes: Vec<Node>,
    links: Vec<Cable>,
    #[serde(default)]
    routing: Routing,
}

#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    kind: Kind,
    #[serde(default)]
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Host,
    Switch,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    #[default]
    Up,
    Down,
}

#[derive(Debug, Deserialize)]
struct Cable {
    source: usize,
    destination: usize,
    #[serde(default)]
    latency_s: f64,
    bandwidth_bytes_per_s: Option<f64>,
    #[serde(default)]
    state: State,
}

#[derive(Debug, Default, Deserialize)]
struct Routing {
    /// Node, last link and the link on which the node sends what is to leave the network over the last link.
    #[serde(default)]
    forwarding: Vec<[usize; 3]>,
    #[serde(default)]
    ties: Option<String>,
}

impl Description {
    /// The network of a machine as `topology/export` writes it with `format = "graph-json"`: names, links that are up, and routes by
    /// forwarding tables or over the fewest links. A link without a latency has none, and one without a bandwidth has no limit.
    pub fn read_machine(path: &Path) -> Result<Self, Error> {
        let wrong =
            |problem: &dyn std::fmt::Display| Error::Description(format!("{}: {problem}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let machine: Machine = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let description = machine.describe().map_err(|error| wrong(&error))?;
        description.check().map_err(|error| wrong(&error))?;
        Ok(description)
    }
}

impl Machine {
    fn describe(&self) -> Result<Description, Error> {
        // Nodes that are down keep their numbers in the file, but are not part of the network.
        let of_kind = |kind: Kind| {
            let is_up = move |(_, node): &(usize, &Node)| node.kind == kind && node.state == State::Up;
            self.nodes.iter().enumerate().filter(is_up)
        };
        let order = || of_kind(Kind::Host).chain(of_kind(Kind::Switch));
        let numbers: HashMap<usize, usize> = order().enumerate().map(|(new, (old, _))| (old, new)).collect();
        let (mut links, mut link_numbers) = (Vec::new(), HashMap::new());
        for (number, cable) in self.links.iter().enumerate().filter(|(_, cable)| cable.state == State::Up) {
            if let Some(outside) =
                [cable.source, cable.destination].into_iter().find(|&end| end >= self.nodes.len())
            {
                return Err(Error::Description(format!(
                    "link {number} has an end {outside}, which is not a node"
                )));
            }
            let ends = (numbers.get(&cable.source), numbers.get(&cable.destination));
            let (Some(&from), Some(&to)) = ends else { continue };
            link_numbers.insert(number, links.len());
            links.push(Link::new(from, to, cable.latency_s, cable.bandwidth_bytes_per_s));
        }
        let names = |kind| of_kind(kind).map(|(_, node)| node.name.clone()).collect::<Vec<_>>();
        let (hosts, switches) = (names(Kind::Host), names(Kind::Switch));
        let routes = if self.routing.forwarding.is_empty() {
            let ties = if self.routing.ties.as_deref() == Some("first") { Ties::First } else { Ties::Spread };
            shortest(hosts.len(), hosts.len() + switches.len(), &links, ties)
        } else {
            let tables = self.routing.forwarding.iter().filter_map(|[node, last, link]| {
                Some(((*numbers.get(node)?, *link_numbers.get(last)?), *link_numbers.get(link)?))
            });
            by_tables(hosts.len(), &links, &tables.collect())
        };
        Ok(Description { hosts, switches, links, routes })
    }
}

/// The routes of forwarding tables: by node and last link, the next link. A host sends on its first link whose switch knows a route.
fn by_tables(hosts: usize, links: &[Link], tables: &HashMap<(usize, usize), usize>) -> Vec<Vec<usize>> {
    let into = |to: usize| (0..links.len()).filter(move |&link| links[link].to == to);
    let mut routes = vec![Vec::new(); hosts * hosts];
    for (from, to) in
        (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        let ways = into(to).filter(|&last| links[last].from >= hosts).flat_map(|last| {
            let own = tables.get(&(from, last)).copied();
            let firsts = (0..links.len()).filter(move |&first| links[first].from == from);
            firsts.filter(move |&first| own.is_none_or(|own| own == first)).map(move |first| (first, last))
        });
        let follow = |(first, last): (usize, usize)| {
            let mut route = vec![first];
            while *route.last()? != last {
                let node = links[*route.last()?].to;
                if node < hosts || route.len() > links.len() {
                    return None;
                }
                route.push(*tables.get(&(node, last))?);
            }
            Some(route)
        };
        routes[from * hosts + to] = ways.into_iter().find_map(follow).unwrap_or_default();
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Description, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.json");
        fs::write(&path, text).unwrap();
        Description::read_machine(&path)
    }

    const MACHINE: &str = r#"{"directed": true,
        "nodes": [{"kind":"switch","name":"s"}, {"kind":"host","name":"node2"}, {"kind":"host","name":"node1"},
                  {"kind":"host","name":"gone","state":"down"}, {"kind":"switch","name":"t"}],
        "links": [{"source":1,"destination":0,"latency_s":1e-5,"bandwidth_bytes_per_s":1e8}, {"source":0,"destination":1},
                  {"source":2,"destination":0}, {"source":0,"destination":2}, {"source":3,"destination":0},
                  {"source":0,"destination":3}, {"source":0,"destination":4}, {"source":4,"destination":2}],
        "slots": [[1,0],[2,0]], "routing": ROUTING, "cost": {}}"#;

    #[test]
    fn a_machine_keeps_its_names_links_and_routes() {
        let shortest = read(&MACHINE.replace("ROUTING", r#"{"ties":"first","forwarding":[]}"#)).unwrap();
        assert_eq!(shortest.hosts, ["node2", "node1"]);
        assert_eq!(shortest.switches, ["s", "t"]);
        assert_eq!(shortest.links[0], Link::new(0, 2, 1e-5, Some(1e8)));
        assert_eq!((shortest.route(0, 1), shortest.route(1, 0)), ([0, 3].as_slice(), [2, 1].as_slice()));
        let tables = r#"{"ties":"spread","forwarding":[[0,1,1],[0,7,6],[4,7,7]]}"#;
        let routed = read(&MACHINE.replace("ROUTING", tables)).unwrap();
        assert_eq!((routed.route(0, 1), routed.route(1, 0)), ([0, 4, 5].as_slice(), [2, 1].as_slice()));
    }

    #[test]
    fn files_that_describe_no_machine_are_refused_by_name() {
        let message = |text: &str| {
            let message = read(text).unwrap_err().to_string();
            message.split_once("machine.json: ").unwrap().1.to_owned()
        };
        assert_eq!(message("{"), "EOF while parsing an object at line 1 column 1");
        assert_eq!(message(r#"{"nodes": [], "links": []}"#), "a network has 2 to 200 hosts");
        let far = MACHINE.replace("ROUTING", "{}").replace(r#""destination":4}"#, r#""destination":5}"#);
        assert_eq!(message(&far), "link 6 has an end 5, which is not a node");
    }
}
