//! Profiles of Open MPI's monitoring, `PREFIX.RANK.prof`.
//!
//! ```text
//! # POINT TO POINT
//! E    0    1    10000 bytes    100 msgs sent    5,0,0,15,10,2,1,100,0,…
//! I    0    1    4340 bytes    34 msgs sent
//! # OSC
//! S    0    1    64 bytes    1 msgs sent
//! R    0    2    32 bytes    1 msgs sent
//! # COLLECTIVES
//! C    0    1    4340 bytes    34 msgs sent
//! ```
//!
//! Source: `common_monitoring.c` of Open MPI 4.1.4, and its output. `E` are messages of the program, `I` those
//! that collective operations really sent, `S` and `R` one-sided operations to and from the second rank. `C`
//! and the lines of communicators count the same bytes again and are skipped. The 66 numbers are messages by
//! length (empty, then powers of two), of `E` and `I` together: they follow the first line of the pair, and
//! the other has none. One-sided operations have none, so their mean length counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hopmap_text::{FileError, Foreign, Line, Lines, Rows};
use rayon::prelude::*;

use crate::description::Method;
use crate::error::RecordingError;
use crate::rank::{Kind, MAX_RANKS};
use crate::recording::{Process, Recording, Traffic, some, summed};

const HINT: &str = "Open MPI writes a file `PREFIX.RANK.prof` per rank with --mca pml_monitoring_enable 2 --mca \
                    pml_monitoring_enable_output 3 --mca pml_monitoring_filename PREFIX";

/// What a cut profile needs.
const CUT: &str =
    "copy the profile again, or run the program again: a process that is killed writes a part of it";
/// The last section, which is there without any traffic, too.
const LAST: &str = "# COLLECTIVES";

/// The first section.
const FIRST: &str = "# POINT TO POINT";

/// What the lines of a profile begin with.
const KINDS: [&str; 9] = ["E", "I", "S", "R", "C", "D", "O2A", "A2O", "A2A"];

/// The lines of a profile. One whose tabs became blanks is damaged.
pub const PROFILE_ROWS: Rows = Rows {
    is_row: |text| {
        let of_kind = text.split_once('\t').filter(|(kind, _)| KINDS.contains(kind));
        of_kind.is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
            || [FIRST, LAST].contains(&text)
    },
    is_other: |line| {
        let mut words = line.split_whitespace();
        !line.starts_with('#')
            && words.next().is_none_or(|word| !KINDS.contains(&word))
            && !line.trim_end().contains('\t')
    },
};

/// Number of length classes of a histogram.
const CLASSES: usize = 66;

/// Whether a path is a folder, a file or a prefix of profiles.
#[must_use]
pub fn is_profiles(path: &Path) -> bool {
    found(path).is_ok_and(|found| !found.is_empty())
}

/// The profiles in a folder, those of the program of a file, or those that begin with a prefix, by rank.
pub fn profiles(path: &Path) -> Result<Vec<(u32, PathBuf)>, RecordingError> {
    let found = found(path).map_err(|error| FileError::unreadable(path, &error))?;
    let prefixes: BTreeSet<&str> = found.iter().map(|(prefix, ..)| prefix.as_str()).collect();
    if prefixes.len() > 1 {
        let names: Vec<&str> = prefixes.into_iter().take(4).collect();
        let problem = format!("it has profiles of several programs or phases: {}", names.join(", "));
        let help = format!("pass one of them, such as `{}`", path.join(names[0]).display());
        return Err(FileError::new(problem, help).in_file(path).into());
    }
    if found.is_empty() {
        return Err(FileError::new("no profiles found", HINT).in_file(path).into());
    }
    Ok(found.into_iter().map(|(_, rank, path)| (rank, path)).collect())
}

/// Prefix, rank and path of every profile, sorted.
fn found(path: &Path) -> std::io::Result<Vec<(String, u32, PathBuf)>> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (folder, only) = match (path.is_dir(), path.parent()) {
        (true, _) => (path, None),
        (false, Some(parent)) if parent.as_os_str().is_empty() => (Path::new("."), Some(name)),
        (false, parent) => (parent.unwrap_or(path), Some(name)),
    };
    let only = only.map(|name| parts(&name).map(|(prefix, _)| prefix.to_owned()).unwrap_or(name));
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    let profiles = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (prefix, rank) = parts(name.to_str()?)?;
        let is_one = only.as_deref().is_none_or(|only| only == prefix);
        is_one.then(|| (prefix.to_owned(), rank, folder.join(&name)))
    });
    let mut profiles: Vec<(String, u32, PathBuf)> = profiles.collect();
    profiles.sort_unstable();
    // A packed one beside the other is a copy.
    profiles.dedup_by(|one, other| (&one.0, one.1) == (&other.0, other.1));
    Ok(profiles)
}

/// Prefix and rank in the name of a profile.
fn parts(name: &str) -> Option<(&str, u32)> {
    let (prefix, number) =
        name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".prof")?.rsplit_once('.')?;
    let rank = number.parse().ok().filter(|rank: &u32| *rank < MAX_RANKS && rank.to_string() == number)?;
    Some((prefix, rank))
}

