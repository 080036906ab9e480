//! Output of `iblinkinfo`: one line per port with its link, below a line per node, or with everything in it (`-l`).
//!
//! In the format of `print_port` in infiniband-diags. Without `-l` a peer has no GUID, and is found by its LID. With
//! `--switches-only` adapters are peers only.

use std::collections::HashMap;

use hopmap_text::Foreign;

use super::cables::End;
use super::fabric::is_adapter;
use super::format::{Sample, malformed, note, unless_allowed};
use super::ibnetdiscover::listing::{Listing, behind_end};
use super::units::{lanes_bandwidth, prefixed_guid, word};
use super::{ImportError, ImportParams, Imported, Result};

pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| text.lines().any(|line| Row::parse(line).is_some()))
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let mut cut = None;
    let mut notes = Vec::new();
    let (text, behind) = Foreign::of_lines(text, &behind_end(text, is_own));
    notes.extend(behind.map(|behind| behind.to_string()));
    let mut listing = listing(&ports(&text, &mut cut)?, &mut cut, &mut notes)?;
    listing.join_ports(&mut notes);
    let complete = listing.check_complete();
    listing.notes(&mut notes);
    let (fabric, _) = std::mem::take(&mut listing.cables).fabric(&mut notes)?;
    unless_allowed(cut.map_or(complete, Err), params, &mut notes)?;
    fabric.imported(params, notes)
}

/// `cut` is what a complete listing would have.
fn listing(ports: &[Port<'_>], cut: &mut Option<ImportError>, notes: &mut Vec<String>) -> Result<Listing> {
    let mut lines_of: HashMap<u64, usize> = HashMap::new();
    ports.iter().for_each(|port| *lines_of.entry(port.guid).or_default() += 1);
    // With `-l` kinds are not listed. All ports of a switch have one GUID; each port of an adapter has its own.
    let guess = |guid: &u64| if lines_of.get(guid).is_some_and(|lines| *lines > 1) { 'S' } else { 'H' };
    let mut letters: HashMap<u64, char> = HashMap::new();
    let mut by_lid: HashMap<u32, Option<u64>> = HashMap::new();
    for Port { letter, guid, row, .. } in ports {
        letters.insert(*guid, letter.unwrap_or_else(|| guess(guid)));
        let known = by_lid.entry(row.own.lid).or_insert(Some(*guid));
        *known = known.filter(|known| known == guid);
    }
    let of_peer = |peer: &Side| {
        let known = peer.guid.or_else(|| by_lid.get(&peer.lid).copied().flatten());
        (known, known.unwrap_or(u64::from(peer.lid)))
    };
    // A switch that is not listed would have no device in its description, or be at several ports.
    let mut only_peers: HashMap<u64, bool> = HashMap::new();
    for (peer, name) in ports.iter().filter_map(|port| Some((port.row.peer.as_ref()?, port.row.name))) {
        let (_, number) = of_peer(peer);
        if !letters.contains_key(&number) {
            only_peers.entry(number).and_modify(|is_one| *is_one = false).or_insert(is_adapter(name));
        }
    }
    let are_switches =
        only_peers.values().all(|is_one| *is_one) && letters.values().all(|letter| *letter != 'H');
    if are_switches {
        let what = "switches alone are listed, as by `--switches-only` or where a listing is cut off; adapters at their ports";
        note(notes, what, only_peers.len());
    }
    let mut listing = Listing::default();
    for Port { line, guid, name, row, .. } in ports {
        let node = listing.node(*line, letters[guid], *guid, name)?;
        let Some(peer) = &row.peer else {
            listing.port_without_peer();
            continue;
        };
        let (known, number) = of_peer(peer);
        let Some(to) = known.or(are_switches.then_some(number)) else {
            let problem = format!("`{}`, the other end, is not listed with a LID of its own", row.name);
            let help = "list all nodes, while a subnet manager runs, or list GUIDs: `iblinkinfo -l`";
            cut.get_or_insert_with(|| malformed(*line, problem, help));
            continue;
        };
        let to = listing.node(*line, letters.get(&to).copied().unwrap_or('H'), to, row.name)?;
        let (port, peer_port, bandwidth_bytes_per_s) = (row.own.number, peer.number, row.bandwidth());
        let end = End { node, port, peer: to, peer_port, bandwidth_bytes_per_s, line: *line };
        listing.cables.ends.push(end);
        if are_switches && only_peers.contains_key(&number) {
            listing.cables.ends.push(end.reversed());
            if known.is_none() {
                listing.cables.nodes[to].address = format!("lid-{}", peer.lid);
            }
        }
    }
    Ok(listing)
}

/// A line of a port, and its node.
struct Port<'a> {
    line: usize,
    letter: Option<char>,
    guid: u64,
    name: &'a str,
    row: Row<'a>,
}

