//! The outcome of a pipeline, for people and as JSON: its cells, several mappings in one table (F, F relative to linear and round-
//! robin, what is gained), and answers to its questions.

use std::collections::HashMap;
use std::path::PathBuf;

use hopmap_artifact::{COMPARED, Folder, compared};
use hopmap_command::shown;
use hopmap_model::{Artifact, Metrics, Trials};
use hopmap_text::counted;
use hopmap_trials::{comparisons, summary};
use serde_json::json;

use super::output::{Output, message};
use crate::engine::{
    Catalogue, OutputRecord, PipelineId, RunReport, Saved, Settled, State, Store, Writer, launch_command,
    launch_files, placeholders, save_file, state_name, warnings,
};
use crate::gates::Gate;
use crate::pipeline::{Cell, Pipeline};
use crate::pipeline_text::StageOptions;
use crate::query::{self, AnsweredTable, TableQuestion};
use crate::registry;
use crate::report::{Results, gains};
use crate::source::{Problem, Problems};
use crate::verdict::GateStatus;

/// Cells of a stage beyond this number are summed up.
pub(crate) const MOST_LISTED: usize = 20;

/// Number of failures that are printed in full.
pub(crate) const MOST_SHOWN: usize = 3;

/// Copies for people, and commands, that are listed.
const MOST_COPIES: usize = 6;

/// A stage and what became of its cells.
pub(crate) struct StageReport<'a> {
    pub(crate) name: &'a str,
    pub(crate) cells: Vec<(&'a Cell, &'a Settled)>,
}

/// The cells by their stages, in the order of the first cell of each.
pub(crate) fn stages<'a>(pipeline: &'a Pipeline, report: &'a RunReport) -> Vec<StageReport<'a>> {
    let mut stages: Vec<StageReport<'a>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (cell, settled) in pipeline.cells.iter().zip(&report.cells) {
        let place = *places.entry(&cell.stage).or_insert(stages.len());
        if place == stages.len() {
            stages.push(StageReport { name: &cell.stage, cells: Vec::new() });
        }
        stages[place].cells.push((cell, settled));
    }
    stages
}

impl StageReport<'_> {
    /// How many cells are in which state, in one line.
    fn counts(&self) -> String {
        let count = |state: State| self.cells.iter().filter(|(_, settled)| settled.state == state).count();
        let states = State::ENDINGS.into_iter().chain([State::WouldRun, State::Waits]);
        format!("  {:<10} {}: {}", self.name, counted(self.cells.len(), "cell"), counts(states, count))
    }

    /// The same, and the reasons that most of them have.
    pub(crate) fn print_counts(&self, output: Output) {
        const MOST_REASONS: usize = 5;
        output.line(self.counts());
        let mut reasons: Vec<(usize, String)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for reason in self.cells.iter().flat_map(|(_, settled)| &settled.reasons) {
            let place = *places.entry(reason.to_string()).or_insert_with_key(|reason| {
                reasons.push((0, reason.clone()));
                reasons.len() - 1
            });
            reasons[place].0 += 1;
        }
        // Of reasons that are as frequent, the first comes first.
        reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let line = |(count, reason)| format!("    {count:>6} × {reason}");
        print_some(reasons.into_iter(), MOST_REASONS, line, output);
    }
}

/// Prints errors: the first ones in full, with the options that their stages are from, and where the logs of the others are.
pub(crate) fn print_errors(
    pipeline: &Pipeline,
    report: &RunReport,
    options: Option<&StageOptions>,
    output: Output,
) {
    let cells = pipeline.cells.iter().zip(&report.cells);
    let failures = cells.filter_map(|(cell, settled)| Some((cell, settled, settled.error.as_ref()?)));
    let (first, more) = first_of(failures, MOST_SHOWN);
    for (cell, settled, error) in first {
        output.error(error);
        if let Some(options) = options.and_then(|all| all.get(&cell.stage)).filter(|all| !all.is_empty()) {
            output.note(format!("  check {}", options.join(", ")));
        }
        if let Some(log) = &settled.log {
            output.note(format!("  log: {}", shown(log)));
        }
    }
    if more > 0 {
        let logs = report.folder.as_ref().map(|folder| format!("; logs: {}", shown(&folder.join("logs"))));
        output.note(format!("… and {more} more failed{}", logs.unwrap_or_default()));
    }
}

