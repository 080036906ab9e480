//! Schedules as text for other programs.

mod exact;
mod paje;
mod perfetto;
#[cfg(test)]
mod tests;
mod wfformat;

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use hopmap_model::{Error, Schedule, TaskDag, TextFile};
use hopmap_views::{escape, gantt};

use crate::error::invalid;
use crate::formats::sch::{Sch, SchProcessor};
use crate::params::{ExportFormat, ExportParams};
use exact::Exact;

/// Maximum number of rows in a table; the picture is complete.
const MOST_ROWS: usize = 1000;

const STYLE: &str = include_str!("export/page.css");

/// A schedule as text; some formats need the program as well.
pub fn write(schedule: &Schedule, dag: Option<&TaskDag>, params: &ExportParams) -> Result<TextFile, Error> {
    schedule.check()?;
    let program = |format: &str| -> Result<&TaskDag, Error> {
        let Some(dag) = dag else {
            return invalid(
                format!(
                    "format `{format}` needs the messages between tasks, which a schedule does not contain"
                ),
                "connect the `task-dag` of the schedule as well, or export `svg`, `html` or `sch`",
            );
        };
        match (schedule.tasks.len(), dag.tasks.len()) {
            (tasks, there) if tasks == there => Ok(dag),
            (tasks, there) => invalid(
                format!("the schedule has {tasks} tasks, but the program has {there}"),
                "connect the `task-dag` of the schedule",
            ),
        }
    };
    let (name, text) = match params.format {
        ExportFormat::Sch => ("schedule.sch", write_sch(schedule)),
        ExportFormat::Perfetto => ("schedule.json", perfetto::write(schedule, program("perfetto")?)),
        ExportFormat::Svg => ("schedule.svg", gantt(schedule)),
        ExportFormat::Html => ("schedule.html", write_page(schedule)),
        ExportFormat::Paje => ("schedule.trace", paje::write(schedule, program("paje")?)),
        ExportFormat::Wfformat => ("workflow.json", wfformat::write(schedule, program("wfformat")?)?),
    };
    Ok(TextFile { name: name.to_owned(), text })
}

/// The number of every task in a `.sch`: its name if all names are distinct numbers, as in a `.grf`, otherwise its own number.
pub(crate) fn node_numbers(names: &[String], tasks: usize) -> Vec<u64> {
    let number = |name: &String| name.parse::<u64>().ok().filter(|number| number.to_string() == *name);
    let numbers: Option<Vec<u64>> = names.iter().map(number).collect();
    let is_fit =
        |numbers: &Vec<u64>| numbers.len() == tasks && numbers.iter().collect::<HashSet<_>>().len() == tasks;
    numbers.filter(is_fit).unwrap_or_else(|| (0..tasks as u64).collect())
}

/// The schedule with processes numbered from 1. If tasks belong to ranks, comments map every node to its rank and segment.
fn write_sch(schedule: &Schedule) -> String {
    let numbers = node_numbers(&schedule.names, schedule.tasks.len());
    let turns = schedule.turns();
    let nodes = |tasks: &Vec<u32>| tasks.iter().map(|&task| numbers[task as usize]).collect();
    let processors = (1..).zip(&turns).map(|(name, tasks)| SchProcessor { name, nodes: nodes(tasks) });
    let sch = Sch { processors: processors.collect() };
    let segments = schedule.segments();
    let task_of: HashMap<u64, usize> = numbers.iter().copied().zip(0..).collect();
    sch.write(|processor| {
        let mut comment = String::new();
        for node in &processor.nodes {
            let task = *task_of.get(node)?;
            if let (Some(rank), Some(segment)) = (schedule.tasks[task].process, segments[task]) {
                // Writing to a string does not fail.
                let _ = writeln!(comment, "// node {node}: rank {rank}, segment {segment}");
            }
        }
        (!comment.is_empty()).then_some(comment)
    })
}

/// The page, without scripts and external resources.
fn write_page(schedule: &Schedule) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Schedule – hopmap</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<figure style=\"margin:0\">{}</figure>\n{}{}</main>\n</body>\n</html>\n",
        gantt(schedule),
        processors(schedule),
        critical_path(schedule)
    )
}

fn processors(schedule: &Schedule) -> String {
    let mut busy = vec![(0usize, 0.0f64); schedule.processors.len()];
    for task in &schedule.tasks {
        let (tasks, time) = &mut busy[task.processor as usize];
        *tasks += 1;
        *time += task.finish - task.start;
    }
    let idle = schedule.idle();
    let rows = schedule.processors.iter().zip(busy).zip(idle).map(|((processor, (tasks, time)), idle)| {
        vec![
            escape(&processor.name),
            tasks.to_string(),
            Exact::of(processor.available).to_string(),
            Exact::of(time).to_string(),
            format!("{:.1} %", 100.0 * idle),
        ]
    });
    let head =
        [("processor", false), ("tasks", true), ("available from", true), ("busy", true), ("idle", true)];
    table("Processors", &head, &rows.collect::<Vec<_>>())
}

fn critical_path(schedule: &Schedule) -> String {
    let rows = schedule.critical_path().into_iter().map(|number| {
        let task = &schedule.tasks[number as usize];
        // The time between the finish of one task and the start of the next is a message.
        let waits = task.waits_for.map_or_else(String::new, |before| {
            let waited = Exact::of(task.start).since(Exact::of(schedule.tasks[before as usize].finish));
            if waited > Exact::of(0.0) { waited.to_string() } else { String::new() }
        });
        vec![
            escape(&schedule.name(number)),
            escape(&schedule.processors[task.processor as usize].name),
            waits,
            Exact::of(task.start).to_string(),
            Exact::of(task.finish).to_string(),
        ]
    });
    let head = [
        ("task", false),
        ("processor", false),
        ("waits for its message", true),
        ("begins", true),
        ("is done", true),
    ];
    table("Critical path", &head, &rows.collect::<Vec<_>>())
}

/// A table with a heading; some columns are numeric. Rows are already escaped.
fn table(heading: &str, head: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let class = |is_number: bool| if is_number { " class=\"number\"" } else { "" };
    let cell = |tag: &str, text: &str, is_number| format!("<{tag}{}>{text}</{tag}>", class(is_number));
    let row = |row: &Vec<String>| {
        let cells = row.iter().zip(head).map(|(text, (_, is_number))| cell("td", text, *is_number));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let names: String = head.iter().map(|(name, is_number)| cell("th", name, *is_number)).collect();
    let body: String = rows.iter().take(MOST_ROWS).map(row).collect();
    let more = match rows.len() {
        count if count > MOST_ROWS => format!("<p>The first {MOST_ROWS} of {count} are shown.</p>\n"),
        _ => String::new(),
    };
    format!(
        "<h2>{heading}</h2>\n<table><thead><tr>{names}</tr></thead><tbody>\n{body}</tbody></table>\n{more}"
    )
}
