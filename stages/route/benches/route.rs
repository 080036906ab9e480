//! Routes and mappings on meshes of switches, without a solver of linear programs. `--example peers` compares with glpsol, cbc
//! and `HiGHS`.

use divan::Bencher;
use hopmap_route::Instance;
use hopmap_routing::engine::{Engine, StopCondition};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::router::{QuickRouter, Router};
use hopmap_routing::search::Search;

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// One process on each of the two hosts of eight switches.
const SIXTEEN: Mesh = Mesh {
    rows: 2,
    columns: 4,
    hosts: 2,
    processes: 16,
    streams: 20,
    bandwidth: 100,
    switch_type: 1,
    seed: 1,
};
const TWENTY_FOUR: Mesh = Mesh { rows: 3, processes: 24, streams: 30, ..SIXTEEN };
const SIXTY_FOUR: Mesh = Mesh { rows: 4, hosts: 4, processes: 64, streams: 96, bandwidth: 200, ..SIXTEEN };
const LARGE: Mesh =
    Mesh { rows: 8, columns: 8, hosts: 4, processes: 256, streams: 1000, bandwidth: 2000, ..SIXTEEN };

fn main() {
    divan::main();
}

fn on(mesh: Mesh, is_mapped: bool, what: impl FnOnce(&Problem<'_>)) {
    let Ok(Instance { graph, system, mapping, .. }) = mesh.instance(is_mapped) else { return };
    if let Ok(problem) = Problem::new(&graph, &system, mapping.as_ref(), Rules::from(WEIGHTS)) {
        what(&problem);
    }
}

/// The fast router, as the search over mappings uses it.
#[divan::bench(args = [SIXTEEN, SIXTY_FOUR, LARGE])]
fn quick(bencher: Bencher<'_, '_>, mesh: Mesh) {
    on(mesh, true, |problem| {
        let mut router = QuickRouter::new(problem);
        let hosts = problem.mapped.clone().unwrap_or_default();
        bencher.bench_local(|| router.route(&hosts, &StopCondition::endless()));
    });
}

/// Optimal routes for a given mapping, with their bound.
#[divan::bench(args = [SIXTEEN, SIXTY_FOUR, LARGE], sample_count = 3)]
fn tables(bencher: Bencher<'_, '_>, mesh: Mesh) {
    on(mesh, true, |problem| {
        bencher.bench_local(|| Router::default().solve(problem, None, &StopCondition::endless()));
    });
}

/// Mappings and routes, with their bound.
#[divan::bench(args = [SIXTEEN, TWENTY_FOUR, SIXTY_FOUR], sample_count = 1)]
fn map(bencher: Bencher<'_, '_>, mesh: Mesh) {
    on(mesh, false, |problem| {
        bencher.bench_local(|| Search::default().solve(problem, None, &StopCondition::endless()));
    });
}
