//! Machines built from a component inventory of nodes, switches and boards.
//!
//! ```toml
//! nodes      = [{ name = "cpu", count = 4, performance = 10, ports = 1, bandwidth = 100, cost = 3 },
//!               { name = "eye", performance = 5, bandwidth = 50, capabilities = ["fpga"], devices = { camera = 1 } }]
//! switches   = [{ name = "sw", count = 2, type = 1, ports = 8, bandwidth = 50, cost = 1 }]
//! boards     = [{ name = "carrier", count = 2, chips = 4, connectors = 2, cost = 1 }]
//! cable_cost = 0.1
//! cables     = 12
//! ```
//!
//! A cable connects a node and a switch or two switches, at a port of each. Its bandwidth in each direction is the smaller one of
//! the two ports. If the inventory has boards, every node and switch is on one, at most `chips` on each, and a cable between two
//! boards occupies a connector of both. By default units (nodes and switches) and boards cost 1, and cables cost nothing. The
//! cheapest machine is best; among equally cheap ones, the one with the smallest objective (11).
//!
//! Alternatively, an inventory consists of boards with known contents:
//!
//! ```toml
//! cable_cost = 0.1
//! boards     = [{ name = "carrier", count = 3, cost = 1,
//!                 nodes      = [{ name = "cpu0", performance = 10 }, { name = "cpu1", performance = 10, capabilities = ["fpga"] }],
//!                 switches   = [{ name = "sw", type = 1 }],
//!                 links      = [{ a = "cpu0", b = "sw", bandwidth = 100 }, { a = "cpu1", b = "sw", bandwidth = 100 }],
//!                 connectors = [{ at = "sw", bandwidth = 50 }, { at = "sw", bandwidth = 50, port = 7 }] }]
//! ```
//!
//! `nodes`, `switches` and `links` are those of an instance (`hosts` is an alias of `nodes`). The search chooses the number of
//! boards of each type and the cables between them. A cable connects connectors of two boards, at least one of them at a switch.
//! Its bandwidth in each direction is the smaller one of the two connectors. A connector without a port is at the lowest free
//! port of its chip. Nodes and switches are named after their board and their name on it (`carrier0_cpu0`; `carrier_cpu0` if
//! there is only one such board).

mod design;
mod exact;
mod inventory;
mod judge;
mod search;

use std::collections::BTreeSet;
use std::path::Path;

use hopmap_model::{
    Cause, Context, Diagnosis, Error, InputPath, Inputs, InternalError, Mapping, NodeKind, Outcome, Outputs,
    Part, Port, Routes, Stage, SystemGraph, Tables, TaskGraph, require,
};
use hopmap_routing::answer::{self, Answer};
use hopmap_routing::diagnosis::diagnose;
use hopmap_routing::engine::StopCondition;
use hopmap_routing::error::{Result, fail};
use hopmap_routing::network::check_ports;
use hopmap_routing::problem::{Problem, Rules};
use hopmap_routing::solver;
use hopmap_text::FileError;

use crate::instance::cable;
use crate::params::{BuildParams, Fallible, NO_LIMIT};

use design::Assembly;
use inventory::{FixedBoard, Inventory};
use judge::Judge;

/// `route/build`: a machine from a component inventory.
#[derive(Debug)]
pub struct BuildStage;

/// Whether bytes are an inventory in TOML or JSON; `path` is for errors.
pub fn check_inventory(bytes: &[u8], path: &Path) -> Result<(), FileError> {
    Inventory::parse(bytes, path).map(|_| ())
}

