//! Checks that tables deliver every stream within the capacities of the machine. Every packet is followed entry by entry, as the
//! switches do. Hosts must meet the demands of their processes, and links and switches must not be overloaded.
//!
//! Shares no code with the solvers: its only inputs are the machine, the mapping and the entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{Counting, Mapping, NodeState, Route, Routes, SwitchType, SystemGraph, Tables, TaskGraph};

use crate::error::{Result, fail};
use crate::network::{Network, cycle, only_neighbours};
use crate::problem::Rules;
use crate::quantity::rate;

/// Relative tolerance for sums of bandwidth or performance: rounding.
const TOLERANCE: f64 = 1e-9;

/// The effect of tables on the streams of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The route of every stream, with all metrics.
    pub routes: Routes,
    /// Legal but undesirable properties, as text.
    pub notes: Vec<String>,
}

/// Follows the tables; fails if a stream does not arrive or exceeds a capacity. If a host has several links, the `given` routes
/// determine its first link; they must match the tables completely. With `aggregate_flows`, all streams from one host to another
/// are one.
pub fn check(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    tables: &Tables,
    given: Option<&Routes>,
    rules: &Rules,
    aggregate_flows: bool,
) -> Result<Checked> {
    let network = Network::new(system);
    let (host_of, performance_share) = check_hosts(graph, system, mapping, rules.performance_slack)?;
    let replay = Replay::new(&network, tables)?;
    let mut used = vec![false; replay.outputs.len()];
    let mut notes = BTreeSet::new();
    let mut routes = wanted(graph, &host_of, aggregate_flows);
    let given: Option<HashMap<&[u32], &Route>> =
        given.map(|given| given.routes.iter().map(|route| (route.streams.as_slice(), route)).collect());
    for route in &mut routes {
        let given = given.as_ref().map(|given| of_same_streams(given, route)).transpose()?;
        route.links = replay.follow(route, given, &mut notes, &mut used)?;
    }
    lengths(&network, &routes, rules.max_hops)?;
    let carried = Carried::of(&network, &routes);
    carried.check(rules)?;
    let cycle = cycle(system.links.len(), routes.iter().map(|route| route.links.as_slice()));
    let mut notes: Vec<String> = notes.into_iter().collect();
    if !cycle.is_empty() {
        let names: Vec<String> = cycle.iter().map(|&link| network.name_of(link)).collect();
        let words = format!("links can wait for each other in a cycle: {}", names.join(", "));
        if rules.deadlock_free {
            let help = "route with `deadlock_free = true`, or omit `deadlock_free` here to report cycles without an error";
            return fail(words, help);
        }
        notes.push(words);
    }
    let unused = used.into_iter().filter(|is_used| !is_used).count();
    if unused > 0 {
        notes.push(format!("{unused} entries are not used by any stream"));
    }
    let mut metrics = metrics(&routes, tables, rules, cycle.is_empty());
    metrics.extend(carried.metrics());
    metrics.insert("largest_link_load_bound".to_owned(), least_busiest(&network, &routes));
    metrics.insert("least_performance_slack_share".to_owned(), performance_share);
    let counting = if aggregate_flows { Counting::HostPairs } else { Counting::Streams };
    Ok(Checked { routes: Routes { routes, counting, cycle, metrics }, notes })
}

/// The given route of the streams of a route.
fn of_same_streams<'a>(given: &HashMap<&[u32], &'a Route>, route: &Route) -> Result<&'a Route> {
    match given.get(route.streams.as_slice()) {
        Some(given) => Ok(given),
        None => fail(
            format!("the given routes do not contain streams {:?}", route.streams),
            "use the routes of this program, and the same `aggregate_flows` as when they were computed",
        ),
    }
}

