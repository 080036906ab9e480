//! XML as a tree of elements with line numbers. External entities are never fetched, and files must not
//! declare entities.

use hopmap_model::to_u32;
use hopmap_text::{FileError, Foreign};
use memchr::{memchr_iter, memmem};
use roxmltree::{Document, Node, ParsingOptions, TextPos};

use super::format::malformed;
use super::{ImportError, Result};

/// Largest nesting depth; readers are recursive.
const DEEPEST: usize = 64;
/// Largest number of elements and texts of a file.
const MOST_NODES: u32 = 1 << 24;
/// Largest number of attributes of an element: each is compared with the previous ones.
const MOST_ATTRIBUTES: usize = 64;

const DAMAGED: &str = "check that the file is complete and valid XML";

/// An XML file.
pub(super) struct Xml<'t> {
    document: Document<'t>,
    /// Offsets of all lines except the first.
    lines: Vec<usize>,
}

impl<'t> Xml<'t> {
    /// Parses a text.
    pub(super) fn parse(text: &'t str) -> Result<Self, FileError> {
        let text = text.trim_start_matches('\u{feff}');
        let text = &text[..end(text)];
        let lines: Vec<usize> = memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1).collect();
        if let Some((place, problem)) = bomb(text) {
            let help = "remove it; topology files do not need it";
            let line = lines.partition_point(|&begin| begin <= place) + 1;
            return Err(FileError::at(line, problem, help));
        }
        let options =
            ParsingOptions { allow_dtd: true, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| {
            let message = error.to_string();
            // An unclosed element has no position: the text ends in its last line.
            let place = match error {
                roxmltree::Error::UnclosedRootNode => TextPos::new(to_u32(text.lines().count()), 1),
                error => error.pos(),
            };
            // The message ends with the position, too.
            let message = message.rsplit_once(" at ").map_or(&*message, |(message, _)| message);
            let error = FileError::at(place.row as usize, message, DAMAGED);
            FileError { column: Some(place.col as usize), ..error }
        })?;
        let xml = Self { document, lines };
        match xml.too_deep() {
            None => Ok(xml),
            Some(line) => {
                let problem = format!("elements are nested more than {DEEPEST} deep");
                Err(FileError::at(line, problem, "check whether the file is damaged"))
            }
        }
    }

    /// The outermost element.
    pub(super) fn root(&self) -> Element<'_> {
        Element { node: self.document.root_element(), lines: &self.lines }
    }

    fn too_deep(&self) -> Option<usize> {
        let mut open: Vec<Node<'_, '_>> = Vec::new();
        for node in self.document.root_element().descendants().filter(Node::is_element) {
            while open.last().is_some_and(|last| Some(*last) != node.parent_element()) {
                open.pop();
            }
            open.push(node);
            if open.len() > DEEPEST {
                return Some(Element { node, lines: &self.lines }.line());
            }
        }
        None
    }
}

/// An element of a file.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    node: Node<'a, 'a>,
    lines: &'a [usize],
}

