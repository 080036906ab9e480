//! Rank files of Open MPI.
//!
//! Format: mpirun(1) of Open MPI 4.1, "Rankfiles": `rank N=HOST slot=CORE` or `slot=SOCKET:CORE`, logical numbers; `+nK` is host K.

use std::collections::HashMap;

use hopmap_text::{FileError, Line, shown};

use super::Place;
use super::error::{OTHER_PROGRAM, at, below};
use super::machine::{Host, Machine};

const HINT: &str =
    "a line of a rank file is `rank 0=host slot=3`, or with socket and core `rank 0=host slot=1:0`";
const ONE_CORE: &str = "a rank takes one slot: name one core, as in `slot=3`, by its logical number";
const CORES: &str = "cores count from zero on every host, or on every socket where one is named; sockets are the outermost groups of \
                     the machine's levels inside a host";

/// Reads where every rank is, in any order.
pub(super) fn read<'t>(
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
                let at = below(line, number, machine.hosts.len(), || "there is host +n".to_owned(), HINT)?;
                machine.hosts[at]
            }
            None => machine.host(host, line)?,
        };
        let slot = cores.slot(line, slot, host)?;
        if let Some(before) = places[rank].replace(Place { slot, line: line.number }) {
            return Err(line
                .error(format!("rank {rank} stands on line {} already", before.line))
                .with_help(HINT));
        }
        last = line.number;
    }
    match places.iter().position(Option::is_none) {
        Some(rank) => {
            let what = format!("rank {rank} is missing, and the program has {ranks}");
            Err(at(last, what, OTHER_PROGRAM))
        }
        None => Ok(places.into_iter().flatten().collect()),
    }
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
        line.error(format!("`{}` is no line of a rank file", shown(line.text))).with_help(HINT)
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
