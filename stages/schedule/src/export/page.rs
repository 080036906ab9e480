//! A schedule as a page of its own: the Gantt chart, the processors, the critical path.

use std::fmt::Write;

use hopmap_model::Schedule;
use hopmap_views::gantt;

use super::exact::Exact;

/// Rows of a table that are written; the picture has them all.
const MOST_ROWS: usize = 1000;

const STYLE: &str = "\
:root { color-scheme: light dark; --paper: #fdfdfc; --panel: #f3f3f0; --ink: #1c1e21; --soft: #62676e; --rule: #d9d9d4; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --panel: #202327; --ink: #e7e8ea; --soft: #9aa0a8; --rule: #363a40; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th.number { text-align: right; }
th, td { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--rule); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
p { color: var(--soft); }
";

/// The page, without scripts and without anything from elsewhere.
pub(super) fn write(schedule: &Schedule) -> String {
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
        // What lies between the end of the one and the beginning of the other is a message.
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

/// A table under a heading, of which some columns are numbers; rows are escaped already.
fn table(heading: &str, head: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    // Writing to a string does not fail.
    let mut html = format!("<h2>{heading}</h2>\n<table><thead><tr>");
    let class = |is_number: bool| if is_number { " class=\"number\"" } else { "" };
    for (name, is_number) in head {
        let _ = write!(html, "<th{}>{name}</th>", class(*is_number));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows.iter().take(MOST_ROWS) {
        html.push_str("<tr>");
        for (cell, (_, is_number)) in row.iter().zip(head) {
            let _ = write!(html, "<td{}>{cell}</td>", class(*is_number));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    if rows.len() > MOST_ROWS {
        let _ = writeln!(html, "<p>The first {MOST_ROWS} of {} are shown.</p>", rows.len());
    }
    html
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(|letter: char| letter.is_control(), " ")
}
