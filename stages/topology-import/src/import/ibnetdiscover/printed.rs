//! Syntax of `ibnetdiscover` without options: one block per node, one line per port with a cable.
//!
//! In the format of `dump_topology` in infiniband-diags, with and without `-g`:
//!
//! ```text
//! switchguid=0x200000(200000)
//! Switch  8 "S-0000000000200000"   # "S0" base port 0 lid 4 lmc 0
//! [1]     "H-0000000000100000"[1](100001)    # "H1" lid 2 4xSDR
//!
//! caguid=0x100000
//! Ca      2 "H-0000000000100000"   # "H1"
//! [1](100001)    "S-0000000000200000"[1]    # lid 2 lmc 1 "S0" lid 4 4xSDR
//! ```

use std::path::Path;

use hopmap_text::{Foreign, Line, Lines};

use super::listing::{Address, Listing};
use crate::import::Result;
use crate::import::format::malformed;
use crate::import::units::{self, word};

const NODE: &str = "such as `Switch 36 \"S-0002c90300000001\" # \"name\" base port 0 lid 4 lmc 0`";
/// Voltaire gateways to Fibre Channel and Ethernet, which are listed as adapters (`VTR_DEVID_IB_FC_ROUTER`
/// and `VTR_DEVID_IB_IP_ROUTER` of infiniband-diags).
const GATEWAYS: [u64; 2] = [0x5a00, 0x5a01];
const PORT: &str = "such as `[1] \"H-0002c90300000002\"[1](2c90300000003) # \"host mlx5_0\" lid 5 4xEDR`";

/// Whether a line begins a block.
pub(super) fn is_header(line: &str) -> bool {
    Header::parse(line).is_some()
}

/// What a listing that ends within a line needs.
const CUT: &str = "run ibnetdiscover again; `allow_truncated = true` imports what is listed";

/// The lines of a listing; a last one without its end counts only if it is whole.
fn lines_of(path: &Path, allow_truncated: bool, is_whole: fn(&[u8]) -> bool) -> Result<Lines<'static>> {
    Ok(Lines::open(path, HELP)?.without_foreign().may_be_cut(allow_truncated, CUT).whole_if(is_whole))
}

/// Reads a complete listing.
pub(super) fn read(path: &Path, allow_truncated: bool) -> Result<Listing> {
    let is_whole = |line: &[u8]| {
        std::str::from_utf8(line).is_ok_and(|line| {
            Port::parse(line).is_some_and(|port| port.has_rate())
                || Header::parse(line).is_some()
                || line.contains("guid=")
                || is_other(line)
                || is_behind(line)
        })
    };
    let mut lines = lines_of(path, allow_truncated, is_whole)?;
    let mut listing = Listing::default();
    let mut current: Option<usize> = None;
    let (mut device, mut image) = (None, None);
    while let Some(Line { number, text: line, .. }) = lines.next()? {
        let line = line.trim();
        if listing.is_behind(number, line, is_behind) {
            continue;
        }
        no_more(&listing)?;
        if line.starts_with('[') {
            let Some(node) = current else {
                let problem = "this port belongs to no node";
                return Err(malformed(number, problem, "it must follow a line such as `Switch 36 \"S-…\"`"));
            };
            let Some(port) = Port::parse(line) else {
                let problem = format!("`{}` is not a port with its peer", shortened(line));
                return Err(malformed(number, problem, PORT));
            };
            port.add(&mut listing, number, node)?;
        } else if let Some(header) = Header::parse(line) {
            let node = header.node(&mut listing, number)?;
            if std::mem::take(&mut device).is_some_and(|device| GATEWAYS.contains(&device)) {
                listing.make_gateway(node);
            }
            listing.cables.nodes[node].image = image.take();
            current = Some(node);
        } else if let Some(id) = line.strip_prefix("devid=") {
            device = units::prefixed_guid(id);
        } else if let Some(id) = line.strip_prefix("sysimgguid=") {
            image = units::prefixed_guid(id).filter(|&guid| guid != 0);
        } else if !is_other(line) {
            let problem = format!("`{}` is not a line of ibnetdiscover", shortened(line));
            return Err(malformed(number, problem, format!("nodes are {NODE}, ports {PORT}")));
        }
    }
    Ok(listing)
}

