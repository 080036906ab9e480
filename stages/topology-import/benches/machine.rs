//! Benchmarks of fabric dumps, shapes and route costs: 10,000 hosts below three levels of switches, and the
//! real fabrics in the folder `HOPMAP_DATA`.

#[path = "../tests/support/fat_tree.rs"]
#[expect(dead_code, reason = "the other output formats are for tests")]
mod fat_tree;

use divan::{Bencher, black_box};
use hopmap_machines::params::SyntheticParams;
use hopmap_machines::synthetic;
use hopmap_model::{Paths, SystemGraph};
use hopmap_test_support::given_data;
use hopmap_topology_import::import::{ImportParams, read};

/// Number of pairs of hosts per measurement.
const PAIRS: u32 = 10_000;

fn main() {
    divan::main();
}

fn of_shape(shape: &str) -> SystemGraph {
    let params =
        SyntheticParams { shape: shape.into(), host_prefix: "n".into(), ..SyntheticParams::default() };
    synthetic(&params).unwrap_or_else(|error| panic!("{shape}: {error}"))
}

/// Writes `ibnetdiscover` output, then measures how long reading it takes.
#[divan::bench]
fn import_ibnetdiscover_10_000(bencher: Bencher<'_, '_>) {
    let mut file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
    let written = fat_tree::FatTree::new(36, 10_000).blocks(&mut file);
    written.unwrap_or_else(|error| panic!("{error}"));
    bencher.bench(|| read(black_box(file.path()), &ImportParams::of(file.path())));
}

#[divan::bench(args = ["avakas", "plafrim"])]
fn import_netloc(bencher: Bencher<'_, '_>, fabric: &str) {
    let Some(data) = given_data() else { return };
    let folder = data.join("topology/netloc").join(fabric).join("netloc");
    let file = folder.join("IB-fe80:0000:0000:0000-nodes.txt");
    bencher.bench(|| read(black_box(&file), &ImportParams::of(&file)));
}

#[divan::bench(args = ["fat-tree:20x20x25/1x20x20", "torus:22x22x22", "dragonfly:4x8x4"])]
fn shape(bencher: Bencher<'_, '_>, shape: &str) {
    bencher.bench(|| of_shape(black_box(shape)));
}

/// The costs of 10,000 hosts as levels.
#[divan::bench]
fn levels_of_fat_tree(bencher: Bencher<'_, '_>) {
    let system = of_shape("fat-tree:20x20x25/1x20x20");
    bencher.bench(|| black_box(&system).explicit(0).map(|explicit| explicit.links.len()));
}

#[divan::bench(args = ["fat-tree:20x20x25/1x20x20", "torus:22x22x22", "dragonfly:4x8x4"])]
fn routes(bencher: Bencher<'_, '_>, shape: &str) {
    let system = of_shape(shape);
    let hosts = system.slots.len() as u32;
    let Some(paths) = Paths::new(&system) else { return };
    bencher.counter(divan::counter::ItemsCount::new(PAIRS)).bench(|| {
        let mut links = 0_u64;
        for pair in 0..PAIRS {
            paths.walk(pair.wrapping_mul(7919) % hosts, pair.wrapping_mul(104_729) % hosts, |_| links += 1);
        }
        links
    });
}
