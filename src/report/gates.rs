//! What the results have to keep, and whether they do.

use super::page::{Page, escape};
use crate::engine::RunReport;
use crate::gates::{Standing, Verdict, number};

/// Rows of the table; a sweep can have a hundred thousand.
const MOST_ROWS: usize = 300;

/// Shows how every gate stands, broken ones first.
pub(crate) fn gates(page: &mut Page, report: &RunReport) {
    if report.gates.is_empty() {
        return;
    }
    page.heading("Gates");
    let order = [Standing::Broken, Standing::Unknown, Standing::Open, Standing::Holds];
    let of = |standing: Standing| report.gates.iter().filter(move |verdict| verdict.standing == standing);
    let rows: Vec<Vec<String>> = order.into_iter().flat_map(of).take(MOST_ROWS).map(row).collect();
    page.table(&["gate", "", "value", "has to be", "in words"], &rows);
    if report.gates.len() > MOST_ROWS {
        page.add(&format!("<p class=\"note\">{MOST_ROWS} of {} are shown.</p>\n", report.gates.len()));
    }
}

fn row(verdict: &Verdict) -> Vec<String> {
    // The colours are those of stages that ran, failed or wait.
    let (class, word) = match verdict.standing {
        Standing::Holds => ("ran", "holds"),
        Standing::Broken => ("failed", "broken"),
        Standing::Open => ("waits", "open"),
        Standing::Unknown => ("blocked", "unknown"),
    };
    let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
    vec![
        escape(&verdict.gate),
        format!("<span class=\"state {class}\">{word}</span>"),
        value(verdict.value),
        format!("{} {}", escape(verdict.comparison.sign()), value(verdict.bound)),
        escape(&verdict.to_string()),
    ]
}