const BEGINNINGS: [&str; 8] =
    ["#", "vendid=", "switchguid=", "caguid=", "rtguid=", "???guid=", "DR path ", "Hostname: "];
/// First words of other lines.
const FIRST_WORDS: [&str; 10] =
    ["Switch", "Ca", "CA", "Rt", "SW", "RT", "??", "???", "Chassis", "Non-Chassis"];

/// Whether a line cannot be one of the listing nor its beginning, such as `done` or `-----`. Behind the end it is skipped.
fn is_behind(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let is_begun = |own: &&str| own.starts_with(line) || line.starts_with(*own);
    let has_value = line.contains('=') && line.contains(char::is_alphanumeric);
    !has_value
        && !line.contains(['[', '"', '\'', '('])
        && !FIRST_WORDS.contains(&first)
        && !FIRST_WORDS.iter().any(|own| own.starts_with(line))
        && !BEGINNINGS.iter().chain(&["devid=", "sysimgguid="]).any(is_begun)
}

/// Lines behind the end so far, which are an error if the listing goes on.
fn no_more(listing: &Listing) -> Result<()> {
    let Some(Foreign { line, first, .. }) = &listing.behind else { return Ok(()) };
    let problem = format!("`{}` is not a line of ibnetdiscover", shortened(first));
    Err(malformed(*line, problem, format!("nodes are {NODE}, ports {PORT}")))
}

/// Lines without cables: vendor identifiers, comments, and output of `-g` and `-s`.
fn is_other(line: &str) -> bool {
    let is_chassis = || line.starts_with("Chassis ") || line == "Non-Chassis Nodes";
    line.is_empty() || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || is_chassis()
}

pub(super) fn shortened(line: &str) -> String {
    let mut text: String = line.chars().take(60).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}

/// The first line of a block.
struct Header<'a> {
    letter: char,
    guid: u64,
    description: &'a str,
    /// The text after the description.
    tail: &'a str,
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once([' ', '\t'])?;
        if !["Switch", "Ca", "CA", "Rt", "???"].contains(&word) {
            return None;
        }
        let (ports, rest) = rest.trim_start().split_once([' ', '\t'])?;
        ports.parse::<u32>().ok()?;
        let (letter, guid, rest) = name(rest.trim_start())?;
        let is_its = match word {
            "Switch" => letter == 'S',
            "Ca" | "CA" => letter == 'H',
            "Rt" => letter == 'R',
            _ => letter == '?',
        };
        let (description, tail) = comment(rest)?;
        is_its.then_some(Self { letter, guid, description, tail })
    }

    /// The node of the block.
    fn node(self, listing: &mut Listing, number: usize) -> Result<usize> {
        let node = listing.node(number, self.letter, self.guid, self.description)?;
        if let Some(lid) = lid_of(self.tail).filter(|&lid| lid != 0 && self.letter == 'S') {
            listing.switch_lids.insert(lid, node);
        }
        Ok(node)
    }
}

/// A port and its peer.
#[derive(Debug, PartialEq)]
struct Port<'a> {
    number: u32,
    guid: Option<u64>,
    /// LID and LMC, which are listed for adapters only.
    own_lid: Option<(u16, u8)>,
    peer_letter: char,
    peer_guid: u64,
    leads_to: u32,
    peer_port_guid: Option<u64>,
    peer_lid: Option<u16>,
    description: &'a str,
    width: &'a str,
    speed: &'a str,
}