/// The last line may be cut off.
fn ports<'a>(text: &'a str, cut: &mut Option<ImportError>) -> Result<Vec<Port<'a>>> {
    let mut ports = Vec::new();
    let mut node = None;
    let last = text.trim_end().lines().count();
    for (text, line) in text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()) {
        if let Some(header) = header(text) {
            node = Some(header);
            continue;
        }
        let wrong = |problem| {
            let help = "lines are those of nodes, such as `CA: n01 mlx5_0:`, or of ports with `==(…)==>`";
            malformed(line, problem, help)
        };
        let Some(row) = Row::parse(text) else {
            if line == last && !ports.is_empty() {
                *cut = Some(wrong("this is not a whole line of iblinkinfo: the listing is cut off"));
                break;
            }
            return Err(wrong("this is not a line of iblinkinfo"));
        };
        let of_header = node.filter(|_| row.own_name.is_none());
        let guid = row.own.guid.or_else(|| of_header?.1);
        let guid = guid.ok_or_else(|| wrong("the node of this port is not known"))?;
        let name = row.own_name.or(of_header.map(|(.., name)| name)).unwrap_or("");
        ports.push(Port { line, letter: of_header.map(|(letter, ..)| letter), guid, name, row });
    }
    Ok(ports)
}

/// Whether a line may be the beginning of one of the listing.
fn is_own(line: &str) -> bool {
    let is_begun = |kind: &str| line.starts_with(kind) || kind.starts_with(line);
    line.starts_with(|c: char| c.is_ascii_digit())
        || ["CA: ", "Switch: ", "Router: "].into_iter().any(is_begun)
}

/// `Switch: 0x0c42a10300bb0001 leaf:` or `CA: n01 mlx5_0:`.
fn header(line: &str) -> Option<(char, Option<u64>, &str)> {
    let (kind, rest) = line.split_once(": ")?;
    let mut rest = rest.trim_end().strip_suffix(':')?.trim();
    let letter = ["CA", "Switch", "Router"].iter().position(|known| *known == kind)?;
    let guid = if kind == "Switch" { Some(prefixed_guid(word(&mut rest))?) } else { None };
    Some((['H', 'S', 'R'][letter], guid, rest.trim()))
}

/// One end of a link.
struct Side {
    guid: Option<u64>,
    lid: u32,
    number: u32,
}

/// The content of a line of a port.
struct Row<'a> {
    own: Side,
    own_name: Option<&'a str>,
    link: &'a str,
    peer: Option<Side>,
    name: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (own, rest) = line.split_once("==(")?;
        let (state, rest) = rest.split_once(")==>")?;
        let (own, own_name) = Side::parse(own)?;
        let (before, quoted) = rest.split_once('"')?;
        let name = quoted.rsplit_once('"')?.0.trim();
        let peer = Side::parse(before).map(|(side, _)| side);
        Some(Self { own, own_name, link: state, peer, name })
    }

    /// Bytes per second of a link such as `4X 53.125 Gbps Active/  LinkUp`.
    fn bandwidth(&self) -> Option<f64> {
        let mut rest = self.link;
        let (width, rate) = (word(&mut rest), word(&mut rest));
        let mut known = SIGNALS.split(", ").filter_map(|known| known.strip_prefix(rate)?.strip_prefix(' '));
        let speed = if self.link.contains("FDR10") { "FDR10" } else { known.next()? };
        lanes_bandwidth(width, speed)
    }
}

/// Speeds by the signalling rate of a lane. The lanes of EDR carry as much with the longer code of HDR.
const SIGNALS: &str = "2.5 SDR, 5 DDR, 5.0 DDR, 10 QDR, 10.0 QDR, 14.0625 FDR, 25.78125 EDR, 26.5625 EDR, 53.125 HDR, \
                       106.25 NDR, 212.5 XDR";

impl Side {
    /// `0x0c42a10300aa0001 "name" 11 1[  ]`, with or without the first two.
    fn parse(text: &str) -> Option<(Self, Option<&str>)> {
        let mut rest = text;
        let has_guid = rest.trim_start().starts_with("0x");
        let guid = if has_guid { Some(prefixed_guid(word(&mut rest))?) } else { None };
        let quoted = rest.trim_start().strip_prefix('"').and_then(|rest| rest.rsplit_once('"'));
        let (name, mut rest) = quoted.map_or((None, rest), |(name, rest)| (Some(name.trim()), rest));
        let lid = word(&mut rest).parse().ok()?;
        let number = rest.split_once('[')?.0.trim().parse().ok()?;
        Some((Self { guid, lid, number }, name))
    }
}
