//! `hopmap stages`: what there is.

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake};
use hopmap_model::{Arity, Direction, Library, Port};
use hopmap_text::closest;
use serde_json::{Value as Json, json};

use super::output::Output;
use crate::pipeline::first_sentence;
use crate::registry::{self, STAGES, StageEntry};
use crate::renames;

/// Arguments of `stages`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopmap stages\n  hopmap stages map/annealing")]
pub(crate) struct Arguments {
    /// Kind to describe.
    kind: Option<String>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    match &arguments.kind {
        None => list(output),
        Some(kind) => describe(find(kind)?, output),
    }
    Ok(Exit::Done)
}

/// The stage of a kind, or an error that suggests one.
pub(crate) fn find(kind: &str) -> Result<&'static StageEntry, Failure> {
    let now = renames::kind(kind).map_or(kind, |renamed| renamed.new);
    registry::stage(now).ok_or_else(|| {
        let known: Vec<&str> = STAGES.iter().map(|entry| entry.kind).collect();
        let help = match closest(kind, &known) {
            Some(meant) => format!("did you mean `{meant}`? `hopmap stages` lists all"),
            None => format!("kinds: {}", known.join(", ")),
        };
        Mistake::new(format!("there is no stage kind `{kind}`"), help).into()
    })
}

fn list(output: Output) {
    if output.is_json() {
        output.json(&STAGES.iter().map(as_json).collect::<Vec<_>>());
    }
    let width = STAGES.iter().map(|entry| entry.kind.len()).max().unwrap_or(0);
    for entry in STAGES.iter() {
        let missing: Vec<&str> = missing(entry).map(|library| library.name).collect();
        let mark =
            if missing.is_empty() { String::new() } else { format!(" (without {})", missing.join(", ")) };
        output.line(format!("{:<width$}  {}{mark}", entry.kind, entry.summary));
    }
}

/// Libraries that values of its parameters need and this build does not have.
fn missing(entry: &StageEntry) -> impl Iterator<Item = &'static Library> {
    entry.libraries.iter().copied().filter(|library| !library.is_built)
}

fn describe(entry: &StageEntry, output: Output) {
    if output.is_json() {
        output.json(&as_json(entry));
    }
    output.line(format!("{}: {}", entry.kind, entry.summary));
    for library in missing(entry) {
        output.line(format!("this build does not have {}: {}", library.name, library.hint()));
    }
    for (direction, title) in [(Direction::In, "inputs"), (Direction::Out, "outputs")] {
        if entry.ports(direction).next().is_some() {
            output.line(format!("\n{title}"));
        }
        for port in entry.ports(direction) {
            output.line(format!("  {:<16} {}{}", port.name, port.kind, arity(port)));
        }
    }
    if entry.distributed {
        output
            .line("\nruns as several processes where the pipeline has a `launcher`, such as \"mpirun -n 4\"");
    }
    let parameters: Vec<_> = entry.schema["properties"].as_object().into_iter().flatten().collect();
    if !parameters.is_empty() {
        output.line("\nparameters");
    }
    for (name, schema) in parameters {
        let required =
            entry.schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
        let default = match &schema["default"] {
            _ if required => "required".to_owned(),
            Json::Null => "optional".to_owned(),
            value => format!("default {value}"),
        };
        output.line(format!("  {name:<16} {default}"));
        for line in wrap(&first_paragraphs(schema), 88) {
            output.line(format!("      {line}"));
        }
        let values = values(schema, &entry.schema);
        let width = values.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
        for (value, meaning) in values {
            output.line(format!("        {value:<width$}  {meaning}").trim_end().to_owned());
        }
    }
}

/// The values that a parameter can have, with what each means, where these are words.
fn values<'a>(schema: &'a Json, root: &'a Json) -> Vec<(&'a str, String)> {
    let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    if let Some(target) = place.and_then(|place| root.pointer(place)) {
        return values(target, root);
    }
    if let Some(value) = schema["const"].as_str() {
        return vec![(value, first_paragraphs(schema))];
    }
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let alternatives = ["oneOf", "anyOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
    // Of lists, and of tables with any keys, it is what they hold.
    let held = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    words
        .map(|word| (word, String::new()))
        .chain(alternatives.chain(held).flat_map(|other| values(other, root)))
        .collect()
}

fn arity(port: &Port) -> &'static str {
    match port.arity {
        Arity::One => "",
        Arity::Optional => " (optional)",
        Arity::Many => " (any number)",
    }
}

fn first_paragraphs(schema: &Json) -> String {
    schema["description"].as_str().map(first_sentence).unwrap_or_default()
}

/// Text in lines of at most `width` letters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.len() + word.len() < width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn as_json(entry: &StageEntry) -> Json {
    json!({
        "kind": entry.kind,
        "summary": entry.summary,
        "revision": entry.revision,
        "ports": entry.ports,
        "distributed": entry.distributed,
        "missing": missing(entry).map(|library| json!({ "library": library.name, "help": library.hint() }))
            .collect::<Vec<_>>(),
        "parameters": entry.schema,
    })
}
