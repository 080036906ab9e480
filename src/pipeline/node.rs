//! TOML as a tree that knows where every key and value stands.

use std::ops::Range;

use serde_json::{Map, Number, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Place in bytes of the text.
    pub(crate) span: Range<usize>,
    /// The value.
    pub(crate) value: NodeValue,
}

/// A value of a TOML file.
#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    /// Text, a number, or a truth value.
    Scalar(Json),
    /// A list.
    Array(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// The entries.
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Place of the key.
    pub(crate) key_span: Range<usize>,
    /// The value.
    pub(crate) node: Node,
}

impl Table {
    /// Parses a text; what cannot be read is reported and left out.
    pub(crate) fn parse(text: &str, problems: &mut Vec<Problem>) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let errors =
            errors.iter().map(|error| (error.message(), clamp(error.span().unwrap_or(0..0), text.len())));
        problems.extend(syntax_problems(text, errors));
        Self::from_toml(table.get_ref(), problems)
    }

    fn from_toml(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Self {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| Entry {
            key: AsRef::<str>::as_ref(key.get_ref() as &std::borrow::Cow<'_, str>).to_owned(),
            key_span: key.span(),
            node: Node::from_toml(value, problems),
        };
        Self { entries: table.iter().map(entry).collect() }
    }

    /// The entry of a key.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Node {
    fn from_toml(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Self {
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(text) => NodeValue::Scalar(text.to_string().into()),
            DeValue::Boolean(value) => NodeValue::Scalar((*value).into()),
            DeValue::Datetime(time) => NodeValue::Scalar(time.to_string().into()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => NodeValue::Scalar(number.into()),
                Err(_) => {
                    problems.push(
                        Problem::new("this number is too large", &span).help("whole numbers have 64 bits"),
                    );
                    NodeValue::Scalar(0.into())
                }
            },
            DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => NodeValue::Scalar(number.into()),
                None => {
                    problems.push(Problem::new("this is not a finite number", &span));
                    NodeValue::Scalar(0.into())
                }
            },
            DeValue::Array(array) => {
                NodeValue::Array(array.iter().map(|value| Self::from_toml(value, problems)).collect())
            }
            DeValue::Table(table) => NodeValue::Table(Table::from_toml(table, problems)),
        };
        Self { span, value }
    }

    /// The text, if it is text.
    #[must_use]
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The table, if it is one.
    #[must_use]
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            NodeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// What it is, in words.
    #[must_use]
    pub(crate) fn describe(&self) -> &'static str {
        match &self.value {
            NodeValue::Scalar(Json::String(_)) => "text",
            NodeValue::Scalar(Json::Number(_)) => "a number",
            NodeValue::Scalar(_) => "a truth value",
            NodeValue::Array(_) => "a list",
            NodeValue::Table(_) => "a table",
        }
    }

    /// The value without places.
    #[must_use]
    pub(crate) fn plain(&self) -> Json {
        match &self.value {
            NodeValue::Scalar(value) => value.clone(),
            NodeValue::Array(nodes) => nodes.iter().map(Self::plain).collect(),
            NodeValue::Table(table) => {
                let pairs = table.entries.iter().map(|entry| (entry.key.clone(), entry.node.plain()));
                Json::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Where the value at a path of keys and indexes stands; the innermost place known.
    #[must_use]
    pub(crate) fn span_at(&self, path: &[String]) -> Range<usize> {
        let Some((first, rest)) = path.split_first() else {
            return self.span.clone();
        };
        let inner = match &self.value {
            NodeValue::Table(table) => table.get(first).map(|entry| &entry.node),
            NodeValue::Array(nodes) => first.parse::<usize>().ok().and_then(|index| nodes.get(index)),
            NodeValue::Scalar(_) => None,
        };
        inner.map_or_else(|| self.span.clone(), |node| node.span_at(rest))
    }
}

/// A bracket that is never closed makes every line after it look wrong: the first faults say enough.
const MOST_SYNTAX_PROBLEMS: usize = 3;

/// Faults of syntax. A table that stands twice is one fault, and what is in it is not reported again.
fn syntax_problems<'a>(text: &str, errors: impl Iterator<Item = (&'a str, Range<usize>)>) -> Vec<Problem> {
    let mut repeated_tables = Vec::new();
    let mut problems = Vec::new();
    for (message, span) in errors {
        if problems.len() == MOST_SYNTAX_PROBLEMS {
            break;
        }
        if message != "duplicate key" {
            problems.push(Problem::new(message, &span));
            continue;
        }
        let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let header = if text[line..].starts_with('[') {
            line
        } else {
            text[..line].rfind("\n[").map_or(0, |end| end + 1)
        };
        if header == line {
            repeated_tables.push(header);
        } else if repeated_tables.contains(&header) {
            continue;
        }
        let name = text[span.clone()].to_owned();
        problems.push(Problem::new(format!("`{name}` stands twice"), &span).label("this is the second"));
    }
    problems
}

fn clamp(span: Range<usize>, length: usize) -> Range<usize> {
    span.start.min(length)..span.end.min(length)
}

pub(crate) fn sub_table(table: &Table, key: &str, problems: &mut Vec<Problem>) -> Table {
    match table.get(key).map(|entry| &entry.node) {
        None => Table::default(),
        Some(node) => node.table().cloned().unwrap_or_else(|| {
            problems.push(wrong_form(&format!("`{key}`"), "a table", node));
            Table::default()
        }),
    }
}

pub(crate) fn wrong_form(what: &str, wanted: &str, node: &Node) -> Problem {
    Problem::new(format!("{what} should be {wanted}"), &node.span)
        .label(format!("this is {}", node.describe()))
}

pub(crate) fn unknown_keys(table: &Table, known: &[&str], what: &str, problems: &mut Vec<Problem>) {
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let problem = Problem::new(format!("unknown key `{}`", entry.key), &entry.key_span);
        problems.push(problem.suggest(&entry.key, what, known.iter().copied()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let text = "[a]\nb = [1, 2.5]\n";
        let mut problems = Vec::new();
        let table = Table::parse(text, &mut problems);
        assert!(problems.is_empty());
        let node = &table.get("a").unwrap().node;
        assert_eq!(&text[node.span_at(&["b".into(), "1".into()])], "2.5");
        assert_eq!(node.plain(), serde_json::json!({"b": [1, 2.5]}));
    }

    #[test]
    fn several_faults_of_syntax_are_all_reported() {
        let mut problems = Vec::new();
        Table::parse("a = \nb = 1\nb = 2\nc = 99999999999999999999\n", &mut problems);
        assert!(problems.len() >= 3, "{problems:?}");
    }
}