impl<'a> Port<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (number, rest) = bracketed(line)?;
        let (guid, rest) = in_parentheses(rest);
        let (peer_letter, peer_guid, rest) = name(rest.trim_start())?;
        let (leads_to, rest) = bracketed(rest)?;
        let (peer_port_guid, rest) = in_parentheses(rest);
        let (before, description, tail) = match rest.trim_start().strip_prefix('#') {
            Some(rest) => quoted(rest)?,
            None => ("", "", ""),
        };
        let mut words = tail.split_whitespace().skip_while(|word| *word != "lid").skip(1);
        let peer_lid = words.next().and_then(|word| word.parse().ok());
        let rate = words.next().unwrap_or("");
        let (width, speed) = rate.find('x').map_or(("", rate), |place| rate.split_at(place + 1));
        let own_lid = lid_of(before).map(|lid| (lid, value_of(before, "lmc").unwrap_or(0)));
        Some(Self {
            number,
            guid,
            own_lid,
            peer_letter,
            peer_guid,
            leads_to,
            peer_port_guid,
            peer_lid,
            description,
            width,
            speed,
        })
    }

    /// Whether the rate, the last text of the line, is complete: a cut `4xHD` is none.
    fn has_rate(&self) -> bool {
        units::lanes_bandwidth(self.width, self.speed).is_some()
    }

    /// Adds the cable of a port.
    fn add(&self, listing: &mut Listing, line: usize, node: usize) -> Result<()> {
        let peer = listing.node(line, self.peer_letter, self.peer_guid, self.description)?;
        let (own, other) = ((node, self.number), (peer, self.leads_to));
        let address = |(node, port), guid, lid, lmc| Address { node, port, guid, lid, lmc, line };
        if let Some((lid, lmc)) = self.own_lid {
            listing.address(address(own, self.guid, lid, lmc));
        }
        if let Some(lid) = self.peer_lid {
            listing.address(address(other, self.peer_port_guid, lid, 0));
        }
        listing.end(line, own, other, self.width, self.speed);
        Ok(())
    }
}

/// `"S-0002c90300000001"` and the remaining text.
fn name(text: &str) -> Option<(char, u64, &str)> {
    let (name, rest) = text.strip_prefix('"')?.split_once('"')?;
    let (letter, guid) = name.split_once('-')?;
    let letter = ['S', 'H', 'R', '?'].into_iter().find(|known| letter.chars().eq([*known]))?;
    let guid = units::hex_guid(guid).filter(|_| guid.len() == 16)?;
    Some((letter, guid, rest))
}

/// `[7]` or `[7][ext 3]`, and the remaining text.
fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    let rest = match rest.strip_prefix("[ext ") {
        Some(outside) => outside.split_once(']')?.1,
        None => rest,
    };
    Some((number.parse().ok()?, rest))
}

/// `(2c90300000003)`, if present, and the remaining text.
fn in_parentheses(text: &str) -> (Option<u64>, &str) {
    let found = text.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match found.and_then(|(digits, rest)| Some((units::hex_guid(digits)?, rest))) {
        Some((guid, rest)) => (Some(guid), rest),
        None => (None, text),
    }
}

/// `# "description" tail`. Descriptions may contain quotation marks.
fn comment(text: &str) -> Option<(&str, &str)> {
    match text.trim_start().strip_prefix('#') {
        Some(rest) => quoted(rest).map(|(_, description, tail)| (description, tail)),
        None => text.trim().is_empty().then_some(("", "")),
    }
}

/// The text before the first, between the first and the last, and after the last quotation mark.
fn quoted(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('"')?;
    let (description, tail) = rest.rsplit_once('"')?;
    Some((before, description, tail))
}

fn lid_of(text: &str) -> Option<u16> {
    value_of(text, "lid")
}

/// The number after a keyword.
fn value_of<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let mut words = text.split_whitespace().skip_while(|word| *word != name);
    words.next()?;
    words.next()?.parse().ok()
}

const HELP: &str =
    "such as `CA 12 1 0x0002c90300000003 4x EDR - SW 5 2 0x0002c90300000001 ( 'host mlx5_0' - 'leaf 1' )`";

/// Whether a line has this syntax.
pub(super) fn is_row(line: &str) -> bool {
    Row::parse(line).is_some()
}

/// Whether a line is a progress message of `-s`.
pub(super) fn is_progress(line: &str) -> bool {
    line.starts_with("DR path slid ")
}

