//! Stages: an index, and a page for every family with ports, parameters and values. What several stages of a family share is there once.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::Direction;
use serde_json::Value as Json;

use super::super::stages::arity;
use super::data::link_to;
use super::markdown::{Pages, anchor, head, sentence, table};
use crate::registry::{STAGES, StageEntry};

/// Stages of a family that have to share a parameter before it moves to the end of the page.
const SHARED_BY: usize = 3;

pub(super) fn add(pages: &mut Pages) {
    let mut families: Vec<(&str, Vec<&StageEntry>)> = Vec::new();
    for entry in STAGES.iter() {
        let family = entry.kind.split('/').next().unwrap_or_default();
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, entries)) => entries.push(entry),
            None => families.push((family, vec![entry])),
        }
    }
    let introduction = "`hopmap stages KIND` prints the ports and parameters of a kind, and `hopmap schema KIND` \
        its JSON Schema.";
    let mut index = head("Stages", introduction);
    for (family, entries) in families {
        let rows = entries.iter().map(|entry| {
            let link = format!("[`{}`](stages/{family}.md#{})", entry.kind, anchor(entry.kind));
            [link, sentence(entry.summary)]
        });
        index += &format!("\n## {family}\n{}", table(["kind", "purpose"], rows));
        pages.insert(format!("stages/{family}.md"), page(family, &entries));
    }
    pages.insert("stages.md".into(), index);
}

fn page(family: &str, entries: &[&StageEntry]) -> String {
    let shared = shared(entries);
    let mut text = head(&format!("Stages: {family}"), &format!("All kinds that begin with `{family}/`."));
    for entry in entries {
        text += &format!("\n## {}\n\n{}\n", entry.kind, sentence(entry.summary));
        let ports = entry.ports.iter().map(|port| {
            let direction = match port.direction {
                Direction::In => "input",
                Direction::Out => "output",
            };
            [format!("`{}`", port.name), format!("{direction}{}", arity(port)), link_to(port.kind)]
        });
        text += &table(["port", "direction", "artifact"], ports);
        let facts = facts(entry);
        if !facts.is_empty() {
            text += &format!("\n{facts}\n");
        }
        let (common, own): (Vec<_>, Vec<_>) =
            parameters(entry).into_iter().partition(|(name, text)| shared.get(name) == Some(text));
        if !own.is_empty() {
            text += "\nParameters:\n\n";
        }
        own.iter().for_each(|(_, parameter)| text += parameter);
        if !common.is_empty() {
            let names: Vec<String> = common.iter().map(|(name, _)| format!("`{name}`")).collect();
            text += &format!("\n[Shared parameters](#shared-parameters): {}.\n", names.join(", "));
        }
    }
    if !shared.is_empty() {
        text += "\n## Shared parameters\n\n";
    }
    shared.into_values().for_each(|parameter| text += &parameter);
    text
}

/// The parameters that most stages of a family describe alike, and at least [`SHARED_BY`].
fn shared<'a>(entries: &[&'a StageEntry]) -> BTreeMap<&'a str, String> {
    let mut uses: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for (name, text) in entries.iter().flat_map(|entry| parameters(entry)) {
        *uses.entry(name).or_default().entry(text).or_default() += 1;
    }
    let most = |texts: BTreeMap<String, usize>| texts.into_iter().max_by_key(|(_, count)| *count);
    let common = uses.into_iter().filter_map(|(name, texts)| Some((name, most(texts)?)));
    common.filter(|(_, (_, count))| *count >= SHARED_BY).map(|(name, (text, _))| (name, text)).collect()
}

/// What else there is to know of a stage.
fn facts(entry: &StageEntry) -> String {
    let distributed = entry.distributed.then(|| "Runs as several MPI ranks with a `launcher`.".to_owned());
    let libraries = entry
        .libraries
        .iter()
        .map(|library| format!("Some values need {}: {}.", library.name, library.hint()));
    distributed.into_iter().chain(libraries).collect::<Vec<_>>().join(" ")
}

/// The parameters of a stage, each as an item of a list.
fn parameters(entry: &StageEntry) -> Vec<(&str, String)> {
    let required = entry.schema["required"].as_array().cloned().unwrap_or_default();
    let properties = entry.schema["properties"].as_object().into_iter().flatten();
    let item = |(name, schema): (&'_ String, &Json)| {
        let default = match &schema["default"] {
            _ if required.iter().any(|other| other == name) => "required".to_owned(),
            Json::Null => "optional".to_owned(),
            value => format!("default `{value}`"),
        };
        let text = sentence(schema["description"].as_str().unwrap_or_default());
        let mut item = format!("- `{name}` ({default}): {text}\n");
        let mut listed = BTreeSet::new();
        for (value, meaning) in inner(schema, &entry.schema, DEPTH) {
            if !listed.insert((value.clone(), meaning.clone())) {
                continue;
            }
            item += format!("  - `{value}`: {}", sentence(&meaning)).trim_end_matches([':', ' ']);
            item.push('\n');
        }
        item
    };
    properties.map(|(name, schema)| (name.as_str(), item((name, schema)))).collect()
}

/// Schemas within each other that are followed: those of trees would not end.
const DEPTH: usize = 6;

/// The words that a parameter takes, and the keys of the tables that it takes.
fn inner(schema: &Json, root: &Json, depth: usize) -> Vec<(String, String)> {
    if depth == 0 {
        return Vec::new();
    }
    let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    if let Some(target) = place.and_then(|place| root.pointer(place)) {
        return inner(target, root, depth - 1);
    }
    let described = |schema: &Json| schema["description"].as_str().unwrap_or_default().to_owned();
    if let Some(value) = schema["const"].as_str() {
        return vec![(value.to_owned(), described(schema))];
    }
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let keys = schema["properties"].as_object().into_iter().flatten();
    let alternatives = ["oneOf", "anyOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
    let held = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    words
        .map(|word| (word.to_owned(), String::new()))
        .chain(keys.map(|(key, value)| match value["const"].as_str() {
            Some(constant) => (format!("{key} = \"{constant}\""), described(schema)),
            None => (key.clone(), described(value)),
        }))
        .chain(alternatives.chain(held).flat_map(|other| inner(other, root, depth - 1)))
        .collect()
}
