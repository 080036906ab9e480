//! Reads traces of third-party programs with independently known matrices.

use crate::support::{read_csv, read_otf2, sample};
use hopmap_model::Context;

fn assert_as_expected(name: &str, messages: u64, bytes: u64) {
    let graph = read_otf2(&sample(name).join("eztrace_log.otf2"), &Context::detached()).unwrap();
    let expected = read_csv(&sample(&format!("{name}.expected.csv"))).unwrap();
    assert_eq!(graph.edges, expected.edges, "{name}");
    assert_eq!((graph.ranks(), graph.messages(), graph.bytes()), (64, messages, bytes), "{name}");
}

#[test]
fn lulesh_matches_its_algorithm() {
    assert_as_expected("lulesh-64", 9396, 103_117_248);
}

#[test]
fn lammps_matches_otf2_print() {
    assert_as_expected("lammps-melt-64", 7296, 57_083_904);
}
