//! A machine with some of its hosts, without what no message between their slots passes.

use hopmap_model::{
    Context, CostModel, Error, Forward, InputPath, Inputs, Levels, Link, Matrix, NodeKind, Outcome, Outputs,
    Port, RouteCosts, RouteMetric, Routing, Slot, Stage, SystemGraph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::free::{Listing, listed_hosts};
use crate::{SelectError, Source};

/// Most slots of which the costs of all pairs are written down.
const MOST_SLOTS: usize = 8192;

/// Parameters of `select/hosts`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostsParams {
    /// The hosts, as a host list: `node[001-128,200-210]`. `all`, or nothing at all, is every host of the machine.
    pub hosts: Option<String>,
    /// A file with names or host lists.
    pub hosts_file: Option<InputPath>,
    /// Where the hosts are said: `list` is `hosts` or `hosts_file`; `slurm-nodelist` is the variable `SLURM_JOB_NODELIST` of the
    /// job in which the stage runs, which is looked at each time.
    pub from: Source,
    /// Hosts that are left out, as a host list.
    pub exclude: String,
    /// What messages between hosts cost: `keep` (default) what they do in the machine, the number of `hops`, the `latency` of the links
    /// in microseconds, or the `time` of a message of `bytes` bytes.
    pub cost: HostCost,
    /// Bytes of the message whose `time` is the cost.
    pub bytes: Option<u64>,
    /// Seconds that a link takes of which the machine does not say it.
    pub link_latency_s: Option<f64>,
    /// How costs are written: `keep` (default), as `levels` of a tree if they are those of one, or as a `matrix` with a cost for
    /// every pair of slots.
    pub form: CostForm,
    /// Whether other hosts, and switches that lead nowhere else, are left out as well. Where several ways are equally short the routes
    /// may be others then, unless the machine has forwarding tables.
    pub trim: bool,
}

/// What messages between hosts cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostCost {
    /// What they do in the machine.
    #[default]
    Keep,
    /// The number of links.
    Hops,
    /// The latencies of the links, in microseconds.
    Latency,
    /// The latencies of the links and the time of the bytes over the narrowest, in microseconds.
    Time,
}

/// How costs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostForm {
    /// As they are.
    #[default]
    Keep,
    /// As levels of a tree.
    Levels,
    /// As a cost for every ordered pair of slots.
    Matrix,
}

/// `select/hosts`: the machine of hosts that are named, and what messages between them cost.
#[derive(Debug)]
pub struct Hosts;

impl Stage for Hosts {
    type Params = HostsParams;
    const KIND: &'static str = "select/hosts";
    const SUMMARY: &'static str = "The machine of hosts that are named, and what messages between them cost";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::input::<SystemGraph>("system"), Port::output::<SystemGraph>("system")] }
    }

    fn check(params: &HostsParams) -> Result<(), Error> {
        Ok(check(params)?)
    }

    fn reads(params: &HostsParams) -> Result<Vec<InputPath>, Error> {
        // Always under one name, so that renaming the file changes no key.
        Ok(params.hosts_file.iter().map(|file| InputPath::named(file.path(), "hosts")).collect())
    }

    fn observes(params: &HostsParams) -> bool {
        params.from == Source::SlurmNodelist
    }

    fn run(params: HostsParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let chosen = listed_hosts(&system, &listing(&params), cx)?;
        let system = restrict(&system, &chosen);
        let system = if params.trim { trim(&system) } else { system };
        Ok(Outcome::Done(Outputs::new().with("system", with_costs(system, &params)?)))
    }
}

fn listing(params: &HostsParams) -> Listing<'_> {
    Listing {
        parameter: "hosts",
        list: params.hosts.as_deref(),
        file: params.hosts_file.as_ref().map(InputPath::path),
        from: params.from,
        mixed: false,
        exclude: &params.exclude,
    }
}

fn check(params: &HostsParams) -> Result<(), SelectError> {
    listing(params).check("hosts_file")?;
    let problem = match (params.cost, params.bytes) {
        (HostCost::Time, None) => Some("is missing"),
        (HostCost::Time, Some(_)) | (_, None) => None,
        _ => Some("means nothing here"),
    };
    if let Some(problem) = problem {
        let help = "`cost = \"time\"` is that of a message of `bytes` bytes";
        return Err(SelectError::new(format!("`bytes` {problem}"), help));
    }
    match params.link_latency_s.filter(|latency| !(latency.is_finite() && *latency >= 0.0)) {
        Some(value) => {
            Err(SelectError::new(format!("`link_latency_s` is {value}"), "give seconds, such as 1.5e-7"))
        }
        None => Ok(()),
    }
}

/// The machine with the costs and the form that are asked for.
fn with_costs(mut system: SystemGraph, params: &HostsParams) -> Result<SystemGraph, SelectError> {
    let latency = |link: &mut Link| link.latency_s = link.latency_s.or(params.link_latency_s);
    system.links.iter_mut().for_each(latency);
    let metric = match params.cost {
        HostCost::Keep => None,
        HostCost::Hops => Some(RouteMetric::Hops),
        HostCost::Latency => Some(RouteMetric::Latency),
        HostCost::Time => Some(RouteMetric::Time { bytes: params.bytes.unwrap_or_default() }),
    };
    if let Some(metric) = metric {
        check_links(&system, metric)?;
        system = system.with_metric(metric)?;
    }
    match params.form {
        CostForm::Keep => Ok(system),
        CostForm::Matrix if system.slots.len() > MOST_SLOTS => {
            Err(hopmap_model::CostsError::TooMany { slots: system.slots.len(), most: MOST_SLOTS }.into())
        }
        CostForm::Matrix => Ok(SystemGraph { cost: CostModel::Matrix(system.matrix()?), ..system }),
        CostForm::Levels => match system.explicit(0) {
            Ok(explicit) if matches!(explicit.cost, CostModel::Levels(_)) => Ok(explicit.into_owned()),
            Err(error @ hopmap_model::CostsError::NoRoute { .. }) => Err(error.into()),
            _ => Err(SelectError::new(
                "the costs between these hosts are those of no tree",
                "`form = \"matrix\"` writes down any costs",
            )),
        },
    }
}

