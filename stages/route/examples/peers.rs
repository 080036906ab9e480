//! Compares the paper's program by glpsol, cbc and `HiGHS` with the compact program and with all engines together, in CPU
//! seconds: `cargo run --release -p hopmap-route --features highs --example peers [SECONDS] [FILE...]`. Every solver has the
//! given time limit per instance (60 s): CPU time for glpsol and cbc, wall-clock time for the others. Files are instances; meshes
//! of 8, 12, 16 and 24 processes follow.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_route::Instance;
use hopmap_routing::answer::solve;
use hopmap_routing::engine::{Engine, Limits, SearchResult, StopCondition};
use hopmap_routing::paper::{Formulation, Paper};
use hopmap_routing::params::Method;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::{self, Solver};

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

/// The result of a solver.
struct Line {
    who: &'static str,
    /// The objective; none if infeasible or not found.
    objective: Option<f64>,
    proven: bool,
    seconds: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let seconds = arguments.next_if(|first| first.parse::<f64>().is_ok());
    let seconds: f64 = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(60.0);
    let Some(highs) = solver::default() else {
        println!("hopmap-route was built without HiGHS: add --features highs");
        return;
    };
    for peer in ["glpsol", "cbc"].into_iter().filter(|peer| !is_there(peer)) {
        println!(
            "{peer} is missing: apt-get install {}",
            if peer == "cbc" { "coinor-cbc" } else { "glpk-utils" }
        );
    }
    println!("instance                         solver         objective  proven   CPU s     times");
    for file in arguments.map(PathBuf::from) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        compare(&name, &Instance::read(&file).unwrap(), &*highs, seconds);
    }
    let mesh = Mesh {
        rows: 2,
        columns: 2,
        hosts: 2,
        processes: 8,
        streams: 9,
        bandwidth: 100,
        switch_type: 1,
        seed: 1,
    };
    for (rows, columns, streams) in [(2, 2, 9), (2, 3, 14), (2, 4, 20), (3, 4, 30)] {
        let mesh = Mesh { rows, columns, processes: 2 * rows * columns, streams, ..mesh };
        compare(&format!("mesh {rows}x{columns}"), &mesh.instance(false).unwrap(), &*highs, seconds);
    }
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-version").stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().is_ok()
}

/// Runs all solvers on one instance; `times` is the slowdown relative to the first one.
fn compare(name: &str, instance: &Instance, highs: &dyn Solver, seconds: f64) {
    let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
    let mapping = instance.mapping.as_ref();
    let problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    let folder = std::env::temp_dir().join(format!("hopmap-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("program.lp");
    std::fs::write(&file, Formulation::new(&problem).program().lp()).unwrap();
    let paper = Paper { solver: highs };
    let ours = |method| {
        move |problem: &Problem<'_>, stop: &StopCondition<'_>| {
            solve(problem, method, Some(highs), stop).unwrap()
        }
    };
    let lines = [
        is_there("glpsol").then(|| glpsol(&file, seconds)),
        is_there("cbc").then(|| cbc(&file, seconds)),
        Some(timed("HiGHS, paper", &problem, seconds, |problem, stop| {
            paper.solve(problem, None, stop).unwrap()
        })),
        Some(timed("compact", &problem, seconds, ours(Method::Compact))),
        Some(timed("auto", &problem, seconds, ours(Method::Auto))),
    ];
    let first = lines.iter().flatten().next().map_or(0.0, |line| line.seconds);
    for line in lines.iter().flatten() {
        let objective = line.objective.map_or("-".to_owned(), |objective| format!("{objective:.0}"));
        let proven = if line.proven { "yes" } else { "no" };
        let times = first / line.seconds.max(0.01);
        println!("{name:32} {:14} {objective:>9}  {proven:6} {:7.2} {times:9.1}", line.who, line.seconds);
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// One of hopmap's engines.
fn timed(
    who: &'static str,
    problem: &Problem<'_>,
    seconds: f64,
    solve: impl Fn(&Problem<'_>, &StopCondition<'_>) -> SearchResult,
) -> Line {
    let begin = used("/proc/self/stat", false);
    // A wall-clock limit: an abandoned solver thread would keep running during later measurements.
    let limits = Limits { nodes: None, seconds: Some(seconds) };
    let found = solve(problem, &StopCondition::new(limits, &|| false));
    let objective = found.plan.as_ref().map(|plan| problem.cost(plan));
    Line { who, objective, proven: found.proven, seconds: used("/proc/self/stat", false) - begin }
}

/// CPU seconds of a process, or of the children that it waited for, from a file in `/proc` (100 ticks per second).
fn used(file: &str, children: bool) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let ticks: Vec<f64> = text
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .map(|field| field.parse().unwrap_or_default())
        .collect();
    let first = if children { 13 } else { 11 };
    ticks.iter().skip(first).take(2).sum::<f64>() / 100.0
}

/// Runs a solver under a CPU time limit and returns the contents of its output file.
fn child(program: &str, seconds: f64, arguments: &[&str], answer: &Path) -> (String, f64) {
    let begin = used("/proc/self/stat", true);
    let command = format!("ulimit -t {}; exec {program} {}", seconds.ceil(), arguments.join(" "));
    let _ = std::fs::remove_file(answer);
    let output = Command::new("sh").args(["-c", &command]).stdin(std::process::Stdio::null()).output();
    let output =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let text = std::fs::read_to_string(answer).unwrap_or(output);
    (text, used("/proc/self/stat", true) - begin)
}

fn glpsol(file: &Path, seconds: f64) -> Line {
    let answer = file.with_extension("glpsol");
    let [program, out] = [file, &answer].map(|path| path.to_string_lossy().into_owned());
    let (text, used) = child("glpsol", seconds, &["--lp", &program, "-o", &out], &answer);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let is_optimal = value("Status:").contains("OPTIMAL");
    let objective = value("Objective:").split_whitespace().nth(2).and_then(|value| value.parse().ok());
    let is_empty = value("Status:").contains("EMPTY");
    Line {
        who: "glpsol, paper",
        objective: objective.filter(|_| is_optimal),
        proven: is_optimal || is_empty,
        seconds: used,
    }
}

fn cbc(file: &Path, seconds: f64) -> Line {
    let answer = file.with_extension("cbc");
    let [program, out] = [file, &answer].map(|path| path.to_string_lossy().into_owned());
    let (text, used) = child("cbc", seconds, &[&program, "solve", "solution", &out], &answer);
    let first = text.lines().next().unwrap_or_default();
    let objective =
        first.strip_prefix("Optimal - objective value ").and_then(|value| value.trim().parse().ok());
    let proven =
        objective.is_some() || first.starts_with("Infeasible") || first.starts_with("Integer infeasible");
    Line { who: "cbc, paper", objective, proven, seconds: used }
}
