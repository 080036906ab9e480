//! Rank files of Open MPI.
//!
//! Format: mpirun(1) of Open MPI 4.1, "Rankfiles": `rank N=HOST slot=CORE` or `slot=SOCKET:CORE`, logical numbers; `+nK` is host K.

use super::error::OTHER_PROGRAM;
use super::lines::{Line, Lines, quoted};
use super::machine::{Host, Machine};
use super::{Place, PlacementFault};

const HINT: &str =
    "a line of a rank file is `rank 0=host slot=3`, or with socket and core `rank 0=host slot=1:0`";
const ONE_CORE: &str = "a rank takes one slot: name one core, as in `slot=3`, by its logical number";
const CORES: &str = "cores count from zero on every host, or on every socket where one is named; sockets are the outermost groups of \
                     the machine's levels inside a host";

/// Reads where every rank is, in any order.
pub(super) fn read(
    lines: Lines<'_>,
    ranks: usize,
    machine: &Machine<'_>,
) -> Result<Vec<Place>, PlacementFault> {
    let mut places: Vec<Option<Place>> = vec![None; ranks];
    let mut last = 0;
    for line in lines {
        let (rank, host, slot) = parts(line)?;
        let rank = line.below(rank, ranks, || "there is rank".to_owned(), OTHER_PROGRAM)?;
        let host = match host.strip_prefix("+n") {
            Some(number) => {
                let at = line.below(number, machine.hosts.len(), || "there is host +n".to_owned(), HINT)?;
                machine.hosts[at]
            }
            None => machine.host(host, line)?,
        };
        let slot = slot_of(line, slot, host, machine)?;
        if let Some(before) = places[rank].replace(Place { slot, line: line.number }) {
            return Err(line.fault(format!("rank {rank} stands on line {} already", before.line), HINT));
        }
        last = line.number;
    }
    match places.iter().position(Option::is_none) {
        Some(rank) => {
            let what = format!("rank {rank} is missing, and the program has {ranks}");
            Err(PlacementFault::new(last, what, OTHER_PROGRAM))
        }
        None => Ok(places.into_iter().flatten().collect()),
    }
}

/// Rank, host and slot as they are written.
fn parts(line: Line<'_>) -> Result<(&str, &str, &str), PlacementFault> {
    let parts = || {
        let (rank, place) = line.text.strip_prefix("rank")?.split_once('=')?;
        let (host, slot) = place.trim().split_once(char::is_whitespace)?;
        let slot = slot.trim().strip_prefix("slot")?;
        let slot = slot.strip_prefix('s').unwrap_or(slot).trim_start().strip_prefix('=')?;
        Some((rank.trim(), host, slot.trim()))
    };
    parts().ok_or_else(|| line.fault(format!("`{}` is no line of a rank file", quoted(line.text)), HINT))
}

fn slot_of(line: Line<'_>, slot: &str, host: Host, machine: &Machine<'_>) -> Result<u32, PlacementFault> {
    if let Some(sign) = slot.chars().find(|sign| !sign.is_ascii_digit() && *sign != ':') {
        let what = match sign {
            ',' | '-' | '*' => format!("`{}` is more than one core", quoted(slot)),
            'p' | 'P' => format!("`{}` is a physical number", quoted(slot)),
            _ => format!("`{}` is no core", quoted(slot)),
        };
        return Err(line.fault(what, ONE_CORE));
    }
    let number = |word: &str| word.parse::<u32>().ok();
    let found = match slot.split_once(':') {
        None => number(slot).and_then(|core| machine.core(host, core)),
        Some((socket, core)) => number(socket)
            .zip(number(core))
            .and_then(|(socket, core)| machine.socket(host, socket as usize).get(core as usize).copied()),
    };
    found.ok_or_else(|| {
        let (name, slots) = (machine.name(host), host.slots);
        line.fault(format!("host `{name}` with {slots} slots has no core `{}`", quoted(slot)), CORES)
    })
}
