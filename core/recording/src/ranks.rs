//! Merging the files of all ranks.

use hopmap_model::to_u32;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hopmap_text::FileError;
use rayon::prelude::*;

use crate::description::Method;
use crate::error::RecordingError;
use crate::names::number_in;
use crate::rank::{MAX_RANKS, Operation, RankFile};
use crate::recording::{Calls, Process, Recording, Traffic, some, summed};

/// The files of the ranks, by rank.
pub(crate) fn rank_files(folder: &Path) -> Result<Vec<(u32, PathBuf)>, RecordingError> {
    numbered_files(folder, "rank-")
}

/// Files such as `rank-3.bin`, by their number.
pub(crate) fn numbered_files(folder: &Path, prefix: &str) -> Result<Vec<(u32, PathBuf)>, RecordingError> {
    let failed = |error| FileError::unreadable(folder, &error);
    let names = std::fs::read_dir(folder).map_err(failed)?.filter_map(Result::ok);
    let ranks =
        names.filter_map(|entry| Some((number_in(entry.file_name().to_str()?, prefix)?, entry.path())));
    let mut ranks: Vec<(u32, PathBuf)> = ranks.collect();
    ranks.sort_unstable();
    Ok(ranks)
}

impl Recording {
    /// Reads the files of the ranks in a folder. Without a number of ranks it is that of the first file.
    pub(crate) fn of_ranks(folder: &Path, ranks: Option<u32>) -> Result<Self, RecordingError> {
        let found = rank_files(folder)?;
        let (first, last) =
            found.first().zip(found.last()).ok_or(RecordingError::Empty { path: folder.into() })?;
        let ranks = match ranks {
            Some(ranks) => ranks,
            None => ranks_of(&first.1)?,
        };
        if last.0 >= ranks {
            let problem = format!("there is a file of rank {}, but the program had {ranks} ranks", last.0);
            return Err(FileError::new(problem, "use a new folder for every recording")
                .in_file(folder)
                .into());
        }
        let communicators = Mutex::default();
        let parts: Vec<Result<Part, RecordingError>> =
            found.par_iter().map(|(rank, path)| Part::read(path, (*rank, ranks), &communicators)).collect();
        let parts: Vec<Part> = parts.into_iter().collect::<Result<_, _>>()?;
        let numbers = communicators.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(merged(parts, ranks, numbers))
    }
}

/// Number of ranks of the program that wrote the file of a rank.
fn ranks_of(path: &Path) -> Result<u32, RecordingError> {
    use std::io::Read;
    let mut header = [0; 20];
    let read = hopmap_model::open_input(path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| FileError::unreadable(path, &error))?;
    let ranks = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
    if (1..=MAX_RANKS).contains(&ranks) {
        return Ok(ranks);
    }
    let what = format!("the program has {ranks} ranks; 1 to {MAX_RANKS} are allowed");
    Err(RecordingError::Damaged { path: path.into(), offset: 16, what })
}

/// Numbers of communicators by their members, in any order.
type Numbers = HashMap<Box<[u32]>, u32>;

/// The file of a rank without the lists of its communicators, which all ranks share.
#[expect(clippy::struct_excessive_bools, reason = "independent flags of the format")]
struct Part {
    rank: u32,
    process: Process,
    traffic: Vec<Traffic>,
    calls: Vec<Calls>,
    finalized: bool,
    dropped: bool,
    foreign: bool,
    truncated: bool,
}

impl Part {
    fn read(
        path: &Path,
        (rank, ranks): (u32, u32),
        communicators: &Mutex<Numbers>,
    ) -> Result<Self, RecordingError> {
        let file = RankFile::read(path, rank, ranks)?;
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for communicator in file.communicators {
            let members = communicator.members.into_boxed_slice();
            let mut all = communicators.lock().unwrap_or_else(PoisonError::into_inner);
            let next = to_u32(all.len());
            let number = *all.entry(members).or_insert(next);
            numbers.insert(communicator.number, number);
        }
        let number = |operation: &Operation| numbers.get(&operation.communicator).copied();
        let calls = file.operations.iter();
        let calls: Vec<Calls> =
            calls.filter_map(|operation| Some(Calls::of(rank, number(operation)?, operation))).collect();
        let process = Process {
            host: Some(file.host).filter(|host| !host.is_empty()),
            cores: file.cores,
            times: file.times,
            program: Some(file.program).filter(|program| !program.is_empty()),
        };
        let traffic = file.pairs.iter().filter(|pair| pair.messages > 0 || pair.bytes > 0);
        let traffic = traffic.map(|pair| Traffic::of(rank, pair)).collect();
        let RankFile { finalized, dropped, foreign, truncated, .. } = file;
        Ok(Self { rank, process, traffic, calls, finalized, dropped, foreign, truncated })
    }
}

fn merged(parts: Vec<Part>, ranks: u32, numbers: Numbers) -> Recording {
    let (communicators, places) = sorted(numbers);
    let mut processes = vec![Process::default(); ranks as usize];
    let mut traffic = Vec::with_capacity(parts.iter().map(|part| part.traffic.len()).sum());
    let mut calls = Vec::with_capacity(parts.iter().map(|part| part.calls.len()).sum());
    let incomplete = reasons(&parts, ranks);
    for part in parts {
        traffic.extend(part.traffic);
        calls.extend(
            part.calls
                .into_iter()
                .map(|calls| Calls { communicator: places[calls.communicator as usize], ..calls }),
        );
        processes[part.rank as usize] = part.process;
    }
    calls.par_sort_unstable();
    let recording = Recording {
        method: Method::Preload,
        processes,
        traffic: summed(traffic),
        histogram: Vec::new(),
        communicators,
        calls,
        counted: Vec::new(),
        incomplete: None,
        foreign: None,
    };
    recording.with_reasons(incomplete)
}

/// The communicators in a fixed order, and the place of each number in it.
fn sorted(numbers: Numbers) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut all: Vec<(Box<[u32]>, u32)> = numbers.into_iter().collect();
    all.sort_unstable();
    let mut places = vec![0; all.len()];
    for (place, (_, number)) in (0..).zip(&all) {
        places[*number as usize] = place;
    }
    (all.into_iter().map(|(members, _)| members.into_vec()).collect(), places)
}

/// What is missing.
fn reasons(parts: &[Part], ranks: u32) -> Vec<String> {
    let present: Vec<u32> = parts.iter().map(|part| part.rank).collect();
    let missing = (0..ranks).filter(|rank| present.binary_search(rank).is_err());
    let those = |of: fn(&Part) -> bool| parts.iter().filter(move |part| of(part)).map(|part| part.rank);
    let all = [
        some(missing, "no file of"),
        some(those(|part| part.truncated), "a truncated file of"),
        some(those(|part| !part.finalized && !part.truncated), "MPI_Finalize was not reached by"),
        some(
            those(|part| part.dropped),
            "messages or calls are missing, because memory or disk space ran out, of",
        ),
        some(
            those(|part| part.foreign),
            "messages or calls to processes outside of MPI_COMM_WORLD, such as spawned ones, are missing of",
        ),
    ];
    all.into_iter().flatten().collect()
}
