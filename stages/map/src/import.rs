//! Placements that other tools computed.
//!
//! Formats: partitions of `KaHIP`, `VieM` and `SharedMap` (one PE a line), maps of Scotch (`gmap`: a count, then vertex and PE),
//! rank files of Open MPI, machine files of MPICH and host files of Open MPI. PE i is slot i of the machine.

mod files;

use std::path::Path;

use hopmap_model::SystemGraph;
use hopmap_text::{FileError, Line, lines_of, shown};

use crate::PlacementFormat;
use files::{Machine, Place};

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
        PlacementFormat::Scotch => files::scotch(lines, ranks, system.slots.len())?,
        PlacementFormat::Rankfile => files::rankfile(lines, ranks, &Machine::new(system))?,
        PlacementFormat::Machinefile => files::machinefile(lines, ranks, &Machine::new(system))?,
        PlacementFormat::Kahip | PlacementFormat::Auto => files::kahip(lines, ranks, system.slots.len())?,
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
    Err(FileError::at(places[other].line, what, files::NOT_ONE_TO_ONE))
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
