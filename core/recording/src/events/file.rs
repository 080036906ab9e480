//! Header, blocks and communicators of a file of events.

use hopmap_model::to_u32;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hopmap_text::FileError;

use super::{
    BLOCK_CHECKSUM, BLOCK_HEADER, COMMUNICATOR, END, HEADER, HEADER_CHECKSUM, MAGIC, NO_CHECKSUM, RECORDS,
    checksum,
};
use crate::error::RecordingError;
use crate::names::EVENTS;
use crate::ranks::numbered_files;

/// Largest content of a block with records. The recorder writes 64 KiB.
const MOST_RECORD_BYTES: u32 = 1 << 20;
/// Most threads of a rank.
const MOST_THREADS: usize = 4096;
/// Most communicators of a rank.
const MOST_COMMUNICATORS: usize = 1 << 14;

/// A communicator of a rank's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCommunicator {
    /// Equal in the files of all its members, and different for communicators that exist at the same time.
    pub id: u64,
    /// World ranks of all members, in the same order at all members.
    pub members: Vec<u32>,
    /// The members that messages are sent to and received from, in order of their rank: a part of `members` in
    /// an intercommunicator.
    pub(super) peers: std::ops::Range<usize>,
}

impl EventCommunicator {
    /// A communicator of these world ranks.
    #[must_use]
    pub fn new(id: u64, members: Vec<u32>) -> Self {
        let peers = 0..members.len();
        Self { id, members, peers }
    }

    /// Whether it is an intercommunicator.
    #[must_use]
    pub fn has_two_groups(&self) -> bool {
        self.peers != (0..self.members.len())
    }

    /// World rank of a rank that messages are sent to or received from.
    pub(super) fn peer(&self, rank: u64) -> Option<u32> {
        self.members[self.peers.clone()].get(usize::try_from(rank).ok()?).copied()
    }
}

/// Where records are in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub offset: u64,
    pub length: u32,
    pub first: u64,
    pub checksum: Checksum,
}

/// Of a block: that of its header so far, and what it should be after the content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checksum {
    header: u64,
    whole: u64,
}

impl Checksum {
    fn of(header: &[u8; BLOCK_HEADER]) -> Self {
        Self {
            header: checksum(NO_CHECKSUM, &header[..BLOCK_CHECKSUM]),
            whole: u64_at(header, BLOCK_CHECKSUM),
        }
    }

    fn fits(self, content: &[u8]) -> bool {
        checksum(self.header, content) == self.whole
    }
}

/// The events of a rank. Its blocks are read when they are needed.
#[derive(Debug)]
pub struct EventFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Blocks with records, of each thread.
    pub(super) threads: Vec<(u32, Vec<Block>)>,
    communicators: Vec<EventCommunicator>,
    /// Indices of communicators, by their number in the file.
    pub(super) indices: HashMap<u32, u32>,
    pub(super) begin: u64,
    pub(super) nanoseconds_per_tick: f64,
    /// Seconds since 1970 at the end of `MPI_Init`, by the clock of the host.
    pub started: f64,
    /// Whether `MPI_Finalize` was reached.
    pub finalized: bool,
    /// Whether the file ends too early. The events before are there.
    pub truncated: bool,
    /// Records that were dropped since the disk was full. Those before are there.
    pub dropped: u64,
}

/// A header of a block.
struct Header {
    kind: u32,
    length: u32,
    thread: u32,
    records: u32,
    first: u64,
    tick: u64,
    time: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl Header {
    fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| u32_at(bytes, 4 * at);
        Self {
            kind: word(0),
            length: word(1),
            thread: word(2),
            records: word(3),
            first: u64_at(bytes, 16),
            tick: u64_at(bytes, 24),
            time: u64_at(bytes, 32),
        }
    }
}

