//! Damages graphs, schedules and parameters: for any bytes, reading returns an error or a consistent result.
//!
//! `HOPMAP_SOAK=1` does many thousands of cases; `HOPMAP_SEED=N` repeats one.

use hopmap_schedule::formats::grf::{Grf, GrfChunk, GrfEdge, GrfNode};
use hopmap_test_support::{Random, damage, has_little_memory, only_seed, seeds, with_extreme_numbers};

use crate::support::body;

const SCH: &str = "<SCHEDULE_BEGIN>\n\n num_processors 2\n\n// node 7: rank 0, segment 1\n<PROCESSOR_BEGIN>\n name 1\n num_nodes 2\n nodes ( 7 3 )\n\
                   <PROCESSOR_END>\n\n<PROCESSOR_BEGIN>\n name 2\n num_nodes 0\n nodes ( )\n<PROCESSOR_END>\n\n<SCHEDULE_END>\n";
const PROCS: &str = "processors 2 // of a job\ntest type \"matrix multiplication\"\ntest data size 1000\nhosts:\na\nb/* c */\ndurations:\n1.25\n1.5e0\n";
const INI: &str = "[creatures]\nmax = 100 ;\nstart_part = 1 ;\nrandom_selecting= 0.1 ;\n\n# of when\n[stop]\nmax_cycles = 128 ;\nmin_difference = 0.0001 ;\n\
                   idle_iterations = 32\n[mutate_possibilities]\navg = 0.5 ; half\ngens = \"0.2\"\nrecombination:avg_points = 2\n";
const DOT: &str = "strict digraph \"a\\\"b\" {\n\tgraph [x=\"y\\\nz\", n=-1.5];\n\tnode [Weight=3] edge [Weight=1]\n\ta -> b:n [Weight=5];\n\
                   \tsubgraph s { c [Weight=7, \"Start time\"=0]; \"d\" + \"e\" } -> f /* g */\n\tsubgraph s -> <h<i>> // j\n\tb -> f -> k\n}\n";
const STG: &str =
    " 3\n 0 0 0\n 1 20 1 0\n 2 1.5 2 1 0\n 3 4 1 0\n 4 0 2 2 3\n# Standard Task Graph Set Project\n";
const NEW: &str = r#"{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
    {"name": "x", "id": "c", "parents": ["a", "b"], "children": [], "inputFiles": ["f", "g"], "outputFiles": ["z"]},
    {"name": "x", "id": "a", "parents": [], "children": ["c", "b"], "outputFiles": ["f", "g", "h"]},
    {"name": "y", "id": "b", "parents": ["a"], "children": ["c"], "inputFiles": ["h"], "outputFiles": []}],
    "files": [{"id": "f", "sizeInBytes": 100}, {"id": "g", "sizeInBytes": 20}, {"id": "h", "sizeInBytes": 3}]},
    "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 1.5}, {"id": "b", "runtimeInSeconds": 0}, {"id": "c", "runtimeInSeconds": 2}]}}}"#;
const OLD: &str = r#"{"schemaVersion": "1.3", "workflow": {"jobs": [
    {"name": "a_ID1", "id": "ID1", "runtime": 1.5, "children": ["b"], "files": [{"link": "output", "name": "f", "size": 7}]},
    {"name": "b", "id": "ID2", "runtime": 2, "parents": ["ID1"], "files": [{"link": "input", "name": "f", "size": 7}]},
    {"name": "c", "runtime": 3, "files": [{"link": "input", "path": "/", "name": "f"}]}]}}"#;

/// Node 5 sends to 1 twice, and 1 to 9.
fn graph() -> String {
    let chunk = |name: &str| GrfChunk {
        name: name.into(),
        kind: "GRAPH_DOUBLE".into(),
        left_offset: "0".into(),
        right_offset: "8/2".into(),
    };
    let node = |number, inputs: &[u64], outputs: &[u64]| GrfNode {
        number,
        kind: 1,
        weight: 10 * number,
        layer: -1,
        input_edges: inputs.to_vec(),
        output_edges: outputs.to_vec(),
        ..GrfNode::default()
    };
    let edge = |number, sender, receiver| GrfEdge {
        number,
        weight: 3,
        kind: "GRAPH_INT".into(),
        sender,
        receiver,
        sent: vec![chunk("x")],
        received: vec![chunk("y")],
    };
    let nodes = vec![node(5, &[], &[2, 4]), node(1, &[4, 2], &[7]), node(9, &[7], &[])];
    let edges = vec![edge(2, 5, 1), edge(7, 1, 9), edge(4, 5, 1)];
    Grf { header: "a.h".into(), nodes, edges, ..Grf::default() }.write()
}

/// An intact file of a kind.
fn sample(kind: usize, random: &mut Random) -> Vec<u8> {
    let text = match kind {
        0 => graph(),
        1 => SCH.to_owned(),
        2 => PROCS.to_owned(),
        3 => INI.to_owned(),
        4 => DOT.to_owned(),
        5 => STG.to_owned(),
        _ => [NEW, OLD][random.below(2)].to_owned(),
    };
    text.into_bytes()
}

fn telling(kind: usize) -> &'static [u8] {
    match kind {
        0 | 1 => b"()<>/*\"_ \n0123459N",
        2 => b"/*\".-e0159 \n",
        3 => b"[]=:;#\"'.-e01 \n",
        4 => b"{}[]<>-=;,:+\"\\/*#.0159 \nabW",
        5 => b"#.-e01239 \n",
        _ => b"{}[]:,\"\\0129-.e\nabcf",
    }
}

#[test]
fn intact_files_are_read() {
    for kind in 0..body::KINDS {
        for seed in 0..8 {
            assert!(body::file(kind, &sample(kind, &mut Random(seed))), "{kind}");
        }
    }
}

#[test]
fn damaged_files_give_an_error_or_a_consistent_result() {
    let mut read = [0u32; body::KINDS];
    for seed in seeds(7000, 2_000_000) {
        let mut random = Random(seed);
        let kind = random.below(body::KINDS);
        let mut bytes = sample(kind, &mut random);
        damage(&mut bytes, &mut random, telling(kind));
        read[kind] += u32::from(body::file(kind, &bytes));
    }
    // Some damage is harmless: comments, weights, names.
    assert!(only_seed().is_some() || read.iter().all(|&read| read > 0), "{read:?}");
}

#[test]
fn extreme_numbers_give_an_error_or_a_consistent_result_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    for kind in 0..body::KINDS {
        let samples: std::collections::BTreeSet<_> =
            (0..8).map(|seed| sample(kind, &mut Random(seed))).collect();
        for bytes in samples.iter().flat_map(|sample| with_extreme_numbers(sample)) {
            body::file(kind, &bytes);
        }
    }
}
