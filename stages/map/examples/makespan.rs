//! Gains of the objective `makespan`: synthetic programs on trees of hosts and switches.
//!
//! `cargo run --release -p hopmap-map --example makespan -- [EVALUATIONS]` prints for every program the makespans in
//! microseconds: of the linear mapping; of `map/auto` by F; by the makespan, the best, median and worst of three
//! seeds; and the lower bound and the seconds of the three searches. In `writers` most bytes go to receivers that
//! delay no other task.

#![allow(clippy::print_stdout, reason = "an example")]

use std::sync::Arc;
use std::time::Instant;

use hopmap_map::{AutoGoal, AutoParams, AutoStage, LinearParams, LinearStage};
use hopmap_model::{
    Context, DelayModel, Error, Inputs, Mapping, Outcome, Stage, SystemGraph, TaskDag, Weight,
};
use hopmap_replay::{Distance, Linear, Machine, MakespanEvaluator, ReplayProblem};
use hopmap_test_support::traced::{Stencil, messages, scattered, sweep, tree, writers};

const LATENCY: f64 = 0.5e-6;
const BANDWIDTH: f64 = 20e9;

fn main() -> Result<(), Error> {
    let evaluations = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    println!("{:<24} {:>9} {:>9} {:>29} {:>9} {:>7}", "program", "linear", "F", "makespan", "bound", "s");
    for seed in 1..=5 {
        for (ranks, degree) in [(12u32, 2), (16, 3), (48, 2), (64, 4), (200, 3)] {
            let system = tree(&[4, (ranks / 4 + 2).div_ceil(2), 2], &[1.0, 4.0, 10.0]);
            let dag = scattered(ranks, degree, 40, seed);
            line(&format!("scattered {ranks} {degree} {seed}"), dag, system, evaluations)?;
        }
    }
    let stencil = |side| Stencil {
        width: side,
        height: side,
        iterations: 100,
        bytes: [100_000, 20_000],
        sums: None,
        imbalance: 0.0,
        scramble: true,
    };
    let programs = [
        ("stencil 8 x 8", stencil(8).dag()),
        ("stencil 16 x 16", stencil(16).dag()),
        ("stencil, unequal work", Stencil { imbalance: 2.0, ..stencil(16) }.dag()),
        ("stencil, sums", Stencil { sums: Some(5), ..stencil(16) }.dag()),
        ("sweep 16 x 16", sweep(16, 16, 40, 20_000, true)),
        ("writers, 4 teams", writers(4, 100, true)),
        ("stencil 32 x 32", stencil(32).dag()),
    ];
    for (name, dag) in programs {
        let hosts = dag.ranks().div_ceil(16).next_multiple_of(4) + 4;
        line(name, dag, tree(&[16, 4, hosts / 4], &[1.0, 8.0, 24.0]), evaluations)?;
    }
    Ok(())
}

/// One program on a tree.
fn line(name: &str, dag: TaskDag, system: SystemGraph, evaluations: u64) -> Result<(), Error> {
    let machine = Machine::of_system(&system, None, Linear::new(LATENCY, BANDWIDTH)?, Some(Distance::Costs))?;
    let problem = ReplayProblem::new(&dag, &machine, DelayModel::Overlap)?;
    let mut evaluator = MakespanEvaluator::new(&problem);
    let mut time = |mapping: &Mapping| 1e6 * problem.real(evaluator.makespan(&mapping.slots()));
    let (graph, dag, system) = (Arc::new(messages(&dag)), Arc::new(dag), Arc::new(system));
    let inputs = || {
        let mut inputs = Inputs::new();
        inputs.connect("task-graph", graph.clone(), "1".into(), "program".into());
        inputs.connect("task-dag", dag.clone(), "2".into(), "tasks".into());
        inputs.connect("system", system.clone(), "3".into(), "machine".into());
        inputs
    };
    let weight = Weight::Time { latency_s: LATENCY, bandwidth_bytes_per_s: BANDWIDTH }.into();
    let auto = AutoParams { weight, islands: 1, evaluations: Some(evaluations), ..AutoParams::default() };
    let linear = time(&mapped::<LinearStage>(LinearParams::default(), inputs())?);
    let by_sum = AutoParams { evaluations: Some(1 << 20), ..auto.clone() };
    let by_sum = time(&mapped::<AutoStage>(by_sum, inputs())?);
    let begin = Instant::now();
    let by_makespan = |seed| {
        mapped::<AutoStage>(AutoParams { seed, objective: AutoGoal::Makespan, ..auto.clone() }, inputs())
    };
    let found = [1, 2, 3].map(by_makespan).into_iter().collect::<Result<Vec<_>, _>>()?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut makespans: Vec<f64> = found.iter().map(&mut time).collect();
    makespans.sort_by(f64::total_cmp);
    let bound = 1e6 * found[0].metrics["lower_bound"];
    println!(
        "{name:<24} {linear:>9.2} {by_sum:>9.2} {:>9.2} {:>9.2} {:>9.2} {bound:>9.2} {seconds:>7.2}",
        makespans[0], makespans[1], makespans[2]
    );
    Ok(())
}

fn mapped<S: Stage>(params: S::Params, inputs: Inputs) -> Result<Mapping, Error> {
    let (Outcome::Done(outputs) | Outcome::Partial(outputs)) = S::run(params, inputs, &Context::detached())?
    else {
        return Err(Error::msg("the search was stopped"));
    };
    let mapping = outputs.get("mapping").and_then(|mapping| mapping.downcast_ref::<Mapping>());
    mapping.cloned().ok_or_else(|| Error::msg("no mapping"))
}
