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

mod boards;
mod design;
mod file;
mod inventory;
mod judge;
mod search;
mod spare;

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_model::{
    Cause, Context, Diagnosis, Error, InputPath, Inputs, Mapping, NodeKind, Outcome, Outputs, Part, Port,
    Routes, Stage, SystemGraph, Tables, TaskGraph,
};
use hopmap_text::FileError;

use crate::answer::Answer;
use crate::diagnosis::diagnose;
use crate::engine::StopCondition;
use crate::error::ParameterError;
use crate::network::check_ports;
use crate::problem::Problem;
use crate::{BuildParams, CheckError, Fallible, Rules, solver};

use boards::Assembly;
use design::Design;
use inventory::{Component, FixedBoard, Inventory};
use judge::{Candidate, Judge, answer_of};

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
        if params.candidates == 0 {
            return Err(ParameterError::Limit { name: "candidates", value: 0.0 }.into());
        }
        if params.tolerate_single_failure.contains(&Fallible::Host) && !params.remap {
            return Err(CheckError::new(
                "the processes of a host that fails cannot stay there",
                "with `tolerate_single_failure = [\"host\"]` say `remap = true`",
            )
            .into());
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
        let built = build(&params, &inventory, &graph, given.as_deref(), cx)?;
        Ok(match built {
            Built::Machine(machine) => {
                let Machine { system, answer: Answer { mapping, routes, tables } } = *machine;
                let proven = routes.metrics.get("proven").copied().unwrap_or_default();
                let outputs = Outputs::new().with("system", system).with("mapping", mapping);
                let outputs = outputs.with("routes", routes).with("tables", tables);
                let outputs = outputs.timed(params.time_limit_s.is_some() || cx.deadline().is_some());
                let is_cut_short = proven <= 0.0 && (cx.should_stop() || cx.deadline().is_some());
                if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) }
            }
            Built::None(diagnosis) => {
                diagnosis.causes.iter().for_each(|cause| cx.log(&cause.words));
                Outcome::Infeasible(Outputs::new().with("diagnosis", diagnosis))
            }
        })
    }
}

/// What comes of a kit.
#[derive(Debug)]
enum Built {
    Machine(Box<Machine>),
    /// There is surely no machine that does.
    None(Diagnosis),
}

/// A machine with all that runs on it.
#[derive(Debug, PartialEq)]
struct Machine {
    system: SystemGraph,
    answer: Answer,
}

fn build(
    params: &BuildParams,
    inventory: &Inventory,
    graph: &TaskGraph,
    given: Option<&SystemGraph>,
    cx: &Context<'_>,
) -> Result<Built, Error> {
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
        should_stop: &should_stop,
        progress: &progress,
    };
    let (found, cost, proven) = match given {
        Some(_) if !inventory.fixed_boards.is_empty() => {
            return Err(CheckError::new(
                "a kit of boards with known contents adds nothing to a machine that is there",
                "leave out `system`, or give the kit `nodes` and `switches` with their `ports`",
            )
            .into());
        }
        Some(system) => {
            check_ports(system)?;
            let (found, proven) = spare::extend(&mut judge, inventory, system)?;
            let cables = found.as_ref().map_or(0, |found| (found.links.len() - system.links.len()) / 2);
            (found, cables as f64, proven)
        }
        None if !inventory.fixed_boards.is_empty() => {
            let (found, proven) = boards::search(&mut judge, inventory, params.seed)?;
            let (found, cost) = found.unzip();
            (found, cost.unwrap_or_default(), proven)
        }
        None => {
            let (best, proven) = search::search(&mut judge, inventory, params.seed)?;
            let (found, cost) = best.map(|best| finished(best, inventory, &judge)).unzip();
            (found, cost.unwrap_or_default(), proven)
        }
    };
    cx.log(format_args!("{} machines were looked at", judge.looked));
    match found {
        Some(system) => {
            let answer = last(&judge, &system, cost, proven)?;
            cx.log(match proven {
                true => format!("cost {cost}, proven least"),
                false => format!("cost {cost}; a better machine may exist"),
            });
            Ok(Built::Machine(Box::new(Machine { system, answer })))
        }
        None if proven => Ok(Built::None(why(&judge, inventory, given)?)),
        None => Err(CheckError::new(
            "no machine was found within the limits, and it is not known whether there is one",
            "give more `candidates`, `time_limit_s` or `max_search_nodes`",
        )
        .into()),
    }
}

/// Refuses programs that name hosts which the machine will not have.
fn check_hosts(
    graph: &TaskGraph,
    inventory: &Inventory,
    given: Option<&SystemGraph>,
) -> Result<(), CheckError> {
    for process in &graph.demands.processes {
        let Some(host) = &process.host else { continue };
        let is_known = match given {
            Some(system) => system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host),
            None => inventory.has_host(host),
        };
        if !is_known {
            return Err(CheckError::new(
                format!("process `{}` has to be on host `{host}`, which is not there", process.name),
                "leave `mapping` out of the instance, or name nodes of the kit in it",
            ));
        }
    }
    Ok(())
}

