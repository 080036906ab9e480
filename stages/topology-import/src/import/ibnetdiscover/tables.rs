//! Linear forwarding tables in the output of `ibroute`, `dump_fts`, `dump_lfts.sh` and `opensm`
//! (`opensm-lfts.dump`).
//!
//! ```text
//! Unicast lids [0x0-0x91] of switch Lid 142 guid 0x0008f10500108c9e (leaf 1):
//!   Lid  Out   Destination
//!        Port     Info
//! 0x0001 015 : (Channel Adapter portguid 0x0002c9030002da23: 'host mlx5_0')
//! 0x0002 015 : (path #2 out of 2: portguid 0x0002c9030002da23)
//! 1 valid lids dumped
//! ```

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use hopmap_model::{Forward, NodeKind, to_u32};
use hopmap_text::{Line, Lines, is_foreign};

use super::super::fabric::Fabric;
use super::super::{ImportError, Result};
use super::listing::{Address, Listing};
use super::printed::shortened;
use crate::import::format::{malformed, note};
use crate::import::units;

/// Start of a table.
pub(super) const BEGINNING: &str = "Unicast lids [";
/// Largest number of ports of a switch.
const PORTS: usize = 256;
const LIDS: usize = 1 << 16;
const NONE: u32 = u32::MAX;
/// An additional LID of a port (LMC).
const FURTHER: u32 = u32::MAX - 1;
/// A LID of a switch.
const SWITCH: u32 = u32::MAX - 2;

/// Reads tables into a fabric, which was created from `listing`.
pub(super) fn read(
    files: &[(String, PathBuf)],
    listing: &Listing,
    fabric: &mut Fabric,
    notes: &mut Vec<String>,
) -> Result<()> {
    let targets = Targets::new(listing, fabric)?;
    let mut tables = Tables {
        listing,
        targets,
        ports: Ports::new(fabric),
        known: vec![Known { table: 0, link: NONE, line: 0 }; fabric.links.len()],
        blocks: HashMap::new(),
        count: 0,
        entries: Vec::new(),
        lost: Lost::default(),
    };
    for (_, file) in files {
        tables.file(file, fabric).map_err(|error| error.in_file(file))?;
    }
    tables.lost.notes(notes);
    let is_switch = |node: &usize| fabric.nodes[*node].kind == NodeKind::Switch;
    let switches = (0..fabric.nodes.len()).filter(is_switch).count();
    if tables.blocks.len() < switches {
        notes.push(format!("switches without a table: {} of {switches}", switches - tables.blocks.len()));
    }
    fabric.forwarding = tables.entries;
    Ok(())
}

/// The last link for each LID or port.
struct Targets {
    by_lid: Vec<u32>,
    guids: Vec<u64>,
    by_guid: HashMap<u64, u32>,
}

impl Targets {
    fn new(listing: &Listing, fabric: &Fabric) -> Result<Self> {
        let is_switch = |node: usize| fabric.nodes[node].kind == NodeKind::Switch;
        let mut lasts = HashMap::new();
        for (index, link) in (0..).zip(&fabric.links).filter(|(_, link)| is_switch(link.source)) {
            lasts.insert((link.destination, link.destination_port), index);
        }
        let mut targets = Self { by_lid: vec![NONE; LIDS], guids: vec![0; LIDS], by_guid: HashMap::new() };
        listing.switch_lids.keys().for_each(|&lid| targets.by_lid[usize::from(lid)] = SWITCH);
        let mut lines: HashMap<u16, &Address> = HashMap::new();
        for address in &listing.addresses {
            let Some(&last) = lasts.get(&(address.node, Some(address.port))) else { continue };
            if let Some(guid) = address.guid {
                targets.by_guid.insert(guid, last);
                targets.guids[usize::from(address.lid)] = guid;
            }
            let place = &mut targets.by_lid[usize::from(address.lid)];
            if *place != NONE && *place != last {
                return Err(taken(address, lines.get(&address.lid).copied(), fabric));
            }
            *place = last;
            lines.entry(address.lid).or_insert(address);
        }
        for address in &listing.addresses {
            let further = (1..1usize << address.lmc.min(7)).map(|more| usize::from(address.lid) + more);
            for lid in further.take_while(|&lid| lid < LIDS) {
                if targets.by_lid[lid] == NONE {
                    targets.by_lid[lid] = FURTHER;
                }
            }
        }
        Ok(targets)
    }

