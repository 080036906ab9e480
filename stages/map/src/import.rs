//! Placements that other tools computed.
//!
//! Formats: partitions of `KaHIP`, `VieM` and `SharedMap` (one PE a line), maps of Scotch (`gmap`: a count, then vertex and PE),
//! rank files of Open MPI, machine files of MPICH and host files of Open MPI. PE i is slot i of the machine.
//!
//! Rank files: mpirun(1) of Open MPI 4.1, "Rankfiles": `rank N=HOST slot=CORE` or `slot=SOCKET:CORE`, logical numbers; `+nK` is host K.
//! A line of a machine file is `host` for one rank, `host:4` for four (Hydra), or `host slots=4` (Open MPI; `max_slots` means nothing
//! here). Ranks take the slots of a host in order.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{CostModel, SystemGraph};
use hopmap_text::{FileError, Line, lines_of, shown};

use crate::PlacementFormat;

/// Most bytes of a file: 16 for each of 2^24 ranks.
const MOST_BYTES: u64 = 1 << 28;

/// A placement that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The slot of every rank, each slot once.
    pub slots: Vec<u32>,
    /// What the file was read as, never [`PlacementFormat::Auto`].
    pub format: PlacementFormat,
}

/// Reads the placement of `ranks` ranks on a machine from a file.
pub fn import(
    path: &Path,
    format: PlacementFormat,
    ranks: usize,
    system: &SystemGraph,
) -> Result<Placed, FileError> {
    let text = hopmap_text::read(path, MOST_BYTES)?;
    read_placement(&text, format, ranks, system).map_err(|error| error.in_file(path))
}

/// Reads the placement of `ranks` ranks on a machine from what is in a file.
pub fn read_placement(
    text: &[u8],
    format: PlacementFormat,
    ranks: usize,
    system: &SystemGraph,
) -> Result<Placed, FileError> {
    let text = String::from_utf8_lossy(text);
    let lines = filled_lines(&text);
    let format = match format {
        PlacementFormat::Auto => recognise(lines.clone())?,
        given => given,
    };
    let places = match format {
        PlacementFormat::Scotch => scotch(lines, ranks, system.slots.len())?,
        PlacementFormat::Rankfile => rankfile(lines, ranks, &Machine::new(system))?,
        PlacementFormat::Machinefile => machinefile(lines, ranks, &Machine::new(system))?,
        PlacementFormat::Kahip | PlacementFormat::Auto => kahip(lines, ranks, system.slots.len())?,
    };
    one_to_one(&places, system.slots.len())?;
    Ok(Placed { slots: places.into_iter().map(|place| place.slot).collect(), format })
}

/// The lines in which something stands, without comments: behind `#`, or on lines that begin with `%`.
fn filled_lines(text: &str) -> impl Iterator<Item = Line<'_>> + Clone {
    let lines =
        lines_of(text, "").map(|line| line.map(|text| text.split('#').next().unwrap_or_default().trim()));
    lines.filter(|line| !line.text.is_empty() && !line.text.starts_with('%'))
}

/// Checks that no two ranks are on one slot.
fn one_to_one(places: &[Place], slots: usize) -> Result<(), FileError> {
    const NOBODY: u32 = u32::MAX;
    let mut owner = vec![NOBODY; slots];
    let mut first = None;
    let mut crowded = 0;
    for (rank, place) in places.iter().enumerate() {
        let owner = &mut owner[place.slot as usize];
        match *owner {
            NOBODY => *owner = rank as u32,
            other => {
                crowded += 1;
                first.get_or_insert((other, rank));
            }
        }
    }
    let Some((one, other)) = first else { return Ok(()) };
    let slot = places[other].slot;
    let more = match crowded {
        1 => "all other ranks have a slot of their own".to_owned(),
        crowded => format!("{crowded} ranks in all are where another one is already"),
    };
    let before = places[one as usize].line;
    let what = format!("ranks {one} (line {before}) and {other} are both on slot {slot}; {more}");
    Err(FileError::at(places[other].line, what, NOT_ONE_TO_ONE))
}

