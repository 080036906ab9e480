//! The way of a packet through tables.

use std::collections::{BTreeSet, HashMap, HashSet};

use hopmap_model::{Route, SwitchType, Tables};

use crate::{CheckError, Network};

/// A table: a switch, and the port if it is not that of the whole switch.
type TableOf = (u32, Option<u32>);

/// The tables of all switches of a network.
pub(super) struct Replay<'a> {
    network: &'a Network<'a>,
    /// The output port by table and destination.
    outputs: HashMap<(TableOf, u32), u32>,
}

impl<'a> Replay<'a> {
    /// Tables whose entries name what there is.
    pub(super) fn new(network: &'a Network<'a>, tables: &Tables) -> Result<Self, CheckError> {
        let nodes = &network.system.nodes;
        let mut outputs = HashMap::new();
        for entry in &tables.entries {
            let (Some(switch), Some(destination)) =
                (nodes.get(entry.switch as usize), nodes.get(entry.destination as usize))
            else {
                return Err(CheckError::new(
                    "an entry names a node that this machine does not have",
                    "are they the tables of another machine?",
                ));
            };
            if network.is_host(entry.switch) || !network.is_host(entry.destination) {
                return Err(CheckError::new(
                    format!("an entry of `{}` says where `{}` is", switch.name, destination.name),
                    "tables are those of switches, and destinations are hosts",
                ));
            }
            if switch.traits.switch_type == Some(SwitchType::One)
                && let Some(port) = entry.input_port
            {
                return Err(CheckError::new(
                    format!("switch `{}` is of type 1 and has a table for port {port}", switch.name),
                    "a switch of type 1 has one table for all ports",
                ));
            }
            if network.by_port(entry.switch, entry.output_port).is_none() {
                return Err(CheckError::new(
                    format!(
                        "switch `{}` sends what is for `{}` out by port {}, where no link is",
                        switch.name, destination.name, entry.output_port
                    ),
                    "the link may be down, or the port have another number",
                ));
            }
            outputs.insert(((entry.switch, entry.input_port), entry.destination), entry.output_port);
        }
        Ok(Self { network, outputs })
    }

    /// The links that a stream takes.
    pub(super) fn follow(
        &self,
        route: &Route,
        given: Option<&Route>,
        notes: &mut BTreeSet<String>,
    ) -> Result<Vec<u32>, CheckError> {
        let mut links = Vec::new();
        if route.source != route.destination {
            let mut link = self.first(route, given)?;
            let mut passed: HashSet<(u32, Option<u32>)> = HashSet::new();
            let mut switches: HashSet<u32> = HashSet::new();
            loop {
                links.push(link);
                let arrived = &self.network.system.links[link as usize];
                let (node, port) = (arrived.destination, arrived.destination_port);
                if node == route.destination {
                    break;
                }
                if self.network.is_host(node) {
                    return Err(self.wrong(
                        route,
                        &format!("arrives at host `{}`, which passes nothing on", self.name(node)),
                    ));
                }
                if !passed.insert((node, port)) {
                    return Err(self.wrong(
                        route,
                        &format!("goes round for ever by way of switch `{}`", self.name(node)),
                    ));
                }
                if !switches.insert(node) {
                    notes.insert(format!(
                        "what goes from `{}` to `{}` passes switch `{}` twice",
                        self.name(route.source),
                        self.name(route.destination),
                        self.name(node)
                    ));
                }
                let (_, output) = self.entry(node, port, route.destination).ok_or_else(|| {
                    self.wrong(
                        route,
                        &format!("stops at switch `{}`, whose table does not know it", self.name(node)),
                    )
                })?;
                link = self.network.by_port(node, output).unwrap_or(link);
            }
        }
        match given.filter(|given| given.links != links) {
            None => Ok(links),
            Some(given) => {
                let way = |links: &[u32]| {
                    links.iter().map(|&link| self.name_of(link)).collect::<Vec<_>>().join(", ")
                };
                Err(self.wrong(
                    route,
                    &format!("goes {} and not {}, as its route says", way(&links), way(&given.links)),
                ))
            }
        }
    }

    fn first(&self, route: &Route, given: Option<&Route>) -> Result<u32, CheckError> {
        let leaving = self.network.leaving(route.source);
        let chosen = given.and_then(|given| given.links.first()).filter(|link| leaving.contains(link));
        match (leaving, chosen) {
            (_, Some(link)) | ([link], None) => Ok(*link),
            ([], None) => Err(self.wrong(route, "cannot leave its host, which no link leaves")),
            (_, None) => Err(CheckError::new(
                format!(
                    "host `{}` has {} links, and nothing says by which it sends",
                    self.name(route.source),
                    leaving.len()
                ),
                "connect the `routes` beside the tables",
            )),
        }
    }

    /// The table that decides, and its port.
    fn entry(&self, switch: u32, input: Option<u32>, destination: u32) -> Option<(TableOf, u32)> {
        let tables = [(switch, input), (switch, None)];
        tables
            .into_iter()
            .find_map(|table| self.outputs.get(&(table, destination)).map(|&output| (table, output)))
    }

    /// Entries that no stream uses.
    pub(super) fn unused(&self, routes: &[Route], network: &Network<'_>) -> usize {
        let mut used = HashSet::new();
        for route in routes {
            for pair in route.links.windows(2) {
                let arrived = &network.system.links[pair[0] as usize];
                if let Some((table, _)) =
                    self.entry(arrived.destination, arrived.destination_port, route.destination)
                {
                    used.insert((table, route.destination));
                }
            }
        }
        self.outputs.len() - used.len()
    }

    fn wrong(&self, route: &Route, problem: &str) -> CheckError {
        let [source, destination] = [route.source, route.destination].map(|node| self.name(node));
        CheckError::new(
            format!("what goes from `{source}` to `{destination}` {problem}"),
            "the tables do not bring every stream where it belongs",
        )
    }

    fn name(&self, node: u32) -> &str {
        &self.network.system.nodes[node as usize].name
    }

    fn name_of(&self, link: u32) -> String {
        match self.network.system.links.get(link as usize) {
            Some(_) => self.network.name_of(link),
            None => format!("link {link}"),
        }
    }
}
