//! The parts of a report on the pipeline as a whole: summary, gates, results of its queries, cells.

use std::path::Path;

use hopmap_model::{Artifact, Mapping, Metrics};
use hopmap_views::{DagNode, NodeState, comparison, dag};

use super::answer::{answers, bound};
use super::page::{Field, Page, Results, cell_name, escape, number, prose, titled};
use super::problem::best_of_each;
use super::searches::Colours;
use crate::engine::{
    OutputRecord, Reason, Settled, State, launch_command, launch_files, placeholders, short, state_name,
    warnings,
};
use crate::pipeline::Cell;
use crate::verdict::{GateStatus, Verdict};

/// Rows of the table of stages; a sweep can have a hundred thousand.
const MOST_ROWS: usize = 2000;

/// Sentences at the top.
const MOST_ANSWERS: usize = 3;
/// Failures that are listed.
const MOST_ERRORS: usize = 20;
/// Launch commands that are shown at once, and after a click.
const MOST_OPEN: usize = 3;
const MOST_COMMANDS: usize = 20;
/// Mappings that are compared with linear and random; a sweep has its own tables.
const MOST_COMPARED: usize = 6;

/// Name, answer, outcomes and errors.
pub(crate) fn summary(page: &mut Page, results: Results<'_>) {
    page.add(&format!("<h1>{}</h1>\n", escape(&results.pipeline.name)));
    if let Some(description) = &results.pipeline.description {
        page.add(&format!("<p class=\"lead\">{}</p>\n", prose(description)));
    }
    let answers = answers(results);
    for sentence in answers.iter().take(MOST_ANSWERS) {
        page.add(&format!("<p class=\"verdict\">{}</p>\n", prose(sentence)));
    }
    if answers.len() > MOST_ANSWERS {
        page.note(&format!("… and {} more programs and machines.", answers.len() - MOST_ANSWERS));
    }
    if let Some(bound) = bound(results) {
        page.note(&format!("Upper bound: {bound}."));
    }
    let count = |state: State| {
        let (name, count) = (state_name(state), results.report.count(state));
        (count > 0).then(|| format!("{count} <span class=\"{name}\">{name}</span>"))
    };
    page.note(&State::ENDINGS.into_iter().filter_map(count).collect::<Vec<_>>().join(", "));
    let errors: Vec<&miette::Report> =
        results.report.cells.iter().filter_map(|settled| settled.error.as_ref()).collect();
    for error in errors.iter().take(MOST_ERRORS) {
        let text = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
        page.add(&format!("<p class=\"failed\">{}</p>\n", prose(&text)));
    }
    if errors.len() > MOST_ERRORS {
        page.add(&format!("<p class=\"failed\">… and {} more.</p>\n", errors.len() - MOST_ERRORS));
    }
    for warning in warnings(results.pipeline, results.store, results.report) {
        page.note(&format!("{}.", prose(&warning)));
    }
}

/// The launch commands.
pub(crate) fn launch(page: &mut Page, results: Results<'_>, shown: &dyn Fn(&Path) -> String) {
    let files = launch_files(results.pipeline, results.report, results.store).into_iter();
    let command = |record: &OutputRecord, path: &Path| launch_command(results.store, record, &shown(path));
    let mut commands: Vec<String> = files.filter_map(|(_, record, path)| command(record, &path)).collect();
    commands.dedup();
    if commands.is_empty() {
        return;
    }
    let shown = commands.iter().take(MOST_COMMANDS);
    let shown: Vec<String> = shown.map(|command| format!("<pre>{}</pre>\n", escape(command))).collect();
    let mut list = shown.concat();
    if commands.len() > MOST_COMMANDS {
        let more = commands.len() - MOST_COMMANDS;
        list.push_str(&format!("<p class=\"note\">… and {more} more.</p>\n"));
    }
    page.add(&match commands.len() {
        ..=MOST_OPEN => format!("<h3>Launch</h3>\n{list}"),
        all => format!("<details><summary>{all} launch commands</summary>\n{list}</details>\n"),
    });
    if let Some(placeholders) = placeholders(results.pipeline, results.store, results.report) {
        page.note(&format!("Hosts: {}.", prose(&placeholders)));
    }
}