const HINT: &str = "formats: one PE a line (KaHIP, VieM, SharedMap), a count and then `vertex PE` lines (Scotch), `rank 0=host \
                    slot=1` lines (Open MPI's rank file), one host a line (machine file); `format` takes one for granted";

/// The format of a file. Two lines are enough.
fn recognise<'t>(mut lines: impl Iterator<Item = Line<'t>>) -> Result<PlacementFormat, FileError> {
    let Some(first) = lines.next() else {
        return Err(FileError::new("nothing is in it", HINT));
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
        (None, _) if is_host(first.words().next().unwrap_or_default()) => Ok(PlacementFormat::Machinefile),
        _ => Err(first
            .error(format!("`{}` begins no placement that is known", shown(first.text)))
            .with_help(HINT)),
    }
}

/// Whether a word may be a host and a count.
fn is_host(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:".contains(letter))
}

/// Whether a word is a whole number, of any size and sign.
fn is_whole(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where a rank is, and the line that says so.
#[derive(Debug, Clone, Copy)]
struct Place {
    slot: u32,
    line: usize,
}

const ONE_A_LINE: &str = "a partition of KaHIP, VieM or SharedMap has one PE a line, that of rank 0 first";
const PAIRS: &str = "a map of Scotch begins with the number of vertices; then every line has a vertex and its PE, parted by white \
                     space";

/// One PE a line; line i is of rank i.
fn kahip<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<Place>, FileError> {
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
    line.error(format!("more lines than the {ranks} ranks of the program")).with_help(OTHER_PROGRAM)
}

/// The places of all ranks, if a file that ends with a line has them.
fn all_placed(places: Vec<Place>, ranks: usize, last: usize) -> Result<Vec<Place>, FileError> {
    match places.len() {
        found if found < ranks => {
            let what = format!("the file ends after {found} ranks, and the program has {ranks}");
            Err(at(last, what, OTHER_PROGRAM))
        }
        _ => Ok(places),
    }
}

/// A count, then vertices and their PEs in any order. Vertices count from zero, or from one where there is no vertex 0.
fn scotch<'t>(
    mut lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<Place>, FileError> {
    let Some(head) = lines.next() else { return Err(FileError::new("nothing is in it", PAIRS)) };
    let [count] = words(head, PAIRS)?;
    if count.parse() != Ok(ranks) {
        let what = format!("there are `{}` vertices, but {ranks} ranks", shown(count));
        return Err(head.error(what).with_help(OTHER_PROGRAM));
    }
    let mut pairs = Vec::new();
    let mut last = head.number;
    for line in lines {
        let [vertex, pe] = words(line, PAIRS)?;
        if pairs.len() == ranks {
            let what = format!("more lines than the {ranks} vertices of the first line");
            return Err(line.error(what).with_help(PAIRS));
        }
        pairs.push((line, vertex, pe));
        last = line.number;
    }
    let base = usize::from(!pairs.iter().any(|(_, vertex, _)| vertex.parse() == Ok(0)));
    let mut places: Vec<Option<Place>> = vec![None; ranks];
    for (line, vertex, pe) in pairs {
        let number = below(line, vertex, ranks + base, || "there is a vertex".to_owned(), PAIRS)?;
        let Some(entry) = number.checked_sub(base).and_then(|rank| places.get_mut(rank)) else { continue };
        if let Some(before) = entry {
            let what = format!("vertex {number} stands on line {} already", before.line);
            return Err(line.error(what).with_help(PAIRS));
        }
        *entry = Some(place(line, pe, slots, || format!("vertex {number} is on PE"))?);
    }
    none_missing(places, last, |rank| format!("vertex {} is missing", rank + base))
}

/// The places of all ranks, if none is missing in a file that ends with a line.
fn none_missing(
    places: Vec<Option<Place>>,
    last: usize,
    what: impl Fn(usize) -> String,
) -> Result<Vec<Place>, FileError> {
    match places.iter().position(Option::is_none) {
        Some(rank) => Err(at(last, what(rank), OTHER_PROGRAM)),
        None => Ok(places.into_iter().flatten().collect()),
    }
}

fn place(line: Line<'_>, pe: &str, slots: usize, what: impl Fn() -> String) -> Result<Place, FileError> {
    let slot = below(line, pe, slots, what, OTHER_MACHINE)? as u32;
    Ok(Place { slot, line: line.number })
}

/// The words of a line, which must be so many.
fn words<'t, const COUNT: usize>(line: Line<'t>, hint: &'static str) -> Result<[&'t str; COUNT], FileError> {
    let mut words = line.words();
    let mut found = [""; COUNT];
    for entry in &mut found {
        *entry = words.next().unwrap_or_default();
    }
    match found.contains(&"") || words.next().is_some() {
        true => {
            let ending = if COUNT > 1 { "s" } else { "" };
            let what = format!("`{}` is not {COUNT} number{ending}", shown(line.text));
            Err(line.error(what).with_help(hint))
        }
        false => Ok(found),
    }
}