/// The states in which there are cells, and how many, in one line.
fn counts(states: impl IntoIterator<Item = State>, count: impl Fn(State) -> usize) -> String {
    let counts = states.into_iter().map(|state| (count(state), state)).filter(|(count, _)| *count > 0);
    counts.map(|(count, state)| format!("{count} {}", state_word(state))).collect::<Vec<_>>().join(", ")
}

/// The state as JSON, SQL and the report name it, in words.
pub(crate) fn state_word(state: State) -> String {
    state_name(state).replace('-', " ")
}

/// A cell, its state and the reason, in one line.
pub(crate) fn cell_line(pipeline: &Pipeline, cell: &Cell, settled: &Settled) -> String {
    let other = settled.because_of.map_or("", |index| pipeline.cells[index].name.as_str());
    let reason = match settled.state {
        State::Waits => format!("for {other}"),
        State::Blocked => format!("by {other}"),
        State::NotWorthIt => format!("as {other} shows"),
        _ => match settled.reasons.as_slice() {
            [] => String::new(),
            [reason] => reason.to_string(),
            [first, second] => format!("{first}, {second}"),
            [first, more @ ..] => format!("{first}, and {} more", more.len()),
        },
    };
    format!("  {:<10} {:<24} {reason}", state_word(settled.state), cell.name).trim_end().to_owned()
}

/// The last lines of a run: what happened, where the results are, and the command that uses them.
pub(crate) fn print(pipeline: &Pipeline, store: &Store, report: &RunReport, output: Output) {
    if !output.is_talkative() {
        return;
    }
    output.line(headline(pipeline, report));
    // Several programs have a table.
    if let [gain] = &*gains(Results { pipeline, store, report }) {
        output.line(format!("  {:<12} {gain}", "result"));
    }
    for stage in stages(pipeline, report) {
        if stage.cells.len() > MOST_LISTED {
            output.line(stage.counts());
        }
        let cells = stage.cells.iter();
        let records: Vec<(&str, &OutputRecord)> = cells
            .flat_map(|(cell, settled)| settled.outputs.values().map(|record| (cell.name.as_str(), record)))
            .collect();
        let listed = stage.cells.len() <= MOST_LISTED;
        if let Some(table) = listed.then(|| table(stage.name, &records)).flatten() {
            table.into_iter().for_each(|line| output.line(format!("  {line}")));
            continue;
        }
        let described = records.into_iter().filter_map(|(id, record)| {
            let line = match record.kind.as_str() {
                Trials::KIND => measured(store, record)?,
                kind => (registry::kind(kind)?.headline)(&record.metrics)?,
            };
            Some(format!("  {id:<12} {line}"))
        });
        let most = if listed { MOST_LISTED } else { MOST_SHOWN };
        print_some(described, most, |line| line, output);
    }
    for warning in warnings(pipeline, store, report) {
        output.line(format!("  {warning}"));
    }
    let cells = pipeline.cells.iter().zip(&report.cells);
    let copies =
        cells.flat_map(|(cell, settled)| settled.saved.iter().map(move |saved| (cell, settled.state, saved)));
    let copy = |(cell, state, saved): (&Cell, State, &Saved)| {
        let restored = if saved.written && state == State::Cached { "  (restored)" } else { "" };
        format!("  {:<12} {}{restored}", cell.name, shown(&saved.path))
    };
    print_some(copies, MOST_COPIES, copy, output);
    let command = |(_, record, path): (&str, &OutputRecord, PathBuf)| {
        let command = launch_command(store, record, &shown(&path)).unwrap_or_default();
        format!("  {:<12} {command}", "run with")
    };
    print_some(launch_files(pipeline, report, store).into_iter(), MOST_COPIES, command, output);
    if let Some(placeholders) = placeholders(pipeline, store, report) {
        output.line(format!("  {:<12} {placeholders}", "hosts"));
    }
}