/// Metrics compared with linear, round-robin and random mappings.
pub(crate) fn quality(page: &mut Page, results: Results<'_>, mappers: &Colours<'_>) {
    let all = results.outputs(Metrics::KIND);
    let compared: Vec<_> = all.filter(|(_, record)| record.metrics.contains_key("F")).collect();
    if compared.is_empty() {
        return;
    }
    page.heading("Quality");
    let (best, _) = best_of_each(results.pipeline, &compared, "F", MOST_COMPARED);
    let in_order = best.iter().filter_map(|cell| compared.iter().find(|(index, _)| index == cell));
    for (index, record) in in_order {
        let Some(metrics) = results.read::<Metrics>(record) else { continue };
        let cell = &results.pipeline.cells[*index];
        page.heading_below(&cell_name(cell));
        let mapper = results.source(cell, Mapping::KIND).map(|cell| mappers.name(cell)).unwrap_or_default();
        page.figure(&comparison(&metrics, &mapper, &mappers.palette), "");
        metrics_table(page, record);
    }
    if compared.len() > best.len() {
        let (shown, all) = (best.len(), compared.len());
        page.note(&format!(
            "{shown} of {all} are shown, those with the smallest F of each program; “Sweeps” has the metrics of all."
        ));
    }
}

fn metrics_table(page: &mut Page, record: &OutputRecord) {
    let value = |name: &str| number(record.metrics.get(name).copied().unwrap_or(f64::NAN));
    let names = record.metrics.keys().filter(|name| record.metrics.contains_key(&format!("{name}_linear")));
    let row = |name: &String| {
        let ratio = |other: &str| match record.metrics.get(&format!("{name}_over_{other}")) {
            Some(ratio) => format!("{ratio:.3}"),
            None => "–".to_owned(),
        };
        vec![
            escape(name),
            value(name),
            value(&format!("{name}_linear")),
            value(&format!("{name}_round_robin")),
            value(&format!("{name}_random")),
            ratio("linear"),
            ratio("round_robin"),
            ratio("random"),
        ]
    };
    let rows: Vec<Vec<String>> = names.clone().map(row).collect();
    let columns =
        "metric | mapping | linear | round-robin | random (median) | ÷ linear | ÷ round-robin | ÷ random";
    page.first_rows(columns, rows.into_iter(), usize::MAX);
    page.explain(names.map(String::as_str));
}

/// Why a cell runs. A store without any result, where every cell runs for the first time, needs no reasons.
fn reasons(results: Results<'_>) -> impl Fn(&Settled) -> Vec<String> {
    let is_first = |reason: &Reason| matches!(reason, Reason::FirstRun);
    let is_new = results
        .cells()
        .all(|(_, settled)| settled.state != State::Cached && settled.reasons.iter().all(is_first));
    move |settled| match is_new {
        true => Vec::new(),
        false => settled.reasons.iter().map(ToString::to_string).collect(),
    }
}

/// The pipeline as a graph, below the heading of its stages.
pub(crate) fn pipeline(page: &mut Page, results: Results<'_>) {
    let reasons = reasons(results);
    let node = |(cell, settled): (&Cell, &Settled)| DagNode {
        name: cell.name.clone(),
        full_name: cell.id.clone(),
        kind: cell.entry.kind.to_owned(),
        state: match settled.state {
            State::Cached => NodeState::Cached,
            State::Ran | State::Partial | State::WouldRun => NodeState::Run,
            State::Infeasible => NodeState::Infeasible,
            State::Failed => NodeState::Failed,
            State::Blocked => NodeState::Blocked,
            State::NotStarted | State::NotWorthIt | State::Waits => NodeState::Waiting,
        },
        label: state_name(settled.state),
        // The text of a picture has no code.
        reason: reasons(settled).into_iter().next().unwrap_or_default().replace('`', ""),
        group: cell.stage.clone(),
    };
    let nodes: Vec<DagNode> = results.cells().map(node).collect();
    let mut edges = Vec::new();
    for (index, cell) in results.pipeline.cells.iter().enumerate() {
        let mut from: Vec<usize> = cell.dependencies().collect();
        from.sort_unstable();
        from.dedup();
        edges.extend(from.into_iter().map(|other| (other as u32, index as u32)));
    }
    page.heading("Stages");
    page.figure(&dag(&nodes, &edges), "");
}

