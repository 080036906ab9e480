//! The HTML report: self-contained, small, and about what happened.

use hopmap_test_support::system_tests;
use std::process::Command;

use crate::sandbox::{Sandbox, ring};

fn report(sandbox: &Sandbox) -> String {
    sandbox.stdout(&["run", "ring.toml", "--report", "report.html"]);
    sandbox.read("report.html")
}

#[test]
fn a_report_needs_nothing_but_itself() {
    let html = report(&Sandbox::with_ring());
    for outside in ["<script src", "<link", "@import", "url(http", "src=\"http"] {
        assert!(!html.contains(outside), "the report refers to {outside}");
    }
    for inside in ["Quality", "Pipeline", "Before: linear", "Traffic by level", "mpirun -n 8 --rankfile"] {
        assert!(html.contains(inside), "the report does not show {inside}");
    }
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert!(!html.split("<script>").next().unwrap().contains('`'), "code has its own type");
}

#[test]
fn a_search_with_a_time_limit_says_what_it_spent_it_on() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "time_limit_s = 0.2");
    let html = report(&sandbox);
    assert!(html.contains(": time limit 0.2 s, at most: "), "the report has no plan");
    // Without a limit there is nothing to spend.
    assert!(!report(&Sandbox::with_ring()).contains(" s, at most: "));
}

/// Once the curve of a search that started from its best mapping was a single dot, or missing.
#[test]
fn a_search_without_improvements_is_drawn_to_its_end() {
    let sandbox = Sandbox::with_ring();
    // The partition is the best mapping, and the local search after it finds no better one.
    let search = "uses  = \"map/annealing\"\nwith  = { evaluations = 20000 }";
    sandbox.edit("ring.toml", search, "uses = \"map/hierarchical\"");
    let html = report(&sandbox);
    let picture = html.rsplit("Best F over evaluations").next().unwrap();
    let curve = picture.split("<path class=\"g sk0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(curve.starts_with('M') && curve.ends_with("H607.3"), "{curve}");
}

/// Once every box of the first report of a store said that it had no result yet.
#[test]
fn reasons_are_given_where_results_exist() {
    let sandbox = Sandbox::with_ring();
    assert!(!report(&sandbox).contains("no result in this store yet"));
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000");
    assert!(report(&sandbox).contains("evaluations: 20000 → 1000"));
}

#[test]
fn a_report_lists_failures() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "tree:2x4", "tree:2x2");
    assert_eq!(sandbox.output(&["run", "ring.toml", "--report", "report.html"]).status.code(), Some(1));
    let html = sandbox.read("report.html");
    assert!(html.contains("8 ranks do not fit on 4 slots") && html.contains("blocked"));
}

#[test]
fn a_report_of_a_large_program_stays_small() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("ring.csv", ring(16_384));
    sandbox.edit("ring.toml", "tree:2x4\", costs = [1, 10]", "tree:16x32x32\", costs = [1, 10, 100]");
    let html = report(&sandbox);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    assert!(html.contains("After: this mapping"));
}

#[test]
fn the_report_command_shows_the_current_store() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    assert!(!sandbox.path().join(".hopmap/reports").exists());
    assert_eq!(sandbox.stdout(&["report", "ring.toml", "--out", "r.html"]), "r.html\n");
    assert!(sandbox.read("r.html").contains("cached"));
}

#[test]
fn a_real_browser_draws_it() {
    if !system_tests() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    report(&sandbox);
    let page = format!("file://{}", sandbox.path().join("report.html").display());
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1200,3000",
            "--screenshot=page.png",
        ])
        .arg(page)
        .current_dir(sandbox.path())
        .output()
        .unwrap();
    let size = std::fs::metadata(sandbox.path().join("page.png")).map_or(0, |metadata| metadata.len());
    // A page without its pictures is nearly white and compresses to a few kilobytes.
    assert!(size > 60_000, "{size} bytes: {}", String::from_utf8_lossy(&output.stderr));
}

