//! The form that `ibnetdiscover -p` prints: a line for every port, with or without a cable.
//!
//! As `dump_ports_report` of infiniband-diags prints it; the GUIDs are those of ports, of switches the one for all of them:
//!
//! ```text
//! CA    12  1 0x000000000010000a 4x SDR - SW     5  2 0x0000000000200001 ( 'H4' - 'S1' )
//! SW     5  6 0x0000000000200001 4x SDR                                    'S1'
//! ```

use std::path::Path;

use hopmap_text::{Line, Lines};

use super::super::reader::malformed;
use super::super::{ImportError, guid};
use super::blocks::shortened;
use super::listing::{Address, Listing};

const HELP: &str =
    "such as `CA 12 1 0x0002c90300000003 4x EDR - SW 5 2 0x0002c90300000001 ( 'host mlx5_0' - 'leaf 1' )`";

/// Whether a line is one of this form.
pub(super) fn is_row(line: &str) -> bool {
    Row::parse(line).is_some()
}

/// Whether a line is one of those that `-s` prints while it looks around.
pub(super) fn is_progress(line: &str) -> bool {
    line.starts_with("DR path slid ")
}

/// Reads a whole listing.
pub(super) fn read(path: &Path) -> Result<Listing, ImportError> {
    let mut lines = Lines::open(path, HELP)?;
    let mut listing = Listing::default();
    while let Some(Line { number, text: line, .. }) = lines.next()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("DR path ") {
            continue;
        }
        let Some(row) = Row::parse(line) else {
            let problem = format!("`{}` is no line of ibnetdiscover -p", shortened(line));
            return Err(malformed(path, number, problem, HELP));
        };
        row.add(&mut listing, (path, number))?;
    }
    Ok(listing)
}

/// A port as one line says it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Port {
    letter: char,
    lid: u16,
    number: u32,
    guid: u64,
}

#[derive(Debug, PartialEq)]
struct Row<'a> {
    port: Port,
    width: &'a str,
    speed: &'a str,
    peer: Option<Port>,
    /// One description in quotation marks, or those of both ends in parentheses.
    descriptions: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let port = Port::take(&mut rest)?;
        let width = word(&mut rest);
        let speed = word(&mut rest);
        rest = rest.trim();
        if rest.starts_with('\'') {
            return Some(Self { port, width, speed, peer: None, descriptions: rest });
        }
        rest = rest.strip_prefix('-')?;
        let peer = Some(Port::take(&mut rest)?);
        let descriptions = rest.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
        Some(Self { port, width, speed, peer, descriptions })
    }

    fn add(&self, listing: &mut Listing, place: (&Path, usize)) -> Result<(), ImportError> {
        let Some(peer) = self.peer else {
            listing.port_without_peer();
            return Ok(());
        };
        let known = (listing.description(self.port.guid), listing.description(peer.guid));
        let Some((own, other)) = both(self.descriptions, known) else {
            let problem = "the descriptions of both ends are missing";
            return Err(malformed(place.0, place.1, problem, HELP));
        };
        let node = self.port.node(listing, place, own)?;
        let other = peer.node(listing, place, other)?;
        listing.end(place.1, (node, self.port.number), (other, peer.number), self.width, self.speed);
        Ok(())
    }
}

impl Port {
    fn take(rest: &mut &str) -> Option<Self> {
        let letter = match word(rest) {
            "CA" => 'H',
            "SW" => 'S',
            "RT" => 'R',
            "??" => '?',
            _ => return None,
        };
        let (lid, number, id) = (word(rest), word(rest), word(rest));
        Some(Self { letter, lid: lid.parse().ok()?, number: number.parse().ok()?, guid: guid::prefixed(id)? })
    }

    fn node(
        self,
        listing: &mut Listing,
        place: (&Path, usize),
        description: &str,
    ) -> Result<usize, ImportError> {
        let node = listing.node(place, self.letter, self.guid, description)?;
        if self.letter == 'S' && self.lid != 0 {
            listing.switch_lids.insert(self.lid, node);
        }
        let Self { lid, number: port, guid, .. } = self;
        listing.address(Address { node, port, guid: Some(guid), lid, lmc: 0, line: place.1 });
        Ok(node)
    }
}

/// The next word, taken off.
fn word<'a>(rest: &mut &'a str) -> &'a str {
    let text = rest.trim_start();
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    word
}

/// The descriptions of both ends out of `'a' - 'b'`. Where these hold such a separator themselves, what is known of one end says
/// where it ends.
fn both<'a>(text: &'a str, known: (Option<&str>, Option<&str>)) -> Option<(&'a str, &'a str)> {
    const BETWEEN: &str = "' - '";
    let inside = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let split = |place: usize| (&inside[..place], &inside[place + BETWEEN.len()..]);
    let fits = |&(own, other): &(&str, &str)| known.0 == Some(own) || known.1 == Some(other);
    let splits = || inside.match_indices(BETWEEN).map(|(place, _)| split(place));
    splits().find(fits).or_else(|| splits().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_a_peer_are_read() {
        let row = Row::parse(
            "CA    12  1 0x000000000010000a 4x SDR - SW     5  2 0x0000000000200001 ( 'H4' - 'S, 1 (x)' )",
        )
        .unwrap();
        assert_eq!(row.port, Port { letter: 'H', lid: 12, number: 1, guid: 0x10_000a });
        assert_eq!(row.peer, Some(Port { letter: 'S', lid: 5, number: 2, guid: 0x20_0001 }));
        assert_eq!((row.width, row.speed, row.descriptions), ("4x", "SDR", "'H4' - 'S, 1 (x)'"));
        let row = Row::parse("SW   142 35 0x0008f10500108c9e 4x ???            'Voltaire 4036 # 4036-8C9E'")
            .unwrap();
        assert_eq!((row.peer, row.speed), (None, "???"));
        for wrong in [
            "",
            "SW 1 2 3 4x SDR 'x'",
            "CA 1 1 0x1 4x SDR - SW 5 2 0x2",
            "XX 1 1 0x1 4x SDR 'x'",
            "SW 70000 1 0x1 4x SDR 'x'",
        ] {
            assert_eq!(Row::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn descriptions_that_hold_the_separator_are_told_by_what_is_known() {
        assert_eq!(both("'a' - 'b'", (None, None)), Some(("a", "b")));
        assert_eq!(both("'a - b' - 'c'", (None, None)), Some(("a - b", "c")));
        let tricky = "'a' - 'b' - 'c'";
        assert_eq!(both(tricky, (Some("a' - 'b"), None)), Some(("a' - 'b", "c")));
        assert_eq!(both(tricky, (None, Some("b' - 'c"))), Some(("a", "b' - 'c")));
        assert_eq!(both("'a'", (None, None)), None);
    }
}
