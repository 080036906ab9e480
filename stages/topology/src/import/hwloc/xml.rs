//! The XML that hwloc writes: the elements that say something about processors, as a tree.

use std::borrow::Cow;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::super::ImportError;
use super::super::reader::malformed;

/// Elements inside each other.
const DEEPEST: usize = 128;
/// Elements of a file.
const MOST_ELEMENTS: usize = 1 << 20;
/// Attributes of an element.
const MOST_ATTRIBUTES: usize = 64;

/// Elements that are kept; all others are left out with what is in them.
const KEPT: [&str; 10] = [
    "topology",
    "object",
    "info",
    "distances",
    "latency",
    "distances2",
    "indexes",
    "u64values",
    "topologydiff",
    "diff",
];
/// Attributes that are kept.
const ATTRIBUTES: [&str; 22] = [
    "type",
    "depth",
    "os_index",
    "gp_index",
    "cpuset",
    "online_cpuset",
    "allowed_cpuset",
    "name",
    "value",
    "nbobjs",
    "relative_depth",
    "latency_base",
    "kind",
    "indexing",
    "refname",
    "obj_depth",
    "obj_index",
    "obj_attr_type",
    "obj_attr_name",
    "obj_attr_oldvalue",
    "obj_attr_newvalue",
    "version",
];

/// An element, its attributes and text, and the elements in it.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: &'static str,
    pub(super) line: usize,
    attributes: Vec<(&'static str, Box<str>)>,
    pub(super) text: String,
    pub(super) children: Vec<Self>,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
    }

    /// The elements of a name in this one.
    pub(super) fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Name of the first element, if this is the beginning of XML.
pub(super) fn root(head: &str) -> Option<String> {
    let mut reader = Reader::from_str(head);
    for _ in 0..100 {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) => {
                return String::from_utf8(start.name().as_ref().to_vec()).ok();
            }
            Event::Text(text) if !text.iter().all(u8::is_ascii_whitespace) => return None,
            Event::Eof => return None,
            _ => {}
        }
    }
    None
}

/// The root of a file.
pub(super) fn parse(path: &Path, text: &str) -> Result<Element, ImportError> {
    Parser {
        path,
        text,
        lines: (0, 1),
        open: Vec::new(),
        skipped: 0,
        elements: 0,
        root: None,
        has_ended: false,
    }
    .run()
}

