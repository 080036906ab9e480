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
    for inside in [
        "Quality",
        "Pipeline",
        "Linear placement",
        "Traffic by level",
        "mpirun -n 8 --rankfile",
        "never ran here",
    ] {
        assert!(html.contains(inside), "the report does not show {inside}");
    }
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
}

#[test]
fn a_report_says_what_failed() {
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
    assert!(html.contains("This placement"));
}

#[test]
fn the_report_command_shows_the_store_as_it_is() {
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