const RANKFILE_HINT: &str =
    "a line of a rank file is `rank 0=host slot=3`, or with socket and core `rank 0=host slot=1:0`";
const ONE_CORE: &str = "a rank takes one slot: name one core, as in `slot=3`, by its logical number";
const CORES: &str = "cores count from zero on every host, or on every socket where one is named; sockets are the outermost groups of \
                     the machine's levels inside a host";

/// Reads where every rank is, in any order.
fn rankfile<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    machine: &Machine<'_>,
) -> Result<Vec<Place>, FileError> {
    let mut places: Vec<Option<Place>> = vec![None; ranks];
    let mut cores = Cores { machine, sockets: HashMap::new() };
    let mut last = 0;
    for line in lines {
        let (rank, host, slot) = parts(line)?;
        let rank = below(line, rank, ranks, || "there is rank".to_owned(), OTHER_PROGRAM)?;
        let host = match host.strip_prefix("+n") {
            Some(number) => {
                let what = || "there is host +n".to_owned();
                machine.hosts[below(line, number, machine.hosts.len(), what, RANKFILE_HINT)?]
            }
            None => machine.host(host, line)?,
        };
        let slot = cores.slot(line, slot, host)?;
        if let Some(before) = places[rank].replace(Place { slot, line: line.number }) {
            let what = format!("rank {rank} stands on line {} already", before.line);
            return Err(line.error(what).with_help(RANKFILE_HINT));
        }
        last = line.number;
    }
    none_missing(places, last, |rank| format!("rank {rank} is missing, and the program has {ranks}"))
}

/// Rank, host and slot as they are written.
fn parts(line: Line<'_>) -> Result<(&str, &str, &str), FileError> {
    let parts = || {
        let (rank, place) = line.text.strip_prefix("rank")?.split_once('=')?;
        let (host, slot) = place.trim().split_once(char::is_whitespace)?;
        let slot = slot.trim().strip_prefix("slot")?;
        let slot = slot.strip_prefix('s').unwrap_or(slot).trim_start().strip_prefix('=')?;
        Some((rank.trim(), host, slot.trim()))
    };
    parts().ok_or_else(|| {
        line.error(format!("`{}` is no line of a rank file", shown(line.text))).with_help(RANKFILE_HINT)
    })
}

/// Looks up the cores of hosts.
struct Cores<'a> {
    machine: &'a Machine<'a>,
    /// The sockets of the hosts of which any was named, by the index of the host.
    sockets: HashMap<usize, Vec<Vec<u32>>>,
}