    /// The last link of an entry: by LID, unless another port had that LID when the table was written.
    fn of(&self, lid: u16, portguid: Option<u64>, counts: &mut Lost) -> u32 {
        let last = self.by_lid[usize::from(lid)];
        match portguid {
            Some(guid) if guid != self.guids[usize::from(lid)] => match self.by_guid.get(&guid) {
                Some(&other) => {
                    counts.moved += u64::from(other != last);
                    other
                }
                // An unlisted GUID; ports of unknown GUID are found by LID.
                None if self.guids[usize::from(lid)] == 0 => last,
                None => NONE,
            },
            _ => last,
        }
    }
}

fn taken(address: &Address, other: Option<&Address>, fabric: &Fabric) -> ImportError {
    let named = |address: &Address| {
        let node = &fabric.nodes[address.node];
        format!("port {} of `{}` ({})", address.port, node.description.trim(), node.address)
    };
    let other = other
        .map_or_else(|| "a switch".to_owned(), |other| format!("{} by line {}", named(other), other.line));
    malformed(
        address.line,
        format!("LID {} belongs to {} and to {other}", address.lid, named(address)),
        "LIDs changed during the dump; repeat it",
    )
}

/// The outgoing links of the ports of all switches.
struct Ports {
    links: HashMap<usize, Box<[u32; PORTS]>>,
}

impl Ports {
    fn new(fabric: &Fabric) -> Self {
        let mut links: HashMap<usize, Box<[u32; PORTS]>> = HashMap::new();
        for (index, link) in (0..).zip(&fabric.links) {
            if fabric.nodes[link.source].kind == NodeKind::Switch
                && let Some(port) = link.source_port.filter(|&port| (port as usize) < PORTS)
            {
                links.entry(link.source).or_insert_with(|| Box::new([NONE; PORTS]))[port as usize] = index;
            }
        }
        Self { links }
    }
}

/// The entry of the current table for a last link.
#[derive(Clone, Copy)]
struct Known {
    table: u32,
    link: u32,
    line: u32,
}

/// The position of the first table of a switch, and its entries.
struct Block {
    file: PathBuf,
    line: usize,
    entries: Range<usize>,
}

struct Tables<'a> {
    listing: &'a Listing,
    targets: Targets,
    ports: Ports,
    /// By last link.
    known: Vec<Known>,
    blocks: HashMap<usize, Block>,
    count: u32,
    entries: Vec<Forward>,
    lost: Lost,
}

/// The table being read.
#[derive(Clone, Copy)]
struct Current {
    switch: usize,
    /// Whether the switch had an earlier table.
    again: bool,
}

