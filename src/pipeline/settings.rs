//! The values of `with`, checked against the parameters of a stage.

use std::ops::Range;

use serde_json::Value as Json;

use super::Problem;
use super::node::{Node, NodeValue, Table};
use super::template::SchemaView;
use crate::registry::{Configured, StageEntry};

/// Checks keys, then reads the parameters. Reports unknown and missing keys all at once.
///
/// `written` is what stands in the file, for places; `values` the same with references filled in.
pub(crate) fn configure(
    entry: &StageEntry,
    written: &Table,
    values: Json,
    span: &Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn Configured>> {
    let schema = SchemaView::new(&entry.schema);
    let before = problems.len();
    check_keys(written, &schema, entry.kind, problems);
    for name in schema.required() {
        if values.get(name).is_none() {
            let problem = Problem::new(format!("`{name}` is missing for {}", entry.kind), span);
            let problem = problem.label(format!("add `{name}`"));
            problems.push(match schema.property(name).description() {
                Some(description) => problem.help(format!("{name}: {}", first_sentence(description))),
                None => problem,
            });
        }
    }
    if problems.len() > before {
        return None;
    }
    read(entry, written, values, span, problems)
}

fn check_keys(table: &Table, schema: &SchemaView<'_>, kind: &str, problems: &mut Vec<Problem>) {
    if !schema.is_closed_table() {
        return;
    }
    let known = schema.property_names();
    for entry in &table.entries {
        if !known.contains(&entry.key.as_str()) {
            let problem = Problem::new(format!("{kind} has no parameter `{}`", entry.key), &entry.key_span);
            problems.push(problem.suggest(&entry.key, "parameters", known.iter().copied()));
        } else if let NodeValue::Table(inner) = &entry.node.value {
            check_keys(inner, &schema.property(&entry.key), kind, problems);
        }
    }
}

/// Reads the parameters; takes out a value that does not fit and goes on, so that all such values are found.
fn read(
    entry: &StageEntry,
    written: &Table,
    mut values: Json,
    span: &Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn Configured>> {
    let mut sound = true;
    loop {
        let error = match entry.configure(values.clone()) {
            Ok(configured) => return sound.then_some(configured),
            Err(error) => error,
        };
        let first = error.path.first();
        let found = first.and_then(|key| written.get(key));
        let place = found.map_or_else(|| span.clone(), |entry| entry.node.span_at(&error.path[1..]));
        // What is missing now is what was taken out before.
        if sound || found.is_some() {
            let message = match first {
                Some(_) => format!("`{}`: {}", dotted(&error.path), error.message),
                None => error.message,
            };
            let problem = Problem::new(message, &place);
            let description =
                first.and_then(|key| SchemaView::new(&entry.schema).property(key).description());
            problems.push(match (first, description, error.help) {
                (Some(key), Some(text), _) => problem.help(format!("{key}: {}", first_sentence(text))),
                (_, _, Some(help)) => problem.help(help),
                _ => problem,
            });
        }
        sound = false;
        let removed = first.zip(values.as_object_mut()).and_then(|(key, map)| map.remove(key));
        removed.as_ref()?;
    }
}

/// A path as people write it: `weight.time.latency_s`, `costs[1]`.
fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        match part.parse::<usize>() {
            Ok(index) => text.push_str(&format!("[{index}]")),
            Err(_) if text.is_empty() => text.push_str(part),
            Err(_) => text.push_str(&format!(".{part}")),
        }
    }
    text
}

/// The values of a command line as a text of TOML, so that messages can show where a fault is.
///
/// See [`as_toml`] for how a value is read.
pub(crate) fn assignments(entry: &StageEntry, pairs: &[(String, String)]) -> String {
    let schema = SchemaView::new(&entry.schema);
    let line = |(key, value): &(String, String)| {
        let wanted = key.split('.').fold(schema, |schema, part| schema.property(part));
        format!("{key} = {}\n", as_toml(value, wanted.is_text()))
    };
    pairs.iter().map(line).collect()
}

/// A value of the command line as TOML. Where text is wanted, `5` and `[a]` are text; text in quotes is what they hold.
pub(crate) fn as_toml(value: &str, is_text: bool) -> String {
    let mut problems = Vec::new();
    let parsed = Table::parse(&format!("value = {value}"), &mut problems);
    let is_quoted = parsed.get("value").is_some_and(|entry| entry.node.text().is_some());
    let is_toml = !value.contains('\n') && problems.is_empty();
    match is_toml && (is_quoted || !is_text) {
        true => value.to_owned(),
        false => toml::Value::String(value.to_owned()).to_string(),
    }
}

pub(crate) fn first_sentence(text: &str) -> String {
    let line = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    line.trim_end_matches('.').to_owned()
}

/// A table as a node, for values that stand in no file of their own.
pub(crate) fn node_of(table: Table, span: Range<usize>) -> Node {
    Node { span, value: NodeValue::Table(table) }
}