struct Parser<'a> {
    path: &'a Path,
    text: &'a str,
    /// A place in the text and its line.
    lines: (usize, usize),
    open: Vec<Element>,
    /// Open elements that are left out.
    skipped: usize,
    elements: usize,
    root: Option<Element>,
    has_ended: bool,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Element, ImportError> {
        let mut reader = Reader::from_str(self.text);
        loop {
            let line = self.line(reader.buffer_position());
            let event = reader.read_event();
            match event {
                Err(error) => {
                    let line = self.line(reader.error_position());
                    return Err(self.wrong(line, format!("this is no XML: {error}"), DAMAGED));
                }
                Ok(Event::Start(start)) => self.start(&start, line)?,
                Ok(Event::Empty(start)) => {
                    self.start(&start, line)?;
                    self.end();
                }
                Ok(Event::End(_)) => self.end(),
                Ok(Event::DocType(text)) => self.check_document_type(&text, line)?,
                Ok(Event::Text(text)) => self.text(&text, line)?,
                Ok(Event::Eof) => break,
                Ok(_) => {}
            }
        }
        let line = self.line(self.text.len() as u64);
        match (self.root.take(), self.open.is_empty() && self.skipped == 0) {
            (Some(root), true) => Ok(root),
            (None, true) => Err(self.wrong(line, "there is nothing of hwloc in it", DAMAGED)),
            (_, false) => Err(self.wrong(line, "the file ends inside an element", "is it cut off?")),
        }
    }

    fn wrong(&self, line: usize, problem: impl Into<String>, help: &str) -> ImportError {
        malformed(self.path, line, problem, help)
    }

    /// The line of a place that is not before the one last asked for.
    fn line(&mut self, place: u64) -> usize {
        let place = usize::try_from(place).unwrap_or(usize::MAX).min(self.text.len());
        let between = self.text.as_bytes().get(self.lines.0..place).unwrap_or_default();
        let breaks = between.split(|&byte| byte == b'\n').count() - 1;
        self.lines = (self.lines.0.max(place), self.lines.1 + breaks);
        self.lines.1
    }

    /// A document type that only names a file is not followed; one that defines something is refused, because entities that
    /// hold each other grow without bound ("XML bomb").
    fn check_document_type(&self, text: &[u8], line: usize) -> Result<(), ImportError> {
        match text.contains(&b'[') || text.contains(&b'!') {
            false => Ok(()),
            true => Err(self.wrong(
                line,
                "the document type defines entities or elements of its own, as an XML bomb does",
                "hwloc writes no such thing: write the file anew with `lstopo --of xml`",
            )),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, line: usize) -> Result<(), ImportError> {
        self.elements += 1;
        let depth = self.open.len() + self.skipped;
        if self.elements > MOST_ELEMENTS || depth >= DEEPEST {
            let problem =
                format!("more than {MOST_ELEMENTS} elements, or more than {DEEPEST} inside each other");
            return Err(self.wrong(line, problem, "hwloc writes some dozens of elements for every core"));
        }
        if depth == 0 && (self.has_ended || self.root.is_some()) {
            return Err(self.wrong(line, "a second element stands behind the first one", DAMAGED));
        }
        let name = start.name();
        let kept = KEPT.iter().find(|kept| kept.as_bytes() == name.as_ref());
        match kept.filter(|_| self.skipped == 0) {
            Some(name) => {
                let attributes = self.attributes(start, line)?;
                self.open.push(Element { name, line, attributes, ..Element::default() });
            }
            None => self.skipped += 1,
        }
        Ok(())
    }

    fn attributes(
        &self,
        start: &BytesStart<'_>,
        line: usize,
    ) -> Result<Vec<(&'static str, Box<str>)>, ImportError> {
        let mut kept = Vec::new();
        for (count, attribute) in start.attributes().enumerate() {
            let attribute = attribute.map_err(|error| self.wrong(line, error.to_string(), DAMAGED))?;
            if count >= MOST_ATTRIBUTES {
                let problem = format!("more than {MOST_ATTRIBUTES} attributes of one element");
                return Err(self.wrong(line, problem, DAMAGED));
            }
            let Some(name) = ATTRIBUTES.iter().find(|name| name.as_bytes() == attribute.key.as_ref()) else {
                continue;
            };
            let value = std::str::from_utf8(&attribute.value).unwrap_or_default();
            let value = quick_xml::escape::unescape(value).map_err(|error| {
                self.wrong(line, format!("`{name}`: {error}"), "entities of one's own are not read")
            })?;
            kept.push((*name, Cow::into_owned(value).into_boxed_str()));
        }
        Ok(kept)
    }

    fn text(&mut self, text: &[u8], line: usize) -> Result<(), ImportError> {
        let blank = text.iter().all(u8::is_ascii_whitespace);
        match self.open.last_mut().filter(|_| self.skipped == 0) {
            // Only of these the text means something.
            Some(open) if matches!(open.name, "indexes" | "u64values") => {
                open.text.push_str(std::str::from_utf8(text).unwrap_or_default());
                Ok(())
            }
            None if !blank && self.skipped == 0 => {
                Err(self.wrong(line, "there is text outside of all elements", DAMAGED))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            self.has_ended |= self.skipped == 0 && self.open.is_empty();
            return;
        }
        let Some(ended) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(ended),
            None => self.root = Some(ended),
        }
    }
}

const DAMAGED: &str = "is the file damaged? `lstopo --of xml` writes it anew";

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(Path::new("x.xml"), text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn elements_that_are_not_known_are_left_out_with_what_is_in_them() {
        let text = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n <other><object type=\"PU\"/></other>\n <object type=\"Machine\" subtype=\"x\" os_index=\"&#48;\"/>\n</topology>\n";
        let root = parse(Path::new("x.xml"), text).unwrap();
        assert_eq!((root.name, root.line, root.children.len()), ("topology", 3, 1));
        let machine = &root.children[0];
        assert_eq!(
            (machine.line, machine.attribute("os_index"), machine.attribute("subtype")),
            (5, Some("0"), None)
        );
        assert_eq!(super::root(text).as_deref(), Some("topology"));
        for other in ["a,b\n<topology>", "", "{}", "<!-- never closed"] {
            assert_eq!(super::root(other), None);
        }
    }

    #[test]
    fn bombs_and_damage_are_refused_with_a_line() {
        let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n<!ENTITY a \"aaaa\">\n]>\n<topology/>";
        assert!(
            problem(bomb).contains("x.xml:2: ") || problem(bomb).contains("x.xml:1: "),
            "{}",
            problem(bomb)
        );
        assert!(problem(bomb).contains("XML bomb"));
        assert!(problem("<topology>\n<info name=\"&a;\"/></topology>").contains(":2: `name`"));
        assert!(problem("<topology>\n\n<object>").contains(":3: the file ends inside"));
        assert!(problem("<topology/>\n<topology/>").contains("second element"));
        assert!(problem("<topology></object>").contains("no XML"));
        assert!(problem("<html></html>").contains("nothing of hwloc"));
        assert!(problem(&"<object>".repeat(200)).contains("inside each other"));
        let many: String = (0..100).fold(String::new(), |many, i| many + &format!(" a{i}=\"\""));
        assert!(problem(&format!("<topology{many}/>")).contains("attributes"));
    }
}
