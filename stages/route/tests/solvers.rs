//! glpsol and cbc read the exported programs and find the known optima (with `HOPMAP_SYSTEM_TESTS=1`, some with `HOPMAP_DATA`).

use std::path::Path;
use std::process::Command;

use hopmap_route::Instance;
use hopmap_routing::linear::{Domain, LinearProgram, Sense};
use hopmap_routing::paper::Formulation;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_test_support::{given_data, system_tests};

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// The optimum that glpsol finds; none if infeasible.
fn solved(folder: &Path, text: &str, option: &str) -> Option<f64> {
    let [file, answer] = ["program", "answer"].map(|name| folder.join(name));
    std::fs::write(&file, text).unwrap();
    let run = Command::new("glpsol").arg(option).arg(&file).arg("-o").arg(&answer).output().unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && !output.contains("error"), "{output}");
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

/// The optimum that cbc finds; none if infeasible.
fn solved_by_cbc(folder: &Path, text: &str, extension: &str) -> Option<f64> {
    let [file, answer] = [format!("program.{extension}"), "answer".to_owned()].map(|name| folder.join(name));
    std::fs::write(&file, text).unwrap();
    let run = Command::new("cbc").arg(&file).args(["solve", "solution"]).arg(&answer).output().unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && !output.contains("errors on input"), "{output}");
    let answer = std::fs::read_to_string(answer).unwrap();
    let first = answer.lines().next().unwrap_or_default().to_owned();
    match first.strip_prefix("Optimal - objective value ") {
        Some(value) => value.trim().parse().ok(),
        None => {
            assert!(first.contains("nfeasible"), "{first}");
            None
        }
    }
}

/// Whether a program is installed and system tests are enabled.
fn is_there(program: &str) -> bool {
    system_tests() && hopmap_test_support::program(program).is_some()
}

/// Integers and reals with bounds of every kind: the minimum is −45.75 with a = −4, b = 6, c = −2.5, d = 3, e = −7.25, f = 0 and
/// g = 1.
fn bounded() -> LinearProgram {
    let mut program = LinearProgram::default();
    let bounds = [
        ("a", Domain::Whole, 2.0, -4.0, 9.0),
        ("b", Domain::Whole, -3.0, f64::NEG_INFINITY, 6.0),
        ("c", Domain::NotNegative, 1.0, -2.5, f64::INFINITY),
        ("d", Domain::Whole, 1.0, 0.0, f64::INFINITY),
        ("e", Domain::NotNegative, 3.0, f64::NEG_INFINITY, f64::INFINITY),
        ("f", Domain::Binary, -5.0, 0.0, 0.0),
        ("g", Domain::Binary, 2.5, 0.0, 1.0),
    ];
    for (name, domain, cost, least, most) in bounds {
        let variable = program.variable(name.to_owned(), domain, cost);
        program.limit(variable, least, most);
    }
    program.constrain("d_is_more".to_owned(), vec![(3, 2.0)], Sense::AtLeast, 5.0);
    program.constrain("e_is_more".to_owned(), vec![(4, 4.0)], Sense::AtLeast, -29.0);
    program.constrain("g_is_set".to_owned(), vec![(6, 1.0), (5, 1.0)], Sense::Equal, 1.0);
    program
}

#[test]
fn other_solvers_read_integers_and_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let program = bounded();
    let best = program.cost(&[-4.0, 6.0, -2.5, 3.0, -7.25, 0.0, 1.0]);
    let is_best = |found: Option<f64>| found.is_some_and(|found| (found - best).abs() < 1e-6);
    if is_there("glpsol") {
        assert!(is_best(solved(folder.path(), &program.lp(), "--lp")));
        assert!(is_best(solved(folder.path(), &program.mps(), "--freemps")));
    }
    if is_there("cbc") {
        assert!(is_best(solved_by_cbc(folder.path(), &program.lp(), "lp")));
        assert!(is_best(solved_by_cbc(folder.path(), &program.mps(), "mps")));
    }
}

#[test]
fn another_solver_finds_the_known_optima() {
    let Some(data) = given_data() else { return };
    if !is_there("glpsol") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut solved_instances = 0;
    for file in std::fs::read_dir(data.join("route")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        // glpsol takes minutes for the others.
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
        if is_there("cbc") {
            assert_eq!(solved_by_cbc(folder.path(), &formulation.program().lp(), "lp"), expected, "{name}");
            assert_eq!(solved_by_cbc(folder.path(), &formulation.program().mps(), "mps"), expected, "{name}");
        }
        solved_instances += 1;
    }
    assert_eq!(solved_instances, 7);
}