impl Cores<'_> {
    /// The slot that is written as `CORE` or `SOCKET:CORE`.
    fn slot(&mut self, line: Line<'_>, slot: &str, host: Host) -> Result<u32, FileError> {
        if let Some(sign) = slot.chars().find(|sign| !sign.is_ascii_digit() && *sign != ':') {
            let what = match sign {
                ',' | '-' | '*' => format!("`{}` is more than one core", shown(slot)),
                'p' | 'P' => format!("`{}` is a physical number", shown(slot)),
                _ => format!("`{}` is no core", shown(slot)),
            };
            return Err(line.error(what).with_help(ONE_CORE));
        }
        let found = match slot.split_once(':') {
            None => slot.parse().ok().and_then(|core| self.machine.core(host, core)),
            Some((socket, core)) => self.core_of_socket(host, socket, core),
        };
        found.ok_or_else(|| {
            let (name, slots) = (self.machine.name(host), host.slots);
            line.error(format!("host `{name}` with {slots} slots has no core `{}`", shown(slot)))
                .with_help(CORES)
        })
    }

    fn core_of_socket(&mut self, host: Host, socket: &str, core: &str) -> Option<u32> {
        let (socket, core) = socket.parse::<usize>().ok().zip(core.parse::<usize>().ok())?;
        let sockets = self.sockets.entry(host.index).or_insert_with(|| self.machine.sockets(host));
        sockets.get(socket)?.get(core).copied()
    }
}

const MACHINEFILE_HINT: &str = "a line of a machine file is `host`, `host:4` or `host slots=4`";
const ROOM: &str = "a slot takes one rank: put fewer on this host, or give a machine with more slots on it";

/// Reads the hosts of all ranks. What a file with counts has room for beyond the last rank means nothing.
fn machinefile<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    machine: &Machine<'_>,
) -> Result<Vec<Place>, FileError> {
    let mut places = Vec::new();
    let mut taken = vec![0; machine.hosts.len()];
    let mut has_counts = false;
    let mut last = 0;
    for line in lines {
        let (name, count) = host_and_count(line)?;
        let host = machine.host(name, line)?;
        has_counts |= count.is_some();
        if places.len() == ranks && !has_counts {
            return Err(too_many(line, ranks));
        }
        for _ in 0..count.unwrap_or(1).min((ranks - places.len()) as u64) {
            let taken = &mut taken[host.index];
            if *taken == host.slots {
                let (rank, name, slots) = (places.len(), machine.name(host), host.slots);
                let what = format!("rank {rank} would be one too many for host `{name}` with {slots} slots");
                return Err(line.error(what).with_help(ROOM));
            }
            places.push(Place { slot: host.first + *taken, line: line.number });
            *taken += 1;
        }
        last = line.number;
    }
    all_placed(places, ranks, last)
}

/// A host, and the ranks that it takes where the line says so.
fn host_and_count(line: Line<'_>) -> Result<(&str, Option<u64>), FileError> {
    let mut words = line.words();
    let first = words.next().unwrap_or_default();
    let (name, mut count) = match first.split_once(':') {
        Some((name, count)) => (name, Some(number(line, count)?)),
        None => (first, None),
    };
    for word in words {
        match word.split_once('=') {
            Some(("slots", slots)) if count.is_none() => count = Some(number(line, slots)?),
            Some(("max_slots" | "max-slots", _)) => {}
            _ => {
                let what = format!("`{}` says nothing of a host", shown(word));
                return Err(line.error(what).with_help(MACHINEFILE_HINT));
            }
        }
    }
    Ok((name, count))
}

fn number(line: Line<'_>, word: &str) -> Result<u64, FileError> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|&number| digits && number > 0);
    number.ok_or_else(|| {
        line.error(format!("`{}` is no number of ranks", shown(word))).with_help(MACHINEFILE_HINT)
    })
}

const NAMES: &str = "hosts have the names of the machine, or these up to the first dot where that tells them apart: give the machine \
                     that the file was made for, or name its hosts with `hosts`";

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

/// A machine whose hosts can be looked up.
struct Machine<'a> {
    system: &'a SystemGraph,
    hosts: Vec<Host>,
    by_name: HashMap<&'a str, usize>,
    /// By the name up to the first dot; none where that is one of several.
    by_short_name: HashMap<&'a str, Option<usize>>,
}

