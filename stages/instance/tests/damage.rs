//! Fuzzes the readers: reading must return an instance or an error for any bytes.
//!
//! `HOPMAP_SOAK=1` runs thousands of cases instead of some hundred; `HOPMAP_SEED=N` repeats one.

use std::fs;

use hopmap_instance::{FlowMatrix, check_solution, read};
use hopmap_model::Context;
use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};

use crate::support::body;

const INSTANCE: &str = "4\n\n 0 3 0 2\n 3 0 0.0 1\n 0 1e1 0 4\n 2 1 4 0\n\n 0 22.5 53 53\n 22 0 40 62\n 53 40 0 55\n53 62 55 0\n";
const SOLUTION: &str = "4 1000000\n3, 4, 1,\n2\n";
const TELLING: &[u8] = b"0129 \n,.eE+-n";

/// Damages an instance and a solution, and reads them.
fn fuzz_qaplib(folder: &std::path::Path, seed: u64) {
    let mut random = Random(seed);
    let paths = [("instance", INSTANCE), ("solution", SOLUTION)].map(|(name, text)| {
        let mut bytes = text.as_bytes().to_vec();
        // Half of the solutions are read with their own instance.
        if name == "solution" || random.below(2) == 0 {
            damage(&mut bytes, &mut random, TELLING);
        }
        fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    });
    read_both(&paths);
}

/// Reads an instance and a solution.
fn read_both(paths: &[std::path::PathBuf; 2]) {
    let cx = Context::detached();
    for flow in [FlowMatrix::A, FlowMatrix::B] {
        match read(&paths[0], flow, &cx) {
            Ok(problem) => {
                problem.task_graph().check().unwrap();
                problem.system_graph().check().unwrap();
                match check_solution(&paths[1], &problem, &cx) {
                    Ok(solution) => assert!(solution.cost <= solution.stated),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn damaged_files_end_in_an_error_or_an_instance() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("intact"), INSTANCE).unwrap();
    read(&folder.path().join("intact"), FlowMatrix::A, &Context::detached()).unwrap();
    seeds(500, 100_000).for_each(|seed| fuzz_qaplib(folder.path(), seed));
}

const GRAPHS: [&str; 3] = [
    "% a square and a chord\n4 5 1\n2 7 4 1 3 2\n1 7 3 12\n2 12 1 2 4 3\n1 1 3 3\n",
    "5 3 111 2\n1 1 1 2 8\n2 2 2 1 8\n3 3 3 5 1\n\n4 4 4\n5 5 5 3 1\n",
    "3 2\n2 3\n1\n1\n\n",
];

/// Damages a graph, compressed or not, and reads it.
fn fuzz_graph(path: &std::path::Path, seed: u64) {
    use std::io::Write;
    let mut random = Random(seed);
    let mut bytes = GRAPHS[random.below(GRAPHS.len())].as_bytes().to_vec();
    damage(&mut bytes, &mut random, b"01234567 \n\r%.-e\xff");
    if random.below(8) == 0 {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        bytes = encoder.finish().unwrap();
        if random.below(2) == 0 {
            damage(&mut bytes, &mut random, b"\x1f\x8b\x08\x00");
        }
    }
    fs::write(path, bytes).unwrap();
    body::graph(path);
}

#[test]
fn damaged_graphs_end_in_an_error_or_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    seeds(3000, 200_000).for_each(|seed| fuzz_graph(&path, seed));
}

#[test]
fn extreme_numbers_end_in_an_error_or_an_instance_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["instance", "solution"].map(|name| folder.path().join(name));
    for (changed, text) in [INSTANCE, SOLUTION].into_iter().enumerate() {
        for bytes in with_extreme_numbers(text.as_bytes()) {
            fs::write(&paths[0], INSTANCE).unwrap();
            fs::write(&paths[1], SOLUTION).unwrap();
            fs::write(&paths[changed], bytes).unwrap();
            read_both(&paths);
        }
    }
    for bytes in GRAPHS.iter().flat_map(|graph| with_extreme_numbers(graph.as_bytes())) {
        fs::write(&paths[0], bytes).unwrap();
        body::graph(&paths[0]);
    }
}