/// Reads a complete listing.
///
/// Syntax of `ibnetdiscover -p`: one line per port, with or without a cable.
///
/// In the format of `dump_ports_report` in infiniband-diags; GUIDs are port GUIDs, for a switch the common
/// one of its ports:
///
/// ```text
/// CA    12  1 0x000000000010000a 4x SDR - SW     5  2 0x0000000000200001 ( 'H4' - 'S1' )
/// SW     5  6 0x0000000000200001 4x SDR                                    'S1'
/// SW     5  7 0x0000000000200001 4x ???                                   S1
/// ```
pub(super) fn read_columns(path: &Path, allow_truncated: bool) -> Result<Listing> {
    let is_whole = |line: &[u8]| {
        let is_row = |line: &str| line.ends_with([')', '\'']) && Row::parse(line).is_some();
        std::str::from_utf8(line).is_ok_and(|line| is_row(line) || is_behind(line))
    };
    let mut lines = lines_of(path, allow_truncated, is_whole)?;
    let mut listing = Listing::default();
    while let Some(Line { number, text: line, .. }) = lines.next()? {
        let line = line.trim();
        let is_passed = line.starts_with('#') || line.starts_with("DR path ");
        if listing.is_behind(number, line, is_behind) || is_passed {
            continue;
        }
        no_more(&listing)?;
        let Some(row) = Row::parse(line) else {
            let problem = format!("`{}` is not a line of ibnetdiscover -p", shortened(line));
            return Err(malformed(number, problem, HELP));
        };
        row.add(&mut listing, number)?;
    }
    Ok(listing)
}

/// A port in one line.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowPort {
    letter: char,
    lid: u16,
    number: u32,
    guid: u64,
}

#[derive(Debug, PartialEq)]
struct Row<'a> {
    port: RowPort,
    width: &'a str,
    speed: &'a str,
    peer: Option<RowPort>,
    /// One quoted description, or those of both ends in parentheses.
    descriptions: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let port = RowPort::take(&mut rest)?;
        let width = word(&mut rest);
        let speed = word(&mut rest);
        rest = rest.trim();
        // Some versions print the name without quotes. A peer has a dash before it, and both names in quotes.
        if rest.starts_with('\'') || !(rest.is_empty() || rest.starts_with('-') || rest.contains('\'')) {
            return Some(Self { port, width, speed, peer: None, descriptions: rest });
        }
        rest = rest.strip_prefix('-')?;
        let peer = Some(RowPort::take(&mut rest)?);
        let descriptions = rest.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
        Some(Self { port, width, speed, peer, descriptions })
    }

    fn add(&self, listing: &mut Listing, line: usize) -> Result<()> {
        let Some(peer) = self.peer else {
            listing.port_without_peer();
            return Ok(());
        };
        let known = (listing.description(self.port.guid), listing.description(peer.guid));
        let Some((own, other)) = both(self.descriptions, known) else {
            let problem = "the descriptions of both ends are missing";
            return Err(malformed(line, problem, HELP));
        };
        let node = self.port.node(listing, line, own)?;
        let other = peer.node(listing, line, other)?;
        listing.end(line, (node, self.port.number), (other, peer.number), self.width, self.speed);
        Ok(())
    }
}

impl RowPort {
    fn take(rest: &mut &str) -> Option<Self> {
        let letter = match word(rest) {
            "CA" => 'H',
            "SW" => 'S',
            "RT" => 'R',
            "??" => '?',
            _ => return None,
        };
        let (lid, number, id) = (word(rest), word(rest), word(rest));
        Some(Self {
            letter,
            lid: lid.parse().ok()?,
            number: number.parse().ok()?,
            guid: units::prefixed_guid(id)?,
        })
    }

    fn node(self, listing: &mut Listing, line: usize, description: &str) -> Result<usize> {
        let node = listing.node(line, self.letter, self.guid, description)?;
        if self.letter == 'S' && self.lid != 0 {
            listing.switch_lids.insert(self.lid, node);
        }
        let Self { lid, number: port, guid, .. } = self;
        listing.address(Address { node, port, guid: Some(guid), lid, lmc: 0, line });
        Ok(node)
    }
}

