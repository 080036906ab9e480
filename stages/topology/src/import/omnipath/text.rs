//! `opareport -o links` as text.
//!
//! As `ShowLinksReport` of `FastFabric` prints it: a rate with one port, `<->` with the other, and details between them:
//!
//! ```text
//! Link Summary
//! 1 Links in Fabric:
//! Rate NodeGUID          Port Type Name
//! 100g 0x0011750101670001   1 FI   node1 hfi1_0
//! <->  0x0011750102000001   7 SW   leaf 1
//! ```

use std::path::Path;

use super::super::reader::malformed;
use super::super::{ImportError, guid};
use super::{Link, Port, kind};

const TITLE: &str = "Link Summary";

/// Whether a report of links begins here.
pub(super) fn is_report(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| line.ends_with(TITLE)) && lines.any(|line| line.contains("Links in Fabric"))
}

pub(super) fn read<'a>(
    path: &Path,
    text: &'a str,
    add: &mut impl FnMut(Link<'a>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut first: Option<(&str, Port, usize)> = None;
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim();
        if trimmed.ends_with(TITLE) && trimmed != TITLE {
            let problem = format!("`{trimmed}` lists only some of the links");
            return Err(malformed(path, number, problem, "`opareport -o links` lists all of them"));
        }
        let Some((rate, port)) = row(trimmed) else { continue };
        match (rate, first.take()) {
            ("<->", Some((rate, other, line))) => add(Link { line, rate, ports: [other, port] })?,
            ("<->", None) => {
                let help = "the line before has the rate and the other port";
                return Err(malformed(path, number, "the first port of this link is missing", help));
            }
            (_, Some((_, _, line))) => return Err(lonely(path, line)),
            (rate, None) => first = Some((rate, port, number)),
        }
    }
    match first {
        Some((_, _, line)) => Err(lonely(path, line)),
        None => Ok(()),
    }
}

fn lonely(path: &Path, line: usize) -> ImportError {
    malformed(path, line, "the second port of this link is missing", "a line that begins with `<->` has it")
}

/// A port, with the rate or `<->` before it. All else are titles and details of cables.
fn row(line: &str) -> Option<(&str, Port)> {
    let mut rest = line;
    let (rate, id, number, node_type) = (word(&mut rest), word(&mut rest), word(&mut rest), word(&mut rest));
    let guid = guid::prefixed(id).filter(|_| id.len() == 18);
    let port = Port {
        guid: Some(guid?),
        number: number.parse().ok()?,
        kind: Some(kind(node_type)?),
        description: rest.trim().to_owned(),
    };
    Some((rate, port))
}

/// The next word, taken off.
fn word<'a>(rest: &mut &'a str) -> &'a str {
    let text = rest.trim_start();
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    word
}
