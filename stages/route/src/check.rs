//! Whether tables bring every stream where it belongs, without taking more than there is: every packet is followed entry by entry, as the
//! switches would; hosts have what processes ask for; links and switches carry no more than they may.
//!
//! Shares no code with what makes tables: it knows the machine, the mapping and the entries, and nothing of how they were found.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hopmap_model::{Counting, Mapping, NodeState, Route, Routes, SwitchType, SystemGraph, Tables, TaskGraph};

use crate::error::{Result, fail};
use crate::network::cycle;
use crate::{Network, Rules};

/// Part of a bandwidth or performance by which sums may exceed it: rounding.
const TOLERANCE: f64 = 1e-9;

/// What tables do with the streams of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The way of every stream, with all metrics.
    pub routes: Routes,
    /// What is legal but better otherwise, in words.
    pub notes: Vec<String>,
}

/// Follows the tables, and says what is wrong if a stream does not arrive or takes more than there is. Where a host has several links,
/// `given` routes tell by which one it sends; all of them have to be what the tables do. With `aggregate_flows` all streams from one host to
/// another are one.
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
    let mut notes = BTreeSet::new();
    let mut routes = wanted(graph, &host_of, aggregate_flows);
    let given: Option<HashMap<&[u32], &Route>> =
        given.map(|given| given.routes.iter().map(|route| (route.streams.as_slice(), route)).collect());
    for route in &mut routes {
        let given = given.as_ref().map(|given| of_same_streams(given, route)).transpose()?;
        route.links = replay.follow(route, given, &mut notes)?;
    }
    lengths(&network, &routes, rules.max_hops)?;
    let carried = Carried::of(&network, &routes);
    carried.check(rules)?;
    let cycle = cycle(system.links.len(), routes.iter().map(|route| route.links.as_slice()));
    let mut notes: Vec<String> = notes.into_iter().collect();
    if !cycle.is_empty() {
        let names: Vec<String> = cycle.iter().map(|&link| network.name_of(link)).collect();
        let words = format!("links can wait for each other in a circle: {}", names.join(", "));
        if rules.deadlock_free {
            let help = "route with `deadlock_free = true`, or leave `deadlock_free` out here to be told only";
            return fail(words, help);
        }
        notes.push(words);
    }
    let unused = replay.unused(&routes, &network);
    if unused > 0 {
        notes.push(format!("entries that no stream uses: {unused}"));
    }
    let mut metrics = metrics(&routes, tables, rules, cycle.is_empty());
    metrics.extend(carried.metrics());
    metrics.insert("least_performance_slack_share".to_owned(), performance_share);
    let counting = if aggregate_flows { Counting::HostPairs } else { Counting::Streams };
    Ok(Checked { routes: Routes { routes, counting, cycle, metrics }, notes })
}

/// The given route that the streams of a route take.
fn of_same_streams<'a>(given: &HashMap<&[u32], &'a Route>, route: &Route) -> Result<&'a Route> {
    match given.get(route.streams.as_slice()) {
        Some(given) => Ok(given),
        None => fail(
            format!("no route is given for the streams {:?}", route.streams),
            "are the routes those of another program, or counted otherwise? See `aggregate_flows`",
        ),
    }
}

/// A route for every stream, or for every pair of different hosts that streams join; without links yet.
fn wanted(graph: &TaskGraph, host_of: &[u32], merged: bool) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, stream) in (0..).zip(&graph.demands.streams) {
        let [source, destination] = [stream.source, stream.destination].map(|rank| host_of[rank as usize]);
        // Inside a host nothing takes a link; streams there have nothing to merge with.
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

/// A table: a switch, and the port if it is not that of the whole switch.
type TableOf = (u32, Option<u32>);

/// The tables of all switches of a network.
struct Replay<'a> {
    network: &'a Network<'a>,
    /// The output port by table and destination.
    outputs: HashMap<(TableOf, u32), u32>,
}

impl<'a> Replay<'a> {
    /// Tables whose entries name what there is.
    fn new(network: &'a Network<'a>, tables: &Tables) -> Result<Self> {
        let nodes = &network.system.nodes;
        let mut outputs = HashMap::new();
        for entry in &tables.entries {
            let (Some(switch), Some(destination)) =
                (nodes.get(entry.switch as usize), nodes.get(entry.destination as usize))
            else {
                return fail(
                    "an entry names a node that this machine does not have",
                    "are they the tables of another machine?",
                );
            };
            let (name, host) = (&switch.name, &destination.name);
            if network.is_host(entry.switch) || !network.is_host(entry.destination) {
                return fail(
                    format!("an entry of `{name}` says where `{host}` is"),
                    "tables are those of switches, and destinations are hosts",
                );
            }
            if let Some(port) = entry.input_port
                && switch.traits.switch_type == Some(SwitchType::One)
            {
                return fail(
                    format!("switch `{name}` is of type 1 and has a table for port {port}"),
                    "a switch of type 1 has one table for all ports",
                );
            }
            let port = entry.output_port;
            if network.by_port(entry.switch, port).is_none() {
                return fail(
                    format!(
                        "switch `{name}` sends what is for `{host}` out by port {port}, where no link is"
                    ),
                    "the link may be down, or the port have another number",
                );
            }
            outputs.insert(((entry.switch, entry.input_port), entry.destination), port);
        }
        Ok(Self { network, outputs })
    }

