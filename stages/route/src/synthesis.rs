//! Machines built from a kit of nodes, switches and boards.
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
//! A cable joins a node and a switch or two switches, at a port of each; it has the lesser bandwidth of the two in each
//! direction. Where a kit has boards, every node and switch is on one, at most `chips` on each, and a cable between two boards
//! takes a connector of both. Units (nodes and switches) and boards cost 1 and cables nothing where the kit does not say it. What
//! costs least is best; of machines that cost the same, the one with the least objective (11).
//!
//! Instead of all that a kit can have boards with known contents:
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
//! `nodes`, `switches` and `links` are those of an instance (`hosts` may stand for `nodes`). How many boards of each type there are
//! and which cables join them is looked for. A cable joins connectors of two boards, not both at nodes, and has the lesser bandwidth
//! of both in each direction; a connector is at the lowest free port of its chip unless it says another one. Nodes and switches are
//! called by their board and their name on it (`carrier0_cpu0`; `carrier_cpu0` where there is one such board).

mod design;
mod exact;
mod inventory;
mod judge;
mod search;

use std::collections::BTreeSet;
use std::path::Path;

use hopmap_model::{
    Cause, Context, Diagnosis, Error, InputPath, Inputs, Mapping, NodeKind, Outcome, Outputs, Part, Port,
    Routes, Stage, SystemGraph, Tables, TaskGraph,
};
use hopmap_text::FileError;

use crate::answer::{self, Answer};
use crate::diagnosis::diagnose;
use crate::engine::StopCondition;
use crate::error::{Result, fail, require};
use crate::instance::cable;
use crate::network::check_ports;
use crate::params::NO_LIMIT;
use crate::problem::Problem;
use crate::{BuildParams, Fallible, Rules, solver};

use design::Assembly;
use inventory::{FixedBoard, Inventory};
use judge::Judge;

/// `route/build`: a machine from a kit.
#[derive(Debug)]
pub struct BuildStage;

/// Whether bytes are a kit, in TOML or JSON; `path` stands in errors.
pub fn check_kit(bytes: &[u8], path: &Path) -> Result<(), FileError> {
    Inventory::parse(bytes, path).map(|_| ())
}

impl Stage for BuildStage {
    type Params = BuildParams;
    const KIND: &'static str = "route/build";
    const SUMMARY: &'static str = "A machine for a program from a kit of nodes, switches and boards";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::optional::<SystemGraph>("system"),
                Port::possible::<SystemGraph>("system"),
                Port::possible::<Mapping>("mapping"),
                Port::possible::<Routes>("routes"),
                Port::possible::<Tables>("tables"),
                Port::possible::<Diagnosis>("diagnosis"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()?;
        require(params.candidates > 0, "candidates", 0, NO_LIMIT)?;
        if params.tolerate_single_failure.contains(&Fallible::Host) && !params.remap {
            return fail(
                "the processes of a host that fails cannot stay there",
                "with `tolerate_single_failure = [\"host\"]` say `remap = true`",
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

/// The machine with all that runs on it, or why there is surely no machine that does.
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
                "a kit of boards with known contents adds nothing to a machine that is there",
                "leave out `system`, or give the kit `nodes` and `switches` with their `ports`",
            );
        }
        Some(system) => {
            check_ports(system)?;
            extend(&mut judge, system)?
        }
        None => search::search(&mut judge, params.seed)?,
    };
    cx.log(format_args!("{} machines were looked at", judge.looked));
    match found {
        Some((system, cost)) => {
            let answer = last(&judge, &system, cost, proven)?;
            cx.log(match proven {
                true => format!("cost {cost}, proven least"),
                false => format!("cost {cost}; a better machine may exist"),
            });
            Ok(Ok((system, answer)))
        }
        None if proven => Ok(Err(why(&judge, given)?)),
        None => fail(
            "no machine was found within the limits, and it is not known whether there is one",
            "give more `candidates`, `time_limit_s` or `max_search_nodes`",
        ),
    }
}

