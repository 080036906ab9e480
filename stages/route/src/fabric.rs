//! `route/fabric`: forwarding tables of a whole fabric, for traffic between all hosts.
//!
//! Traffic of this kind has no list of streams: forwarding is by destination, so that every destination gets a tree of next hops, and
//! every switch takes the least loaded of the paths that are equally short. All loads are counted in pairs of hosts. This is the
//! balance of `DFSSSP` (Domke, Hoefler and Nagel, "Deadlock-free oblivious routing for arbitrary topologies",
//! 2011), with several rounds, in which each destination is routed again while the loads of all others are known.
//!
//! Shortest paths of fat trees are free of deadlocks. Elsewhere turns are forbidden: by [`Order`]s of the switches, up first and then
//! down, or one by one, where they would close a cycle (`turns`).

mod loads;
mod network;
mod order;
mod permutations;
mod product;
mod program;
mod traffic;
mod trees;
mod turns;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Stage, SystemGraph, TableEntry, Tables,
    TaskGraph, require,
};
use hopmap_routing::error::{fail, is_above_zero};
use hopmap_routing::network::check_ports;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::demands::ready;
use crate::params::{DemandsParams, NO_LIMIT};
use loads::Loads;
use network::FabricNetwork;
use order::Order;
use program::ProgramTraffic;
use traffic::Traffic;
use trees::{NONE, Rule, Trees};

/// Rounds in which every destination is routed again.
const ROUNDS: usize = 8;
/// Rounds under a rule before it is compared with others.
const FIRST_ROUNDS: usize = 1;
/// Roots whose orders are tried.
const MOST_ROOTS: usize = 16;

/// Parameters of `route/fabric`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricParams {
    /// The traffic whose busiest link gets as little as possible.
    #[serde(default)]
    pub traffic: Traffic,
    /// Require deadlock-free routes: no cycle of links that wait for each other.
    #[serde(default = "yes")]
    pub deadlock_free: bool,
    /// Time limit in seconds; the result is then not reproducible bit-identically.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
}

fn yes() -> bool {
    true
}

/// `route/fabric`: tables for traffic between all hosts.
#[derive(Debug)]
pub struct FabricStage;

impl Stage for FabricStage {
    type Params = FabricParams;
    const KIND: &'static str = "route/fabric";
    const SUMMARY: &'static str =
        "Compute balanced forwarding tables of a whole fabric, without a list of streams";
    const REVISION: u32 = 3;
    const PORTS: &'static [Port] = &[
        Port::input::<SystemGraph>("system"),
        Port::optional::<TaskGraph>("task-graph"),
        Port::optional::<Mapping>("mapping"),
        Port::output::<SystemGraph>("system"),
        Port::output::<Tables>("tables"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        let time = params.time_limit_s.unwrap_or(1.0);
        Ok(require(is_above_zero(time), "time_limit_s", time, NO_LIMIT)?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let begin = Instant::now();
        let system = ready(&inputs.one::<SystemGraph>("system")?.value, &DemandsParams::default())?;
        check_ports(&system)?;
        let mut network = FabricNetwork::new(&system)?;
        let program = program(&inputs, &network)?;
        if let Some(program) = &program {
            network.streams = program.weights(&network);
        }
        let own = params.time_limit_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let end = own.map(|own| begin + own).into_iter().chain(cx.deadline()).min();
        let is_over = || cx.should_stop() || end.is_some_and(|end| Instant::now() >= end);
        let least = network.least_busiest();
        let has_bound = params.traffic != Traffic::BitReversal && program.is_none();
        let bound = if has_bound { least } else { 1.0 };
        let routing = Routing { network: &network, traffic: params.traffic, bound, is_over: &is_over, cx };
        let Some(trees) = routing.route(params.deadlock_free) else {
            return fail(
                "no order of the switches joins all hosts",
                "a link may lead in one direction only; or set `deadlock_free = false`",
            );
        };
        let mut tables = tables(&network, &trees, least);
        if let Some(program) = program {
            tables.metrics.insert("busiest_program_bytes".to_owned(), program.busiest(&network, &trees));
        }
        summary(&tables, params.traffic, cx);
        let is_cut_short = is_over() && (cx.should_stop() || cx.deadline().is_some());
        let outputs = Outputs::new().with("system", system.clone()).with("tables", tables);
        let outputs = outputs.timed(params.time_limit_s.is_some());
        Ok(if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) })
    }
}

/// The traffic of the program that is connected, if one is.
fn program(inputs: &Inputs, network: &FabricNetwork<'_>) -> Result<Option<ProgramTraffic>, Error> {
    let graph = inputs.optional::<TaskGraph>("task-graph")?;
    let mapping = inputs.optional::<Mapping>("mapping")?;
    match (graph, mapping) {
        (Some(graph), Some(mapping)) => Ok(Some(ProgramTraffic::new(&graph.value, &mapping.value, network)?)),
        (None, None) => Ok(None),
        _ => fail(
            "only one of `task-graph` and `mapping` is connected",
            "connect both, so that the streams of the program are known, or none",
        ),
    }
}

/// What a further round routes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Every destination, on paths that join as early as they can.
    Shared,
    /// Destinations over busy channels, on several paths.
    SpreadBusy,
    /// Every destination, on several paths.
    SpreadAll,
}

impl Again {
    /// Part of the busiest load that has to be left for a round to be worth it. Several paths make single shifts less even.
    fn worth(self) -> f64 {
        if self == Self::SpreadAll { 0.95 } else { 1.0 }
    }
}