    /// The links that a stream takes.
    fn follow(&self, route: &Route, given: Option<&Route>, notes: &mut BTreeSet<String>) -> Result<Vec<u32>> {
        let mut links = Vec::new();
        if route.source != route.destination {
            let mut link = self.first(route, given)?;
            let mut passed: HashSet<(u32, Option<u32>)> = HashSet::new();
            let mut switches: HashSet<u32> = HashSet::new();
            loop {
                links.push(link);
                let arrived = &self.network.system.links[link as usize];
                let (node, port) = (arrived.destination, arrived.destination_port);
                let name = self.name(node);
                if node == route.destination {
                    break;
                }
                if self.network.is_host(node) {
                    return self.wrong(route, &format!("arrives at host `{name}`, which passes nothing on"));
                }
                if !passed.insert((node, port)) {
                    return self.wrong(route, &format!("goes round for ever by way of switch `{name}`"));
                }
                if !switches.insert(node) {
                    notes.insert(format!("{} passes switch `{name}` twice", self.traffic(route)));
                }
                let Some((_, output)) = self.entry(node, port, route.destination) else {
                    return self
                        .wrong(route, &format!("stops at switch `{name}`, whose table does not know it"));
                };
                link = self.network.by_port(node, output).unwrap_or(link);
            }
        }
        let Some(given) = given.filter(|given| given.links != links) else { return Ok(links) };
        let [taken, said] = [&links, &given.links]
            .map(|links| links.iter().map(|&link| self.name_of(link)).collect::<Vec<_>>().join(", "));
        self.wrong(route, &format!("goes {taken} and not {said}, as its route says"))
    }

    fn first(&self, route: &Route, given: Option<&Route>) -> Result<u32> {
        let leaving = self.network.leaving(route.source);
        let chosen = given.and_then(|given| given.links.first()).filter(|link| leaving.contains(link));
        let (name, count) = (self.name(route.source), leaving.len());
        match (leaving, chosen) {
            (_, Some(link)) | ([link], None) => Ok(*link),
            ([], None) => self.wrong(route, "cannot leave its host, which no link leaves"),
            (_, None) => fail(
                format!("host `{name}` has {count} links, and nothing says by which it sends"),
                "connect the `routes` beside the tables",
            ),
        }
    }

    /// The table that decides, and its port.
    fn entry(&self, switch: u32, input: Option<u32>, destination: u32) -> Option<(TableOf, u32)> {
        let output = |table: TableOf| Some((table, *self.outputs.get(&(table, destination))?));
        output((switch, input)).or_else(|| output((switch, None)))
    }

    /// Entries that no stream uses.
    fn unused(&self, routes: &[Route], network: &Network<'_>) -> usize {
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

    fn wrong<T>(&self, route: &Route, problem: &str) -> Result<T> {
        fail(
            format!("{} {problem}", self.traffic(route)),
            "the tables do not bring every stream where it belongs",
        )
    }

    fn traffic(&self, route: &Route) -> String {
        format!("what goes from `{}` to `{}`", self.name(route.source), self.name(route.destination))
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

/// Faults that are told one by one.
const MOST_FAULTS: usize = 20;

/// What all routes together take.
struct Carried<'a> {
    network: &'a Network<'a>,
    /// By index of the link.
    links: Vec<f64>,
    /// What arrives, by node.
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

    /// Whether links and switches carry no more than they may.
    fn check(&self, rules: &Rules) -> Result<()> {
        let free = stays_free(rules.bandwidth_slack);
        let over = |(index, load, bandwidth): (u32, f64, f64)| {
            let most = bandwidth * (1.0 - rules.bandwidth_slack);
            let words = || format!("{} carries {load} of {bandwidth}{free}", self.network.name_of(index));
            (load > most * (1.0 + TOLERANCE)).then(words)
        };
        refuse(
            self.limited().filter_map(over),
            "links carry more than they can",
            "other routes or another mapping may do, or the demands exceed what the network has",
        )?;
        let most = rules.switch_load.unwrap_or(f64::INFINITY);
        let over = |(node, load): (u32, f64)| {
            let name = &self.network.system.nodes[node as usize].name;
            (load > most * (1.0 + TOLERANCE)).then(|| format!("{load} at `{name}`"))
        };
        refuse(
            self.switches().filter_map(over),
            &format!("more arrives at switches than `switch_load` = {most}"),
            "other routes or another mapping may do, or `switch_load` is too little",
        )
    }

    /// Index, load and bandwidth of every link whose bandwidth is known.
    fn limited(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        let links = self.network.system.links.iter().zip(&self.links);
        (0..).zip(links).filter_map(|(index, (link, &load))| Some((index, load, link.bandwidth_bytes_per_s?)))
    }

    /// Every switch and what arrives at it.
    fn switches(&self) -> impl Iterator<Item = (u32, f64)> {
        (0..).zip(self.nodes.iter().copied()).filter(|&(node, _)| !self.network.is_host(node))
    }

    /// The least bandwidth that stays free, in bytes per second and as a part, and the largest loads.
    fn metrics(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let slack = self.limited().map(|(_, load, bandwidth)| bandwidth - load).fold(f64::INFINITY, f64::min);
        let used = self.limited().map(|(_, load, bandwidth)| load / bandwidth);
        let used = used.filter(|used| used.is_finite()).fold(0.0, f64::max);
        let busiest = self.switches().map(|(_, load)| load).fold(0.0, f64::max);
        let metrics = [
            ("least_bandwidth_slack", slack),
            ("least_bandwidth_slack_share", 1.0 - used),
            ("largest_link_utilisation", used),
            ("largest_switch_load", busiest),
        ];
        let finite = metrics.into_iter().filter(|(_, value)| value.is_finite());
        finite.map(|(name, value)| (name.to_owned(), value))
    }
}

/// Whether no route has more hops than it may.
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
        &format!("routes are longer than `max_hops` = {most}"),
        "shorter routes may do, or another mapping, or `max_hops` is too little",
    )
}

