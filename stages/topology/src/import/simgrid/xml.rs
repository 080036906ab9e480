//! XML as a tree of elements that know their lines. Nothing is ever fetched, and no entities are declared.

use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::super::ImportError;
use super::super::reader::malformed;

/// Deepest nesting.
const MOST_DEEP: usize = 64;
/// Most elements of a file.
const MOST_ELEMENTS: usize = 1 << 24;

/// An element with its attributes.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) line: usize,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Self>,
}

impl Element {
    /// The value of an attribute, if it is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The value of an attribute that has to be there.
    pub(super) fn need(&self, path: &Path, name: &str) -> Result<&str, ImportError> {
        self.get(name).ok_or_else(|| {
            let problem = format!("`<{}>` does not say its `{name}`", self.name);
            malformed(path, self.line, problem, format!("add `{name}=\"…\"`"))
        })
    }
}

/// Reads the outermost element.
pub(super) fn parse(path: &Path, text: &str) -> Result<Element, ImportError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let (mut open, mut root): (Vec<Element>, Option<Element>) = (Vec::new(), None);
    let (mut line, mut counted, mut elements) = (1, 0, 0);
    loop {
        let event = reader.read_event();
        let place = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
        let at = line;
        line += text.get(counted..place).map_or(0, |passed| passed.matches('\n').count());
        counted = place.max(counted);
        let event = event
            .map_err(|error| malformed(path, line, error.to_string(), "is this XML, and is it whole?"))?;
        let (start, is_empty) = match event {
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            Event::End(_) => {
                close(&mut open, &mut root);
                continue;
            }
            Event::DocType(text) if text.contains(&b'[') => {
                let help = "remove everything between `[` and `]`; `<!DOCTYPE platform SYSTEM \"…simgrid.dtd\">` is fine";
                return Err(malformed(path, at, "declarations inside the document type", help));
            }
            Event::Eof => break,
            _ => continue,
        };
        elements += 1;
        if elements > MOST_ELEMENTS || open.len() >= MOST_DEEP {
            return Err(malformed(
                path,
                line,
                "more or deeper elements than any platform has",
                "is the file damaged?",
            ));
        }
        open.push(element(path, at_element(at, line, &start), &start)?);
        if is_empty {
            close(&mut open, &mut root);
        }
    }
    match (open.last(), root) {
        (Some(element), _) => {
            let problem = format!("`<{}>` is not closed", element.name);
            Err(malformed(path, element.line, problem, "is the file whole?"))
        }
        (None, Some(root)) => Ok(root),
        (None, None) => Err(malformed(path, None, "no element", "`<platform version=\"4.1\">` is expected")),
    }
}

/// The line where an element begins: that of its end, less the lines inside its tag.
fn at_element(before: usize, after: usize, start: &BytesStart<'_>) -> usize {
    let inside = String::from_utf8_lossy(start).matches('\n').count();
    after.saturating_sub(inside).max(before)
}

fn close(open: &mut Vec<Element>, root: &mut Option<Element>) {
    let Some(element) = open.pop() else { return };
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = root.take().or(Some(element)),
    }
}

fn element(path: &Path, line: usize, start: &BytesStart<'_>) -> Result<Element, ImportError> {
    let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute
            .map_err(|error| malformed(path, line, error.to_string(), "attributes are `name=\"value\"`"))?;
        let raw = String::from_utf8_lossy(&attribute.value).into_owned();
        let value = quick_xml::escape::unescape(&raw).map_err(|error| {
            malformed(path, line, error.to_string(), "only `&amp;`, `&lt;` and the like are known")
        })?;
        attributes.push((String::from_utf8_lossy(attribute.key.as_ref()).into_owned(), value.into_owned()));
    }
    Ok(Element { name, line, attributes, children: Vec::new() })
}
