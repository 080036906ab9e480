//! `hopmap stages`, `schema`, `completions` and `man`: descriptions for people, editors, shells and manual pages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use clap_complete::Shell;
use hopmap_command::{Exit, Failure, Mistake};
use hopmap_durable::DurableError;
use hopmap_model::{Arity, Direction, Library, Port};
use hopmap_text::closest;
use serde_json::{Map, Value as Json, json};

use super::complete;
use super::output::{Output, Result, wrap};
use crate::registry::{self, STAGES, StageEntry};

/// Arguments of `stages`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopmap stages\n  hopmap stages map\n  hopmap stages map/annealing")]
pub(crate) struct Arguments {
    /// Stage kind to describe, or a family to list, such as map [default: list all].
    kind: Option<String>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    match &arguments.kind {
        None => list("", output),
        Some(kind) if STAGES.iter().any(|entry| is_of_family(entry, kind)) => list(kind, output),
        Some(kind) => describe(find(kind)?, output),
    }
    Ok(Exit::Done)
}

/// The stage of a kind, or an error that suggests one.
pub(crate) fn find(kind: &str) -> Result<&'static StageEntry> {
    registry::stage(kind).ok_or_else(|| {
        let known: Vec<&str> = STAGES.iter().map(|entry| entry.kind).collect();
        let help = registry::left_out(kind).unwrap_or_else(|| match closest(kind, &known) {
            Some(meant) => format!("did you mean `{meant}`? `hopmap stages` lists all"),
            None => format!("kinds: {}", known.join(", ")),
        });
        Mistake::new(format!("there is no stage kind `{kind}`"), help).into()
    })
}

/// Whether a kind is `FAMILY/name`; all are of the family without a name.
fn is_of_family(entry: &StageEntry, family: &str) -> bool {
    let rest = entry.kind.strip_prefix(family.trim_end_matches('/'));
    family.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
}

fn list(family: &str, output: Output) {
    let entries = || STAGES.iter().filter(|entry| is_of_family(entry, family));
    output.json(&entries().map(as_json).collect::<Vec<_>>());
    let width = entries().map(|entry| entry.kind.len()).max().unwrap_or(0);
    for entry in entries() {
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
    output.json(&as_json(entry));
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
        output.line("\nruns as MPI ranks if the pipeline sets a `launcher`, such as \"mpirun -n 4\"");
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
    let others = alternatives.chain(held).flat_map(|other| values(other, root));
    words.map(|word| (word, String::new())).chain(others).collect()
}

/// How many artifacts a port takes or gives, unless it is one.
pub(crate) fn arity(port: &Port) -> &'static str {
    match port.arity {
        Arity::One => "",
        Arity::Optional => " (optional)",
        Arity::Many => " (any number)",
    }
}

fn first_paragraphs(schema: &Json) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split("\n\n").next().unwrap_or_default().replace('\n', " ").trim_end_matches('.').to_owned()
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

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopmap schema > hopmap.schema.json\n  hopmap schema map/annealing")]
pub(crate) struct SchemaArguments {
    /// Stage kind whose parameters to describe [default: the whole pipeline file].
    kind: Option<String>,
}

pub(crate) fn schema(arguments: &SchemaArguments, output: Output) -> Result {
    match &arguments.kind {
        Some(kind) => output.document(&find(kind)?.schema),
        None => output.document(&pipeline_schema()),
    }
    Ok(Exit::Done)
}

