//! glpsol reads the programs that are written and finds the known optima (with `HOPMAP_SYSTEM_TESTS=1` and `HOPMAP_DATA`).
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_route::paper::Formulation;
use hopmap_route::problem::Problem;
use hopmap_route::{Instance, Rules, Weights};

/// The paper's.
const WEIGHTS: Weights = Weights { longest: 1000.0, hops: 10.0, entries: 1.0 };

/// The optimum that glpsol finds; nothing if there is no solution.
fn solved(folder: &Path, text: &str, option: &str) -> Option<f64> {
    let [file, answer] = ["program", "answer"].map(|name| folder.join(name));
    std::fs::write(&file, text).unwrap();
    let run = Command::new("glpsol").arg(option).arg(&file).arg("-o").arg(&answer).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && !said.contains("error"), "{said}");
    let answer = std::fs::read_to_string(answer).unwrap();
    let value = |name: &str| {
        answer.lines().find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
    };
    let status = value("Status:").unwrap();
    match status.contains("OPTIMAL") {
        true => value("Objective:")?.split_whitespace().nth(2)?.parse().ok(),
        false => {
            assert!(status.contains("EMPTY") || status.contains("UNDEFINED"), "{status}");
            None
        }
    }
}

#[test]
fn another_solver_finds_the_known_optima() {
    let Some(data) = std::env::var_os("HOPMAP_DATA").map(PathBuf::from) else {
        eprintln!("skipped: HOPMAP_DATA is not set");
        return;
    };
    if std::env::var_os("HOPMAP_SYSTEM_TESTS").is_none() || Command::new("glpsol").arg("-v").output().is_err()
    {
        eprintln!("skipped: HOPMAP_SYSTEM_TESTS is not set, or there is no glpsol");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut solved_instances = 0;
    for file in std::fs::read_dir(data.join("route")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        // The others take glpsol minutes.
        if !(name.starts_with("example1-") || name.starts_with("example2-problem1")) {
            continue;
        }
        let instance = Instance::read(&file).unwrap();
        let given: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let expected = given["expected"]["objective"].as_f64();
        let rules = Rules::from(WEIGHTS);
        let problem =
            Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules).unwrap();
        let formulation = Formulation::new(&problem);
        assert_eq!(solved(folder.path(), &formulation.program().lp(), "--lp"), expected, "{name}");
        assert_eq!(solved(folder.path(), &formulation.program().mps(), "--freemps"), expected, "{name}");
        solved_instances += 1;
    }
    assert_eq!(solved_instances, 7);
}
