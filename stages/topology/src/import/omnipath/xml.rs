//! Reports in XML, as `opareport -x -o links` and `-o topology` write them, and topology files of `opaxlattopology` and `opagentopology`.
//!
//! Read are the elements `Link` of a `LinkSummary`: `Rate`, and of each of two elements `Port` `NodeGUID`, `PortNum`, `NodeType` and `NodeDesc`.

use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use super::super::reader::malformed;
use super::super::{ImportError, guid};
use super::{Link, Port, kind};

/// Elements inside each other.
const DEEPEST: usize = 64;
const WHOLE: &str = "LinkSummary";

/// Whether this is a report in XML or a topology file.
pub(super) fn is_report(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let is_xml = text.starts_with("<?xml") || text.starts_with("<Report") || text.starts_with("<Topology");
    let has = |name: &str| text.contains(name);
    is_xml && (has("<Report ") || has("<Topology")) && (has("LinkSummary>") || has("<FIs>") || has("<Nodes>"))
}

pub(super) fn read(
    path: &Path,
    text: &str,
    add: &mut impl for<'a> FnMut(Link<'a>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut reader = Reader::from_str(text);
    let mut report = Report { path, names: Vec::new(), value: String::new(), link: None };
    let mut lines = Lines { text: text.as_bytes(), position: 0, line: 1 };
    loop {
        let event = reader.read_event();
        let line = lines.at(reader.buffer_position());
        let help = "is the file whole?";
        match event.map_err(|error| malformed(path, line, error.to_string(), help))? {
            Event::Start(start) => {
                report.start(line, &String::from_utf8_lossy(start.local_name().as_ref()))?;
            }
            Event::End(_) => report.end(line, add)?,
            Event::Text(words) => report.value.push_str(&String::from_utf8_lossy(&words)),
            Event::CData(words) => report.value.push_str(&String::from_utf8_lossy(&words)),
            Event::GeneralRef(name) => report.reference(line, &name)?,
            Event::DocType(_) => {
                let help = "no program of Omni-Path writes one: take it out";
                return Err(malformed(path, line, "the file defines a document type of its own", help));
            }
            Event::Eof if !report.names.is_empty() => {
                return Err(malformed(
                    path,
                    line,
                    format!("`{}` does not end", report.names.join("/")),
                    help,
                ));
            }
            Event::Eof => return Ok(()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// The line of a place in the text, for places that do not go back.
struct Lines<'a> {
    text: &'a [u8],
    position: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, position: u64) -> usize {
        let position = (position as usize).clamp(self.position, self.text.len());
        self.line += self.text[self.position..position].split(|&byte| byte == b'\n').count() - 1;
        self.position = position;
        self.line
    }
}

/// What is open while a report is read.
struct Report<'a> {
    path: &'a Path,
    names: Vec<String>,
    /// The text of the innermost element.
    value: String,
    link: Option<Open>,
}

/// A link that has begun.
struct Open {
    line: usize,
    rate: String,
    ports: Vec<Port>,
}

impl Report<'_> {
    fn start(&mut self, at: usize, name: &str) -> Result<(), ImportError> {
        if self.names.len() == DEEPEST {
            let help = "reports of Omni-Path have fewer than ten levels";
            return Err(malformed(
                self.path,
                at,
                format!("more than {DEEPEST} elements are inside each other"),
                help,
            ));
        }
        if name.ends_with(WHOLE) && name != WHOLE {
            let problem = format!("`{name}` lists only some of the links");
            return Err(malformed(self.path, at, problem, "`opareport -x -o links` lists all of them"));
        }
        let parent = self.names.last().map(String::as_str);
        match (parent, name, &mut self.link) {
            (Some(WHOLE), "Link", _) => {
                self.link = Some(Open { line: at, rate: String::new(), ports: Vec::new() });
            }
            (Some("Link"), "Port", Some(link)) if link.ports.len() == 2 => {
                return Err(malformed(self.path, at, "this link has a third port", "a link has two ports"));
            }
            (Some("Link"), "Port", Some(link)) => link.ports.push(Port::default()),
            _ => {}
        }
        self.value.clear();
        self.names.push(name.to_owned());
        Ok(())
    }

    fn end(
        &mut self,
        at: usize,
        add: &mut impl for<'a> FnMut(Link<'a>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let name = self.names.pop().unwrap_or_default();
        let value = std::mem::take(&mut self.value);
        let value = value.trim();
        let parent = self.names.last().map(String::as_str);
        if parent == Some(WHOLE) && name == "Link" {
            return match self.link.take() {
                Some(link) => add(link.whole(self.path)?),
                None => Ok(()),
            };
        }
        let Some(link) = &mut self.link else { return Ok(()) };
        let wrong = |what: &str| {
            Err(malformed(self.path, at, format!("`{value}` is no {what}"), "is the file damaged?"))
        };
        match (parent, name.as_str(), link.ports.last_mut()) {
            (Some("Link"), "Rate", _) => value.clone_into(&mut link.rate),
            (Some("Port"), "NodeGUID", Some(port)) => match guid::prefixed(value) {
                Some(guid) => port.guid = Some(guid),
                None => return wrong("GUID"),
            },
            (Some("Port"), "PortNum", Some(port)) => match value.parse() {
                Ok(number) => port.number = number,
                Err(_) => return wrong("number of a port"),
            },
            (Some("Port"), "NodeType", Some(port)) => match kind(value) {
                Some(kind) => port.kind = Some(kind),
                None => return wrong("type of a node: adapters have FI, switches SW"),
            },
            (Some("Port"), "NodeDesc", Some(port)) => value.clone_into(&mut port.description),
            _ => {}
        }
        Ok(())
    }

    /// `&amp;` and the like; the file cannot define entities.
    fn reference(&mut self, at: usize, name: &BytesRef) -> Result<(), ImportError> {
        let name_text = String::from_utf8_lossy(name).into_owned();
        let character = match name_text.as_str() {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => name.resolve_char_ref().ok().flatten(),
        };
        match character {
            Some(character) => self.value.push(character),
            None => {
                let problem = format!("`&{name_text};` is no character");
                return Err(malformed(self.path, at, problem, "only `&amp;`, `&lt;` and the like are"));
            }
        }
        Ok(())
    }
}

impl Open {
    fn whole(&self, path: &Path) -> Result<Link<'_>, ImportError> {
        let ports: Result<[Port; 2], _> = self.ports.clone().try_into();
        match ports {
            Ok(ports) if ports.iter().all(|port| port.number > 0) => {
                Ok(Link { line: self.line, rate: &self.rate, ports })
            }
            Ok(_) => {
                Err(malformed(path, self.line, "a port of this link has no number", "`PortNum` says it"))
            }
            Err(ports) => {
                let problem = format!("this link has {} ports", ports.len());
                Err(malformed(path, self.line, problem, "it has to have two elements `Port`"))
            }
        }
    }
}