impl Tables<'_> {
    fn file(&mut self, path: &Path, fabric: &Fabric) -> Result<()> {
        let mut lines = Lines::open(path, "")?;
        let mut current: Option<Current> = None;
        while let Some(Line { number, text: line, .. }) = lines.next()? {
            if let Some((lid, port, info)) = entry(line) {
                if let Some(current) = current {
                    self.entry(number, current, (lid, port, info))?;
                }
            } else if line.starts_with(BEGINNING) {
                self.close(current);
                current = self.header((path, number), line, fabric)?;
            } else if line.starts_with("Multicast mlids [") {
                self.close(current.take());
            } else if line.contains("failed") || line.contains("iberror") || line.contains("ibwarn") {
                self.lost.failed.insert(path.to_owned());
            } else if !is_other(line) && !is_foreign(line) {
                let problem = format!("`{}` is not a line of a forwarding table", shortened(line));
                let help = "entries look like `0x0001 015 : (Channel Adapter portguid 0x…: 'host mlx5_0')`";
                return Err(malformed(number, problem, help));
            }
        }
        self.close(current);
        Ok(())
    }

    fn header(
        &mut self,
        (path, line): (&Path, usize),
        text: &str,
        fabric: &Fabric,
    ) -> Result<Option<Current>> {
        let Some((lid, guid)) = switch_of(text) else {
            let help =
                "such as `Unicast lids [0x0-0x91] of switch Lid 142 guid 0x0008f10500108c9e (leaf 1):`";
            return Err(malformed(line, "this line does not identify the switch of the table", help));
        };
        let by_lid = || self.listing.switch_lids.get(&lid?).copied();
        let switch = self.listing.find(guid).or_else(by_lid);
        let Some(switch) = switch.filter(|&switch| fabric.nodes[switch].kind == NodeKind::Switch) else {
            self.lost.strangers += 1;
            return Ok(None);
        };
        self.count += 1;
        let again = match self.blocks.get(&switch) {
            Some(block) => {
                for entry in &self.entries[block.entries.clone()] {
                    self.known[entry.last as usize] = Known { table: self.count, link: entry.link, line: 0 };
                }
                true
            }
            None => {
                let entries = self.entries.len()..self.entries.len();
                self.blocks.insert(switch, Block { file: path.to_owned(), line, entries });
                false
            }
        };
        Ok(Some(Current { switch, again }))
    }

    /// Ends a table.
    fn close(&mut self, current: Option<Current>) {
        if let Some(block) =
            current.filter(|current| !current.again).and_then(|own| self.blocks.get_mut(&own.switch))
        {
            block.entries.end = self.entries.len();
        }
    }

    fn entry(&mut self, line: usize, current: Current, (lid, port, info): (u16, usize, &str)) -> Result<()> {
        let info = Info::of(info);
        match info.kind {
            Kind::Switch | Kind::Illegal => return Ok(()),
            Kind::Further => {
                self.lost.further += 1;
                return Ok(());
            }
            Kind::Adapter | Kind::Unknown => {}
        }
        let last = self.targets.of(lid, info.portguid, &mut self.lost);
        match last {
            SWITCH => return Ok(()),
            FURTHER => self.lost.further += 1,
            NONE => self.lost.unknown += 1,
            _ => return self.forward(line, current, lid, port, last),
        }
        Ok(())
    }

    fn forward(&mut self, number: usize, current: Current, lid: u16, port: usize, last: u32) -> Result<()> {
        let links = self.ports.links.get(&current.switch);
        let link = links.and_then(|links| links.get(port)).copied().unwrap_or(NONE);
        if link == NONE {
            self.lost.nowhere += 1;
            return Ok(());
        }
        let known = &mut self.known[last as usize];
        if known.table == self.count {
            if known.link == link {
                return Ok(());
            }
            let before = match (self.blocks.get(&current.switch), known.line) {
                (Some(block), 0) => format!("the table at {}:{}", block.file.display(), block.line),
                (_, before) => format!("line {before}"),
            };
            let problem = format!("LID {lid} is forwarded to port {port}, but to another port by {before}");
            return Err(malformed(number, problem, "a switch has one table; remove the outdated one"));
        }
        if current.again {
            // The first table of this switch had no such entry.
            self.lost.later += 1;
            return Ok(());
        }
        *known = Known { table: self.count, link, line: to_u32(number) };
        self.entries.push(Forward { node: to_u32(current.switch), last, link });
        Ok(())
    }
}

/// The switch in a header: its LID, if present, and its GUID.
fn switch_of(line: &str) -> Option<(Option<u16>, u64)> {
    let (before, rest) = line.split_once(" guid 0x")?;
    let guid = units::hex_guid(rest.get(..16)?)?;
    let lid = before.split_once(" switch Lid ").and_then(|(_, lid)| lid.trim().parse().ok());
    Some((lid, guid))
}

/// LID, port and remaining text of `0x0001 015 : (…)`.
fn entry(line: &str) -> Option<(u16, usize, &str)> {
    let rest = line.trim_start().strip_prefix("0x")?;
    let (lid, rest) = rest.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (port, info) = rest.split_at(end);
    Some((u16::from_str_radix(lid, 16).ok()?, port.parse().ok()?, info))
}

