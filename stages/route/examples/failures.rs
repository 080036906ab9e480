//! Time of the failure analysis of a mesh: `failures ROWS COLUMNS HOSTS PROCESSES STREAMS BANDWIDTH TYPE SEED [PARAMS]`, with the
//! parameters of `route/failures` as JSON. The mapping is the first one that `route/map` finds without node limits.
#![allow(clippy::print_stdout)]

use hopmap_model::{Context, Error};
use hopmap_route::FailuresParams;
use hopmap_route::failures::failures;
use hopmap_routing::answer::answer;
use hopmap_routing::engine::{Limits, StopCondition};
use hopmap_routing::params::Method;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver;

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(1);
    let mesh = Mesh {
        rows: number(0),
        columns: number(1),
        hosts: number(2),
        processes: number(3),
        streams: number(4),
        bandwidth: number(5),
        switch_type: number(6),
        seed: number(7) as u64,
    };
    let params = arguments.get(8).map_or("{}", String::as_str);
    let params: FailuresParams = serde_json::from_str(params).map_err(|error| miette::miette!("{error}"))?;
    let instance = mesh.instance(false)?;
    let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
    let problem = Problem::new(&instance.graph, &instance.system, None, rules)?;
    let stop = StopCondition::new(Limits { nodes: Some(100), seconds: None }, &|| false);
    let solver = solver::default();
    let Some(nominal) = answer(&problem, None, Method::Auto, solver.as_deref(), &stop)? else {
        println!("infeasible without failures");
        return Ok(());
    };
    println!("objective {:?}", nominal.routes.metrics.get("objective"));
    let begin = std::time::Instant::now();
    let given = (None, None);
    let found =
        failures(&params, &instance.graph, &instance.system, &nominal.mapping, given, &Context::detached())?;
    for failure in &found.failures {
        println!(
            "{:?} {}: {:?} {:?} moved {} rerouted {} {}",
            failure.part,
            failure.name,
            failure.survived,
            failure.objective,
            failure.moved,
            failure.rerouted,
            failure.shortage
        );
    }
    println!("{:?}\n{:.2} s", found.metrics, begin.elapsed().as_secs_f64());
    Ok(())
}