/// The descriptions of both ends in `'a' - 'b'`. If they contain the separator, the known description of one
/// end determines the split.
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
    fn ports_of_switches_and_of_adapters_are_read() {
        let port = Port::parse(
            "[7][ext 2]\t\"S-00000000000000a1\"[8][ext 4]\t\t# \"a \"b\", c\" lid 5 4xFDR10 s=4 w=2",
        )
        .unwrap();
        assert_eq!((port.number, port.peer_letter, port.peer_guid, port.leads_to), (7, 'S', 0xa1, 8));
        assert_eq!(
            (port.description, port.peer_lid, port.width, port.speed),
            ("a \"b\", c", Some(5), "4x", "FDR10")
        );
        assert_eq!((port.own_lid, port.guid, port.peer_port_guid), (None, None, None));
        let port =
            Port::parse("[2](a2) \t\"S-00000000000000a1\"[1]\t\t# lid 12 lmc 3 \"S1\" lid 5 4x???").unwrap();
        assert_eq!((port.guid, port.own_lid, port.peer_lid), (Some(0xa2), Some((12, 3)), Some(5)));
        assert_eq!((port.width, port.speed), ("4x", "???"));
        let port = Port::parse("[2] \"H-00000000000000a1\"[1](a2) # \"n1 mlx5_0\" lid 9 2xHDR").unwrap();
        assert_eq!((port.peer_port_guid, port.description, port.width), (Some(0xa2), "n1 mlx5_0", "2x"));
        for wrong in [
            "[x] \"S-00000000000000a1\"[1]",
            "[1] \"S-a1\"[1]",
            "[1] \"T-00000000000000a1\"[1]",
            "[1]",
            "[1] \"S-00000000000000a1\"",
        ] {
            assert_eq!(Port::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_are_distinguished_from_other_lines() {
        assert!(is_header("Switch\t8 \"S-0000000000200001\"\t\t# \"S1\" base port 0 lid 5 lmc 0"));
        assert!(is_header("Ca\t2 \"H-0000000000200001\"\t\t# \"host 'x', \"y\" HCA-1\" (scp)"));
        assert!(is_header("Rt\t2 \"R-0000000000200001\""));
        for wrong in [
            "Switch 8 \"Switch1\"",
            "Hca\t2 \"H-0000000000200001\"",
            "Ca 2 \"S-0000000000200001\"",
            "Switch",
            "",
        ] {
            assert!(!is_header(wrong), "{wrong}");
        }
    }

    #[test]
    fn rows_with_and_without_a_peer_are_read() {
        let row = Row::parse(
            "CA    12  1 0x000000000010000a 4x SDR - SW     5  2 0x0000000000200001 ( 'H4' - 'S, 1 (x)' )",
        )
        .unwrap();
        assert_eq!(row.port, RowPort { letter: 'H', lid: 12, number: 1, guid: 0x10_000a });
        assert_eq!(row.peer, Some(RowPort { letter: 'S', lid: 5, number: 2, guid: 0x20_0001 }));
        assert_eq!((row.width, row.speed, row.descriptions), ("4x", "SDR", "'H4' - 'S, 1 (x)'"));
        let row = Row::parse("SW   142 35 0x0008f10500108c9e 4x ???            'Voltaire 4036 # 4036-8C9E'")
            .unwrap();
        assert_eq!((row.peer, row.speed), (None, "???"));
        let row =
            Row::parse("SW    12 36 0x0000000000200001 4x QDR       Quantum Mellanox Technologies").unwrap();
        assert_eq!((row.peer, row.width, row.speed), (None, "4x", "QDR"));
        for wrong in [
            "",
            "SW 1 2 0x1 4x SDR",
            "SW 1 2 0x1 4x SDR - x",
            "CA 1 1 0x1 4x SDR SW 5 2 0x2 ( 'a' - 'b' )",
            "SW 1 2 3 4x SDR 'x'",
            "CA 1 1 0x1 4x SDR - SW 5 2 0x2",
            "XX 1 1 0x1 4x SDR 'x'",
            "SW 70000 1 0x1 4x SDR 'x'",
        ] {
            assert_eq!(Row::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn descriptions_with_the_separator_are_split_by_known_ones() {
        assert_eq!(both("'a' - 'b'", (None, None)), Some(("a", "b")));
        assert_eq!(both("'a - b' - 'c'", (None, None)), Some(("a - b", "c")));
        let tricky = "'a' - 'b' - 'c'";
        assert_eq!(both(tricky, (Some("a' - 'b"), None)), Some(("a' - 'b", "c")));
        assert_eq!(both(tricky, (None, Some("b' - 'c"))), Some(("a", "b' - 'c")));
        assert_eq!(both("'a'", (None, None)), None);
    }
}
