//! Import of mappings that other tools computed.
//!
//! Formats: partitions of `KaHIP`, `VieM` and `SharedMap` (one PE per line), Scotch mappings (`gmap`: a count,
//! then vertex and PE), Open MPI rank files, MPICH machine files and Open MPI host files, and ranks with their hosts as
//! `hopmap reorder` reads them. PE i is slot i of the machine.
//!
//! Rank files: mpirun(1) of Open MPI 4.1, "Rankfiles": `rank N=HOST slot=CORES`, logical numbers; `+nK` is host K. A rank that has
//! several cores takes one of them. A line of a machine file is that of a host file: `host` for one rank, `host:4` or `host slots=4` for
//! four. Ranks take the slots of a host in order.

mod several_cores;

use std::collections::HashMap;
use std::path::Path;

use hopmap_formats::host_list::is_host_name;
use hopmap_formats::host_names::HostNames;
use hopmap_formats::{host_file, rank_file};
use hopmap_model::{CostModel, SystemGraph};
use hopmap_text::{FileError, Line, Rows, counted, lines_of, or_prefix, rows_without_foreign, shown};

use self::several_cores::{Part, SlotLists};
use crate::params::PlacementFormat;

/// Maximum size of a file: 16 bytes for each of 2^24 ranks.
const MOST_BYTES: u64 = 1 << 28;

/// A mapping from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The slot of every rank, each slot once.
    pub slots: Vec<u32>,
    /// The format of the file, never [`PlacementFormat::Auto`].
    pub format: PlacementFormat,
    /// Ranks that have several cores in a rank file.
    pub several_cores: usize,
}

/// Reads a mapping of `ranks` ranks to a machine from a file.
pub fn import(
    path: &Path,
    format: PlacementFormat,
    ranks: usize,
    system: &SystemGraph,
) -> Result<Placed, FileError> {
    let text = hopmap_text::read(path, MOST_BYTES)?;
    let read = |text: &[u8]| read_placement(text, format, ranks, system);
    read(&text).map_err(|error| {
        or_prefix(error, &text, |text: &str, _: bool| read(text.as_bytes()).is_ok()).in_file(path)
    })
}

/// Reads a mapping of `ranks` ranks to a machine from the content of a file.
pub fn read_placement(
    text: &[u8],
    format: PlacementFormat,
    ranks: usize,
    system: &SystemGraph,
) -> Result<Placed, FileError> {
    let text = String::from_utf8_lossy(text);
    let text = rows_without_foreign(text.trim_start_matches('\u{feff}'), &ROWS)?;
    let lines = filled_lines(&text);
    let format = match format {
        PlacementFormat::Auto => recognise(lines.clone())?,
        given => given,
    };
    let mut several_cores = 0;
    let places = match format {
        PlacementFormat::Scotch => scotch(lines, ranks, system.slots.len())?,
        PlacementFormat::Rankfile => rankfile(lines, ranks, &Machine::new(system), &mut several_cores)?,
        PlacementFormat::Ranks => {
            ranks_on_hosts(&lines.collect::<Vec<_>>(), ranks, &Machine::new(system), &mut several_cores)?
        }
        PlacementFormat::Machinefile => machinefile(lines, ranks, &Machine::new(system))?,
        PlacementFormat::Kahip | PlacementFormat::Auto => kahip(lines, ranks, system.slots.len())?,
    };
    one_to_one(&places, system.slots.len())?;
    Ok(Placed { slots: places.into_iter().map(|place| place.slot).collect(), format, several_cores })
}

/// The lines of all formats: numbers, ranks of a rank file, ranks with hosts, and hosts with slots.
const ROWS: Rows = Rows::like(|text| {
    let is_count = |count: &str| count.parse::<u32>().is_ok();
    let mut words = text.split_whitespace();
    let host = words.next().unwrap_or_default();
    let is_of_rank = || {
        let words: Vec<&str> = text.split_whitespace().collect();
        matches!(words[..], [rank, host] | [rank, host, _] if is_count(rank) && is_host_name(host))
            && words.get(2).is_none_or(|core| is_count(core))
    };
    let is_host =
        |slots: &str| is_host(host) && slots.split_once("slots=").is_some_and(|(_, slots)| is_count(slots));
    text.split_whitespace().all(is_whole)
        || text.starts_with("rank") && text.contains('=')
        || is_of_rank()
        || words.next().is_some_and(is_host)
        || host.len() == text.len()
            && host.split_once(':').is_some_and(|(name, slots)| is_host_name(name) && is_count(slots))
});