/// The machine of a candidate and its cost: without cables that nothing needs, and with the names of boards.
fn finished(best: Candidate, inventory: &Inventory, judge: &Judge<'_>) -> (SystemGraph, f64) {
    let Candidate { units, cables, packing, cost, .. } = best;
    let of_board = |index: usize, unit: &Component| -> Component {
        let mut unit = unit.clone();
        // Hosts that processes name keep their names.
        let is_named = judge
            .graph
            .demands
            .processes
            .iter()
            .any(|process| process.host.as_ref() == Some(&unit.node.name));
        if let Some(&(kind, number)) = packing.boards.get(index).filter(|_| !is_named) {
            unit.node.name = format!("{}_{}", inventory.boards[kind].names[number], unit.node.name);
        }
        unit
    };
    let named: Vec<Component> = units.iter().enumerate().map(|(index, unit)| of_board(index, unit)).collect();
    let mut design = Design { units: &named, cables };
    let system = design.system(&judge.graph.demands);
    if !judge.survives.is_empty() || (judge.should_stop)() {
        return (system, cost);
    }
    let Ok(Some(answer)) = answer_of(judge, &system) else { return (system, cost) };
    let before = design.count();
    let mut used: BTreeMap<(usize, usize), std::collections::BTreeSet<u32>> = BTreeMap::new();
    for &index in answer.routes.routes.iter().flat_map(|route| &route.links) {
        let link = &system.links[index as usize];
        let (a, b) = (link.source as usize, link.destination as usize);
        // The two directions of a cable follow each other.
        used.entry((a.min(b), a.max(b))).or_default().insert(index / 2);
    }
    let host = |pair: &(usize, usize)| named[pair.0].node.kind == NodeKind::Host;
    design.cables = design
        .cables
        .iter()
        .map(|(&pair, &cables)| {
            (pair, used.get(&pair).map_or(u32::from(host(&pair)).min(cables), |used| used.len() as u32))
        })
        .filter(|(_, cables)| *cables > 0)
        .collect();
    let thinned = design.system(&judge.graph.demands);
    // Limits may keep the search from what it has just found.
    match answer_of(judge, &thinned) {
        Ok(Some(_)) => {
            let saved = before.saturating_sub(design.count());
            (thinned, cost - inventory.cable_cost * f64::from(saved))
        }
        Ok(None) | Err(_) => (system, cost),
    }
}

/// The answer on the machine, with what the search says of both.
fn last(judge: &Judge<'_>, system: &SystemGraph, cost: f64, proven: bool) -> Result<Answer, Error> {
    let Some(mut answer) = answer_of(judge, system)? else {
        return Err(
            CheckError::new("the machine has no answer after all", "this is a fault of hopmap").into()
        );
    };
    let of_answer = answer.routes.metrics.get("proven").copied().unwrap_or_default();
    let metrics =
        [("cost", cost), ("machines", judge.looked as f64), ("proven", if proven { of_answer } else { 0.0 })];
    for of in [&mut answer.routes.metrics, &mut answer.tables.metrics, &mut answer.mapping.metrics] {
        of.extend(metrics.iter().map(|&(name, value)| (name.to_owned(), value)));
    }
    Ok(answer)
}

/// Why no machine does: what hosts are short of if nothing limited the network between them, or else that the network is the
/// limit.
fn why(judge: &Judge<'_>, inventory: &Inventory, given: Option<&SystemGraph>) -> Result<Diagnosis, Error> {
    let hosts: Vec<Component> = match inventory.fixed_boards.is_empty() {
        true => inventory.nodes.iter().flatten().cloned().collect(),
        false => Assembly::new(&inventory.fixed_boards, &inventory.all_boards()).hosts(),
    };
    let ideal = search::star(&hosts, &judge.graph.demands);
    // The one switch of the ideal network stands for all.
    let switch_load = judge.rules.switch_load.filter(|_| given.is_some());
    let rules = Rules { switch_load, ..judge.rules };
    let problem = Problem::new(judge.graph, given.unwrap_or(&ideal), None, rules)?;
    let solver = solver::default();
    let stop = StopCondition::new(judge.limits, judge.should_stop);
    let found = crate::answer::solve(&problem, judge.method, solver.as_deref(), &stop)?;
    let mut diagnosis = Diagnosis::default();
    if found.plan.is_none() && found.proven {
        diagnosis = diagnose(&problem, solver.as_deref(), &stop)?;
    }
    if diagnosis.causes.is_empty() {
        let parts = if inventory.fixed_boards.is_empty() { "units" } else { "boards" };
        let words = match (judge.survives.is_empty(), given) {
            (_, Some(_)) => "no cables at free ports make the machine survive every failure".to_owned(),
            _ if parts == "boards" && !inventory.fixed_boards.iter().any(FixedBoard::has_connectors) => {
                "one board does not do, and the boards of the kit have no connectors to join them".to_owned()
            }
            (true, None) => format!("no way to join the {parts} of the kit keeps all constraints"),
            (false, None) => format!("no way to join the {parts} of the kit survives every failure"),
        };
        diagnosis.causes.push(Cause {
            remedy: 0,
            part: Part::Switch,
            name: "kit".to_owned(),
            there: None,
            needed: None,
            words,
        });
    }
    Ok(diagnosis)
}
