//! The report of a published topology: what the machine is, and how it has changed from refresh to refresh.

use std::path::Path;

use hopmap_changes::Machine;
use hopmap_durable::replace_file;
use hopmap_views::{DriftPoint, drift, topology};
use miette::Report;

use super::MOST_BYTES;
use super::measured::draw;
use super::page::{Page, escape};
use crate::refresh::{Outcome, Record};

/// Refreshes that are listed.
const MOST_ROWS: usize = 50;

/// Writes the report of a topology and of the refreshes that led to it, the oldest first.
pub fn write_published(path: &Path, machine: Option<&Machine>, records: &[Record]) -> Result<(), Report> {
    let mut page = Page::new(MOST_BYTES);
    page.add("<h1>Topology</h1>\n");
    summary(&mut page, machine, records);
    page.heading("Over time");
    let points: Vec<DriftPoint> = records.iter().filter_map(point).collect();
    page.figure(
        &drift(&points),
        "Median latencies of the levels, and what is furthest from the accepted machine.",
    );
    refreshes(&mut page, records);
    if let Some(machine) = machine {
        page.heading("The machine");
        draw(&mut page, machine.measurements.as_ref(), Some(&machine.system));
        page.figure(&topology(&machine.system, None, None), "Hosts and switches.");
    }
    replace_file(path, page.finish("Topology", "").as_bytes())?;
    Ok(())
}

fn summary(page: &mut Page, machine: Option<&Machine>, records: &[Record]) {
    let tile = |value: String, name: &str| {
        format!("<div class=\"tile\"><b>{}</b><span>{name}</span></div>", escape(&value))
    };
    let mut tiles = String::new();
    if let Some(machine) = machine {
        let snapshot = machine.snapshot();
        let (up, down) = snapshot.hosts();
        tiles.push_str(&tile(up.len().to_string(), "hosts up"));
        tiles.push_str(&tile(down.len().to_string(), "hosts down"));
    }
    tiles.push_str(&tile(records.len().to_string(), "refreshes"));
    let published = records.iter().filter(|record| is_published(record.outcome)).count();
    tiles.push_str(&tile(published.to_string(), "published"));
    page.add(&format!("<div class=\"tiles\">{tiles}</div>\n"));
    if let Some(last) = records.last() {
        let said = match &last.error {
            Some(error) => {
                format!("<p class=\"failed\">The last refresh, of {}: {}</p>\n", last.time, escape(error))
            }
            None => format!("<p>The last refresh ended at {}.</p>\n", last.time),
        };
        page.add(&said);
    }
}

fn is_published(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::First | Outcome::Published | Outcome::Reverted | Outcome::Baseline)
}

/// A refresh as a point of the chart; none that saw nothing.
fn point(record: &Record) -> Option<DriftPoint> {
    Some(DriftPoint {
        time: record.ended_s().filter(|_| record.hosts > 0)? as f64,
        medians: record.medians_s.values().copied().collect(),
        largest_ratio: record.largest_ratio.max(1.0),
        hosts_down: record.down.len() as u32,
        published: is_published(record.outcome),
    })
}

/// The last refreshes, the latest first.
fn refreshes(page: &mut Page, records: &[Record]) {
    let row = |record: &Record| {
        let changes = record.changes.iter().take(10).map(|change| escape(change)).collect::<Vec<_>>();
        let more = record.changes.len().saturating_sub(10);
        let more = if more > 0 { format!("<br>and {more} more") } else { String::new() };
        let outcome = serde_json::to_value(record.outcome).unwrap_or_default();
        let error = record.error.as_deref().map(|error| format!("<br>{}", escape(error))).unwrap_or_default();
        vec![
            escape(&record.time),
            format!("{}{error}", outcome.as_str().unwrap_or_default()),
            format!("{}{more}", changes.join("<br>")),
            record.hosts.to_string(),
            record.down.len().to_string(),
            format!("{:.1} s", record.seconds),
        ]
    };
    let rows: Vec<Vec<String>> = records.iter().rev().take(MOST_ROWS).map(row).collect();
    page.table(&["time (UTC)", "outcome", "changes", "hosts", "down", "took"], &rows);
    if records.len() > MOST_ROWS {
        page.add(&format!("<p class=\"note\">The last {MOST_ROWS} of {} are shown.</p>\n", records.len()));
    }
}
