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
mod candidate;
mod design;
mod exact;
mod families;
mod file;
mod judge;
mod search;
mod spare;
mod stock;
mod wired;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use hopmap_model::{
    Cause, Context, Diagnosis, Error, InputPath, Inputs, Mapping, NodeKind, Outcome, Outputs, Part, Port,
    Routes, Stage, SystemGraph, Tables, TaskGraph,
};
use hopmap_text::FileError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, answer, check_ports};
use crate::diagnosis::diagnose;
use crate::engine::Watch;
use crate::error::ParameterError;
use crate::failures::Fallible;
use crate::params::{one, ten, thousand};
use crate::problem::Problem;
use crate::solver::{self, Limits};
use crate::{CheckError, Goal, Method, Rules, SolveParams, TablesStage};

use candidate::Candidate;
use design::Design;
use judge::Judge;
use stock::{Stock, Unit};
use wired::{Assembly, Wired};

/// Seconds in which the routes of a machine are found again after somebody asked to stop.
const LAST_SECONDS: f64 = 10.0;

/// `route/build`: a machine from a kit.
#[derive(Debug)]
pub struct BuildStage;

/// A machine from a kit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildParams {
    /// A file of TOML or JSON with nodes, switches and boards, or with boards and what is on each of them.
    pub kit: InputPath,
    /// Parts any one of which may fail: of each kind every single one.
    #[serde(default)]
    pub survives: Vec<Fallible>,
    /// Whether processes may go to other hosts when a part fails. Otherwise they stay, and only routes change.
    #[serde(default)]
    pub remap: bool,
    /// How many machines are looked at. A machine is only proven best if that is enough for all that could be better.
    #[serde(default = "candidates")]
    pub candidates: u64,
    /// What random steps are drawn with, where there are too many machines to look at all.
    #[serde(default)]
    pub seed: u64,
    /// What a hop of the longest route weighs in the objective; 1000 in the paper.
    #[serde(default = "thousand")]
    pub longest: f64,
    /// What every hop weighs; 10 in the paper.
    #[serde(default = "ten")]
    pub hops: f64,
    /// What every entry of a table weighs; 1 in the paper.
    #[serde(default = "one")]
    pub entries: f64,
    /// Whether no links may be able to wait for each other in a circle.
    #[serde(default)]
    pub deadlock_free: bool,
    /// Most hops of a route.
    #[serde(default)]
    pub most_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub performance_slack: f64,
    /// Most that arrives at a switch in a second.
    #[serde(default)]
    pub switch_load: Option<f64>,
    /// What looks for answers on a machine.
    #[serde(default)]
    pub method: Method,
    /// How many nodes the search may look at for each machine.
    #[serde(default)]
    pub nodes: Option<u64>,
    /// How long the search may take for each machine, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
}

fn candidates() -> u64 {
    2000
}

impl From<&BuildParams> for SolveParams {
    fn from(params: &BuildParams) -> Self {
        Self {
            longest: params.longest,
            hops: params.hops,
            entries: params.entries,
            deadlock_free: params.deadlock_free,
            most_hops: params.most_hops,
            bandwidth_slack: params.bandwidth_slack,
            performance_slack: params.performance_slack,
            switch_load: params.switch_load,
            goal: Goal::Objective,
            method: params.method,
            nodes: params.nodes,
            seconds: params.seconds,
            ignore_performance: false,
            allow_infeasible: false,
        }
    }
}

/// Whether bytes are a kit, in TOML or JSON; `path` stands in errors.
pub fn check_kit(bytes: &[u8], path: &Path) -> Result<(), FileError> {
    Stock::parse(bytes, path).map(|_| ())
}