/// One route per stream, or per communicating pair of hosts; still without links.
fn wanted(graph: &TaskGraph, host_of: &[u32], merged: bool) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut pairs: HashMap<(u32, u32), usize> = HashMap::new();
    for (index, stream) in (0..).zip(&graph.demands.streams) {
        let [source, destination] = [stream.source, stream.destination].map(|rank| host_of[rank as usize]);
        // Streams inside a host use no link, so they are not merged.
        let next = routes.len();
        let is_merged = merged && source != destination;
        let at = if is_merged { *pairs.entry((source, destination)).or_insert(next) } else { next };
        if at == next {
            routes.push(Route { source, destination, ..Route::default() });
        }
        routes[at].streams.push(index);
        routes[at].bandwidth_bytes_per_s += stream.bandwidth_bytes_per_s;
    }
    routes
}

fn metrics(routes: &[Route], tables: &Tables, rules: &Rules, deadlock_free: bool) -> BTreeMap<String, f64> {
    let lengths = || routes.iter().map(|route| route.links.len() as f64);
    let (longest, hops) = (lengths().fold(0.0, f64::max), lengths().sum::<f64>());
    let entries = tables.entries.len() as f64;
    let weights = rules.weights;
    let objective =
        weights.longest_route * longest + weights.total_hops * hops + weights.table_entries * entries;
    let metrics = [
        ("objective", objective),
        ("longest", longest),
        ("hops", hops),
        ("entries", entries),
        ("deadlock_free", f64::from(u8::from(deadlock_free))),
    ];
    metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A table: a switch, and the input port if the table is not for all ports.
type TableOf = (u32, Option<u32>);

/// The tables of all switches of a network.
struct Replay<'a> {
    network: &'a Network<'a>,
    /// The output port by table and destination, with a number.
    outputs: HashMap<(TableOf, u32), (u32, usize)>,
}

impl<'a> Replay<'a> {
    /// Builds tables whose entries refer to existing nodes and ports.
    fn new(network: &'a Network<'a>, tables: &Tables) -> Result<Self> {
        let nodes = &network.system.nodes;
        let mut outputs = HashMap::new();
        for entry in &tables.entries {
            let (Some(switch), Some(destination)) =
                (nodes.get(entry.switch as usize), nodes.get(entry.destination as usize))
            else {
                return fail(
                    "a table entry refers to a node that this machine does not have",
                    "use the tables of this machine",
                );
            };
            let (name, host) = (&switch.name, &destination.name);
            if network.is_host(entry.switch) || !network.is_host(entry.destination) {
                return fail(
                    format!("a table entry at `{name}` has the destination `{host}`"),
                    "only switches have tables, and destinations must be hosts",
                );
            }
            if let Some(port) = entry.input_port
                && switch.traits.switch_type == Some(SwitchType::One)
            {
                return fail(
                    format!("switch `{name}` is of type 1, but has a table for port {port}"),
                    "a switch of type 1 has one table for all ports",
                );
            }
            let port = entry.output_port;
            if network.by_port(entry.switch, port).is_none() {
                return fail(
                    format!("switch `{name}` sends packets for `{host}` to port {port}, which has no link"),
                    "the link may be down, or the port may have another number",
                );
            }
            let next = outputs.len();
            let place = outputs.entry(((entry.switch, entry.input_port), entry.destination));
            place.and_modify(|(known, _)| *known = port).or_insert((port, next));
        }
        Ok(Self { network, outputs })
    }

    /// The links on the route of a stream. Marks the entries that it uses.
    fn follow(
        &self,
        route: &Route,
        given: Option<&Route>,
        notes: &mut BTreeSet<String>,
        used: &mut [bool],
    ) -> Result<Vec<u32>> {
        let mut links = Vec::new();
        if route.source != route.destination {
            let mut link = self.first(route, given)?;
            // Routes are short.
            let mut passed: Vec<(u32, Option<u32>)> = Vec::new();
            loop {
                links.push(link);
                let arrived = &self.network.system.links[link as usize];
                let (node, port) = (arrived.destination, arrived.destination_port);
                let name = self.name(node);
                if node == route.destination {
                    break;
                }
                if self.network.is_host(node) {
                    return self
                        .wrong(route, &format!("arrives at host `{name}`, which does not forward packets"));
                }
                if passed.contains(&(node, port)) {
                    return self.wrong(route, &format!("loops forever through switch `{name}`"));
                }
                if passed.iter().any(|(switch, _)| *switch == node) {
                    notes.insert(format!("{} passes switch `{name}` twice", self.traffic(route)));
                }
                passed.push((node, port));
                let Some((output, number)) = self.entry(node, port, route.destination) else {
                    return self
                        .wrong(route, &format!("stops at switch `{name}`, which has no table entry for it"));
                };
                used[number] = true;
                link = self.network.by_port(node, output).unwrap_or(link);
            }
        }
        let Some(given) = given.filter(|given| given.links != links) else { return Ok(links) };
        let [taken, expected] = [&links, &given.links]
            .map(|links| links.iter().map(|&link| self.name_of(link)).collect::<Vec<_>>().join(", "));
        self.wrong(route, &format!("takes {taken} instead of its given route {expected}"))
    }