impl EventFile {
    /// Opens the events of a rank of a program with this many ranks.
    pub fn open(path: &Path, rank: u32, ranks: u32) -> Result<Self, RecordingError> {
        let unreadable = |error| RecordingError::from(FileError::unreadable(path, &error));
        let file = hopmap_model::open_input(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut header = [0; HEADER];
        let is_whole = length >= HEADER as u64;
        file.read_exact_at(&mut header[..usize::try_from(length).unwrap_or(usize::MAX).min(HEADER)], 0)
            .map_err(unreadable)?;
        if is_whole {
            check_header(&header, path, rank, ranks)?;
        }
        let mut events = Self {
            path: path.to_owned(),
            file,
            threads: Vec::new(),
            communicators: Vec::new(),
            indices: HashMap::new(),
            begin: u64_at(&header, 24),
            nanoseconds_per_tick: 0.0,
            started: u64_at(&header, 40) as f64 * 1e-9,
            finalized: false,
            truncated: true,
            dropped: 0,
        };
        if is_whole {
            events.scan(length, ranks, u64_at(&header, 32))?;
        }
        Ok(events)
    }

    /// Communicators of the events.
    #[must_use]
    pub fn communicators(&self) -> &[EventCommunicator] {
        &self.communicators
    }

    /// Number of threads that have called MPI.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Why events are missing, if some are.
    #[must_use]
    pub fn incomplete(&self) -> Option<String> {
        let reasons = [
            (self.dropped > 0)
                .then(|| format!("{} events were dropped since the disk was full", self.dropped)),
            (self.truncated && self.dropped == 0).then(|| "the file is truncated".to_owned()),
            (!self.truncated && !self.finalized).then(|| "MPI_Finalize was not reached".to_owned()),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(super) fn damaged(&self, offset: u64, what: impl Into<String>) -> RecordingError {
        RecordingError::Damaged { path: self.path.clone(), offset, what: what.into() }
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), RecordingError> {
        let unreadable = |error| FileError::unreadable(&self.path, &error).into();
        self.file.read_exact_at(bytes, offset).map_err(unreadable)
    }

    /// Finds all blocks, and reads communicators.
    fn scan(&mut self, length: u64, ranks: u32, begin: u64) -> Result<(), RecordingError> {
        let mut offset = HEADER as u64;
        let mut last = (self.begin, begin);
        let mut numbers = HashMap::new();
        while length - offset >= BLOCK_HEADER as u64 {
            let mut bytes = [0; BLOCK_HEADER];
            self.read_at(&mut bytes, offset)?;
            let header = Header::of(&bytes);
            self.check_block(&header, offset, ranks)?;
            let content = offset + BLOCK_HEADER as u64;
            if u64::from(header.length) > length - content {
                break;
            }
            last = last.max((header.tick, header.time));
            match header.kind {
                RECORDS => self.add_block(&header, (content, Checksum::of(&bytes)), &mut numbers)?,
                COMMUNICATOR => self.add_communicator(&header, (content, Checksum::of(&bytes)), ranks)?,
                _ => {
                    self.check_content(offset, Checksum::of(&bytes), &[])?;
                    self.truncated = false;
                    self.finalized = header.records != 0;
                    self.dropped = header.first;
                }
            }
            offset = content + u64::from(header.length);
            if header.kind == END && offset < length {
                return Err(self.damaged(offset, "more bytes than the file should have"));
            }
        }
        self.calibrate(last, begin)
    }

    /// Checks the content of a block.
    pub(super) fn check_content(
        &self,
        offset: u64,
        checksum: Checksum,
        content: &[u8],
    ) -> Result<(), RecordingError> {
        if checksum.fits(content) {
            return Ok(());
        }
        Err(self.damaged(offset, "the checksum of the block is that of other content"))
    }

    fn check_block(&self, header: &Header, offset: u64, ranks: u32) -> Result<(), RecordingError> {
        let limit = match header.kind {
            RECORDS => MOST_RECORD_BYTES,
            COMMUNICATOR => ranks.saturating_mul(4).saturating_add(16),
            END => 0,
            kind => return Err(self.damaged(offset, format!("unknown kind {kind} of block"))),
        };
        if header.length <= limit {
            return Ok(());
        }
        Err(self.damaged(offset, format!("a block of {} bytes; at most {limit} are allowed", header.length)))
    }

    /// Nanoseconds per tick, from both clocks at the begin and in the last block.
    fn calibrate(&mut self, (tick, time): (u64, u64), begin: u64) -> Result<(), RecordingError> {
        if tick == self.begin {
            return Ok(());
        }
        let elapsed = time.checked_sub(begin).filter(|elapsed| *elapsed > 0);
        let elapsed = elapsed.ok_or_else(|| self.damaged(HEADER as u64, "its clock runs backwards"))?;
        self.nanoseconds_per_tick = elapsed as f64 / (tick - self.begin) as f64;
        Ok(())
    }

    fn add_block(
        &mut self,
        header: &Header,
        (offset, checksum): (u64, Checksum),
        numbers: &mut HashMap<u32, usize>,
    ) -> Result<(), RecordingError> {
        let place = *numbers.entry(header.thread).or_insert(self.threads.len());
        if place == MOST_THREADS {
            return Err(RecordingError::Limit {
                what: format!("`{}` has events of more than {MOST_THREADS} threads", self.path.display()),
                help: "record the program with fewer threads that call MPI",
            });
        }
        if place == self.threads.len() {
            self.threads.push((header.thread, Vec::new()));
        }
        self.threads[place].1.push(Block { offset, length: header.length, first: header.first, checksum });
        Ok(())
    }

    fn add_communicator(
        &mut self,
        header: &Header,
        (offset, checksum): (u64, Checksum),
        ranks: u32,
    ) -> Result<(), RecordingError> {
        let mut bytes = vec![0; header.length as usize];
        self.read_at(&mut bytes, offset)?;
        self.check_content(offset, checksum, &bytes)?;
        let members = bytes.get(16..).unwrap_or_default();
        let members: Vec<u32> = (0..members.len() / 4).map(|at| u32_at(members, 4 * at)).collect();
        let (first, peers) = (u32_at(&bytes, 8) as usize, u32_at(&bytes, 12) as usize);
        let is_valid = bytes.len() == 16 + 4 * members.len()
            && header.records as usize == members.len()
            && first.checked_add(peers).is_some_and(|end| end <= members.len());
        if !is_valid {
            return Err(self.damaged(offset, "the members of a communicator do not fit"));
        }
        if let Some(member) = members.iter().find(|member| **member >= ranks) {
            let what = format!("a member of a communicator is rank {member}, but there are {ranks} ranks");
            return Err(self.damaged(offset, what));
        }
        let index = self.communicators.len();
        if index == MOST_COMMUNICATORS || self.indices.insert(header.thread, to_u32(index)).is_some() {
            return Err(self.damaged(offset, format!("communicator {} is there again", header.thread)));
        }
        self.communicators.push(EventCommunicator {
            id: u64_at(&bytes, 0),
            members,
            peers: first..first + peers,
        });
        Ok(())
    }
}

fn check_header(header: &[u8], path: &Path, rank: u32, ranks: u32) -> Result<(), RecordingError> {
    if !header.starts_with(MAGIC) {
        let help = "a file of events begins with `HOPEVT1`";
        return Err(FileError::new("not the events of a rank", help).in_file(path).into());
    }
    let word = |at: usize| u32_at(header, 8 + 4 * at);
    if word(0) != 2 {
        return Err(RecordingError::Version { path: path.into(), version: word(0), reads: 2 });
    }
    let damaged = |offset, what| Err(RecordingError::Damaged { path: path.into(), offset, what });
    let mut sealed = header.to_vec();
    sealed[HEADER_CHECKSUM..][..4].fill(0);
    if (checksum(NO_CHECKSUM, &sealed) >> 32) as u32 != u32_at(header, HEADER_CHECKSUM) {
        return damaged(0, "the checksum of the header is that of another one".to_owned());
    }
    if (word(1), word(2)) == (rank, ranks) {
        return Ok(());
    }
    damaged(12, format!("it is of rank {} of {}, not of rank {rank} of {ranks}", word(1), word(2)))
}

/// The files of events in a recording, by rank.
pub fn event_files(folder: &Path) -> Result<Vec<(u32, PathBuf)>, RecordingError> {
    numbered_files(folder, EVENTS)
}

/// Files whose names a message has at most.
const MOST_NAMES: usize = 4;

/// Which files of events in a recording have no end, if some do not: the program was ended while they were written.
pub(crate) fn cut_off(folder: &Path) -> Result<Option<String>, RecordingError> {
    let mut cut = Vec::new();
    for (_, path) in event_files(folder)? {
        if !has_end(&path).map_err(|error| FileError::unreadable(&path, &error))? {
            cut.push(format!("`{}`", path.file_name().unwrap_or_default().display()));
        }
    }
    let others = cut.len().saturating_sub(MOST_NAMES);
    let names = cut[..cut.len() - others].join(", ");
    Ok(match (cut.len(), others) {
        (0, _) => None,
        (1, _) => Some(format!("{names} is cut off")),
        (_, 0) => Some(format!("{names} are cut off")),
        (_, others) => Some(format!("{names} and {others} other files of events are cut off")),
    })
}

/// Whether the last block of a file is its end.
fn has_end(path: &Path) -> std::io::Result<bool> {
    let file = hopmap_model::open_input(path)?;
    let Some(offset) = file.metadata()?.len().checked_sub(BLOCK_HEADER as u64) else { return Ok(false) };
    let mut last = [0; BLOCK_HEADER];
    file.read_exact_at(&mut last, offset)?;
    Ok(Header::of(&last).kind == END && Checksum::of(&last).fits(&[]))
}