impl Stage for BuildStage {
    type Params = BuildParams;
    const KIND: &'static str = "route/build";
    const SUMMARY: &'static str = "A machine for a program from a kit of nodes, switches and boards";
    const REVISION: u32 = 1;

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
        TablesStage::check(&SolveParams::from(params))?;
        if params.candidates == 0 {
            return Err(ParameterError::Limit { name: "candidates", value: 0.0 }.into());
        }
        if params.survives.contains(&Fallible::Host) && !params.remap {
            return Err(CheckError::new(
                "the processes of a host that fails cannot stay there",
                "with `survives = [\"host\"]` say `remap = true`",
            )
            .into());
        }
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(vec![InputPath::named(params.kit.path(), "kit")])
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let given = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
        let mut stock = Stock::read(params.kit.path())?;
        check_hosts(&graph, &stock, given.as_deref())?;
        let named = graph.demands.processes.iter().filter_map(|process| process.host.as_deref());
        stock.set_apart(&named.collect());
        let built = build(&params, &stock, &graph, given.as_deref(), cx)?;
        Ok(match built {
            Built::Machine(machine) => {
                let Machine { system, answer: Answer { mapping, routes, tables } } = *machine;
                let proven = routes.metrics.get("proven").copied().unwrap_or_default();
                let outputs = Outputs::new().with("system", system).with("mapping", mapping);
                let outputs = outputs.with("routes", routes).with("tables", tables);
                let outputs = outputs.timed(params.seconds.is_some() || cx.deadline().is_some());
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
    stock: &Stock,
    graph: &TaskGraph,
    given: Option<&SystemGraph>,
    cx: &Context<'_>,
) -> Result<Built, Error> {
    let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64());
    let should_stop = || cx.should_stop();
    let progress = |looked| cx.progress(looked, params.candidates);
    let mut judge = Judge {
        graph,
        rules: Rules::from(&SolveParams::from(params)),
        method: params.method,
        limits: Limits {
            nodes: params.nodes,
            seconds: params.seconds.into_iter().chain(left).reduce(f64::min),
        },
        survives: &params.survives,
        remap: params.remap,
        left: params.candidates,
        looked: 0,
        unsure: false,
        killer: None,
        should_stop: &should_stop,
        progress: &progress,
    };
    let (found, cost, proven) = match given {
        Some(_) if !stock.wired.is_empty() => {
            return Err(CheckError::new(
                "a kit of boards with known contents adds nothing to a machine that is there",
                "leave out `system`, or give the kit `nodes` and `switches` with their `ports`",
            )
            .into());
        }
        Some(system) => {
            check_ports(system)?;
            let (found, proven) = spare::extend(&mut judge, stock, system)?;
            let cables = found.as_ref().map_or(0, |found| (found.links.len() - system.links.len()) / 2);
            (found, cables as f64, proven)
        }
        None if !stock.wired.is_empty() => {
            let (found, proven) = wired::search(&mut judge, stock, params.seed)?;
            let (found, cost) = found.unzip();
            (found, cost.unwrap_or_default(), proven)
        }
        None => {
            let (best, proven) = search::search(&mut judge, stock, params.seed)?;
            let (found, cost) = best.map(|best| finished(best, stock, &judge)).unzip();
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
        None if proven => Ok(Built::None(why(&judge, stock, given)?)),
        None => Err(CheckError::new(
            "no machine was found within the limits, and it is not known whether there is one",
            "give more `candidates`, `seconds` or `nodes`",
        )
        .into()),
    }
}

/// Refuses programs that name hosts which the machine will not have.
fn check_hosts(graph: &TaskGraph, stock: &Stock, given: Option<&SystemGraph>) -> Result<(), CheckError> {
    for process in &graph.demands.processes {
        let Some(host) = &process.host else { continue };
        let is_known = match given {
            Some(system) => system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host),
            None => stock.has_host(host),
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
fn finished(best: Candidate, stock: &Stock, judge: &Judge<'_>) -> (SystemGraph, f64) {
    let Candidate { units, cables, packing, cost, .. } = best;
    let of_board = |index: usize, unit: &Unit| -> Unit {
        let mut unit = unit.clone();
        // Hosts that processes name keep their names.
        let is_named = judge
            .graph
            .demands
            .processes
            .iter()
            .any(|process| process.host.as_ref() == Some(&unit.node.name));
        if let Some(&(kind, number)) = packing.boards.get(index).filter(|_| !is_named) {
            unit.node.name = format!("{}_{}", stock.boards[kind].names[number], unit.node.name);
        }
        unit
    };
    let named: Vec<Unit> = units.iter().enumerate().map(|(index, unit)| of_board(index, unit)).collect();
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
            (thinned, cost - stock.cable_cost * f64::from(saved))
        }
        Ok(None) | Err(_) => (system, cost),
    }
}

fn answer_of(judge: &Judge<'_>, system: &SystemGraph) -> Result<Option<Answer>, Error> {
    let problem = Problem::new(judge.graph, system, None, judge.rules)?;
    let solver = solver::default();
    if (judge.should_stop)() {
        // Its plan was found before, and is found again in about the same time.
        let limits = Limits { seconds: Some(LAST_SECONDS), ..judge.limits };
        return answer(&problem, None, judge.method, solver.as_deref(), &Watch::new(limits, &|| false));
    }
    let watch = Watch::new(judge.limits, judge.should_stop);
    answer(&problem, None, judge.method, solver.as_deref(), &watch)
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
fn why(judge: &Judge<'_>, stock: &Stock, given: Option<&SystemGraph>) -> Result<Diagnosis, Error> {
    let hosts: Vec<Unit> = match stock.wired.is_empty() {
        true => stock.nodes.iter().flatten().cloned().collect(),
        false => Assembly::new(&stock.wired, &stock.all_boards()).hosts(),
    };
    let ideal = search::star(&hosts, &judge.graph.demands);
    // The one switch of the ideal network stands for all.
    let switch_load = judge.rules.switch_load.filter(|_| given.is_some());
    let rules = Rules { switch_load, ..judge.rules };
    let problem = Problem::new(judge.graph, given.unwrap_or(&ideal), None, rules)?;
    let solver = solver::default();
    let watch = Watch::new(judge.limits, judge.should_stop);
    let found = crate::answer::solve(&problem, judge.method, solver.as_deref(), &watch)?;
    let mut diagnosis = Diagnosis::default();
    if found.plan.is_none() && found.proven {
        diagnosis = diagnose(&problem, solver.as_deref(), &watch)?;
    }
    if diagnosis.causes.is_empty() {
        let parts = if stock.wired.is_empty() { "units" } else { "boards" };
        let words = match (judge.survives.is_empty(), given) {
            (_, Some(_)) => "no cables at free ports make the machine survive every failure".to_owned(),
            _ if parts == "boards" && !stock.wired.iter().any(Wired::has_connectors) => {
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
