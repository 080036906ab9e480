//! Names of columns: what a cell is, was given and gave, side by side without two of one name.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use crate::records::{Record, Value};

/// Names that a table has already, and the names that others get beside them.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    pub(crate) fn new<'a>(fixed: impl IntoIterator<Item = &'a str>) -> Self {
        Self { taken: fixed.into_iter().map(str::to_owned).collect() }
    }

    /// Names for a group of columns, such as the parameters: their own where nobody has them, else with the group before it.
    pub(crate) fn give<'a>(
        &mut self,
        group: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> HashMap<String, String> {
        let mut given: HashMap<String, String> = HashMap::new();
        for name in names {
            if given.contains_key(name) {
                continue;
            }
            let mut column = name.to_owned();
            while !self.taken.insert(column.clone()) {
                column = format!("{group}_{column}");
            }
            given.insert(name.to_owned(), column);
        }
        given
    }
}

/// The values of a group under the names that they were given.
pub(crate) fn renamed(values: &Record, names: &HashMap<String, String>) -> Record {
    let pair = |(name, value): &(String, Value)| Some((names.get(name)?.clone(), value.clone()));
    values.iter().filter_map(pair).collect()
}

/// A value of JSON: lists as their text.
pub(crate) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Truth(*truth),
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::Whole(whole.into()),
            (_, Some(whole)) => Value::Whole(whole.into()),
            _ => Value::Real(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::Array(_) | Json::Object(_) => Value::Text(json.to_string()),
    }
}

/// Nested parameters side by side: `{"a": {"b": 1}}` as `a.b`.
pub(crate) fn flat(json: &Json) -> Record {
    let mut record = Vec::new();
    let Json::Object(map) = json else { return record };
    for (key, inner) in map {
        match inner {
            Json::Object(nested) if !nested.is_empty() => {
                record.extend(flat(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            inner => record.push((key.clone(), value(inner))),
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_parameters_stand_side_by_side() {
        let record = flat(&json!({"a": {"b": {"c": 1}}, "d": [1, 2], "e": {}, "f": null}));
        let names: Vec<&str> = record.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.b.c", "d", "e", "f"]);
        assert_eq!(record[1].1, Value::Text("[1,2]".into()));
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let mut names = Names::new(["cell", "state"]);
        assert_eq!(names.give("metric", ["F", "state"])["state"], "metric_state");
        let parameters = names.give("parameter", ["F", "seed", "F"]);
        assert_eq!((parameters["F"].as_str(), parameters["seed"].as_str()), ("parameter_F", "seed"));
    }
}