#[derive(Debug, PartialEq)]
enum Kind {
    Adapter,
    Switch,
    /// An additional LID of a port (LMC).
    Further,
    /// The table drops it.
    Illegal,
    /// Not in the table.
    Unknown,
}

/// The destination of an entry.
#[derive(Debug, PartialEq)]
struct Info {
    kind: Kind,
    portguid: Option<u64>,
}

impl Info {
    fn of(text: &str) -> Self {
        let inside = text.split_once('(').map_or("", |(_, inside)| inside);
        let kind = match inside {
            _ if inside.starts_with("Channel Adapter ") => Kind::Adapter,
            _ if inside.starts_with("Switch ") || inside.starts_with("Router ") => Kind::Switch,
            _ if inside.starts_with("path #") => Kind::Further,
            _ if inside.starts_with("illegal port") => Kind::Illegal,
            _ => Kind::Unknown,
        };
        let digits = inside.strip_prefix("Channel Adapter portguid 0x").and_then(|rest| rest.get(..16));
        Self { kind, portguid: digits.and_then(units::hex_guid) }
    }
}

/// Column headings, totals and similar lines.
fn is_other(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with(['#', '*'])
        || line.starts_with("Lid ")
        || line.starts_with("Port ")
        || line.starts_with("Switch top is ")
        || line.ends_with("lids dumped")
}

/// Entries without a counterpart in the machine.
#[derive(Default)]
struct Lost {
    failed: BTreeSet<PathBuf>,
    strangers: u64,
    further: u64,
    unknown: u64,
    nowhere: u64,
    moved: u64,
    later: u64,
}

impl Lost {
    fn notes(&self, notes: &mut Vec<String>) {
        for (count, what) in [
            (self.failed.len() as u64, "table files with error messages"),
            (self.strangers, "tables of unlisted switches, ignored"),
            (
                self.further,
                "entries for additional LIDs of a port (LMC), ignored: messages use the first one",
            ),
            (self.unknown, "entries for LIDs of unlisted adapters, ignored"),
            (self.nowhere, "entries for ports without a cable, ignored"),
            (self.moved, "entries whose LID now belongs to another adapter, assigned by GUID"),
            (self.later, "entries only in a second table of a switch, ignored"),
        ] {
            note(notes, what, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_headers_are_read() {
        assert_eq!(entry("0x0001 015 : (x)"), Some((1, 15, " : (x)")));
        assert_eq!(entry("0xbfff 255 "), Some((0xbfff, 255, " ")));
        for wrong in
            ["", "0x", "0x1", "0x10000 1", "0xg 1", "  Lid  Out   Destination", "12 valid lids dumped "]
        {
            assert_eq!(entry(wrong), None, "{wrong}");
        }
        let header =
            "Unicast lids [0x0-0xd] of switch DR path slid 0; dlid 0; 0,1,7 guid 0x0000000000200001 (S (1)):";
        assert_eq!(switch_of(header), Some((None, 0x20_0001)));
        let header = "Unicast lids [0-34] of switch Lid 5 guid 0x0000000000200001 ('S'):";
        assert_eq!(switch_of(header), Some((Some(5), 0x20_0001)));
    }

    #[test]
    fn destinations_of_entries_are_read() {
        let adapter = Info::of(" : (Channel Adapter portguid 0x0000000000100008: 'H3')");
        assert_eq!(adapter, Info { kind: Kind::Adapter, portguid: Some(0x10_0008) });
        assert_eq!(Info::of(" : (path #2 out of 2: portguid 0x0000000000100008)").kind, Kind::Further);
        assert_eq!(Info::of(" : (Switch portguid 0x0000000000100008: 'H3')").kind, Kind::Switch);
        assert_eq!(Info::of(" : (illegal port)").kind, Kind::Illegal);
        assert_eq!(Info::of("").kind, Kind::Unknown);
        assert_eq!(Info::of(" : (unknown node and type)").kind, Kind::Unknown);
    }
}