/// Refuses programs that name hosts which the machine will not have.
fn check_hosts(graph: &TaskGraph, inventory: &Inventory, given: Option<&SystemGraph>) -> Result<()> {
    for process in &graph.demands.processes {
        let Some(host) = &process.host else { continue };
        let is_known = match given {
            Some(system) => system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host),
            None => inventory.has_host(host),
        };
        if !is_known {
            return fail(
                format!("process `{}` has to be on host `{host}`, which is not there", process.name),
                "leave `mapping` out of the instance, or name nodes of the kit in it",
            );
        }
    }
    Ok(())
}

/// The answer on the machine, with what the search says of both.
fn last(judge: &Judge<'_>, system: &SystemGraph, cost: f64, proven: bool) -> Result<Answer, Error> {
    let Some(mut answer) = judge.answer(system)? else {
        return fail("the machine has no answer after all", "this is a fault of hopmap");
    };
    let of_answer = answer.routes.metrics.get("proven").copied().unwrap_or_default();
    let proven = if proven { of_answer } else { 0.0 };
    answer.record(&[("cost", cost), ("machines", judge.looked as f64), ("proven", proven)]);
    Ok(answer)
}

/// Why no machine does: what hosts are short of if nothing limited the network between them, or else that the network is the
/// limit.
fn why(judge: &Judge<'_>, given: Option<&SystemGraph>) -> Result<Diagnosis, Error> {
    let inventory = judge.inventory;
    let hosts = Assembly::new(inventory, &inventory.all()).hosts();
    let ideal = search::star(&hosts, &judge.graph.demands);
    // The one switch of the ideal network stands for all.
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
            (_, Some(_)) => "no cables at free ports make the machine survive every failure".to_owned(),
            _ if parts == "boards" && !inventory.fixed_boards.iter().any(FixedBoard::has_connectors) => {
                "one board does not do, and the boards of the kit have no connectors to join them".to_owned()
            }
            (true, None) => format!("no way to join the {parts} of the kit keeps all constraints"),
            (false, None) => format!("no way to join the {parts} of the kit survives every failure"),
        };
        let (part, name) = (Part::Switch, "kit".to_owned());
        diagnosis.causes.push(Cause { remedy: 0, part, name, there: None, needed: None, words });
    }
    Ok(diagnosis)
}

/// A machine that is there, and its ports without a cable.
struct Spare<'a> {
    system: &'a SystemGraph,
    /// Free ports of every node, least first, and the bandwidth of its ports.
    ports: Vec<(Vec<u32>, f64)>,
    /// Pairs of nodes that a cable could join.
    pairs: Vec<(usize, usize)>,
}

/// The machine with as few more cables as will do, and how many; nothing if none was found. Says as well whether that is proven.
fn extend(judge: &mut Judge<'_>, system: &SystemGraph) -> Result<(Option<(SystemGraph, f64)>, bool), Error> {
    let spare = Spare::new(judge.inventory, system)?;
    let free: usize = spare.ports.iter().map(|(ports, _)| ports.len()).sum();
    let most = judge.inventory.cables.map_or(free / 2, |most| (most as usize).min(free / 2));
    let all = judge.left;
    judge.left = all / 2;
    for cables in 0..=most {
        let mut best: Option<(f64, SystemGraph)> = None;
        let whole = spare.search(judge, &mut Vec::new(), cables, &mut best)?;
        if let Some((_, system)) = best {
            return Ok((Some((system, cables as f64)), whole && !judge.unsure));
        }
        if !whole {
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
                    format!("`{}` is a host in one of kit and machine and a switch in the other", node.name),
                    "the kit says of nodes of the machine, by their names, how many ports they have",
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

    /// Goes through all ways to add so many cables; false if there are too many.
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
            // First whether it survives what the last one did not.
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
            let whole = !self.fits(added) || self.search(judge, added, cables, best)?;
            added.pop();
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cables at all free ports, less those that are not needed, one after the other; nothing if even all of them do not do.
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

    /// Whether there are ports for all these cables.
    fn fits(&self, added: &[usize]) -> bool {
        let ends = || added.iter().flat_map(|&pair| [self.pairs[pair].0, self.pairs[pair].1]);
        ends().all(|node| ends().filter(|other| *other == node).count() <= self.ports[node].0.len())
    }

    /// The machine with cables at the least free ports.
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