impl<'a> Machine<'a> {
    fn new(system: &'a SystemGraph) -> Self {
        let mut machine =
            Self { system, hosts: Vec::new(), by_name: HashMap::new(), by_short_name: HashMap::new() };
        for (index, (node, first, slots)) in system.hosts().enumerate() {
            let name = system.nodes[node as usize].name.as_str();
            machine.hosts.push(Host { index, first, slots });
            machine.by_name.insert(name, index);
            let short = machine.by_short_name.entry(short(name));
            short.and_modify(|several| *several = None).or_insert(Some(index));
        }
        machine
    }

    /// The host of a name.
    fn host(&self, name: &str, line: Line<'_>) -> Result<Host, FileError> {
        let index = self.by_name.get(name).copied();
        // `a.x` and `a.y` are two hosts, but each may be the `a` of the other side.
        let is_short = |name: &str| short(name) == name;
        let is_same = |index: &usize| is_short(name) || is_short(self.name(self.hosts[*index]));
        let index = index.or_else(|| self.by_short_name.get(short(name)).copied().flatten().filter(is_same));
        match index {
            Some(index) => Ok(self.hosts[index]),
            None => {
                let first = self.hosts.first().map_or("none", |host| self.name(*host));
                let what = format!("the machine has no host `{}`; its first one is `{first}`", shown(name));
                Err(line.error(what).with_help(NAMES))
            }
        }
    }

    /// The name of a host.
    fn name(&self, host: Host) -> &'a str {
        let node = self.system.slots[host.first as usize].host;
        &self.system.nodes[node as usize].name
    }

    /// The slot of a core of a host, counted over all its sockets.
    fn core(&self, host: Host, core: u32) -> Option<u32> {
        let is_it = |slot: &u32| self.system.slots[*slot as usize].core == core;
        let slots = host.first..host.first + host.slots;
        let direct = host.first.checked_add(core).filter(|slot| slots.contains(slot)).filter(is_it);
        direct.or_else(|| slots.clone().find(is_it))
    }

    /// The slots of all sockets of a host. Sockets are the outermost groups of the machine's levels that part the host; where
    /// they are single slots, as where nothing parts it, there is one socket.
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

    /// The groups of the outermost level that parts a host.
    fn parting_groups(&self, host: Host) -> Option<&[u32]> {
        let CostModel::Levels(levels) = &self.system.cost else { return None };
        let slots = host.first as usize..(host.first + host.slots) as usize;
        let parts = |groups: &&Vec<u32>| groups[slots.clone()].windows(2).any(|pair| pair[0] != pair[1]);
        levels.groups.iter().rev().find(parts).map(Vec::as_slice)
    }
}

fn short(name: &str) -> &str {
    // An address has no name before its first dot.
    match name.parse::<std::net::Ipv4Addr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().unwrap_or(name),
    }
}

const NOT_ONE_TO_ONE: &str = "a slot takes one rank. KaHIP and Scotch balance loads, and with as many parts as vertices \
                                         they often put two ranks on a PE and leave another empty: use VieM, or SharedMap with an \
                                         imbalance of 0";
const OTHER_MACHINE: &str = "PE i is slot i of the machine, counted from zero in the order of its hosts: is this the \
                                        machine that the file was made for, with its levels in this order?";
const OTHER_PROGRAM: &str = "the file needs a place for every rank of the task graph: is it the graph that the file was \
                                        made for?";

/// An error behind the last line that was read; of the file as a whole where there was none.
#[cold]
fn at(line: usize, problem: impl Into<String>, help: &str) -> FileError {
    FileError { line: Some(line).filter(|line| *line > 0), ..FileError::new(problem, help) }
}

/// A number below a bound. `what` says what has it, such as `rank 3 is on PE`.
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
            0 => "there are none".to_owned(),
            bound => format!("numbers go from 0 to {}", bound - 1),
        };
        line.error_at(word, format!("{} `{}`, and {range}", what(), shown(word))).with_help(help)
    })
}