/// Of a pipeline in a folder, with the file of its report.
fn reported(sandbox: &Sandbox, file: &str) -> String {
    let said = sandbox.stdout(&["run", file]);
    let place = said.lines().find_map(|line| line.trim().strip_prefix("report")).unwrap().trim().to_owned();
    assert!(sandbox.read(&place).contains("</html>"));
    place
}

#[test]
fn reports_of_pipelines_of_one_name_do_not_overwrite_each_other() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("lu/ring.csv", ring(6));
    sandbox.write("lu/ring.toml", sandbox.read("ring.toml"));
    assert_eq!(reported(&sandbox, "ring.toml"), ".hopmap/reports/ring.html");
    let first = sandbox.read(".hopmap/reports/ring.html");
    let other = reported(&sandbox, "lu/ring.toml");
    assert!(
        other.starts_with(".hopmap/reports/ring-")
            && other.len() == ".hopmap/reports/ring-12345678.html".len()
    );
    assert_ne!(sandbox.read(&other), first);
    // In whatever order they run from now on.
    assert_eq!(reported(&sandbox, "ring.toml"), ".hopmap/reports/ring.html");
    assert_eq!(sandbox.read(".hopmap/reports/ring.html"), first);
    assert_eq!(reported(&sandbox, "lu/ring.toml"), other);
}

/// Nothing has to run for results of an earlier run, but the report is of another one.
#[test]
fn a_report_shows_the_results_of_the_run() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("small.csv", ring(6));
    let report = |arguments: &[&str]| {
        sandbox.stdout(&[&["run", "ring.toml"], arguments].concat());
        sandbox.read(".hopmap/reports/ring.html")
    };
    let large = report(&[]);
    assert!(large.contains("mpirun -n 8 "));
    assert!(report(&["-p", "ranks=small.csv"]).contains("mpirun -n 6 "));
    let again = report(&[]);
    assert!(again.contains("mpirun -n 8 ") && !again.contains("mpirun -n 6 "));
    // A report with the same contents is not written again.
    let modified =
        || sandbox.path().join(".hopmap/reports/ring.html").metadata().unwrap().modified().unwrap();
    let before = modified();
    report(&[]);
    assert_eq!(modified(), before);
}

/// The defaults of a pipeline were evaluated after a run with parameters, and a good report was replaced by a failed one.
#[test]
fn commands_take_the_parameters_of_the_last_run_and_keep_reports_of_others() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "\"ring.csv\"", "\"none.csv\"");
    sandbox.write("other.csv", ring(6));
    sandbox.stdout(&["run", "ring.toml", "-p", "ranks=ring.csv"]);
    sandbox.stdout(&["run", "ring.toml", "-p", "ranks=other.csv"]);
    // All of it is there already, but it is the last run.
    sandbox.stdout(&["run", "ring.toml", "-p", "ranks=ring.csv"]);
    let default = ".hopmap/reports/ring.html";
    let good = sandbox.read(default);
    let note = "with the parameters of the last run: -p ranks=ring.csv\n";
    for command in [
        &["report", "ring.toml"][..],
        &["why", "placement", "ring.toml"],
        &["export", "ring.toml", "-o", "ring.zip"],
        &["plan", "ring.toml"],
        &["graph", "ring.toml"],
    ] {
        let seen = sandbox.seen(command);
        assert!(seen.contains(note) && !seen.contains("exit code") && !seen.contains("failed"), "{seen}");
    }
    assert_eq!(sandbox.read(default), good);
    sandbox.stdout(&["report", "ring.toml", "--out", "mine.html"]);
    // Those of other parameters have another name, or none.
    let others = ["report", "ring.toml", "-p", "ranks=other.csv"];
    let seen = sandbox.seen(&others);
    assert!(seen.starts_with(".hopmap/reports/ring.") && !seen.starts_with(default), "{seen}");
    let seen = sandbox.seen(&[&others[..], &["--out", "mine.html"]].concat());
    assert!(seen.contains("mine.html is a report of other parameters"), "{seen}");
    assert_eq!((sandbox.read(default), sandbox.read("mine.html")), (good.clone(), good));
}