/// Every cell with its state, reasons, time and outputs.
pub(crate) fn stages(page: &mut Page, results: Results<'_>) {
    let reasons = reasons(results);
    let row = |(cell, settled): (&Cell, &Settled)| {
        let state = state_name(settled.state);
        let reasons = reasons(settled).iter().map(|reason| prose(reason)).collect::<Vec<_>>().join("<br>");
        let output = |(port, record): (&String, &OutputRecord)| {
            format!("{} <code>{}</code>", escape(port), short(&record.digest))
        };
        let time = if settled.seconds > 0.0 { format!("{:.2} s", settled.seconds) } else { String::new() };
        vec![
            cell_name(cell),
            format!("<code>{}</code>", escape(cell.entry.kind)),
            format!("<span class=\"state {state}\">{state}</span>"),
            reasons,
            time,
            settled.outputs.iter().map(output).collect::<Vec<_>>().join("<br>"),
        ]
    };
    let head = "stage | kind | state | why | time | artifacts";
    page.first_rows(head, results.cells().map(row), MOST_ROWS);
}

/// Gates that are listed.
const MOST_GATES: usize = 300;

/// Shows the state of every gate, failed ones first.
pub(crate) fn gates(page: &mut Page, results: Results<'_>) {
    let report = results.report;
    if report.gates.is_empty() {
        return;
    }
    page.heading("Gates");
    let order = [GateStatus::Broken, GateStatus::Unknown, GateStatus::Open, GateStatus::Holds];
    let mut verdicts: Vec<&Verdict> = report.gates.iter().collect();
    verdicts.sort_by_key(|verdict| order.iter().position(|&status| status == verdict.status));
    let count = |status| {
        let count = verdicts.iter().filter(|verdict| verdict.status == status).count();
        (count > 0).then(|| format!("{} {count}", gate_state(status)))
    };
    let counts: Vec<String> = order.into_iter().filter_map(count).collect();
    page.add(&format!("<p>{}</p>\n", counts.join("\u{2003}")));
    let head = "gate | state | value | condition | meaning";
    page.first_rows(head, verdicts.into_iter().map(row), MOST_GATES);
}

/// The state of a gate as a badge, in the words of the command line.
fn gate_state(status: GateStatus) -> String {
    let class = match status {
        GateStatus::Holds => "good",
        GateStatus::Broken => "bad",
        GateStatus::Open | GateStatus::Unknown => "calm",
    };
    format!("<span class=\"badge {class}\">{}</span>", status.word())
}

fn row(verdict: &Verdict) -> Vec<String> {
    let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
    let bound = if verdict.status == GateStatus::Open { "accepted".to_owned() } else { value(verdict.bound) };
    vec![
        escape(&verdict.gate),
        gate_state(verdict.status),
        value(verdict.value),
        format!("{} {bound}", escape(verdict.comparison.sign())),
        titled(&prose(&verdict.to_string()), verdict.full_left()),
    ]
}

/// Every `[tables.NAME]` as a table.
pub(crate) fn tables(page: &mut Page, results: Results<'_>) {
    let report = results.report;
    if report.tables.is_empty() {
        return;
    }
    page.heading("Tables");
    for table in &report.tables {
        page.heading_below(&escape(&table.name));
        let head: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let rows: Vec<Vec<Field>> =
            table.rows.iter().map(|row| row.iter().map(|text| Field::new(text)).collect()).collect();
        page.sortable(&head, &rows);
        if table.rows.len() < table.all_rows {
            page.note(&format!("{} of {} rows are shown.", table.rows.len(), table.all_rows));
        }
    }
}
