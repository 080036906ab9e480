//! Machine files of MPICH and Intel MPI, host files of Open MPI, task lists of Slurm: hosts in the order of ranks.
//!
//! A line is `host` for one rank, `host:4` for four (Hydra), or `host slots=4` (Open MPI; `max_slots` means nothing here). Ranks
//! take the slots of a host in order.

use hopmap_text::{FileError, Line, shown};

use super::Place;
use super::error::{OTHER_PROGRAM, at};
use super::machine::Machine;

const HINT: &str = "a line of a machine file is `host`, `host:4` or `host slots=4`";
const ROOM: &str = "a slot takes one rank: put fewer on this host, or give a machine with more slots on it";

/// Reads the hosts of all ranks. What a file with counts has room for beyond the last rank means nothing.
pub(super) fn read<'t>(
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
            return Err(line
                .error(format!("more lines than the {ranks} ranks of the program"))
                .with_help(OTHER_PROGRAM));
        }
        for _ in 0..count.unwrap_or(1).min((ranks - places.len()) as u64) {
            let taken = &mut taken[host.index];
            if *taken == host.slots {
                let what = format!(
                    "rank {} would be one too many for host `{}` with {} slots",
                    places.len(),
                    machine.name(host),
                    host.slots
                );
                return Err(line.error(what).with_help(ROOM));
            }
            places.push(Place { slot: host.first + *taken, line: line.number });
            *taken += 1;
        }
        last = line.number;
    }
    match places.len() {
        found if found < ranks => {
            let what = format!("the file ends after {found} ranks, and the program has {ranks}");
            Err(at(last, what, OTHER_PROGRAM))
        }
        _ => Ok(places),
    }
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
            _ => return Err(line.error(format!("`{}` says nothing of a host", shown(word))).with_help(HINT)),
        }
    }
    Ok((name, count))
}

fn number(line: Line<'_>, word: &str) -> Result<u64, FileError> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|&number| digits && number > 0);
    number.ok_or_else(|| line.error(format!("`{}` is no number of ranks", shown(word))).with_help(HINT))
}