/// The lines that are not empty, without comments (after `#`, or lines that start with `%`).
fn filled_lines(text: &str) -> impl Iterator<Item = Line<'_>> + Clone {
    let lines =
        lines_of(text, "").map(|line| line.map(|text| text.split('#').next().unwrap_or_default().trim()));
    lines.filter(|line| !line.text.is_empty() && !line.text.starts_with('%'))
}

/// Checks that no two ranks are on one slot.
fn one_to_one(places: &[RankSlot], slots: usize) -> Result<(), FileError> {
    const FREE: u32 = u32::MAX;
    let mut owner = vec![FREE; slots];
    let mut first = None;
    let mut crowded = 0;
    for (rank, place) in places.iter().enumerate() {
        let owner = &mut owner[place.slot as usize];
        match *owner {
            FREE => *owner = rank as u32,
            other => {
                crowded += 1;
                first.get_or_insert((other, rank));
            }
        }
    }
    let Some((one, other)) = first else { return Ok(()) };
    let slot = places[other].slot;
    let more = match crowded {
        1 => "all other ranks have distinct slots".to_owned(),
        crowded => format!("{crowded} ranks in total share a slot with an earlier rank"),
    };
    let before = places[one as usize].line;
    let what = format!("ranks {one} (line {before}) and {other} are both on slot {slot}; {more}");
    Err(FileError::at(places[other].line, what, NOT_ONE_TO_ONE))
}

const HINT: &str = "formats: one PE per line (KaHIP, VieM, SharedMap), a count and then `vertex PE` lines (Scotch), `rank 0=host \
                    slot=1` lines (Open MPI rank file), one host per line (machine file), `rank host` or `rank host core` lines; set `format` to choose one";

/// Detects the format of a file from its first two lines.
fn recognise<'t>(mut lines: impl Iterator<Item = Line<'t>>) -> Result<PlacementFormat, FileError> {
    let Some(first) = lines.next() else {
        return Err(FileError::new("the file is empty", HINT));
    };
    let numbers = |line: Line<'_>| line.words().all(is_whole).then(|| line.words().count());
    match (numbers(first), lines.next().and_then(numbers)) {
        (Some(1), Some(2)) => Ok(PlacementFormat::Scotch),
        (Some(1), _) => Ok(PlacementFormat::Kahip),
        (None, _)
            if first.text.starts_with("rank") && first.text.contains('=') && first.words().count() > 1 =>
        {
            Ok(PlacementFormat::Rankfile)
        }
        (None, _)
            if first.words().next().is_some_and(is_whole)
                && first.words().nth(1).is_some_and(is_host_name) =>
        {
            Ok(PlacementFormat::Ranks)
        }
        (None, _) if is_host(first.words().next().unwrap_or_default()) => Ok(PlacementFormat::Machinefile),
        _ => Err(first
            .error(format!("`{}` does not start a known mapping format", shown(first.text)))
            .with_help(HINT)),
    }
}

/// Whether a word may be `user@host:count`, or a list of hosts.
fn is_host(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':')
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:@[],".contains(letter))
}

