//! Targets of mappers from the folder `HOPMAP_DATA`.

use std::path::PathBuf;

use hopmap_model::SystemGraph;
use hopmap_test_support::given_data;
use hopmap_topology_import::import::{Format, ImportParams, read, recognise};

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("topology/scotch-arch"))
}

fn import(name: &str) -> Option<SystemGraph> {
    let file = data()?.join(name);
    assert_eq!(recognise(&file).unwrap(), Format::Scotch, "{name}");
    let system = read(&file, &ImportParams::of(&file)).unwrap().system;
    system.check().unwrap();
    Some(system)
}

/// Costs from the first slot to some others.
fn from_first(system: &SystemGraph, to: &[u32]) -> Vec<u32> {
    to.iter().map(|&slot| system.costs().between(0, slot) as u32).collect()
}

#[test]
fn targets_have_the_sizes_and_distances_that_scotch_computes() {
    if data().is_none() {
        return;
    }
    let sizes = [
        ("ccc3.tgt", 24),
        ("cmplt8.tgt", 8),
        ("cmpltw4.tgt", 10),
        ("fft2_3.tgt", 32),
        ("hcub3.tgt", 8),
        ("hy3.tgt", 8),
        ("m2_4x2.tgt", 8),
        ("mesh3D.tgt", 32),
        ("p2_4.tgt", 5),
        ("tleaf_netloc_style.tgt", 512),
        ("torus2D_4x4.tgt", 16),
    ];
    for (name, slots) in sizes {
        assert_eq!(import(name).unwrap().slots.len(), slots, "{name}");
    }
    let tleaf = import("tleaf_netloc_style.tgt").unwrap();
    assert_eq!(from_first(&tleaf, &[0, 3, 4, 31, 32, 511]), [0, 10, 110, 110, 1110, 1110]);
}

/// Decompositions of a hypercube and a mesh by Scotch's programs have the distances of the originals.
#[test]
fn decompositions_have_the_distances_of_their_originals() {
    let (Some(decomposed), Some(cube)) = (import("hy3.tgt"), import("hcub3.tgt")) else { return };
    assert_eq!(decomposed.matrix().unwrap(), cube.matrix().unwrap());
    let mesh = import("m2_4x2.tgt").unwrap();
    let far = |a: u32, b: u32| f64::from((a % 4).abs_diff(b % 4) + (a / 4).abs_diff(b / 4));
    let expected: Vec<f64> = (0..64).map(|pair| far(pair / 8, pair % 8)).collect();
    assert_eq!(mesh.matrix().unwrap().costs, expected);
}
