//! The parameters of a stage: values held against its schema and its types. All mistakes are reported together.

use std::ops::Range;

use hopmap_model::OutOfRange;
use hopmap_text::closest;
use serde_json::Value as Json;

use super::template::SchemaView;
use crate::registry::{Configured, ParameterError, StageEntry};
use crate::source::{NodeValue, Problem, Sink, Table};

/// Checks keys, then reads the parameters. A key that is unknown or missing hides no value of a wrong type.
///
/// `written` is what the file has, for places; `values` the same with references filled in.
pub(super) fn configure_settings(
    entry: &StageEntry,
    written: &Table,
    mut values: Json,
    span: &Range<usize>,
    problems: &Sink,
) -> Option<Box<dyn Configured>> {
    let schema = SchemaView::new(&entry.schema);
    let before = problems.count();
    for key in unknown_keys(written, &schema, entry.kind, problems) {
        values.as_object_mut().and_then(|map| map.remove(key));
    }
    for name in schema.required().into_iter().filter(|name| written.get(name).is_none()) {
        let problem = Problem::new(format!("`{name}` is missing for {}", entry.kind), span);
        let problem = problem.label(format!("add `{name}`"));
        problems.push(match schema.property(name).description() {
            Some(description) => problem.help(format!("{name}: {}", first_sentence(description))),
            None => problem,
        });
    }
    read(entry, written, values, span, problems).filter(|_| problems.count() == before)
}

/// Reports keys that a table of the schema does not have; gives the keys of `table` that are such, or have such in them.
fn unknown_keys<'a>(table: &'a Table, schema: &SchemaView<'_>, kind: &str, problems: &Sink) -> Vec<&'a str> {
    if !schema.is_closed_table() {
        return Vec::new();
    }
    let known = schema.property_names();
    let mut unknown = Vec::new();
    for entry in &table.entries {
        if !known.contains(&entry.key.as_str()) {
            let problem = Problem::new(format!("{kind} has no parameter `{}`", entry.key), &entry.key_span);
            problems.push(problem.suggest(&entry.key, "parameters", known.iter().copied()));
            unknown.push(entry.key.as_str());
        } else if let NodeValue::Table(inner) = &entry.node.value
            && !unknown_keys(inner, &schema.property(&entry.key), kind, problems).is_empty()
        {
            unknown.push(&entry.key);
        }
    }
    unknown
}

/// Reads the parameters; takes out a value that does not fit and goes on, so that all such values are found.
fn read(
    entry: &StageEntry,
    written: &Table,
    mut values: Json,
    span: &Range<usize>,
    problems: &Sink,
) -> Option<Box<dyn Configured>> {
    let before = problems.count();
    let mut is_complete = values_are_complete(entry, written, &values);
    loop {
        let error = match entry.configure(values.clone()) {
            Ok(configured) => return (problems.count() == before).then_some(configured),
            Err(error) => beyond_type(entry, &values, &error).unwrap_or(error),
        };
        let found = error.path.first().and_then(|key| written.get(key));
        // What is missing now is what was taken out before.
        if is_complete || found.is_some() {
            problems.push(wrong_value(entry, &error, written, span));
        }
        is_complete = false;
        let removed = error.path.first().zip(values.as_object_mut()).and_then(|(key, map)| map.remove(key));
        removed.as_ref()?;
    }
}