impl Stage for BuildStage {
    type Params = BuildParams;
    const KIND: &'static str = "route/build";
    const SUMMARY: &'static str =
        "Design the cheapest machine for a program from an inventory of nodes, switches and boards";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::optional::<SystemGraph>("system"),
        Port::possible::<SystemGraph>("system"),
        Port::possible::<Mapping>("mapping"),
        Port::possible::<Routes>("routes"),
        Port::possible::<Tables>("tables"),
        Port::possible::<Diagnosis>("diagnosis"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()?;
        require(params.candidates > 0, "candidates", 0, NO_LIMIT)?;
        if params.tolerate_single_failure.contains(&Fallible::Host) && !params.remap {
            return fail(
                "the processes of a failed host cannot stay there",
                "`tolerate_single_failure = [\"host\"]` requires `remap = true`",
            );
        }
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(vec![InputPath::named(params.path.path(), "kit")])
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let given = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
        let mut inventory = Inventory::read(params.path.path())?;
        check_hosts(&graph, &inventory, given.as_deref())?;
        let named = graph.demands.processes.iter().filter_map(|process| process.host.as_deref());
        inventory.set_apart(&named.collect());
        let (system, Answer { mapping, routes, tables }) =
            match build(&params, &inventory, &graph, given.as_deref(), cx)? {
                Ok(built) => built,
                Err(diagnosis) => {
                    diagnosis.causes.iter().for_each(|cause| cx.log(&cause.words));
                    return Ok(Outcome::Infeasible(Outputs::new().with("diagnosis", diagnosis)));
                }
            };
        let proven = routes.metrics.get("proven").copied().unwrap_or_default();
        let outputs = Outputs::new().with("system", system).with("mapping", mapping);
        let outputs = outputs.with("routes", routes).with("tables", tables);
        let outputs = outputs.timed(params.time_limit_s.is_some() || cx.deadline().is_some());
        let is_cut_short = proven <= 0.0 && (cx.should_stop() || cx.deadline().is_some());
        Ok(if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) })
    }
}

/// The machine with its solution, or a diagnosis if no machine is sufficient.
fn build(
    params: &BuildParams,
    inventory: &Inventory,
    graph: &TaskGraph,
    given: Option<&SystemGraph>,
    cx: &Context<'_>,
) -> Result<Result<(SystemGraph, Answer), Diagnosis>, Error> {
    let should_stop = || cx.should_stop();
    let progress = |looked| cx.progress(looked, params.candidates);
    let mut judge = Judge {
        graph,
        rules: Rules::from(params),
        method: params.method,
        limits: params.limits(cx),
        survives: &params.tolerate_single_failure,
        remap: params.remap,
        left: params.candidates,
        looked: 0,
        unsure: false,
        killer: None,
        inventory,
        found: None,
        should_stop: &should_stop,
        progress: &progress,
    };
    let (found, proven) = match given {
        Some(_) if inventory.is_fixed() => {
            return fail(
                "boards with known contents cannot extend an existing machine",
                "omit `system`, or use an inventory of `nodes` and `switches` with their `ports`",
            );
        }
        Some(system) => {
            check_ports(system)?;
            extend(&mut judge, system)?
        }
        None => search::search(&mut judge, params.seed)?,
    };
    cx.log(format_args!("{} machines examined", judge.looked));
    match found {
        Some((system, cost)) => {
            let answer = last(&judge, &system, cost, proven)?;
            cx.log(match proven {
                true => format!("cost {cost}, proven optimal"),
                false => format!("cost {cost}; a better machine may exist"),
            });
            Ok(Ok((system, answer)))
        }
        None if proven => Ok(Err(why(&judge, given)?)),
        None => fail(
            "no machine was found within the limits; the problem may be infeasible",
            "increase `candidates`, `time_limit_s` or `max_search_nodes`",
        ),
    }
}

/// Rejects programs fixed to hosts that the machine cannot have.
fn check_hosts(graph: &TaskGraph, inventory: &Inventory, given: Option<&SystemGraph>) -> Result<()> {
    for process in &graph.demands.processes {
        let Some(host) = &process.host else { continue };
        let is_known = match given {
            Some(system) => system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host),
            None => inventory.has_host(host),
        };
        if !is_known {
            return fail(
                format!("process `{}` is fixed to host `{host}`, which does not exist", process.name),
                "remove `mapping` from the instance, or use names of nodes of the inventory",
            );
        }
    }
    Ok(())
}