/// The first few; those of a sweep would bury everything else.
pub(crate) fn print_some<T>(
    items: impl Iterator<Item = T>,
    most: usize,
    line: impl Fn(T) -> String,
    output: Output,
) {
    let (first, more) = first_of(items, most);
    first.into_iter().for_each(|item| output.line(line(item)));
    if more > 0 {
        output.line(format!("  … and {more} more"));
    }
}

/// The first few items and how many more there are. A single one more takes the line that would count it.
pub(crate) fn first_of<T>(mut items: impl Iterator<Item = T>, most: usize) -> (Vec<T>, usize) {
    let mut first: Vec<T> = items.by_ref().take(most).collect();
    let Some(next) = items.next() else { return (first, 0) };
    match items.count() {
        0 => {
            first.push(next);
            (first, 0)
        }
        more => (first, more + 1),
    }
}

fn headline(pipeline: &Pipeline, report: &RunReport) -> String {
    let name = &pipeline.name;
    let all = pipeline.cells.len();
    if report.is_success() && report.folder.is_none() && report.count(State::NotWorthIt) == 0 {
        return format!("{name}: nothing to do, {all} of {all} up to date");
    }
    let counts = counts(State::ENDINGS, |state| report.count(state));
    let interrupted = if report.interrupted { ", interrupted" } else { "" };
    format!("{name}: {counts}{interrupted} in {:.2} s", report.seconds)
}

/// How the mappings of trials compare with the first one, or their medians if there is nothing to compare, in one line.
fn measured(store: &Store, record: &OutputRecord) -> Option<String> {
    let trials: Trials = Folder::read(&store.artifact(&record.digest)).ok()?;
    if trials.runs.is_empty() && trials.mappings.len() < 2 {
        return Some("nothing was run: all placements are the same".to_owned());
    }
    let (comparisons, medians) = (comparisons(&trials, false), summary(&trials));
    let (first, more) = first_of(if comparisons.is_empty() { medians } else { comparisons }.into_iter(), 2);
    let more = if more == 0 { String::new() } else { format!("; … and {more} more") };
    Some(first.join("; ") + &more)
}

/// Warns of a damaged log of the store, tables that cannot be made, and other files with a pipeline of the same name, which is easily confused
/// with this one.
pub(crate) fn warn(pipeline: &Pipeline, store: &Store, output: Output) {
    let (count, log) = (store.damaged_lines(), store.root().join("state.log"));
    if count > 0 {
        output.note(format!(
            "{} has {}; hopmap recomputes what was recorded there",
            shown(&log),
            counted(count, "damaged line")
        ));
    }
    let id = PipelineId::of(pipeline, store.root());
    let (first, more) = first_of(store.namesakes(&id).map(ToString::to_string), 1);
    if !first.is_empty() {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        output.note(format!("note: this is {id}; the store also has {}{more}", first.join(", ")));
    }
}

/// Says which copies were held back, and what to do.
pub(crate) fn print_held(pipeline: &Pipeline, report: &RunReport, output: Output) {
    const MOST: usize = 3;
    if report.held.is_empty() {
        return;
    }
    let (first, more) = first_of(report.held.iter(), MOST);
    let mut paths: Vec<String> = first.into_iter().map(|path| shown(path)).collect();
    if more > 0 {
        paths.push(format!("{more} more"));
    }
    // A limit that is a constant is not changed by accepting values.
    let accept = match needs_accepted(pipeline, report) {
        true => "`hopmap accept` makes its values the baseline, ",
        false => "",
    };
    let what = format!("a gate fails; {accept}`save_on_failure = true` saves anyway");
    output.line(format!("  {:<12} {}: {what}", "held back", paths.join(", ")));
}