/// The search for trees.
struct Routing<'a> {
    network: &'a FabricNetwork<'a>,
    traffic: Traffic,
    /// No trees have a busiest link with less.
    bound: f64,
    is_over: &'a dyn Fn() -> bool,
    cx: &'a Context<'a>,
}

impl<'a> Routing<'a> {
    /// Trees of all destinations; none if no order joins all hosts.
    fn route(&self, deadlock_free: bool) -> Option<Trees<'a>> {
        let shortest = self.trees(Rule::Shortest);
        if let Some(trees) = shortest.filter(|trees| !deadlock_free || trees.is_deadlock_free()) {
            let best = self.improved(trees.clone(), ROUNDS);
            // Other shortest paths need not be as harmless.
            let is_whole = !deadlock_free || best.is_deadlock_free();
            return Some(if is_whole { best } else { self.improved(trees.with_turns(), ROUNDS) });
        }
        self.cx.log("shortest paths could wait for each other in a cycle: turns are restricted");
        let roots = Order::roots(self.network, MOST_ROOTS);
        let mut best: Option<Trees<'a>> = None;
        for order in Order::candidates(self.network, &roots, self.is_over) {
            if (self.is_over)() {
                break;
            }
            let has_dimensions = order.has_dimensions();
            let Some(trees) = self.trees(Rule::Order(order)) else { continue };
            if has_dimensions {
                best = Some(trees);
                break;
            }
            if best.as_ref().is_none_or(|best| trees.busiest() < best.busiest()) {
                best = Some(trees);
            }
        }
        if let Some(best) = best {
            return Some(self.improved(best.with_turns(), ROUNDS));
        }
        let mut on_tree = Trees::new(self.network, self.traffic, Rule::Shortest);
        ((self.is_over)() && on_tree.route_on_tree()).then_some(on_tree)
    }

    /// The trees under a rule after some rounds; none if it does not join all hosts.
    fn trees(&self, rule: Rule) -> Option<Trees<'a>> {
        let mut trees = Trees::new(self.network, self.traffic, rule);
        trees.route_all(self.is_over).then(|| self.improved(trees, FIRST_ROUNDS))
    }

    /// The best trees of some further rounds: in which all packets for a host share paths, and then in which those need not that come
    /// over a busy channel, and then all.
    fn improved(&self, mut best: Trees<'a>, rounds: usize) -> Trees<'a> {
        for stage in [Again::Shared, Again::SpreadBusy, Again::SpreadAll] {
            for round in 0..rounds {
                self.cx.progress(round as u64, rounds as u64);
                let busiest = best.busiest();
                let mut trees = best.clone();
                trees.spreads = stage != Again::Shared;
                let least = match stage {
                    Again::SpreadBusy => u64::midpoint(busiest, self.bound as u64) + 1,
                    Again::Shared | Again::SpreadAll => 0,
                };
                if busiest as f64 <= self.bound
                    || (self.is_over)()
                    || !trees.route_again(least, self.is_over)
                    || trees.busiest() as f64 >= busiest as f64 * stage.worth()
                {
                    break;
                }
                best = trees;
            }
        }
        if rounds > FIRST_ROUNDS && self.traffic != Traffic::BitReversal && self.network.streams.is_empty() {
            permutations::improve(&mut best, self.network, self.bound, self.is_over);
        }
        best
    }
}

/// The entries of all switches for all hosts, with the loads of the kinds of traffic.
fn tables(network: &FabricNetwork<'_>, trees: &Trees<'_>, least: f64) -> Tables {
    let mut entries = Vec::with_capacity(network.hosts.len() * network.switches.len());
    // In the order of tables.
    for (at, &switch) in network.switches.iter().enumerate() {
        for (destination, &host) in network.hosts.iter().enumerate() {
            let link = trees.next(destination, at);
            if link != NONE {
                let output_port = network.system.links[link as usize].source_port.unwrap_or_default();
                entries.push(TableEntry { switch, input_port: None, destination: host, output_port });
            }
        }
    }
    let mut metrics = BTreeMap::new();
    for kind in Traffic::ALL {
        let Loads { busiest, mean } = loads::loads(network, trees, kind);
        metrics.insert(format!("busiest_{}", kind.name()), busiest);
        if kind == Traffic::Shift {
            metrics.insert("mean_busiest_shift".to_owned(), mean);
        }
    }
    metrics.insert("busiest_bound".to_owned(), least);
    metrics.insert("longest".to_owned(), f64::from(trees.longest()));
    metrics.insert("deadlock_free".to_owned(), f64::from(u8::from(trees.is_deadlock_free())));
    metrics.insert("entries".to_owned(), entries.len() as f64);
    Tables { entries, metrics }
}

fn summary(tables: &Tables, traffic: Traffic, cx: &Context<'_>) {
    let metric = |name: &str| tables.metrics.get(name).copied().unwrap_or_default();
    let busiest = metric(&format!("busiest_{}", traffic.name()));
    let bound = match traffic {
        Traffic::AllToAll => format!(", and no tables can do with less than {:.0}", metric("busiest_bound")),
        Traffic::Shift | Traffic::BitReversal => String::new(),
    };
    cx.log(format_args!("the busiest link between switches carries {busiest:.0} pairs of hosts{bound}"));
    if let Some(bytes) = tables.metrics.get("busiest_program_bytes") {
        cx.log(format_args!("under the program it carries {}", hopmap_text::bytes(*bytes as u64)));
    }
}
