//! The measured machine with its inferred levels, and the report of a published topology with its changes over time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hopmap_changes::Machine;
use hopmap_durable::replace_file;
use hopmap_model::{Artifact, CostModel, Levels, Measurements, SystemGraph};
use hopmap_statistics::lower_median;
use hopmap_views::{DriftPoint, drift, found_levels, latencies, topology};
use miette::Report;

use super::page::{MOST_BYTES, Page, Results, escape, prose};
use crate::pipeline::Origin;
use crate::refresh::{Outcome, Record};

/// Machines that are drawn.
const MOST_DRAWN: usize = 6;

/// Draws measurements with the levels inferred from them, and levels inferred from cost matrices.
pub(crate) fn measured(page: &mut Page, results: Results<'_>) {
    let mut drawn = 0;
    for cell in 0..results.pipeline.cells.len() {
        if drawn == MOST_DRAWN {
            page.note(&format!("The first {MOST_DRAWN} are shown."));
            return;
        }
        let measured = results.own::<Measurements>(cell);
        let system = match &measured {
            Some(_) => levels_of(results, cell),
            None => levels_of_matrix(results, cell),
        };
        if measured.is_none() && system.is_none() {
            continue;
        }
        if drawn == 0 {
            page.heading(if measured.is_some() { "The machine, measured" } else { "Levels of the machine" });
        }
        drawn += 1;
        page.cell_heading(&results.pipeline.cells[cell]);
        draw(page, measured.as_deref(), system.as_deref());
    }
}

/// Draws measurements and the levels of a machine.
pub(crate) fn draw(page: &mut Page, measured: Option<&Measurements>, system: Option<&SystemGraph>) {
    if let Some(measured) = measured {
        let caption = "Latency: half of the shortest round trip of the smallest message. Squares are the groups of the inferred levels.";
        page.figure(&latencies(measured, system), caption);
    }
    let Some(system) = system else { return };
    if let (Some(measured), CostModel::Levels(levels)) = (measured, &system.cost) {
        table(page, measured, system, levels);
    }
    let unit = if measured.is_some() { "µs" } else { "" };
    if let Some(picture) = found_levels(system, unit) {
        let caption = "Cost of a message by level, from the whole machine (left) to its hosts (right).";
        page.figure(&picture, caption);
    }
}

/// The machine with the levels of a cell's measurements: its own output, or that of a cell that takes the measurements.
fn levels_of(results: Results<'_>, cell: usize) -> Option<Arc<SystemGraph>> {
    let takes = |other: &usize| {
        let needs = &results.pipeline.cells[*other].needs;
        let measurements = needs.iter().filter(|need| need.port.kind == Measurements::KIND);
        measurements
            .flat_map(|need| &need.origins)
            .any(|origin| matches!(origin, Origin::Cell { cell: from, .. } if *from == cell))
    };
    let others = (0..results.pipeline.cells.len()).filter(takes);
    let mut systems = std::iter::once(cell).chain(others).filter_map(|cell| results.own::<SystemGraph>(cell));
    systems.find(|system| matches!(system.cost, CostModel::Levels(_)))
}

/// The machine of a cell that inferred levels from a cost matrix.
fn levels_of_matrix(results: Results<'_>, cell: usize) -> Option<Arc<SystemGraph>> {
    let needs = &results.pipeline.cells[cell].needs;
    needs.iter().find(|need| need.port.kind == SystemGraph::KIND)?;
    let found = results.own::<SystemGraph>(cell)?;
    let given = results.needed::<SystemGraph>(&results.pipeline.cells[cell])?;
    let is_found = matches!((&given.cost, &found.cost), (CostModel::Matrix(_), CostModel::Levels(_)));
    is_found.then_some(found)
}

/// Measurements between the slots that meet on a level.
#[derive(Default)]
struct Level {
    latencies: Vec<f64>,
    bandwidths: Vec<f64>,
}

fn table(page: &mut Page, measured: &Measurements, system: &SystemGraph, levels: &Levels) {
    let row = |(level, found): (usize, &Level)| {
        let said = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), digits);
        let microseconds = |value: Option<f64>| said(value.map(|value| value * 1e6));
        let (shortest, longest) = (found.latencies.first().copied(), found.latencies.last().copied());
        let bandwidth = said(lower_median(found.bandwidths.clone()).map(|value| value / 1e9));
        vec![
            (level + 1).to_string(),
            digits(levels.costs[level]),
            found.latencies.len().to_string(),
            microseconds(shortest),
            microseconds(lower_median(found.latencies.clone())),
            microseconds(longest),
            bandwidth,
        ]
    };
    let rows: Vec<Vec<String>> = by_level(measured, system, levels).iter().enumerate().map(row).collect();
    let head = "level | cost, µs | pairs | shortest latency, µs | median, µs | longest, µs | bandwidth, GB/s";
    page.first_rows(head, rows.into_iter(), usize::MAX);
}