/// Whether a gate that fails compares with a baseline.
fn needs_accepted(pipeline: &Pipeline, report: &RunReport) -> bool {
    let fails = |gate: &&Gate| {
        report.gates.iter().any(|verdict| verdict.gate == gate.name && verdict.status == GateStatus::Broken)
    };
    pipeline.gates.iter().filter(fails).any(|gate| gate.formula.right.needs_accepted())
}

/// Warns of tables of a pipeline file that cannot be made.
pub(super) fn warn_of_file(pipeline: &Pipeline, output: Output) {
    pipeline.warnings.iter().for_each(|warning| output.note(format!("warning: {}", warning.one_line())));
}

/// Everything as JSON.
pub(crate) fn as_json(pipeline: &Pipeline, store: &Store, report: &RunReport) -> serde_json::Value {
    let output = |(port, record): (&String, &OutputRecord)| {
        let value = json!({
            "kind": record.kind,
            "digest": record.digest,
            "path": store.artifact(&record.digest),
            "metrics": record.metrics,
        });
        (port.clone(), value)
    };
    let cell = |(cell, settled): (&Cell, &Settled)| {
        json!({
            "cell": cell.id,
            "stage": cell.stage,
            "kind": cell.entry.kind,
            "matrix": cell.matrix.iter().cloned().collect::<serde_json::Map<_, _>>(),
            "state": settled.state,
            "reasons": settled.reasons,
            "because_of": settled.because_of.map(|index| pipeline.cells[index].id.clone()),
            "key": settled.key,
            "outputs": settled.outputs.iter().map(output).collect::<serde_json::Map<_, _>>(),
            "saved": settled.saved,
            "seconds": settled.seconds,
            "log": settled.log,
            "error": settled.error.as_ref().map(message),
        })
    };
    json!({
        "pipeline": pipeline.name,
        "store": store.root(),
        "run": report.folder,
        "seconds": report.seconds,
        "exit": report.exit_code(),
        "cells": pipeline.cells.iter().zip(&report.cells).map(cell).collect::<Vec<_>>(),
        "tables": report.tables,
        "gates": report.gates,
        "held": report.held,
    })
}

/// What the column `gain` means, and when to expect one.
const SENTENCE: [&str; 2] = [
    "gain: F below the better of linear and round-robin. Mapping helps where both put ranks that exchange much data",
    "far apart; where one keeps them together, or all exchange alike, there is nothing to gain.",
];

/// The table of a stage whose cells evaluate placements; none if that are fewer than two, or no F is compared.
pub(super) fn table(stage: &str, cells: &[(&str, &OutputRecord)]) -> Option<Vec<String>> {
    let row = |&(id, record): &(&str, &OutputRecord)| {
        let values = id.split_once('[').map_or(id, |(_, values)| values.trim_end_matches(']'));
        let compared = compared(&record.metrics).filter(|_| record.kind == Metrics::KIND)?;
        Some(std::iter::once(values.to_owned()).chain(compared).collect())
    };
    let rows: Vec<Vec<String>> = cells.iter().filter_map(row).collect();
    if rows.len() < 2 {
        return None;
    }
    let columns: Vec<String> = [stage].into_iter().chain(COMPARED).map(str::to_owned).collect();
    let mut lines = aligned(&columns, &rows);
    lines.extend(SENTENCE.map(str::to_owned));
    Some(lines)
}