/// The schema of a pipeline file: what `with` takes depends on what `uses` says.
///
/// It is of Draft 7, which all editors know. Those that complete by it, Taplo among them, follow neither `if` nor an `allOf`
/// beside `properties`: so `with` and `needs` list whatever any kind takes, and the rule of each kind is in `dependencies`.
pub(crate) fn pipeline_schema() -> Json {
    let mut schema: Json = serde_json::from_str(PIPELINE_SCHEMA).unwrap_or_default();
    let mut definitions = Map::new();
    let rules: Vec<Json> = STAGES.iter().map(|entry| rule(entry, &mut definitions)).collect();
    definitions.insert("values".into(), schema["definitions"]["values"].take());
    schema["definitions"] = definitions.into();
    let stage = &mut schema["properties"]["stages"]["additionalProperties"];
    stage["properties"]["uses"]["anyOf"][0]["enum"] = STAGES.iter().map(|entry| entry.kind).collect();
    stage["properties"]["with"]["properties"] = all_parameters();
    stage["properties"]["needs"]["properties"] = all_inputs();
    stage["dependencies"]["uses"]["allOf"] = rules.into();
    schema
}

/// The schema of a pipeline file without what the stages of this build say.
const PIPELINE_SCHEMA: &str = include_str!("pipeline.schema.json");

/// Every parameter of any kind, with what each kind says of it.
fn all_parameters() -> Json {
    let mut described: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for entry in STAGES.iter() {
        for (name, schema) in entry.schema["properties"].as_object().into_iter().flatten() {
            let description = schema["description"].as_str().unwrap_or_default();
            described.entry(name).or_default().entry(description).or_default().push(entry.kind);
        }
    }
    let described = described.into_iter().map(|(name, texts)| {
        let texts: Vec<String> =
            texts.into_iter().map(|(text, kinds)| format!("{}: {text}", kinds.join(", "))).collect();
        (name.to_owned(), json!({ "description": texts.join("\n\n") }))
    });
    Json::Object(described.collect())
}

/// Every input of any kind, with the kinds that have it.
fn all_inputs() -> Json {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in STAGES.iter() {
        entry.ports(Direction::In).for_each(|port| kinds.entry(port.name).or_default().push(entry.kind));
    }
    let described = kinds.into_iter().map(|(name, kinds)| {
        let description = format!("input of {}", kinds.join(", "));
        let items = json!({ "type": "string" });
        let schema = json!({ "description": description, "type": ["string", "array"], "items": items });
        (name.to_owned(), schema)
    });
    Json::Object(described.collect())
}

/// If `uses` is this kind, then `with` is this. Values may be references, so only the names of keys are binding.
fn rule(entry: &StageEntry, definitions: &mut Map<String, Json>) -> Json {
    let mut properties = Map::new();
    for (name, schema) in entry.schema["properties"].as_object().into_iter().flatten() {
        let mut described = json!({ "description": schema["description"] });
        if !schema["default"].is_null() {
            described["default"] = schema["default"].clone();
        }
        properties.insert(name.clone(), described);
    }
    let name = entry.kind.replace('/', "-");
    let with = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    definitions.insert(name.clone(), with);
    json!({
        "if": { "properties": { "uses": { "const": entry.kind } } },
        "then": { "properties": { "with": { "$ref": format!("#/definitions/{name}") } } },
    })
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap completions bash > ~/.local/share/bash-completion/completions/hopmap
  hopmap completions zsh > ~/.zfunc/_hopmap          # a folder of $fpath
  hopmap completions fish > ~/.config/fish/completions/hopmap.fish")]
pub(crate) struct CompletionsArguments {
    /// Shell to complete for.
    // Those whose completions are tested.
    #[arg(value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

pub(crate) fn completions(
    arguments: &CompletionsArguments,
    mut definition: clap::Command,
    output: Output,
) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut definition, "hopmap", &mut text);
    output.raw(complete::script(arguments.shell, &String::from_utf8_lossy(&text)).as_bytes());
    Exit::Done
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hopmap man ~/.local/share/man/man1 && man hopmap-run")]
pub(crate) struct ManArguments {
    /// Folder for the pages; created if it is missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn man(arguments: &ManArguments, definition: clap::Command) -> Result {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(definition, folder))
        .map_err(|error| Failure::failed(DurableError::io("write pages into", folder)(error)))?;
    Ok(Exit::Done)
}