    fn first(&self, route: &Route, given: Option<&Route>) -> Result<u32> {
        let leaving = self.network.leaving(route.source);
        let chosen = given.and_then(|given| given.links.first()).filter(|link| leaving.contains(link));
        let (name, count) = (self.name(route.source), leaving.len());
        match (leaving, chosen) {
            (_, Some(link)) | ([link], None) => Ok(*link),
            ([], None) => self.wrong(route, "cannot leave its host, which has no link"),
            (_, None) => fail(
                format!("host `{name}` has {count} links, and its outgoing link is not specified"),
                "connect the input `routes` as well",
            ),
        }
    }

    /// The output port of a packet, and the number of the entry.
    fn entry(&self, switch: u32, input: Option<u32>, destination: u32) -> Option<(u32, usize)> {
        let output = |table: TableOf| self.outputs.get(&(table, destination)).copied();
        output((switch, input)).or_else(|| output((switch, None)))
    }

    fn wrong<T>(&self, route: &Route, problem: &str) -> Result<T> {
        fail(format!("{} {problem}", self.traffic(route)), "the tables do not deliver every stream")
    }

    fn traffic(&self, route: &Route) -> String {
        format!("the traffic from `{}` to `{}`", self.name(route.source), self.name(route.destination))
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

/// Maximum number of faults in one message.
const MOST_FAULTS: usize = 20;

/// The load of all routes together.
struct Carried<'a> {
    network: &'a Network<'a>,
    /// Load by link index.
    links: Vec<f64>,
    /// Incoming load by node id.
    nodes: Vec<f64>,
}

impl<'a> Carried<'a> {
    fn of(network: &'a Network<'a>, routes: &[Route]) -> Self {
        let mut links = vec![0.0; network.system.links.len()];
        for route in routes {
            for &link in &route.links {
                links[link as usize] += route.bandwidth_bytes_per_s;
            }
        }
        let mut nodes = vec![0.0; network.system.nodes.len()];
        for (link, load) in network.system.links.iter().zip(&links) {
            nodes[link.destination as usize] += load;
        }
        Self { network, links, nodes }
    }

    /// Fails if a link or switch is overloaded.
    fn check(&self, rules: &Rules) -> Result<()> {
        let free = stays_free(rules.bandwidth_slack);
        let over = |(index, load, bandwidth): (u32, f64, f64)| {
            let most = bandwidth * (1.0 - rules.bandwidth_slack);
            let words = || {
                format!("{} carries {} of {}{free}", self.network.name_of(index), rate(load), rate(bandwidth))
            };
            (load > most * (1.0 + TOLERANCE)).then(words)
        };
        refuse(
            self.limited().filter_map(over),
            "links are overloaded",
            "try other routes or another mapping; the demands may also exceed the capacity of the network",
        )?;
        let most = rules.switch_load.unwrap_or(f64::INFINITY);
        let over = |(node, load): (u32, f64)| {
            let name = &self.network.system.nodes[node as usize].name;
            (load > most * (1.0 + TOLERANCE)).then(|| format!("{} at `{name}`", rate(load)))
        };
        refuse(
            self.switches().filter_map(over),
            &format!("switches receive more than `switch_load` = {most}"),
            "try other routes or another mapping, or increase `switch_load`",
        )
    }