/// Whether a word is an integer, of any size and sign.
fn is_whole(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The slot of a rank and its line in the file.
#[derive(Debug, Clone, Copy)]
struct RankSlot {
    slot: u32,
    line: usize,
}

const ONE_A_LINE: &str = "a partition of KaHIP, VieM or SharedMap has one PE per line, that of rank 0 first";
const PAIRS: &str = "a Scotch mapping starts with the number of vertices; every other line has a vertex and its PE, separated by white \
                     space";

/// Reads one PE per line; line i is rank i.
fn kahip<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<RankSlot>, FileError> {
    let mut places = Vec::new();
    let mut last = 0;
    for line in lines {
        let [pe] = words(line, ONE_A_LINE)?;
        let rank = places.len();
        if rank == ranks {
            return Err(too_many(line, ranks));
        }
        places.push(place(line, pe, slots, || format!("rank {rank} is on PE"))?);
        last = line.number;
    }
    all_placed(places, ranks, last)
}

#[cold]
fn too_many(line: Line<'_>, ranks: usize) -> FileError {
    line.error(format!("the file has more lines than the {ranks} ranks of the program"))
        .with_help(OTHER_PROGRAM)
}

/// Checks that a file has an entry for every rank; `last` is its last line.
fn all_placed(places: Vec<RankSlot>, ranks: usize, last: usize) -> Result<Vec<RankSlot>, FileError> {
    match places.len() {
        found if found < ranks => {
            let what = format!("the file ends after {found} ranks, but the program has {ranks}");
            Err(at(last, what, OTHER_PROGRAM))
        }
        _ => Ok(places),
    }
}

/// Reads a count, then vertices and their PEs in any order. Vertices count from zero, or from one if there is
/// no vertex 0.
fn scotch<'t>(
    mut lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<RankSlot>, FileError> {
    let Some(head) = lines.next() else { return Err(FileError::new("the file is empty", PAIRS)) };
    let [count] = words(head, PAIRS)?;
    if count.parse() != Ok(ranks) {
        let what = format!("the file has `{}` vertices, but the program has {ranks} ranks", shown(count));
        return Err(head.error(what).with_help(OTHER_PROGRAM));
    }
    let mut pairs = Vec::new();
    let mut last = head.number;
    for line in lines {
        let [vertex, pe] = words(line, PAIRS)?;
        if pairs.len() == ranks {
            let what = format!("the file has more lines than the {ranks} vertices of its first line");
            return Err(line.error(what).with_help(PAIRS));
        }
        pairs.push((line, vertex, pe));
        last = line.number;
    }
    let base = usize::from(!pairs.iter().any(|(_, vertex, _)| vertex.parse() == Ok(0)));
    let mut places: Vec<Option<RankSlot>> = vec![None; ranks];
    for (line, vertex, pe) in pairs {
        let number = below(line, vertex, ranks + base, || "vertex".to_owned(), PAIRS)?;
        let Some(entry) = number.checked_sub(base).and_then(|rank| places.get_mut(rank)) else { continue };
        if let Some(before) = entry {
            let what = format!("duplicate vertex {number}, first on line {}", before.line);
            return Err(line.error(what).with_help(PAIRS));
        }
        *entry = Some(place(line, pe, slots, || format!("vertex {number} is on PE"))?);
    }
    none_missing(places, last, |rank| format!("vertex {} is missing", rank + base))
}

/// Checks that no rank is missing; `last` is the last line of the file.
fn none_missing(
    places: Vec<Option<RankSlot>>,
    last: usize,
    what: impl Fn(usize) -> String,
) -> Result<Vec<RankSlot>, FileError> {
    match places.iter().position(Option::is_none) {
        Some(rank) => Err(at(last, what(rank), OTHER_PROGRAM)),
        None => Ok(places.into_iter().flatten().collect()),
    }
}

fn place(line: Line<'_>, pe: &str, slots: usize, what: impl Fn() -> String) -> Result<RankSlot, FileError> {
    let slot = below(line, pe, slots, what, OTHER_MACHINE)? as u32;
    Ok(RankSlot { slot, line: line.number })
}

/// Splits a line into exactly `COUNT` words.
fn words<'t, const COUNT: usize>(line: Line<'t>, hint: &'static str) -> Result<[&'t str; COUNT], FileError> {
    let mut words = line.words();
    let mut found = [""; COUNT];
    for entry in &mut found {
        *entry = words.next().unwrap_or_default();
    }
    match found.contains(&"") || words.next().is_some() {
        true => {
            let what = format!("expected {}, found `{}`", counted(COUNT, "number"), shown(line.text));
            Err(line.error(what).with_help(hint))
        }
        false => Ok(found),
    }
}

const RANKS_HINT: &str = "a line for each rank: `RANK HOST`, or `RANK HOST CORE` with the logical core";

/// The words of a line of this form, which are not all numbers.
fn rank_words<const COUNT: usize>(line: Line<'_>) -> Result<[&str; COUNT], FileError> {
    words(line, RANKS_HINT).map_err(|error| FileError {
        problem: format!("`{}` does not have the {COUNT} words of the line of a rank", shown(line.text)),
        ..error
    })
}

