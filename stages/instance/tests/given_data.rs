//! The instances of QAPLIB and of Taillard, from the folder named by `HOPMAP_DATA`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hopmap_instance::{FlowMatrix, TaillardEParams, check_solution, read, read_graph, taillard_e};
use hopmap_model::Context;
use hopmap_test_support::given_data;

/// Paths with an extension, by their names without it.
fn files(folder: &Path, kind: &str) -> BTreeMap<String, PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_kind = paths.filter(|path| path.extension().is_some_and(|extension| extension == kind));
    of_kind.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

/// The numbers of a file, all of them integers.
fn numbers(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// `Σ a_ij · b_p(i)p(j)`, computed from the text of an instance without the reader.
fn cost(instance: &[u64], permutation: &[usize]) -> u64 {
    let size = instance[0] as usize;
    let (a, b) = instance[1..].split_at(size * size);
    let mut sum = 0;
    for i in 0..size {
        for j in 0..size {
            sum += a[i * size + j] * b[permutation[i] * size + permutation[j]];
        }
    }
    sum
}

#[test]
fn every_instance_is_read_and_every_solution_has_its_stated_cost() {
    let Some(data) = given_data() else { return };
    let (instances, solutions) =
        (files(&data.join("qap/qaplib"), "dat"), files(&data.join("qap/qaplib"), "sln"));
    assert_eq!((instances.len(), solutions.len()), (136, 128));
    let cx = Context::detached();
    for (name, path) in &instances {
        let text = numbers(path);
        let problem = read(path, FlowMatrix::A, &cx).unwrap();
        assert_eq!(problem.size() as u64, text[0], "{name}");
        let Some(solution) = solutions.get(name) else { continue };
        let stated = numbers(solution)[1];
        let found = check_solution(solution, &problem, &cx).unwrap();
        assert_eq!(found.stated.to_string(), stated.to_string(), "{name}");
        // The file of kra32 states 88900, but its permutation has the optimal cost.
        let expected = if name == "kra32" { 88700 } else { stated };
        assert_eq!(found.cost.to_string(), expected.to_string(), "{name}");
        assert_eq!(cost(&text, &found.placement), expected, "{name}");
    }
}

#[test]
fn exchanging_the_matrices_inverts_the_placement() {
    let Some(data) = given_data() else { return };
    let cx = Context::detached();
    for name in ["bur26a", "chr12a", "esc16a", "tai64c"] {
        let path = |kind: &str| data.join(format!("qap/qaplib/{name}.{kind}"));
        let both = [FlowMatrix::A, FlowMatrix::B].map(|flow| {
            let problem = read(&path("dat"), flow, &cx).unwrap();
            check_solution(&path("sln"), &problem, &cx).unwrap()
        });
        assert_eq!(both[0].cost.to_string(), both[1].cost.to_string(), "{name}");
        assert_eq!(both[0].stated.to_string(), both[1].cost.to_string(), "{name}");
    }
}

/// Percentages of the pairs whose value is 0, from 1 to 10, and above.
fn shares(values: impl Iterator<Item = u64>, size: usize) -> [f64; 3] {
    let mut counts = [0.0; 3];
    for value in values {
        counts[usize::from(value > 0) + usize::from(value > 10)] += 1.0;
    }
    // The diagonal is zero.
    counts[0] -= size as f64;
    counts.map(|count| 100.0 * count / (size * (size - 1)) as f64)
}

#[test]
fn generated_instances_have_the_shares_of_those_of_taillard() {
    let Some(data) = given_data() else { return };
    let cx = Context::detached();
    for groups in [[3, 3, 3], [3, 3, 5], [5, 3, 5], [5, 5, 5], [5, 5, 7], [7, 7, 7], [9, 9, 9]] {
        let size: u32 = groups.iter().product();
        let given = read(&data.join(format!("qap/taie/tai{size}e01.dat")), FlowMatrix::A, &cx).unwrap();
        let generated = taillard_e(&TaillardEParams { groups, seed: 1 }).unwrap().problem;
        let all = [&given, &generated].map(|problem| {
            let costs = problem.costs().iter().map(|cost| *cost as u64);
            assert!(problem.flows().iter().copied().chain(costs.clone()).all(|value| value <= 41));
            [shares(problem.flows().iter().copied(), size as usize), shares(costs, size as usize)]
        });
        for (given, generated) in all[0].iter().zip(&all[1]) {
            // The number of large values follows from the sizes of groups and colours; the others are
            // random.
            for (kind, (given, generated)) in given.iter().zip(generated).enumerate() {
                let tolerance = if kind == 2 { 1e-9 } else { 0.5 + 80.0 / f64::from(size) };
                assert!((given - generated).abs() < tolerance, "{groups:?}: {given} and {generated}");
            }
        }
    }
}

/// J of rank i on core i of a machine of 4 cores per processor, 16 processors per node, costs 1, 10 and 100,
/// as measured by other programs on these files.
#[test]
fn costs_of_graphs_match_other_programs() {
    let Some(data) = given_data() else { return };
    let distance = |a: u32, b: u32| match (a / 4 == b / 4, a / 64 == b / 64) {
        (true, _) => 1,
        (false, true) => 10,
        (false, false) => 100,
    };
    for (name, expected) in [
        ("st2d_1024", 56_128),
        ("st3d_1024", 112_768),
        ("rgg_1024", 305_636),
        ("rnd_1024", 19_279_156),
        ("plaw_1024", 15_266_334),
        ("mesh3d_4096", 21_401_896),
        ("rgg_65536", 34_305_462),
    ] {
        let path = data.join("procmap").join(format!("{name}.graph.gz"));
        let graph = read_graph(&path, &Context::detached()).unwrap();
        graph.check().unwrap();
        let both_ways: u64 =
            graph.edges.iter().map(|edge| edge.bytes * distance(edge.source, edge.destination)).sum();
        assert_eq!(both_ways, 2 * expected, "{name}");
    }
}
