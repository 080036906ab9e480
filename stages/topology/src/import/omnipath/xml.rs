//! Reports in XML, as `opareport -x -o links` and `-o topology` write them, and topology files of `opaxlattopology` and `opagentopology`.
//!
//! Read are the elements `Link` of a `LinkSummary`: `Rate`, and of each of two elements `Port` `NodeGUID`, `PortNum`, `NodeType` and `NodeDesc`.

use std::path::Path;

use super::super::reader::malformed;
use super::super::xml::{Element, Xml};
use super::super::{ImportError, guid};
use super::{Link, Port, kind};

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
    let xml = Xml::parse(path, text)?;
    for element in xml.root().descendants() {
        match element.name() {
            WHOLE => {
                for element in element.all("Link") {
                    let rate = last(element, "Rate");
                    add(Link { line: element.line(), rate: &rate, ports: ports(path, element)? })?;
                }
            }
            name if name.ends_with(WHOLE) => {
                let problem = format!("`{name}` lists only some of the links");
                let help = "`opareport -x -o links` lists all of them";
                return Err(malformed(path, element.line(), problem, help));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The text of the last element of a name, which counts where there are several.
fn last(element: Element<'_>, name: &str) -> String {
    element.all(name).last().map(|element| element.text().trim().to_owned()).unwrap_or_default()
}

/// Both ports of a link.
fn ports(path: &Path, link: Element<'_>) -> Result<[Port; 2], ImportError> {
    let ports = link.all("Port").map(|element| port(path, element)).collect::<Result<Vec<_>, _>>()?;
    let ports = <[Port; 2]>::try_from(ports).map_err(|ports| {
        let problem = format!("this link has {} ports", ports.len());
        malformed(path, link.line(), problem, "it has to have two elements `Port`")
    })?;
    match ports.iter().all(|port| port.number > 0) {
        true => Ok(ports),
        false => Err(malformed(path, link.line(), "a port of this link has no number", "`PortNum` says it")),
    }
}

fn port(path: &Path, element: Element<'_>) -> Result<Port, ImportError> {
    let mut port = Port { description: last(element, "NodeDesc"), ..Port::default() };
    for element in element.children() {
        let text = element.text();
        let value = text.trim();
        let wrong = |what: &str| {
            malformed(path, element.line(), format!("`{value}` is no {what}"), "is the file damaged?")
        };
        match element.name() {
            "NodeGUID" => port.guid = Some(guid::prefixed(value).ok_or_else(|| wrong("GUID"))?),
            "PortNum" => port.number = value.parse().map_err(|_| wrong("number of a port"))?,
            "NodeType" => {
                let what = "type of a node: adapters have FI, switches SW";
                port.kind = Some(kind(value).ok_or_else(|| wrong(what))?);
            }
            _ => {}
        }
    }
    Ok(port)
}