/// Reads ranks and their hosts in any order: with cores as a rank file, without as a machine file that has them in order.
fn ranks_on_hosts(
    lines: &[Line<'_>],
    ranks: usize,
    machine: &Machine<'_>,
    several: &mut usize,
) -> Result<Vec<RankSlot>, FileError> {
    let has_cores = lines.first().is_some_and(|line| line.words().count() == 3);
    if has_cores {
        let of_rank_file = |line: &Line<'_>| {
            let [rank, host, core] = rank_words(*line)?;
            Ok(format!("rank {rank}={host} slot={core}"))
        };
        let texts = lines.iter().map(of_rank_file).collect::<Result<Vec<_>, FileError>>()?;
        let lines = lines.iter().zip(&texts).map(|(line, text)| line.map(|_| text.as_str()));
        return rankfile(lines, ranks, machine, several);
    }
    let mut hosts: Vec<Option<Line<'_>>> = vec![None; ranks];
    for line in lines {
        let [rank, host] = rank_words(*line)?;
        let rank = below(*line, rank, ranks, || "rank".to_owned(), OTHER_PROGRAM)?;
        if let Some(before) = hosts[rank].replace(line.map(|_| host)) {
            let what = format!("rank {rank} has a host already, in line {}", before.number);
            return Err(line.error(what).with_help(RANKS_HINT));
        }
    }
    if let Some(rank) = hosts.iter().position(Option::is_none) {
        let last = lines.last().map_or(0, |line| line.number);
        return Err(at(last, format!("rank {rank} is missing"), OTHER_PROGRAM));
    }
    machinefile(hosts.into_iter().flatten(), ranks, machine)
}

const RANKFILE_HINT: &str =
    "a line of a rank file is `rank 0=host slot=3`, or `rank 0=host slot=1:0-3` with socket and cores";
const LOGICAL: &str = "give the logical numbers of cores, such as `slot=3`, `slot=0-3` or `slot=1:0,1`";
const CORES: &str = "cores count from zero on every host, or on every socket if one is given; sockets are the outermost groups of \
                     the machine's levels inside a host";

const ONE_SOCKET: &str = "the machine has no sockets inside its hosts: write the numbers of cores on the host, `slot=0,2` in place of \
                          `slot=0:0;1:0`, or use a machine with a level of sockets, such as `shape = \"2,2,2\"`";

/// Reads ranks in any order, and counts those with several cores.
fn rankfile<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    machine: &Machine<'_>,
    several: &mut usize,
) -> Result<Vec<RankSlot>, FileError> {
    let mut parts_of: Vec<Vec<Part>> = vec![Vec::new(); ranks];
    let mut places: Vec<Option<RankSlot>> = vec![None; ranks];
    let mut cores = Cores { machine, known: HashMap::new(), slots: SlotLists::default() };
    let mut last = 0;
    for line in lines {
        let (rank, host, slot) = parts(line)?;
        let rank = below(line, rank, ranks, || "rank".to_owned(), OTHER_PROGRAM)?;
        let host = match host.strip_prefix("+n") {
            Some(number) => {
                let what = || "host +n".to_owned();
                machine.hosts[below(line, number, machine.hosts.len(), what, RANKFILE_HINT)?]
            }
            None => machine.host(host.rsplit_once('@').map_or(host, |(_, host)| host), line)?,
        };
        parts_of[rank] = cores.parts(line, slot, host)?;
        *several += usize::from(parts_of[rank].iter().map(|(_, part)| part.len()).sum::<usize>() > 1);
        if let Some(before) = places[rank].replace(RankSlot { slot: 0, line: line.number }) {
            let what = format!("duplicate rank {rank}, first on line {}", before.line);
            return Err(line.error(what).with_help(RANKFILE_HINT));
        }
        last = line.number;
    }
    let mut places =
        none_missing(places, last, |rank| format!("rank {rank} is missing; the program has {ranks} ranks"))?;
    let slots = cores.slots.assigned(&parts_of, machine.system.slots.len());
    places.iter_mut().zip(slots).for_each(|(place, slot)| place.slot = slot);
    Ok(places)
}

/// Splits a line into rank, host and slot.
fn parts(line: Line<'_>) -> Result<(&str, &str, &str), FileError> {
    let parts = || {
        let (rank, place) = line.text.strip_prefix("rank")?.split_once('=')?;
        let (host, slot) = place.trim().split_once(char::is_whitespace)?;
        let slot = slot.trim().strip_prefix("slot")?;
        let slot = slot.strip_prefix('s').unwrap_or(slot).trim_start().strip_prefix('=')?;
        Some((rank.trim(), host, slot.trim()))
    };
    parts().ok_or_else(|| {
        line.error(format!("`{}` is not a line of a rank file", shown(line.text))).with_help(RANKFILE_HINT)
    })
}