/// Sorted latencies and bandwidths of the pairs of every level.
fn by_level(measured: &Measurements, system: &SystemGraph, levels: &Levels) -> Vec<Level> {
    let slot_of: HashMap<(&str, u32), u32> = (0..)
        .zip(&system.slots)
        .map(|(index, slot)| ((system.nodes[slot.host as usize].name.as_str(), slot.core), index))
        .collect();
    let slot = |endpoint: u32| {
        let endpoint = &measured.endpoints[endpoint as usize];
        slot_of.get(&(endpoint.host.as_str(), endpoint.core)).copied()
    };
    let level = |a: u32, b: u32| Some(levels.meeting_level(slot(a)?, slot(b)?));
    let mut found: Vec<Level> = levels.costs.iter().map(|_| Level::default()).collect();
    for ((a, b), latency) in measured.latencies() {
        if let Some(level) = level(a, b) {
            found[level].latencies.push(latency);
        }
    }
    for ((a, b), bandwidth) in measured.bandwidths() {
        if let Some(level) = level(a, b) {
            found[level].bandwidths.push(bandwidth);
        }
    }
    for level in &mut found {
        level.latencies.sort_by(f64::total_cmp);
        level.bandwidths.sort_by(f64::total_cmp);
    }
    found
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// Refreshes that are listed.
const MOST_ROWS: usize = 50;

/// Writes the report of a topology and of the refreshes that led to it, the oldest first.
pub(crate) fn write_published(
    path: &Path,
    machine: Option<&Machine>,
    records: &[Record],
) -> Result<(), Report> {
    let mut page = Page::new(MOST_BYTES);
    page.add("<h1>Topology</h1>\n");
    summary(&mut page, machine, records);
    page.heading("Over time");
    let points: Vec<DriftPoint> = records.iter().filter_map(point).collect();
    // A machine that is read from a file has no latencies.
    if points.iter().any(|point| !point.medians.is_empty()) {
        let caption = "Median latency of each level, and the largest deviation from the accepted machine.";
        page.figure(&drift(&points), caption);
    }
    refreshes(&mut page, records);
    if let Some(machine) = machine {
        page.heading("The machine");
        // The picture of links has the names of switches, which levels do not know.
        if machine.measurements.is_some() || machine.system.links.is_empty() {
            draw(&mut page, machine.measurements.as_ref(), Some(&machine.system));
        }
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
        let ended = &last.time;
        page.add(&match last.error.as_deref().map(prose) {
            Some(error) => format!("<p class=\"failed\">The last refresh, of {ended}: {error}</p>\n"),
            None => format!("<p>The last refresh ended at {ended}.</p>\n"),
        });
    }
}

fn is_published(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::First | Outcome::Published | Outcome::Reverted | Outcome::Baseline)
}

/// A refresh as a point of the chart; none without an observation.
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
        let changes = record.changes.iter().take(10).map(|change| prose(change)).collect::<Vec<_>>();
        let more = record.changes.len().saturating_sub(10);
        let more = if more > 0 { format!("<br>and {more} more") } else { String::new() };
        let outcome = serde_json::to_value(record.outcome).unwrap_or_default();
        let error = record.error.as_deref().map(|error| format!("<br>{}", prose(error))).unwrap_or_default();
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
        page.note(&format!("The last {MOST_ROWS} of {} are shown.", records.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Endpoint, Fit, Node, NodeState, ProbePhase, Sample, Slot};

    fn sample(source: u32, destination: u32, time: f64) -> Sample {
        Sample {
            source,
            destination,
            phase: ProbePhase::Latency,
            bytes: 1,
            messages: 1,
            minimum_s: time,
            first_decile_s: time,
            median_s: time,
            ninth_decile_s: time,
            maximum_s: time,
        }
    }

    /// Two hosts with two cores each; the last core is not a slot and does not count.
    #[test]
    fn levels_have_their_pairs_latencies_and_bandwidths() {
        let endpoint = |host: &str, core| Endpoint { host: host.into(), core, state: NodeState::Up };
        let fit = Fit {
            source: 0,
            destination: 2,
            from_bytes: 1,
            latency_s: 3e-6,
            bandwidth_bytes_per_s: Some(1.25e10),
        };
        let measured = Measurements {
            endpoints: vec![endpoint("a", 0), endpoint("a", 1), endpoint("b", 0), endpoint("b", 1)],
            samples: vec![sample(0, 1, 4e-7), sample(0, 2, 6e-6), sample(2, 3, 5e-7)],
            fits: vec![fit],
            ..Measurements::default()
        };
        let groups = vec![vec![0, 0, 1], vec![0; 3]];
        let system = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: vec![Node::host("a"), Node::host("b")],
            links: Vec::new(),
            slots: vec![Slot { host: 0, core: 0 }, Slot { host: 0, core: 1 }, Slot { host: 1, core: 0 }],
            cost: CostModel::Levels(Levels { costs: vec![0.2, 3.0], groups }),
            calibration: Vec::new(),
        };
        let mut page = Page::new(1_000_000);
        draw(&mut page, Some(&measured), Some(&system));
        let html = page.finish("p", "");
        let row =
            |numbers: [&str; 6]| numbers.map(|number| format!("<td class=\"number\">{number}</td>")).concat();
        assert!(html.contains(&row(["1", "0.2", "1", "0.2", "0.2", "0.2"])), "{html}");
        assert!(
            html.contains(&(row(["2", "3", "1", "3", "3", "3"]) + "<td class=\"number\">12.5</td>")),
            "{html}"
        );
        assert_eq!(html.matches("<svg").count(), 2);
    }
}