impl Recording {
    /// Reads profiles of Open MPI's monitoring: a folder, a file of a rank or a prefix. Without a number of
    /// ranks it is the highest rank plus one.
    pub fn of_profiles(path: &Path, ranks: Option<u32>) -> Result<Self, RecordingError> {
        let found = profiles(path)?;
        let read: Vec<Result<Profile, FileError>> =
            found.par_iter().map(|(rank, path)| Profile::read(path, *rank)).collect();
        let (mut traffic, mut histogram, mut present, mut foreign) =
            (Vec::new(), Vec::new(), Vec::new(), None);
        for (profile, (rank, path)) in read.into_iter().zip(&found) {
            let profile = profile?;
            present.extend((!profile.is_empty).then_some(*rank));
            traffic.extend(profile.traffic);
            histogram.extend(profile.histogram);
            Foreign::add(&mut foreign, profile.foreign.as_ref(), path);
        }
        let highest = traffic.iter().map(|line: &Traffic| line.source.max(line.destination)).max();
        let highest = highest.max(found.last().map(|(rank, _)| *rank)).unwrap_or(0);
        let ranks = ranks.unwrap_or(highest + 1);
        if highest >= ranks {
            let problem = format!("there is traffic of rank {highest}, but the program had {ranks} ranks");
            let help = "use a new folder for every recording";
            return Err(FileError::new(problem, help).in_file(path).into());
        }
        let missing = (0..ranks).filter(|rank| present.binary_search(rank).is_err());
        histogram.sort_unstable();
        Ok(Self {
            method: Method::Openmpi,
            processes: vec![Process::default(); ranks as usize],
            traffic: summed(traffic),
            histogram,
            communicators: Vec::new(),
            calls: Vec::new(),
            counted: Vec::new(),
            incomplete: some(missing, "no profile of"),
            foreign,
        })
    }
}

/// The profile of a rank.
#[derive(Default)]
struct Profile {
    traffic: Vec<Traffic>,
    histogram: Vec<(u32, u32, u32, u64)>,
    /// The file has not even a header.
    is_empty: bool,
    foreign: Option<Foreign>,
}

impl Profile {
    fn read(path: &Path, rank: u32) -> Result<Self, FileError> {
        let lines = Lines::open(path, HINT)?.lossy().of_rows(PROFILE_ROWS).commented_by(b'#');
        let mut lines = lines.may_be_cut(false, CUT);
        let mut profile = Self { is_empty: true, ..Self::default() };
        let mut classes = BTreeMap::new();
        // Open MPI 2 writes no headers.
        let (mut has_headers, mut is_whole) = (false, false);
        while let Some(line) = lines.next_filled()? {
            if is_whole && line.text.trim_end() == FIRST {
                let help = "files were joined: pass each profile in a file of its own";
                return Err(line.error("another profile begins here").with_help(help));
            }
            profile.is_empty = false;
            has_headers |= line.text.starts_with('#');
            is_whole |= line.text.trim_end() == LAST;
            let mut fields = line.text.split('\t');
            let kind = match fields.next().unwrap_or_default() {
                "E" => Kind::PointToPoint,
                "I" => Kind::Collective,
                "S" => Kind::Put,
                "R" => Kind::Get,
                "C" | "D" | "O2A" | "A2O" | "A2A" => continue,
                comment if comment.starts_with('#') => continue,
                _ => return Err(line.error("not a line of a profile")),
            };
            let source = line.below(fields.next(), "rank", MAX_RANKS)?;
            if source != rank {
                return Err(line.error(format!("the line is of rank {source}, but the file of rank {rank}")));
            }
            let partner = line.below(fields.next(), "rank", MAX_RANKS)?;
            let bytes = before(line, fields.next(), "bytes")?;
            let messages = before(line, fields.next(), "msgs sent")?;
            if let Some(numbers) = fields.next().filter(|numbers| !numbers.trim().is_empty()) {
                histogram(line, numbers, partner, &mut classes)?;
            }
            let (source, destination) = if kind == Kind::Get { (partner, rank) } else { (rank, partner) };
            let log2_bytes = None;
            profile.traffic.push(Traffic { source, destination, kind, log2_bytes, messages, bytes });
        }
        if has_headers && !is_whole {
            let problem = format!("the profile ends before its last section, `{LAST}`");
            return Err(FileError::new(problem, CUT).in_file(path));
        }
        profile.foreign = lines.foreign().cloned();
        let bins = classes.into_iter();
        profile.histogram =
            bins.map(|((partner, class), messages)| (rank, partner, class, messages)).collect();
        Ok(profile)
    }
}

/// A number and its unit.
fn before(line: Line<'_>, field: Option<&str>, unit: &str) -> Result<u64, FileError> {
    let number = field.map(str::trim).and_then(|field| field.strip_suffix(unit)).map(str::trim_end);
    line.whole(number, unit)
}

/// Adds the messages of a partner by length.
fn histogram(
    line: Line<'_>,
    numbers: &str,
    partner: u32,
    classes: &mut BTreeMap<(u32, u32), u64>,
) -> Result<(), FileError> {
    for (class, number) in (0..).zip(numbers.split(',')) {
        if class as usize >= CLASSES {
            return Err(line.error(format!("more than {CLASSES} lengths")));
        }
        let messages = line.whole(Some(number.trim()), "number of messages")?;
        if messages > 0 {
            // The last class has no messages: 2⁶⁴ bytes.
            let sum = classes.entry((partner, class.min(64))).or_default();
            *sum = sum.saturating_add(messages);
        }
    }
    Ok(())
}