/// Looks up the cores of hosts.
struct Cores<'a> {
    machine: &'a Machine<'a>,
    /// The lists of hosts, by their index, and of their sockets that are known so far.
    known: HashMap<(usize, Option<usize>), usize>,
    slots: SlotLists,
}

impl Cores<'_> {
    /// Finds the slots of the cores of a rank.
    fn parts(&mut self, line: Line<'_>, text: &str, host: Host) -> Result<Vec<Part>, FileError> {
        let cores = rank_file::cores(text).map_err(|what| line.error(shown(&what)).with_help(LOGICAL))?;
        let found: Option<Vec<Part>> = cores.into_iter().map(|cores| self.part(cores, host)).collect();
        found.ok_or_else(|| {
            let (name, slots) = (self.machine.name(host), host.slots);
            let (one, help) = match text.contains(':') && self.machine.sockets(host).len() == 1 {
                true => (" of one socket", ONE_SOCKET),
                false => ("", CORES),
            };
            line.error(format!("host `{name}` with {slots} slots{one} has no core `{}`", shown(text)))
                .with_help(help)
        })
    }

    fn part(&mut self, cores: rank_file::Cores, host: Host) -> Option<Part> {
        let list = self.list(host, cores.socket)?;
        let slots = &self.slots.lists[list];
        let Some((low, high)) = cores.range else { return Some((list, 0..slots.len())) };
        let core = |place: usize| match cores.socket {
            Some(_) => u32::try_from(place).ok(),
            None => slots.get(place).map(|&slot| self.machine.system.slots[slot as usize].core),
        };
        let start = match cores.socket {
            Some(_) => low as usize,
            None => slots.partition_point(|&slot| self.machine.system.slots[slot as usize].core < low),
        };
        let end = start + (high - low) as usize;
        let is_there = end < slots.len() && core(start) == Some(low) && core(end) == Some(high);
        is_there.then_some((list, start..end + 1))
    }

    /// The list of slots of a host or of a socket.
    fn list(&mut self, host: Host, socket: Option<usize>) -> Option<usize> {
        if !self.known.contains_key(&(host.index, socket)) {
            let lists = match socket {
                None => {
                    let mut slots: Vec<u32> = (host.first..host.first + host.slots).collect();
                    slots.sort_by_key(|&slot| self.machine.system.slots[slot as usize].core);
                    vec![(None, slots)]
                }
                Some(_) => {
                    let sockets = self.machine.sockets(host).into_iter().enumerate();
                    sockets.map(|(socket, slots)| (Some(socket), slots)).collect()
                }
            };
            for (socket, slots) in lists {
                self.known.insert((host.index, socket), self.slots.lists.len());
                self.slots.lists.push(slots);
            }
        }
        self.known.get(&(host.index, socket)).copied()
    }
}

const ROOM: &str = "a slot takes one rank: put fewer ranks on this host, or use a machine with more slots";

/// Reads the hosts of all ranks. Counts beyond the last rank are ignored.
fn machinefile<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    machine: &Machine<'_>,
) -> Result<Vec<RankSlot>, FileError> {
    let mut places = Vec::new();
    let mut taken = vec![0; machine.hosts.len()];
    let mut has_counts = false;
    let mut last = 0;
    for line in lines {
        let hosts = host_file::expand_list(line.text)
            .map_err(|error| line.error(error.what).with_help(error.hint))?;
        for (name, count) in hosts {
            let host = machine.host(&name, line)?;
            has_counts |= count.is_some();
            if places.len() == ranks && !has_counts {
                return Err(too_many(line, ranks));
            }
            for _ in 0..(count.unwrap_or(1) as usize).min(ranks - places.len()) {
                let taken = &mut taken[host.index];
                if *taken == host.slots {
                    let (rank, name, slots) = (places.len(), machine.name(host), host.slots);
                    let what = format!("host `{name}` has only {slots} slots, too few for rank {rank}");
                    return Err(line.error(what).with_help(ROOM));
                }
                places.push(RankSlot { slot: host.first + *taken, line: line.number });
                *taken += 1;
            }
        }
        last = line.number;
    }
    all_placed(places, ranks, last)
}

const NAMES: &str = "hosts are named as in the machine, or by the part before the first dot if that is unique: use the machine \
                     that the file was made for, or set its host names with `hosts`";