/// Asks the questions and keeps the answers in the report; with a `writer` saves them. Gives what is wrong with a question, which
/// ends no run.
pub(crate) fn ask(
    pipeline: &Pipeline,
    store: &mut Store,
    mut writer: Option<&mut Writer>,
    report: &mut RunReport,
) -> Option<Problems> {
    if pipeline.tables.is_empty() {
        return None;
    }
    if let Some(problem) = query::missing(&pipeline.tables) {
        // What is only printed can be asked later, but a file is what somebody waits for, if the pipeline is their own.
        let is_wanted =
            pipeline.tables.iter().any(|question| question.save.is_some()) && !pipeline.is_bundled();
        return is_wanted.then(|| pipeline.source.tie(vec![problem]));
    }
    let catalogue = Catalogue::of_report(store, pipeline, report);
    let work = store.work();
    // Answers are written elsewhere first: the store decides whether one may replace a file.
    let aside = |question: &TableQuestion| {
        let form = question.save.as_ref().filter(|_| writer.is_some())?.extension()?;
        Some(work.join(format!("table-{}", question.name)).with_extension(form))
    };
    let mut asked = pipeline.tables.clone();
    asked.iter_mut().for_each(|question| question.save = aside(question));
    let answers = query::answer(&asked, store.root(), catalogue);
    let mut problems = Vec::new();
    for (question, answer) in pipeline.tables.iter().zip(answers) {
        let saved = answer.and_then(|table| match writer.as_deref_mut() {
            Some(writer) => save(table, question, pipeline, store, writer),
            None => Ok(table),
        });
        match saved {
            Ok(table) => report.tables.push(table),
            Err(problem) => problems.push(question.located(problem, pipeline.source.text())),
        }
    }
    (!problems.is_empty()).then(|| pipeline.source.tie(problems))
}

/// Puts an answer that was made aside into its place.
fn save(
    table: AnsweredTable,
    question: &TableQuestion,
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<AnsweredTable, Problem> {
    let (Some(made), Some(place)) = (&table.saved, &question.save) else { return Ok(table) };
    save_file(made, place, pipeline, store, writer).map_err(|error| {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let problem = Problem::new(causes.join(": "), &(0..question.sql.len()));
        match error.help() {
            Some(help) => problem.help(help.to_string()),
            None => problem,
        }
    })?;
    Ok(AnsweredTable { saved: Some(place.clone()), ..table })
}

/// Prints the answers.
pub(crate) fn print_asked(report: &RunReport, output: Output) {
    for table in &report.tables {
        let place = table.saved.as_ref().map(|path| format!(" in {}", shown(path))).unwrap_or_default();
        output.line(format!("  {:<12} {}{place}", table.name, counted(table.all_rows, "row")));
        aligned(&table.columns, &table.rows).into_iter().for_each(|line| output.line(format!("    {line}")));
        if table.rows.len() < table.all_rows {
            output.line(format!("    … and {} more", table.all_rows - table.rows.len()));
        }
    }
}

/// Columns side by side, numbers at their right end.
pub(super) fn aligned(columns: &[String], body: &[Vec<String>]) -> Vec<String> {
    let rows = || std::iter::once(columns).chain(body.iter().map(Vec::as_slice));
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let is_number = |text: &str| {
        let digits = text.trim_end_matches(" %").replace(',', "");
        digits.is_empty() || digits.parse::<f64>().is_ok()
    };
    let numbers: Vec<bool> =
        (0..columns.len()).map(|column| body.iter().all(|row| is_number(&row[column]))).collect();
    let line = |row: &[String]| {
        let texts =
            row.iter().zip(&widths).zip(&numbers).map(|((text, &width), is_number)| match is_number {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            });
        texts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(f: f64, linear: f64, round_robin: f64) -> OutputRecord {
        let metrics = [("F", f), ("F_over_linear", linear), ("F_over_round_robin", round_robin)];
        OutputRecord {
            kind: "metrics".into(),
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            ..OutputRecord::default()
        }
    }

    #[test]
    fn gain_is_against_the_better_of_both() {
        let (one, other) = (record(3_993_414_912.0, 0.789, 0.546), record(100.0, 1.2, 1.0));
        let lines = table("quality", &[("quality[p=a]", &one), ("quality[p=b]", &other)]).unwrap();
        insta::assert_snapshot!(lines[..3].join("\n"), @r"
        quality              F  F / linear  F / round-robin     gain
        p=a      3,993,414,912       0.789            0.546   21.1 %
        p=b                100       1.200            1.000  -20.0 %
        ");
        assert_eq!(table("quality", &[("quality[p=a]", &one)]), None);
    }
}
