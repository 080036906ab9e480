//! YAML as a tree of values with line numbers.

use saphyr_parser::{Event, Parser, ScanError};

use super::format::malformed;
use super::{ImportError, Result};

/// Largest nesting depth.
const MOST_DEEP: usize = 64;

/// A value and the line where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Yaml {
    pub(super) line: usize,
    pub(super) content: Content,
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Scalar(String),
    List(Vec<Yaml>),
    /// Unique keys in file order.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// An error at its line.
    pub(super) fn wrong(&self, problem: impl Into<String>, help: impl Into<String>) -> ImportError {
        malformed(self.line, problem, help)
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A string, number or boolean as written.
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The values of a list.
    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.content {
            Content::List(values) => Some(values),
            _ => None,
        }
    }

    /// The keys and values of a map.
    pub(super) fn map(&self) -> Option<&[(String, Self)]> {
        match &self.content {
            Content::Map(entries) => Some(entries),
            _ => None,
        }
    }
}

/// A list or map that is not complete yet.
enum Open {
    List(Vec<Yaml>),
    Map { entries: Vec<(String, Yaml)>, names: std::collections::HashSet<String>, key: Option<String> },
}

/// Parses a text with one document. Aliases are rejected: a few of them can expand beyond any memory.
pub(super) fn parse(text: &str) -> Result<Option<Yaml>> {
    let mut open: Vec<(usize, Open)> = Vec::new();
    let mut root = None;
    let mut parser = Parser::new_from_str(text);
    let wrong = |error: &ScanError| {
        malformed(
            error.marker().line(),
            error.info().to_owned(),
            "check that the file is valid YAML with consistent indentation",
        )
    };
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| wrong(&error))?;
        let line = span.start.line();
        let done = match event {
            Event::Scalar(text, ..) => Yaml { line, content: Content::Scalar(text.into_owned()) },
            Event::SequenceStart(..) => {
                open.push((line, Open::List(Vec::new())));
                check_depth(line, open.len())?;
                continue;
            }
            Event::MappingStart(..) => {
                let map =
                    Open::Map { entries: Vec::new(), names: std::collections::HashSet::new(), key: None };
                open.push((line, map));
                check_depth(line, open.len())?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((line, Open::List(values))) => Yaml { line, content: Content::List(values) },
                Some((line, Open::Map { entries, .. })) => Yaml { line, content: Content::Map(entries) },
                None => continue,
            },
            Event::Alias(_) => {
                return Err(malformed(line, "an alias (`*…`)", "write out the referenced value"));
            }
            Event::DocumentStart(_) if root.is_some() => {
                return Err(malformed(line, "a second document", "a file must contain one document"));
            }
            _ => continue,
        };
        match open.last_mut() {
            None => root = Some(done),
            Some((_, Open::List(values))) => values.push(done),
            Some((_, Open::Map { entries, names, key })) => match key.take() {
                Some(key) => entries.push((key, done)),
                None => {
                    let Content::Scalar(name) = done.content else {
                        return Err(malformed(line, "a key that is not a string", "use `name: value`"));
                    };
                    if !names.insert(name.clone()) {
                        return Err(malformed(line, format!("duplicate key `{name}`"), "remove one of them"));
                    }
                    *key = Some(name);
                }
            },
        }
    }
    Ok(root)
}

fn check_depth(line: usize, depth: usize) -> Result<()> {
    match depth > MOST_DEEP {
        true => Err(malformed(
            line,
            format!("values are nested more than {MOST_DEEP} deep"),
            "check whether the file is damaged",
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        parse(text).unwrap_err().in_file("f".as_ref()).to_string()
    }

    #[test]
    fn values_have_lines() {
        let yaml = parse("---\n- a: 1\n  b: [x, \"y z\"]\n- a: ~\n").unwrap().unwrap();
        let [first, second] = yaml.list().unwrap() else { unreachable!() };
        assert_eq!((first.line, second.line), (2, 4));
        let b = first.get("b").unwrap();
        assert_eq!((b.line, b.list().unwrap()[1].scalar()), (3, Some("y z")));
        assert_eq!(parse("# nothing\n").unwrap(), None);
    }

    #[test]
    fn bombs_and_duplicate_keys_are_rejected() {
        assert_eq!(fault("a: &x [1]\nb: [*x, *x]\n"), "f:2: an alias (`*…`)");
        assert_eq!(fault("a: 1\na: 2\n"), "f:2: duplicate key `a`");
        assert!(fault(&"[".repeat(100)).contains("more than 64"));
        assert!(fault(&"[".repeat(100_000)).starts_with("f:1: "));
        assert!(fault(&"- ".repeat(100_000)).starts_with("f:1: "));
        assert_eq!(fault("a: 1\n---\nb: 2\n"), "f:2: a second document");
        assert!(fault("a: [1\nb: 2").contains("f:2"));
    }
}