/// The error of an integer that its type cannot hold, with the range that is allowed. Only the stage knows this
/// range, so its check gets the nearest integer of the type.
fn beyond_type(entry: &StageEntry, values: &Json, error: &ParameterError) -> Option<ParameterError> {
    let [least, most] = SchemaView::new(&entry.schema).at(&error.path).integers()?;
    let pointer = error.path.iter().fold(String::new(), |pointer, part| pointer + "/" + part);
    let mut nearest = values.clone();
    let value = nearest.pointer_mut(&pointer)?;
    let number: i128 = match value {
        Json::Number(number) => number.to_string().parse().ok()?,
        // TOML has no larger integers than i64, so larger ones are read as text.
        Json::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let limit = match number {
        _ if number < i128::from(least) => least,
        _ if number > i128::from(most) => most,
        _ => return None,
    };
    *value = limit.into();
    let out_of_range = OutOfRange::new(&dotted(&error.path), number, format!("{least} to {most}"));
    let of_type = ParameterError::of_check(&out_of_range.into());
    let of_stage = entry.configure(nearest).err();
    let of_stage = of_stage.filter(|other| other.is_out_of_range && other.path == error.path);
    let help = of_stage.and_then(|error| error.help).or(of_type.help);
    Some(ParameterError { path: error.path.clone(), help, ..of_type })
}

/// Whether values are all that is written, and all that has to be there.
fn values_are_complete(entry: &StageEntry, written: &Table, values: &Json) -> bool {
    let is_there = |name: &str| values.get(name).is_some();
    let required = SchemaView::new(&entry.schema).required();
    required.into_iter().all(is_there) && written.entries.iter().all(|entry| is_there(&entry.key))
}

fn wrong_value(entry: &StageEntry, error: &ParameterError, written: &Table, span: &Range<usize>) -> Problem {
    let Some((key, inner)) = error.path.split_first() else {
        let problem = Problem::new(&error.message, span);
        return error.help.iter().fold(problem, Problem::help);
    };
    let place = written.get(key).map_or_else(|| span.clone(), |entry| entry.node.span_at(inner));
    let path = dotted(&error.path);
    let schema = SchemaView::new(&entry.schema).property(key);
    if error.is_out_of_range {
        let default = schema.at(inner).default();
        let default = default.map(|value| format!("; default {value}")).unwrap_or_default();
        let help = error.help.iter().map(|help| format!("{help}{default}"));
        return help.fold(Problem::new(&error.message, &place), Problem::help);
    }
    let message = match (in_words(&error.message), error.message.strip_prefix("missing field ")) {
        (Some((wanted, found)), _) => format!("`{path}` must be {wanted}, found {found}"),
        (None, Some(field)) => format!("`{path}` lacks {field}"),
        (None, None) if error.message.starts_with("data did not match") => {
            format!("`{path}` has the wrong form")
        }
        (None, None) => format!("`{path}`: {}", error.message),
    };
    let problem = Problem::new(message, &place);
    if let Some((found, known)) = unknown_variant(&error.message)
        && let Some(meant) = closest(found, &known)
    {
        return problem.label(format!("did you mean `{meant}`?"));
    }
    let description = schema.description().map(|text| format!("{key}: {}", first_sentence(text)));
    let help = error.help.clone().or(description);
    help.into_iter().fold(problem, Problem::help)
}

/// What serde expected and what it found, without names of Rust types.
fn in_words(message: &str) -> Option<(String, String)> {
    if let Some((found, known)) = unknown_variant(message) {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let one_of = if known.len() > 1 { "one of " } else { "" };
        return Some((format!("{one_of}{}", known.join(", ")), format!("`{found}`")));
    }
    let rest = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start))?;
    let (found, wanted) = rest.rsplit_once(", expected ")?;
    let wanted = match wanted {
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "a string" | "a borrowed string" | "path string" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        name if name.starts_with("struct ") || name.starts_with("internally tagged") => "a table",
        name if name.starts_with("enum ") => "a name",
        "string or map" | "variant identifier" => "a name",
        other => other,
    };
    let (kind, value) = found.split_once([' ']).unwrap_or((found, ""));
    let found = match kind {
        "string" => format!("the string {value}"),
        "integer" | "number" => format!("the number {}", value.trim_matches('`')),
        "floating" => format!("the number {}", value.trim_start_matches("point ").trim_matches('`')),
        "boolean" => value.trim_matches('`').to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        "null" | "unit" => "nothing".to_owned(),
        _ => found.to_owned(),
    };
    Some((wanted.to_owned(), found))
}

/// A name that is none of those that serde knows, and these.
fn unknown_variant(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown variant `")?;
    let (found, rest) = rest.split_once("`, expected ")?;
    Some((found, rest.split('`').skip(1).step_by(2).collect()))
}

/// A path as users write it: `weight.time.latency_s`, `costs[1]`.
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

/// The first sentence of a description, without its full stop.
fn first_sentence(text: &str) -> String {
    let text = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let begins = |rest: &str| rest.trim_start_matches('`').starts_with(char::is_uppercase);
    let end = text.match_indices(". ").find(|(at, stop)| begins(&text[at + stop.len()..]));
    text[..end.map_or(text.len(), |(at, _)| at)].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_rust_become_words() {
        let words = |message: &str| {
            let (wanted, found) = in_words(message).unwrap();
            format!("must be {wanted}, found {found}")
        };
        for (message, expected) in [
            (r#"invalid type: string "ten", expected f64"#, r#"must be a number, found the string "ten""#),
            ("invalid type: sequence, expected u64", "must be a non-negative integer, found a list"),
            ("invalid type: floating point `1.5`, expected i64", "must be an integer, found the number 1.5"),
            ("invalid type: boolean `true`, expected a string", "must be text, found true"),
            ("invalid type: null, expected struct Weight", "must be a table, found nothing"),
            (
                "unknown variant `lin`, expected `linear` or `tabu`",
                "must be one of `linear`, `tabu`, found `lin`",
            ),
            ("unknown variant `x`, expected `y`", "must be `y`, found `x`"),
        ] {
            assert_eq!(words(message), expected);
        }
        assert_eq!(in_words("shape `cube` is unknown"), None);
    }

    #[test]
    fn an_integer_beyond_its_type_is_refused_with_the_range_of_its_parameter() {
        let entry = crate::registry::stage("map/annealing").unwrap();
        let refused = |values: Json| {
            let error = entry.configure(values.clone()).err().unwrap();
            let error = beyond_type(entry, &values, &error).unwrap();
            (error.message, error.help.unwrap())
        };
        assert_eq!(
            refused(serde_json::json!({ "islands": -1 })),
            ("`islands` = -1 is out of range".to_owned(), "allowed: 1 to 4096".to_owned())
        );
        let parallel = crate::registry::stage("instance/parallel").unwrap();
        let layers = SchemaView::new(&parallel.schema).at(&["model", "layers"].map(str::to_owned));
        assert_eq!(layers.integers(), Some([0, u32::MAX.into()]));
        let (message, help) = refused(serde_json::json!({ "seed": "18446744073709551615" }));
        assert_eq!(message, "`seed` = 18446744073709551615 is out of range");
        assert_eq!(help, "allowed: 0 to 9223372036854775807");
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop() {
        assert_eq!(first_sentence("Seed of it. Without it 1,\nor so.\n\nMore."), "Seed of it");
        assert_eq!(first_sentence("Such as 1.5 or e.g. that.\n\nMore."), "Such as 1.5 or e.g. that");
    }
}