/// Checks that every link says what counts.
fn check_links(system: &SystemGraph, metric: RouteMetric) -> Result<(), SelectError> {
    if system.links.is_empty() {
        return Err(SelectError::new(
            "the machine has no links, and so no routes that could cost something",
            "leave `cost` out: the costs stay as they are",
        ));
    }
    let Some(link) = system.links.iter().find(|link| metric.of(link).is_none()) else { return Ok(()) };
    let [from, to] = [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
    let (what, help) = match link.latency_s {
        None => ("latency", "give `link_latency_s`, the seconds that such a link takes, such as 1.5e-7"),
        Some(_) => ("bandwidth", "count `hops` or `latency`"),
    };
    Err(SelectError::new(format!("the link from `{from}` to `{to}` does not say its {what}"), help))
}

/// Leaves out hosts without slots, and switches that lead nowhere else. In a machine without switches messages pass hosts: there
/// only hosts that lead nowhere else are left out.
fn trim(system: &SystemGraph) -> SystemGraph {
    let stays = staying(system);
    let place = numbered(stays.iter().copied());
    let node = |node: u32| place[node as usize];
    let moved = |link: &Link| {
        Some(Link { source: node(link.source)?, destination: node(link.destination)?, ..*link })
    };
    let links: Vec<Option<Link>> = system.links.iter().map(moved).collect();
    let link_place = numbered(links.iter().map(Option::is_some));
    let link = |link: u32| link_place[link as usize];
    let entry = |entry: &Forward| {
        Some(Forward { node: node(entry.node)?, last: link(entry.last)?, link: link(entry.link)? })
    };
    let kept = system.nodes.iter().zip(&stays).filter(|(_, stays)| **stays);
    SystemGraph {
        nodes: kept.map(|(node, _)| node.clone()).collect(),
        links: links.into_iter().flatten().collect(),
        slots: system
            .slots
            .iter()
            .filter_map(|slot| Some(Slot { host: node(slot.host)?, ..*slot }))
            .collect(),
        cost: system.cost.clone(),
        routing: Routing {
            forwarding: system.routing.forwarding.iter().filter_map(entry).collect(),
            ties: system.routing.ties,
        },
    }
}

/// The numbers of those that stay, one after the other.
fn numbered(stays: impl Iterator<Item = bool>) -> Vec<Option<u32>> {
    let mut numbers = 0..;
    stays.map(|stays| if stays { numbers.next() } else { None }).collect()
}

/// Hosts with slots, and what is left of the others when those with one neighbour or none are taken away again and again.
fn staying(system: &SystemGraph) -> Vec<bool> {
    let is_switched = system.nodes.iter().any(|node| node.kind == NodeKind::Switch);
    let mut has_slots = vec![false; system.nodes.len()];
    system.slots.iter().for_each(|slot| has_slots[slot.host as usize] = true);
    let is_way = |node: usize| has_slots[node] || !is_switched || system.nodes[node].kind == NodeKind::Switch;
    let mut stays: Vec<bool> = (0..system.nodes.len()).map(is_way).collect();
    let mut neighbours = vec![Vec::new(); system.nodes.len()];
    for link in system.links.iter().filter(|link| link.source != link.destination) {
        neighbours[link.source as usize].push(link.destination as usize);
        neighbours[link.destination as usize].push(link.source as usize);
    }
    for neighbours in &mut neighbours {
        neighbours.sort_unstable();
        neighbours.dedup();
    }
    let count = |node: usize, stays: &[bool]| neighbours[node].iter().filter(|&&other| stays[other]).count();
    let mut left: Vec<usize> = neighbours.iter().enumerate().map(|(node, _)| count(node, &stays)).collect();
    let mut open: Vec<usize> =
        (0..stays.len()).filter(|&node| stays[node] && !has_slots[node] && left[node] < 2).collect();
    while let Some(node) = open.pop() {
        if !stays[node] {
            continue;
        }
        stays[node] = false;
        for &other in &neighbours[node] {
            left[other] = left[other].saturating_sub(1);
            if stays[other] && !has_slots[other] && left[other] < 2 {
                open.push(other);
            }
        }
    }
    stays
}

/// The machine with the slots of some hosts only, given by their index among the hosts that have slots, ascending.
///
/// Nodes and links stay as they are: messages may pass what no rank runs on. Slots keep their order, costs their values.
#[must_use]
pub fn restrict(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let all: Vec<_> = system.hosts().collect();
    let slots = |&host: &u32| {
        let (_, first, count) = all[host as usize];
        first..first + count
    };
    let kept: Vec<u32> = hosts.iter().flat_map(slots).collect();
    let levels = |levels: &Levels| {
        let groups = |groups: &Vec<u32>| kept.iter().map(|&slot| groups[slot as usize]).collect();
        Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
    };
    let cost = match &system.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: system.costs().block(&kept) }),
        CostModel::Levels(all) => CostModel::Levels(levels(all)),
        CostModel::Routes(routes) => {
            CostModel::Routes(RouteCosts { metric: routes.metric, inside: levels(&routes.inside) })
        }
    };
    SystemGraph {
        nodes: system.nodes.clone(),
        links: system.links.clone(),
        routing: system.routing.clone(),
        slots: kept.iter().map(|&slot| system.slots[slot as usize]).collect(),
        cost,
    }
}