/// An error that names what is wrong in words, if anything is.
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

/// What of some amount is not to be used, in words.
fn stays_free(slack: f64) -> String {
    if slack > 0.0 { format!(", of which {slack} stays free") } else { String::new() }
}

/// The host of every process, as a node of the machine, and the least part of a host's performance that stays free: at least `slack`, and
/// 1 where nobody said how much there is.
fn check_hosts(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    slack: f64,
) -> Result<(Vec<u32>, f64)> {
    let (processes, mapped) = (graph.ranks(), mapping.ranks.len());
    if mapped != processes {
        return fail(
            format!("the mapping is of {mapped} processes, and the program has {processes}"),
            "is it the mapping of another program?",
        );
    }
    let mut host_of = Vec::with_capacity(processes);
    for rank in 0..processes {
        let name = mapping.host_of(rank);
        let host = system.slots.get(mapping.ranks[rank].slot as usize).map(|slot| slot.host);
        let Some(host) = host.filter(|&host| system.nodes[host as usize].name == name) else {
            return fail(
                format!("process {rank} is on host `{name}`, which this machine does not have there"),
                "is it the mapping of another machine?",
            );
        };
        if system.nodes[host as usize].state == NodeState::Down {
            return fail(
                format!("process {rank} is on host `{name}`, which is down"),
                "map the program again, to what is up",
            );
        }
        host_of.push(host);
    }
    let performance = demands(graph, system, &host_of)?;
    let share = performances(system, &performance, slack)?;
    Ok((host_of, share))
}

/// What is needed of the performance of every host. Fails where a process lacks something else.
fn demands(graph: &TaskGraph, system: &SystemGraph, host_of: &[u32]) -> Result<BTreeMap<u32, f64>> {
    let mut performance: BTreeMap<u32, f64> = BTreeMap::new();
    let mut devices: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for (demand, &host) in graph.demands.processes.iter().zip(host_of) {
        let node = &system.nodes[host as usize];
        let (process, on) = (&demand.name, &node.name);
        if let Some(other) = demand.host.as_ref().filter(|other| *other != on) {
            return fail(
                format!("process `{process}` is on host `{on}` and has to be on `{other}`"),
                "the instance settles that in `mapping`",
            );
        }
        let is_lacking = |wanted: &&String| !node.traits.capabilities.contains(wanted);
        if let Some(lacking) = demand.capabilities.iter().find(is_lacking) {
            return fail(
                format!("process `{process}` needs `{lacking}`, which host `{on}` does not have"),
                "put it on a host that has it",
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
                format!("the processes on host `{name}` need {wanted} of `{device}`, and it has {there}"),
                "move some to other hosts",
            );
        }
    }
    Ok(performance)
}

/// The least part of a host's performance that stays free.
fn performances(system: &SystemGraph, performance: &BTreeMap<u32, f64>, slack: f64) -> Result<f64> {
    let mut least = 1.0_f64;
    for (&host, &wanted) in performance {
        let node = &system.nodes[host as usize];
        let Some(there) = node.traits.performance else { continue };
        if wanted > there * (1.0 - slack) * (1.0 + TOLERANCE) {
            let (name, free) = (&node.name, stays_free(slack));
            return fail(
                format!(
                    "the processes on host `{name}` need a performance of {wanted}, and it has {there}{free}"
                ),
                "move some to other hosts",
            );
        }
        if wanted > 0.0 {
            least = least.min(1.0 - wanted / there);
        }
    }
    Ok(least)
}