/// The solution on the machine, with the metrics of the search.
fn last(judge: &Judge<'_>, system: &SystemGraph, cost: f64, proven: bool) -> Result<Answer, Error> {
    let Some(mut answer) = judge.answer(system)? else {
        return Err(InternalError::new("the cheapest machine has no routes").into());
    };
    let of_answer = answer.routes.metrics.get("proven").copied().unwrap_or_default();
    let proven = if proven { of_answer } else { 0.0 };
    answer.record(&[("cost", cost), ("machines", judge.looked as f64), ("proven", proven)]);
    Ok(answer)
}

/// Diagnoses why no machine is sufficient: shortages of hosts under an unlimited network, otherwise the network itself.
fn why(judge: &Judge<'_>, given: Option<&SystemGraph>) -> Result<Diagnosis, Error> {
    let inventory = judge.inventory;
    let hosts = Assembly::new(inventory, &inventory.all()).hosts();
    let ideal = search::star(&hosts, &judge.graph.demands);
    // The single switch of the ideal network represents all switches.
    let switch_load = judge.rules.switch_load.filter(|_| given.is_some());
    let rules = Rules { switch_load, ..judge.rules };
    let problem = Problem::new(judge.graph, given.unwrap_or(&ideal), None, rules)?;
    let solver = solver::default();
    let stop = StopCondition::new(judge.limits, judge.should_stop);
    let found = answer::solve(&problem, judge.method, solver.as_deref(), &stop)?;
    let mut diagnosis = Diagnosis::default();
    if found.plan.is_none() && found.proven {
        diagnosis = diagnose(&problem, solver.as_deref(), &stop)?;
    }
    if diagnosis.causes.is_empty() {
        let parts = if inventory.is_fixed() { "boards" } else { "units" };
        let words = match (judge.survives.is_empty(), given) {
            (_, Some(_)) => "no cables at free ports suffice to survive every failure".to_owned(),
            _ if parts == "boards" && !inventory.fixed_boards.iter().any(FixedBoard::has_connectors) => {
                "one board does not suffice, and the boards of the inventory have no connectors".to_owned()
            }
            (true, None) => format!("no cabling of the {parts} of the inventory satisfies all constraints"),
            (false, None) => format!("no cabling of the {parts} of the inventory survives every failure"),
        };
        let (part, name) = (Part::Switch, "kit".to_owned());
        diagnosis.causes.push(Cause { remedy: 0, part, name, there: None, needed: None, words });
    }
    Ok(diagnosis)
}

/// An existing machine and its free ports.
struct Spare<'a> {
    system: &'a SystemGraph,
    /// Free ports of every node, ascending, and the bandwidth of its ports.
    ports: Vec<(Vec<u32>, f64)>,
    /// Pairs of nodes that a cable could connect.
    pairs: Vec<(usize, usize)>,
}

/// The machine with the minimum number of additional cables, and that number; none if none was found. Also whether that is
/// proven.
fn extend(judge: &mut Judge<'_>, system: &SystemGraph) -> Result<(Option<(SystemGraph, f64)>, bool), Error> {
    let spare = Spare::new(judge.inventory, system)?;
    let free: usize = spare.ports.iter().map(|(ports, _)| ports.len()).sum();
    let most = judge.inventory.cables.map_or(free / 2, |most| (most as usize).min(free / 2));
    let all = judge.left;
    judge.left = all / 2;
    for cables in 0..=most {
        let mut best: Option<(f64, SystemGraph)> = None;
        let is_complete = spare.search(judge, &mut Vec::new(), cables, &mut best)?;
        if let Some((_, system)) = best {
            return Ok((Some((system, cables as f64)), is_complete && !judge.unsure));
        }
        if !is_complete {
            judge.left = all.saturating_sub(judge.looked);
            let added = spare.thinned(judge)?.filter(|added| added.len() <= most);
            return Ok((added.map(|added| (spare.with(&added), added.len() as f64)), false));
        }
    }
    Ok((None, !judge.unsure))
}

