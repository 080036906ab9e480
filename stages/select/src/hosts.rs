//! Restricts a machine topology to some of its hosts, optionally without unused nodes.

use hopmap_formats::slots::Slots;
use hopmap_model::{
    Context, CostModel, Error, Forward, InputPath, Inputs, Link, NodeKind, Outcome, Outputs, Port,
    RouteMetric, Routing, Slot, Stage, SystemGraph, require,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::SelectError;
use crate::free::{Listed, Listing, listed_hosts};
use crate::params::Source;
use crate::restrict::restrict;

/// Largest number of slots for which a full cost matrix is written.
const MOST_SLOTS: usize = 8192;

/// Parameters of `select/hosts`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostsParams {
    /// Hosts to keep, as a host list: `node[001-128,200-210]`, or with the slots of each: `a:8,b:4`. Without it, or with `all`,
    /// every host of the machine.
    pub hosts: Option<String>,
    /// File with host names or host lists, or a host file of a launcher or batch system.
    pub hosts_file: Option<InputPath>,
    /// Source of the hosts: `list` is `hosts` or `hosts_file`. `slurm-nodelist` is the variable
    /// `SLURM_JOB_NODELIST` of the job in which the stage runs; it is read in every run; `auto` is
    /// `list` if one is given, and otherwise the job of Slurm, LSF, Grid Engine or PBS.
    pub from: Source,
    /// Hosts to exclude, as a host list.
    pub exclude: String,
    /// Cost of a message between hosts: unchanged (`keep`), the number of `hops`, the `latency` of the links
    /// in microseconds, or the `time` of a message of `bytes` bytes.
    pub cost: HostCost,
    /// Message size in bytes for `cost = "time"`.
    pub bytes: Option<u64>,
    /// Latency in seconds of links whose latency is unknown.
    pub link_latency_s: Option<f64>,
    /// Representation of the costs: unchanged (`keep`), as `levels` of a tree if possible, or as a `matrix`
    /// with a cost for every pair of slots.
    pub form: CostForm,
    /// Whether to remove the other hosts, and switches that connect nothing. Of several shortest routes a
    /// different one may then be used, unless the machine has forwarding tables.
    pub trim: bool,
}

/// Cost of a message between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostCost {
    /// Unchanged.
    #[default]
    Keep,
    /// Number of links.
    Hops,
    /// Sum of the link latencies, in microseconds.
    Latency,
    /// Sum of the link latencies plus the transfer time over the narrowest link, in microseconds.
    Time,
}

/// Representation of the costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostForm {
    /// Unchanged.
    #[default]
    Keep,
    /// Levels of a tree.
    Levels,
    /// A cost for every ordered pair of slots.
    Matrix,
}

/// `select/hosts`: restricts a machine topology to given hosts and sets the costs between them.
#[derive(Debug)]
pub struct Hosts;

impl Stage for Hosts {
    type Params = HostsParams;
    const KIND: &'static str = "select/hosts";
    const SUMMARY: &'static str = "Restrict a machine topology to given hosts, optionally with new costs";
    const REVISION: u32 = 5;
    const PORTS: &'static [Port] =
        &[Port::input::<SystemGraph>("system"), Port::output::<SystemGraph>("system")];

    fn check(params: &HostsParams) -> Result<(), Error> {
        check(params)
    }

    fn reads(params: &HostsParams) -> Result<Vec<InputPath>, Error> {
        // A constant name, so that renaming the file does not change the key.
        Ok(params.hosts_file.iter().map(|file| InputPath::named(file.path(), "hosts")).collect())
    }

    fn observes(params: &HostsParams) -> bool {
        listing(params).from != Source::List
    }

    fn run(params: HostsParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let Listed { hosts, system } = listed_hosts(system, &listing(&params), &Slots::default(), cx)?;
        let system = restrict(&system, &hosts);
        let system = if params.trim { trim(&system) } else { system };
        Ok(Outcome::Done(Outputs::new().with("system", with_costs(system, &params)?)))
    }
}

fn listing(params: &HostsParams) -> Listing<'_> {
    Listing {
        parameter: "hosts",
        list: params.hosts.as_deref(),
        file: params.hosts_file.as_ref().map(InputPath::path),
        from: params.from.resolved(params.hosts.as_deref(), params.hosts_file.as_ref()),
        mixed: false,
        exclude: &params.exclude,
    }
}

fn check(params: &HostsParams) -> Result<(), Error> {
    listing(params).check("hosts_file")?;
    let problem = match (params.cost, params.bytes) {
        (HostCost::Time, None) => Some("is missing"),
        (HostCost::Time, Some(_)) | (_, None) => None,
        _ => Some("has no effect here"),
    };
    if let Some(problem) = problem {
        let help = "`cost = \"time\"` needs the message size `bytes`";
        return Err(SelectError::new(format!("`bytes` {problem}"), help).into());
    }
    let latency = params.link_latency_s.unwrap_or(0.0);
    let is_right = latency.is_finite() && latency >= 0.0;
    Ok(require(is_right, "link_latency_s", latency, "0 or more seconds, such as 1.5e-7")?)
}

/// Applies the requested costs and representation.
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
                "the costs between these hosts do not form a tree",
                "`form = \"matrix\"` represents any costs",
            )),
        },
    }
}

/// Checks that every link has the attribute that the metric needs.
fn check_links(system: &SystemGraph, metric: RouteMetric) -> Result<(), SelectError> {
    if system.links.is_empty() {
        return Err(SelectError::new(
            "the machine topology has no links, so routes have no cost",
            "omit `cost` to keep the existing costs",
        ));
    }
    let Some(link) = system.links.iter().find(|link| metric.of(link).is_none()) else { return Ok(()) };
    let [from, to] = [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
    let (what, help) = match link.latency_s {
        None => ("latency", "give `link_latency_s`, the latency of such links in seconds, such as 1.5e-7"),
        Some(_) => ("bandwidth", "use `hops` or `latency`"),
    };
    Err(SelectError::new(format!("the link from `{from}` to `{to}` has no {what}"), help))
}

/// Removes hosts without slots, and switches that connect nothing. Without switches, hosts forward messages:
/// then only hosts without a second neighbour are removed.
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
        calibration: system.calibration.clone(),
    }
}

/// Consecutive new indexes of the nodes that stay.
fn numbered(stays: impl Iterator<Item = bool>) -> Vec<Option<u32>> {
    let mut numbers = 0..;
    stays.map(|stays| if stays { numbers.next() } else { None }).collect()
}

/// Marks hosts with slots, and the other nodes that remain after repeatedly removing those with at most one
/// neighbour.
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
