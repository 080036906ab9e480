//! Gains of the search by makespan: synthetic programs of many ranks on a tree of hosts and switches.
//!
//! `cargo run --release -p hopmap-schedule --example ranks -- [EVALUATIONS]` prints for every program the makespans in
//! milliseconds of four placements: linear; by partition, which minimises the sum of all messages as a quadratic assignment
//! problem does; the best fast start; and `schedule/auto`, with the lower bound and evaluations per second. In `writers` most
//! bytes go to receivers that delay no other task.

#![allow(clippy::print_stdout, reason = "an example")]

use hopmap_model::{Context, DelayModel, Error, TaskDag, WorkUnit};
use hopmap_replay::{MakespanEvaluator, ReplayProblem};
use hopmap_schedule::ranks::{RankSearch, auto, starts};
use hopmap_schedule::{AutoParams, MachineParams};

#[path = "../tests/support/programs.rs"]
mod programs;

use programs::{Stencil, sweep, tree, writers};

fn main() -> Result<(), Error> {
    let evaluations = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let stencil = |width, height| Stencil {
        width,
        height,
        iterations: 100,
        bytes: [100_000, 20_000],
        sums: None,
        imbalance: 0.0,
        scramble: true,
    };
    let programs = [
        ("stencil 8 x 8", stencil(8, 8).dag()),
        ("stencil 16 x 16", stencil(16, 16).dag()),
        ("stencil 16 x 16, unequal work", Stencil { imbalance: 2.0, ..stencil(16, 16) }.dag()),
        ("stencil 16 x 16, sums", Stencil { sums: Some(5), ..stencil(16, 16) }.dag()),
        ("sweep 16 x 16", sweep(16, 16, 40, 20_000, true)),
        ("writers, 4 teams", writers(4, 100, true)),
        ("stencil 32 x 32", stencil(32, 32).dag()),
    ];
    println!(
        "{:<30} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "program", "nodes", "linear", "partition", "start", "auto", "bound", "1/s"
    );
    for (name, dag) in &programs {
        line(name, dag, evaluations)?;
    }
    Ok(())
}

/// One program on a tree of hosts of 16 cores, at least 4 per switch, with a quarter of the slots free.
fn line(name: &str, dag: &TaskDag, evaluations: u64) -> Result<(), Error> {
    let hosts = dag.ranks().div_ceil(16).next_multiple_of(4) + 4;
    let system = tree(&[16, 4, hosts / 4], &[1.0, 8.0, 24.0]);
    let machine = MachineParams { latency: Some(0.5e-6), bandwidth: Some(20e9), ..MachineParams::default() };
    let machine = machine.machine(Some(&system), WorkUnit::Seconds)?;
    let problem = ReplayProblem::new(dag, &machine, DelayModel::Overlap)?;
    let search = RankSearch::new(&problem, &machine.processors, None);
    let linear: Vec<u32> = (0..dag.ranks()).collect();
    let linear = MakespanEvaluator::new(&problem).makespan(&linear);
    let starts = starts(&search)?;
    // Equal placements are listed once, under the first name.
    let of = |kind: &str| {
        let own = starts.iter().filter(|start| start.name == kind || start.name == format!("roomy {kind}"));
        own.map(|start| start.makespan).min()
    };
    let partition = of("partition");
    let best = starts.first().map(|start| start.makespan);
    let params: AutoParams =
        serde_json::from_value(serde_json::json!({ "evaluations": evaluations, "islands": 1 }))
            .map_err(|error| Error::msg(error.to_string()))?;
    let begin = std::time::Instant::now();
    let found = auto(&params, &search, &Context::detached())?;
    let seconds = begin.elapsed().as_secs_f64();
    let time = |ticks| format!("{:.3}", 1e3 * problem.real(ticks));
    println!(
        "{name:<30} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7.0}",
        problem.program().nodes(),
        time(linear),
        time(partition.unwrap_or(linear)),
        time(best.unwrap_or(linear)),
        time(found.makespan),
        time(found.lower_bound),
        found.evaluations as f64 / seconds,
    );
    Ok(())
}