impl<'a> Element<'a> {
    /// The name without its prefix.
    pub(super) fn name(self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Where it begins in the file, which no other element has.
    pub(super) fn place(self) -> usize {
        self.node.range().start
    }

    /// The line where it begins.
    pub(super) fn line(self) -> usize {
        let begin = self.node.range().start;
        self.lines.partition_point(|&line| line <= begin) + 1
    }

    /// The value of an attribute.
    pub(super) fn attribute(self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// The value of an attribute, if present and not empty.
    pub(super) fn get(self, name: &str) -> Option<&'a str> {
        self.attribute(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// An error at its line.
    pub(super) fn wrong(self, problem: impl Into<String>, help: impl Into<String>) -> ImportError {
        malformed(self.line(), problem, help)
    }

    /// The value of a required attribute.
    pub(super) fn need(self, name: &str) -> Result<&'a str> {
        self.get(name).ok_or_else(|| {
            let problem = format!("`<{}>` has no `{name}`", self.name());
            self.wrong(problem, format!("add `{name}=\"…\"`"))
        })
    }

    /// The child elements.
    pub(super) fn children(self) -> impl Iterator<Item = Self> {
        let Self { node, lines } = self;
        node.children().filter(Node::is_element).map(move |node| Self { node, lines })
    }

    /// The child elements with a name.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = Self> {
        self.children().filter(move |child| child.name() == name)
    }

    /// The element and all its descendants in file order.
    pub(super) fn descendants(self) -> impl Iterator<Item = Self> {
        let Self { node, lines } = self;
        node.descendants().filter(Node::is_element).map(move |node| Self { node, lines })
    }

    /// The text inside it.
    pub(super) fn text(self) -> String {
        self.node.children().filter(Node::is_text).filter_map(|node| node.text()).collect()
    }
}

/// Name of the first element, if the text is the beginning of XML.
pub(super) fn first_element(head: &str) -> Option<&str> {
    let mut rest = head.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with("<?") || rest.starts_with("<!") {
        let holds_declarations = || rest.split('>').next().is_some_and(|first| first.contains('['));
        let end = match rest.starts_with("<!--") {
            true => "-->",
            false if holds_declarations() => "]>",
            false => ">",
        };
        rest = rest.split_once(end)?.1.trim_start();
    }
    let rest = rest.strip_prefix('<')?;
    let name = &rest[..rest.find(|letter: char| letter.is_whitespace() || "/>".contains(letter))?];
    Some(name).filter(|name| !name.is_empty())
}

/// The lines behind the end of the first element, unless one of them may be XML. The first may be the rest of its last line.
pub(super) fn others(text: &str) -> Option<Foreign> {
    let (xml, behind) = text.split_at(end(text));
    let mut lines = (xml.lines().count()..).zip(behind.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next()?;
    Some(Foreign { count: 1 + lines.count(), line, first: first.trim().to_owned(), file: None })
}

/// Where the first element ends, if what is behind it is not XML, or else the text.
fn end(text: &str) -> usize {
    let end = first_element(text).and_then(|name| {
        let end = text.rfind(&format!("</{name}"))?;
        Some(end + text[end..].find('>')? + 1)
    });
    end.filter(|end| !text[*end..].lines().any(|line| line.trim_start().starts_with('<')))
        .unwrap_or(text.len())
}

/// Constructs that would take unbounded time, and their position: entity declarations, which may be nested
/// ("XML bomb"), and elements with very many attributes.
fn bomb(text: &str) -> Option<(usize, String)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(begin) = memchr::memchr(b'<', &bytes[at..]).map(|begin| at + begin) {
        let rest = &bytes[begin..];
        let behind =
            |end: &str| memmem::find(rest, end.as_bytes()).map_or(rest.len(), |found| found + end.len());
        let length = if rest.starts_with(b"<!--") {
            behind("-->")
        } else if rest.starts_with(b"<![CDATA[") {
            behind("]]>")
        } else if rest.starts_with(b"<!") {
            let length = behind(">");
            if rest[..length].contains(&b'[') {
                let problem = "the document type declares entities or elements, as an XML bomb does";
                return Some((begin, problem.to_owned()));
            }
            length
        } else {
            let (length, attributes) = tag(rest);
            if attributes > MOST_ATTRIBUTES {
                return Some((begin, format!("more than {MOST_ATTRIBUTES} attributes of one element")));
            }
            length
        };
        at = begin + length;
    }
    None
}

/// The length of a tag, and the number of its attributes.
fn tag(bytes: &[u8]) -> (usize, usize) {
    let (mut quote, mut attributes) = (None, 0);
    for (index, &byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => attributes += 1,
            (None, b'>') => return (index + 1, attributes),
            _ => {}
        }
    }
    (bytes.len(), attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let error = Xml::parse(text).map(|_| ()).unwrap_err();
        error.in_file("x.xml".as_ref()).to_string()
    }

    #[test]
    fn elements_have_lines() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<!-- don't -->\n<topology version=\"2.0\">\n <a/>\n \
                    <p:object type=\"Machine\"\n os_index=\"&#48;\" name=' '>x<!-- -->&lt;<![CDATA[&]]></p:object>\n</topology>\n";
        let text = text.replace("<topology v", "<topology xmlns:p=\"p\" v");
        let xml = Xml::parse(&text).unwrap();
        let root = xml.root();
        assert_eq!((root.name(), root.line(), root.children().count()), ("topology", 4, 2));
        let machine = root.all("object").next().unwrap();
        assert_eq!(
            (machine.line(), machine.attribute("os_index"), machine.get("name")),
            (6, Some("0"), None)
        );
        assert_eq!((machine.text().as_str(), root.descendants().count()), ("x<&", 3));
        let error = machine.need("name").unwrap_err().in_file("x.xml".as_ref()).to_string();
        assert_eq!(error, "x.xml:6: `<object>` has no `name`");
        assert_eq!(first_element(&text), Some("topology"));
        let said = |text: &str| others(text).map(|foreign| foreign.to_string());
        let of = |count, line, first| {
            Some(format!("lines of other programs, skipped: {count}, the first in line {line}: `{first}`"))
        };
        assert_eq!(said(&format!("{text}\n$\nexit >\n")), of(2, 10, "$"));
        assert_eq!(said(&format!("{}exit\n", text.trim_end())), of(1, 8, "exit"));
        for kept in [format!("{text}<!-- x\n-->\n"), text.replace("</topology>", ""), "a\n".to_owned()] {
            assert_eq!(others(&kept), None);
        }
        for other in ["a,b\n<topology>", "", "{}", "<!-- never closed", "<topology"] {
            assert_eq!(first_element(other), None, "{other}");
        }
    }

    #[test]
    fn bombs_and_damage_are_rejected_with_a_line() {
        let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n<!ENTITY a \"aaaa\">\n]>\n<topology/>";
        assert!(problem(bomb).starts_with("x.xml:2: the document type declares"), "{}", problem(bomb));
        for (text, place) in [
            ("<topology>\n<info name=\"&a;\"/></topology>", "x.xml:2:"),
            ("<topology>\n\n<object>", "x.xml:3:"),
            ("<topology/>\n<topology/>", "x.xml:2:"),
            ("<topology></object>", "x.xml:1:"),
            ("", "x.xml:1:"),
        ] {
            assert!(problem(text).starts_with(place), "{}", problem(text));
        }
        assert!(problem(&format!("{}{}", "<a>".repeat(65), "</a>".repeat(65))).contains("nested more than"));
        let many: String = (0..65).fold(String::new(), |many, i| many + &format!(" a{i}=\">\""));
        assert!(problem(&format!("<topology{many}/>")).contains("attributes"));
    }
}