/// A host of a machine.
#[derive(Debug, Clone, Copy)]
struct Host {
    /// Index in slot order.
    index: usize,
    /// Its first slot.
    first: u32,
    /// Number of its slots.
    slots: u32,
}

/// An index of the hosts of a machine.
struct Machine<'a> {
    system: &'a SystemGraph,
    hosts: Vec<Host>,
    names: HostNames<'a>,
}

impl<'a> Machine<'a> {
    fn new(system: &'a SystemGraph) -> Self {
        let host = |(index, (_, first, slots))| Host { index, first, slots };
        let name = |(node, ..): (u32, u32, u32)| system.nodes[node as usize].name.as_str();
        Self {
            system,
            hosts: system.hosts().enumerate().map(host).collect(),
            names: system.hosts().map(name).collect(),
        }
    }

    /// Looks up a host.
    fn host(&self, name: &str, line: Line<'_>) -> Result<Host, FileError> {
        match self.names.find(name) {
            Some(index) => Ok(self.hosts[index]),
            None => {
                let first = self.hosts.first().map_or("none", |host| self.name(*host));
                let what = format!("the machine has no host `{}`; its first host is `{first}`", shown(name));
                Err(line.error(what).with_help(NAMES))
            }
        }
    }

    /// The name of a host.
    fn name(&self, host: Host) -> &'a str {
        let node = self.system.slots[host.first as usize].host;
        &self.system.nodes[node as usize].name
    }

    /// The slots of all sockets of a host. Sockets are the outermost groups of the machine's levels that
    /// split the host; if these are single slots, there is one socket.
    fn sockets(&self, host: Host) -> Vec<Vec<u32>> {
        let slots = host.first..host.first + host.slots;
        let one = || vec![slots.clone().collect()];
        let Some(groups) = self.parting_groups(host) else { return one() };
        let mut sockets: Vec<Vec<u32>> = Vec::new();
        let mut by_group = HashMap::new();
        for slot in slots.clone() {
            let socket = *by_group.entry(groups[slot as usize]).or_insert(sockets.len());
            match sockets.get_mut(socket) {
                Some(socket) => socket.push(slot),
                None => sockets.push(vec![slot]),
            }
        }
        if sockets.len() == slots.len() { one() } else { sockets }
    }

    /// The groups of the outermost level that splits a host.
    fn parting_groups(&self, host: Host) -> Option<&[u32]> {
        let levels = match &self.system.cost {
            CostModel::Levels(levels) => levels,
            CostModel::Routes(routes) => &routes.inside,
            CostModel::Matrix(_) => return None,
        };
        let slots = host.first as usize..(host.first + host.slots) as usize;
        let parts = |groups: &&Vec<u32>| groups[slots.clone()].windows(2).any(|pair| pair[0] != pair[1]);
        levels.groups.iter().rev().find(parts).map(Vec::as_slice)
    }
}

const NOT_ONE_TO_ONE: &str = "a slot takes one rank. KaHIP and Scotch only balance loads: with as many parts as vertices \
                                         they often put two ranks on a PE and leave another empty. Use VieM, or SharedMap with an \
                                         imbalance of 0";
const OTHER_MACHINE: &str = "PE i is slot i of the machine, counted from zero in host order: check that this is the \
                                        machine that the file was made for, with its levels in the same order";
const OTHER_PROGRAM: &str = "the file needs an entry for every rank of the task graph: check that it is the graph that the file was \
                                        made for";

/// An error at the last line read, or of the file if no line was read.
#[cold]
fn at(line: usize, problem: impl Into<String>, help: &str) -> FileError {
    FileError { line: Some(line).filter(|line| *line > 0), ..FileError::new(problem, help) }
}

/// Parses a number below a bound. `what` names it in messages, such as `rank 3 is on PE`.
fn below(
    line: Line<'_>,
    word: &str,
    bound: usize,
    what: impl Fn() -> String,
    help: &str,
) -> Result<usize, FileError> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse::<usize>().ok().filter(|&number| digits && number < bound);
    number.ok_or_else(|| {
        let range = match bound {
            0 => "but there are none".to_owned(),
            bound => format!("expected 0 to {}", bound - 1),
        };
        line.error_at(word, format!("{} `{}`, {range}", what(), shown(word))).with_help(help)
    })
}