impl<'a> Spare<'a> {
    fn new(inventory: &Inventory, system: &'a SystemGraph) -> Result<Self> {
        let kit = inventory.by_name();
        let mut ports = Vec::new();
        for (id, node) in (0..).zip(&system.nodes) {
            let Some(unit) = kit.get(node.name.as_str()) else {
                ports.push((Vec::new(), 0.0));
                continue;
            };
            if unit.node.kind != node.kind {
                return fail(
                    format!(
                        "`{}` is a host in the inventory or the machine, but a switch in the other",
                        node.name
                    ),
                    "the inventory specifies the ports of existing nodes under their names",
                );
            }
            let is_taken = |port: &u32| {
                let end = (id, Some(*port));
                let mut links = system.links.iter();
                links.any(|link| {
                    (link.source, link.source_port) == end || (link.destination, link.destination_port) == end
                })
            };
            let free = (0..unit.ports).filter(|port| !is_taken(port)).collect();
            ports.push((free, unit.bandwidth));
        }
        let is_host = |node: usize| system.nodes[node].kind == NodeKind::Host;
        let open: Vec<usize> = (0..ports.len()).filter(|&node| !ports[node].0.is_empty()).collect();
        let pairs = open.iter().flat_map(|&a| open.iter().map(move |&b| (a, b)));
        let pairs = pairs.filter(|&(a, b)| a < b && !(is_host(a) && is_host(b))).collect();
        Ok(Self { system, ports, pairs })
    }

    /// Enumerates all ways to add a number of cables; false if there are too many.
    fn search(
        &self,
        judge: &mut Judge<'_>,
        added: &mut Vec<usize>,
        cables: usize,
        best: &mut Option<(f64, SystemGraph)>,
    ) -> Result<bool, Error> {
        if judge.is_over() {
            return Ok(false);
        }
        if added.len() == cables {
            let system = self.with(added);
            // Checks first for the failure that the last candidate did not survive.
            if judge.may_do(&system, &BTreeSet::new())?
                && let Some(cost) = judge.best(&system)?
                && best.as_ref().is_none_or(|(known, _)| cost < *known)
            {
                *best = Some((cost, system));
            }
            return Ok(true);
        }
        for pair in added.last().copied().unwrap_or_default()..self.pairs.len() {
            added.push(pair);
            let is_complete = !self.fits(added) || self.search(judge, added, cables, best)?;
            added.pop();
            if !is_complete {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cables at all free ports, minus those that are unnecessary, one by one; none if even all of them are not sufficient.
    fn thinned(&self, judge: &mut Judge<'_>) -> Result<Option<Vec<usize>>, Error> {
        let mut added = Vec::new();
        // Every pair in turn, so that cables are spread.
        loop {
            let before = added.len();
            for pair in 0..self.pairs.len() {
                added.push(pair);
                if !self.fits(&added) {
                    added.pop();
                }
            }
            if added.len() == before {
                break;
            }
        }
        if judge.best(&self.with(&added))?.is_none() {
            return Ok(None);
        }
        for at in (0..added.len()).rev() {
            if judge.is_over() {
                break;
            }
            let cable = added.remove(at);
            if judge.best(&self.with(&added))?.is_none() {
                added.insert(at, cable);
            }
        }
        Ok(Some(added))
    }

    /// Whether there are enough ports for all these cables.
    fn fits(&self, added: &[usize]) -> bool {
        let ends = || added.iter().flat_map(|&pair| [self.pairs[pair].0, self.pairs[pair].1]);
        ends().all(|node| ends().filter(|other| *other == node).count() <= self.ports[node].0.len())
    }

    /// The machine with cables at the lowest free ports.
    fn with(&self, added: &[usize]) -> SystemGraph {
        let mut system = self.system.clone();
        let mut next = vec![0; self.ports.len()];
        for &pair in added {
            let (a, b) = self.pairs[pair];
            let mut end = |node: usize| {
                next[node] += 1;
                (node as u32, self.ports[node].0.get(next[node] - 1).copied())
            };
            system.links.extend(cable(end(a), end(b), self.ports[a].1.min(self.ports[b].1)));
        }
        system
    }
}