    /// Index, load and bandwidth of every link of known bandwidth.
    fn limited(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        let links = self.network.system.links.iter().zip(&self.links);
        (0..).zip(links).filter_map(|(index, (link, &load))| Some((index, load, link.bandwidth_bytes_per_s?)))
    }

    /// Every switch and its incoming load.
    fn switches(&self) -> impl Iterator<Item = (u32, f64)> {
        (0..).zip(self.nodes.iter().copied()).filter(|&(node, _)| !self.network.is_host(node))
    }

    /// The least free bandwidth, absolute and as a fraction, and the largest loads.
    fn metrics(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let slack = self.limited().map(|(_, load, bandwidth)| bandwidth - load).fold(f64::INFINITY, f64::min);
        let used = self.limited().map(|(_, load, bandwidth)| load / bandwidth);
        let used = used.filter(|used| used.is_finite()).fold(0.0, f64::max);
        let busiest = self.switches().map(|(_, load)| load).fold(0.0, f64::max);
        let metrics = [
            ("least_bandwidth_slack", slack),
            ("least_bandwidth_slack_share", 1.0 - used),
            ("largest_link_utilisation", used),
            ("largest_link_load", self.links.iter().copied().fold(0.0, f64::max)),
            ("largest_switch_load", busiest),
        ];
        let finite = metrics.into_iter().filter(|(_, value)| value.is_finite());
        finite.map(|(name, value)| (name.to_owned(), value))
    }
}

/// Lower bound of the load of the busiest link, whatever the routes: what has to leave or enter a host, or a switch with all hosts that
/// have no other one, shares the links there.
fn least_busiest(network: &Network<'_>, routes: &[Route]) -> f64 {
    let system = network.system;
    let only = only_neighbours(system);
    let switch = |host: u32| only[host as usize].filter(|&node| !network.is_host(node));
    let part = |node: u32| switch(node).filter(|_| network.is_host(node)).unwrap_or(node);
    let mut crossing = vec![[0.0; 2]; system.nodes.len()];
    for route in routes.iter().filter(|route| route.source != route.destination) {
        let (source, destination, load) = (route.source, route.destination, route.bandwidth_bytes_per_s);
        crossing[source as usize][0] += load;
        crossing[destination as usize][1] += load;
        let parts = [part(source), part(destination)];
        for (side, node) in
            parts.into_iter().enumerate().filter(|(_, node)| parts[0] != parts[1] && !network.is_host(*node))
        {
            crossing[node as usize][side] += load;
        }
    }
    let mut links = vec![[0.0; 2]; system.nodes.len()];
    for link in (0..system.nodes.len() as u32)
        .flat_map(|node| network.leaving(node))
        .map(|&link| &system.links[link as usize])
    {
        // The links of hosts inside a part do not cross its border.
        if part(link.destination) != link.source {
            links[link.source as usize][0] += 1.0;
        }
        if part(link.source) != link.destination {
            links[link.destination as usize][1] += 1.0;
        }
    }
    let shares = crossing.iter().flatten().zip(links.iter().flatten());
    shares.filter(|(_, links)| **links > 0.0).map(|(load, links)| load / links).fold(0.0, f64::max)
}

/// Fails if a route has more hops than allowed.
fn lengths(network: &Network<'_>, routes: &[Route], max_hops: Option<u32>) -> Result<()> {
    let Some(most) = max_hops else { return Ok(()) };
    let name = |node: u32| &network.system.nodes[node as usize].name;
    let over = |route: &Route| {
        let hops = route.links.len();
        let words = || format!("`{}` to `{}` takes {hops} hops", name(route.source), name(route.destination));
        (hops > most as usize).then(words)
    };
    refuse(
        routes.iter().filter_map(over),
        &format!("routes exceed `max_hops` = {most}"),
        "try shorter routes or another mapping, or increase `max_hops`",
    )
}

/// Fails with a list of the faults, if there are any.
fn refuse(faults: impl Iterator<Item = String>, problem: &str, help: &str) -> Result<()> {
    let mut faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(MOST_FAULTS);
    faults.truncate(MOST_FAULTS);
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    fail(format!("{problem}: {}{rest}", faults.join(", ")), help)
}

/// Describes the slack that may not be used.
fn stays_free(slack: f64) -> String {
    if slack > 0.0 { format!(", {slack} of it reserved as slack") } else { String::new() }
}

/// The host node of every process, and the smallest free fraction of a host's performance: at least `slack`, and 1 if no
/// performance is specified.
fn check_hosts(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    slack: f64,
) -> Result<(Vec<u32>, f64)> {
    let (processes, mapped) = (graph.ranks(), mapping.ranks.len());
    if mapped != processes {
        return fail(
            format!("the mapping has {mapped} processes, but the program has {processes}"),
            "use a mapping of this program",
        );
    }
    let mut host_of = Vec::with_capacity(processes);
    for rank in 0..processes {
        let name = mapping.host_of(rank);
        let host = system.slots.get(mapping.ranks[rank].slot as usize).map(|slot| slot.host);
        let Some(host) = host.filter(|&host| system.nodes[host as usize].name == name) else {
            return fail(
                format!(
                    "the mapping puts process {rank} on host `{name}`, which does not have that slot in this machine"
                ),
                "use a mapping to this machine",
            );
        };
        if system.nodes[host as usize].state == NodeState::Down {
            return fail(
                format!("process {rank} is on host `{name}`, which is down"),
                "compute a new mapping to hosts that are up",
            );
        }
        host_of.push(host);
    }
    let performance = demands(graph, system, &host_of)?;
    let share = performances(system, &performance, slack)?;
    Ok((host_of, share))
}

/// Performance demand at every host. Fails if another demand of a process is not met.
fn demands(graph: &TaskGraph, system: &SystemGraph, host_of: &[u32]) -> Result<BTreeMap<u32, f64>> {
    let mut performance: BTreeMap<u32, f64> = BTreeMap::new();
    let mut devices: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for (demand, &host) in graph.demands.processes.iter().zip(host_of) {
        let node = &system.nodes[host as usize];
        let (process, on) = (&demand.name, &node.name);
        if let Some(other) = demand.host.as_ref().filter(|other| *other != on) {
            return fail(
                format!("process `{process}` is on host `{on}`, but the instance requires `{other}`"),
                "the key `mapping` of the instance fixes the hosts of processes",
            );
        }
        let is_lacking = |wanted: &&String| !node.traits.capabilities.contains(wanted);
        if let Some(lacking) = demand.capabilities.iter().find(is_lacking) {
            return fail(
                format!("process `{process}` needs `{lacking}`, which host `{on}` does not have"),
                "move the process to a host that has it",
            );
        }
        *performance.entry(host).or_default() += demand.performance;
        for (device, &count) in &demand.devices {
            *devices.entry((host, device)).or_default() += u64::from(count);
        }
    }
    for ((host, device), wanted) in devices {
        let node = &system.nodes[host as usize];
        let there = node.traits.devices.get(device).copied().unwrap_or_default();
        if wanted > u64::from(there) {
            let name = &node.name;
            return fail(
                format!("the processes on host `{name}` need {wanted} of `{device}`, but it has {there}"),
                "move some of them to other hosts",
            );
        }
    }
    Ok(performance)
}

/// The smallest free fraction of a host's performance.
fn performances(system: &SystemGraph, performance: &BTreeMap<u32, f64>, slack: f64) -> Result<f64> {
    let mut least = 1.0_f64;
    for (&host, &wanted) in performance {
        let node = &system.nodes[host as usize];
        let Some(there) = node.traits.performance else { continue };
        if wanted > there * (1.0 - slack) * (1.0 + TOLERANCE) {
            let (name, free) = (&node.name, stays_free(slack));
            return fail(
                format!(
                    "the processes on host `{name}` need a performance of {wanted}, but it has {there}{free}"
                ),
                "move some of them to other hosts",
            );
        }
        if wanted > 0.0 {
            least = least.min(1.0 - wanted / there);
        }
    }
    Ok(least)
}
