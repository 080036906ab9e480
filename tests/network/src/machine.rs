//! Machines in the format `graph-json` of `topology/export`.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::description::Description;
use crate::error::Error;
use crate::link::Link;
use crate::routes::{Graph, Ties};

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
    ties: Ties,
}

impl Description {
    /// The network of a machine as `topology/export` writes it with `format = "graph-json"`: names, links that are up, and the routes
    /// that mappers expect. A link without a latency has none, and one without a bandwidth has no limit.
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
        let cables: Vec<Option<(usize, usize)>> = self
            .links
            .iter()
            .enumerate()
            .map(|(number, cable)| self.ends(number, cable))
            .collect::<Result<_, _>>()?;
        let is_host: Vec<bool> = self.nodes.iter().map(|node| node.kind == Kind::Host).collect();
        let tables = self.routing.forwarding.iter().map(|&[node, last, link]| ((node, last), link)).collect();
        // What is down has its number in the file, which matters for routes, but is not part of the network.
        let nodes = |is_wanted: bool| {
            let is_up = |&node: &usize| self.nodes[node].state == State::Up && is_host[node] == is_wanted;
            (0..is_host.len()).filter(is_up).collect::<Vec<_>>()
        };
        let (hosts, switches) = (nodes(true), nodes(false));
        let mut routes = Graph::new(&is_host, &cables, self.routing.ties, tables).routes(&hosts);
        let count = |up: &mut usize, ends: &Option<_>| {
            *up += usize::from(ends.is_some());
            Some(up.saturating_sub(1))
        };
        let link_numbers: Vec<usize> = cables.iter().scan(0, count).collect();
        routes.iter_mut().flatten().for_each(|link| *link = link_numbers[*link]);
        let number = |node| hosts.iter().chain(&switches).position(|&other| other == node);
        let links = cables.iter().zip(&self.links).filter_map(|(ends, cable)| {
            let (from, to) = (number(ends.as_ref()?.0)?, number(ends.as_ref()?.1)?);
            Some(Link::new(from, to, cable.latency_s, cable.bandwidth_bytes_per_s))
        });
        let names = |nodes: &[usize]| nodes.iter().map(|&node| self.nodes[node].name.clone()).collect();
        Ok(Description { links: links.collect(), hosts: names(&hosts), switches: names(&switches), routes })
    }

    /// The ends of a link; none if it is down or leads nowhere.
    fn ends(&self, number: usize, cable: &Cable) -> Result<Option<(usize, usize)>, Error> {
        let ends = [cable.source, cable.destination];
        if let Some(outside) = ends.into_iter().find(|&end| end >= self.nodes.len()) {
            return Err(Error::Description(format!(
                "link {number} has an end {outside}, which is not a node"
            )));
        }
        let is_up = cable.state == State::Up && ends.iter().all(|&end| self.nodes[end].state == State::Up);
        Ok((is_up && ends[0] != ends[1]).then_some(ends.into()))
    }
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

    /// Two hosts behind one that is down, and two spines: routes took the spines of the wrong hosts.
    #[test]
    fn hosts_that_are_down_count_for_the_routes_of_others() {
        let node = |name: &str| {
            let kind = if name.starts_with('h') { "host" } else { "switch" };
            let state = if name == "h1" { "down" } else { "up" };
            format!(r#"{{"name":"{name}","kind":"{kind}","state":"{state}"}}"#)
        };
        let nodes = ["h0", "h1", "h2", "h3", "leaf0", "leaf1", "spine0", "spine1"].map(node).join(",");
        let link = |(a, b): (usize, usize)| {
            format!(r#"{{"source":{a},"destination":{b}}},{{"source":{b},"destination":{a}}}"#)
        };
        let links = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)].map(link).join(",");
        let description = read(&format!(r#"{{"nodes":[{nodes}],"links":[{links}]}}"#)).unwrap();
        assert_eq!((description.hosts.join(" "), description.links.len()), ("h0 h2 h3".to_owned(), 14));
        let spine = |from, to| {
            let [_, up, ..] = description.route(from, to) else { panic!("no route") };
            description.switches[description.links[*up].to - 3].clone()
        };
        assert_eq!([spine(0, 1), spine(0, 2), spine(1, 0)], ["spine0", "spine1", "spine0"]);
    }

    /// Hosts with a port in each of two rails: all routes took the first one.
    #[test]
    fn pairs_of_hosts_are_spread_over_their_ports() {
        let ends = (0..3).flat_map(|host| [(host, 3), (3, host), (host, 4), (4, host)]);
        let links = ends.map(|(from, to)| Link::new(from, to, 0.0, None)).collect();
        let rails = Description::links(3, 2, links);
        let rail = |from, to| rails.links[rails.route(from, to)[0]].to;
        assert_eq!([rail(0, 1), rail(1, 0), rail(0, 2), rail(1, 2)], [4, 4, 3, 4]);
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
