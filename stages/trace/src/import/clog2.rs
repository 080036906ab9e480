//! CLOG-2 files, as written by the MPE library.
//!
//! A preamble of 1024 bytes contains zero-terminated texts: the version `CLOG-02.44`, then names and values
//! such as `is_big_endian=`, `TRUE `. Blocks of `block_size` bytes follow, each a sequence of records: a
//! header (time, communicator number, rank in it, thread, type) and a body whose length depends on the type.
//! A record of the sender describes a message to rank r of communicator c; records of communicators define
//! their ranks.
//!
//! Source: `clog_preamble.c`, `clog_record.h`, `clog_commset.h` and `mpe_log.c` of MPE 2.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, TaskGraph, open_input, to_u32};
use hopmap_text::{CUT, FileError, shown};

use super::reader::{self, Reader};
use crate::archive::warn_of_cut;
use crate::matrix::{Accumulator, MAX_RANKS, Matrix};

pub(super) static READER: Reader = Reader {
    recognises: |sample| sample.head.starts_with(MAGIC),
    files: reader::one_file,
    read: |path, options, cx| Ok(read(path, options.allow_truncated, cx)?),
    ..Reader::BINARY
};

/// First bytes of a file.
const MAGIC: &[u8] = b"CLOG-02.";

const PREAMBLE_BYTES: usize = 1024;

/// Maximum block size: MPE writes 65536 bytes by default.
const LARGEST_BLOCK: u64 = 1 << 30;

/// Bytes of record bodies by type: end of log, end of block, definitions of states, events and constants,
/// bare and cargo events, messages, collective operations, communicators, source locations, time shifts.
const BODY_BYTES: [usize; 12] = [0, 0, 112, 104, 40, 8, 40, 24, 16, 48, 48, 8];

const END_OF_LOG: i32 = 0;
const END_OF_BLOCK: i32 = 1;
const BARE_EVENT: i32 = 5;
const CARGO_EVENT: i32 = 6;
const MESSAGE: i32 = 7;
const COMMUNICATOR: i32 = 9;

/// Record kind of sent messages; received ones have another.
const SEND: i32 = -101;

/// Kinds of communicator records that define the rank of their writer: `MPI_COMM_WORLD`, `MPI_COMM_SELF`,
/// others, and the local side of intercommunicators.
const CREATIONS: [i32; 4] = [0, 1, 100, 101];

/// A rank within a communicator.
type CommunicatorRank = (i32, i32);

/// Reads a file.
fn read(path: &Path, allow_truncated: bool, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut log = Log::open(path)?;
    let preamble = log.preamble()?;
    let mut content = Content::default();
    loop {
        cx.progress(log.offset, log.length);
        if cx.should_stop() {
            return Err(FileError::new("reading was interrupted", "").in_file(path));
        }
        let is_last = match content.block(&mut log, &preamble) {
            Err(_) if allow_truncated && log.is_cut => {
                warn_of_cut(1, cx);
                true
            }
            Err(error) if log.is_cut => return Err(error.with_help(CUT)),
            other => other?,
        };
        if is_last {
            return content.into_graph(&log, &preamble);
        }
    }
}

/// Contents of the preamble.
struct Preamble {
    is_big_endian: bool,
    block_bytes: u64,
    ranks: u32,
}

impl Preamble {
    fn word(&self, bytes: &[u8]) -> i32 {
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.is_big_endian { i32::from_be_bytes(word) } else { i32::from_le_bytes(word) }
    }

    fn time(&self, bytes: &[u8; 24]) -> f64 {
        let [time, ..] = bytes.as_chunks().0 else { return 0.0 };
        if self.is_big_endian { f64::from_be_bytes(*time) } else { f64::from_le_bytes(*time) }
    }
}

/// A file read sequentially.
struct Log {
    path: PathBuf,
    source: BufReader<File>,
    offset: u64,
    /// Start of the current record.
    record: u64,
    length: u64,
    /// It ended within a record or block.
    is_cut: bool,
}

impl Log {
    fn open(path: &Path) -> Result<Self, FileError> {
        let file = open_input(path).map_err(|error| FileError::unreadable(path, &error))?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let source = BufReader::with_capacity(1 << 16, file);
        Ok(Self { path: path.to_owned(), source, offset: 0, record: 0, length, is_cut: false })
    }

    #[cold]
    fn damaged(&self, what: impl Into<String>) -> FileError {
        let problem = format!("damaged at byte {}: {}", self.record, what.into());
        let help = "the file was not written or copied completely: copy or record it again";
        FileError::new(problem, help).in_file(&self.path)
    }

    /// Reads bytes.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FileError> {
        match self.source.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.is_cut = true;
                Err(self.damaged("the file is truncated"))
            }
            Err(error) => Err(FileError::unreadable(&self.path, &error)),
        }
    }

    /// Skips bytes.
    fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        let passed = std::io::copy(&mut self.source.by_ref().take(bytes), &mut std::io::sink());
        let passed = passed.map_err(|error| FileError::unreadable(&self.path, &error))?;
        self.offset += passed;
        self.is_cut |= passed < bytes;
        if self.is_cut { Err(self.damaged("the file is truncated")) } else { Ok(()) }
    }

    fn preamble(&mut self) -> Result<Preamble, FileError> {
        let mut bytes = [0; PREAMBLE_BYTES];
        self.fill(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let texts: Vec<&str> = text.split('\0').map(str::trim).filter(|text| !text.is_empty()).collect();
        let value = |name: &str| {
            let place = texts.iter().position(|text| *text == name);
            let value = place.and_then(|place| texts.get(place + 1)).copied();
            value.ok_or_else(|| self.damaged(format!("the preamble lacks `{name}`")))
        };
        let version = texts.first().copied().unwrap_or_default();
        if !version.starts_with("CLOG-02.4") {
            let what =
                format!("version `{}` is not supported, only CLOG-02.4 and its revisions", shown(version));
            let hint = "log the program again with a newer MPE";
            return Err(FileError::new(what, hint).in_file(&self.path));
        }
        let is = |name: &str| value(name).map(|value| value.eq_ignore_ascii_case("true"));
        // The spelling is that of MPE. Versions that do not detect crashes lack this value.
        if texts.contains(&"is_finalzed=") && !is("is_finalzed=")? {
            let what = "the program ended before it finished the log";
            return Err(FileError::new(what, "repair it with `clog2_repair` of MPE").in_file(&self.path));
        }
        let number = |name: &str, most: u64| {
            let number = value(name)?.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| self.damaged(format!("`{name}` is not between 1 and {most}")))
        };
        Ok(Preamble {
            is_big_endian: is("is_big_endian=")?,
            block_bytes: number("block_size=", LARGEST_BLOCK)?,
            ranks: u32::try_from(number("max_comm_world_size=", u64::from(MAX_RANKS))?).unwrap_or(MAX_RANKS),
        })
    }
}

/// Contents of a log so far.
#[derive(Default)]
struct Content {
    /// Numbers of places, in order of appearance.
    places: HashMap<CommunicatorRank, u32>,
    /// Messages between places.
    messages: Matrix,
    /// World ranks of places.
    ranks: HashMap<CommunicatorRank, u32>,
    /// First and last time in seconds.
    span: Option<(f64, f64)>,
}

impl Content {
    /// Reads a block. True after the last one.
    fn block(&mut self, log: &mut Log, preamble: &Preamble) -> Result<bool, FileError> {
        let end = log.offset + preamble.block_bytes;
        loop {
            log.record = log.offset;
            let mut header = [0; 24];
            log.fill(&mut header)?;
            let kind = preamble.word(&header[20..]);
            let Some(length) = usize::try_from(kind).ok().and_then(|kind| BODY_BYTES.get(kind)) else {
                return Err(log.damaged(format!("unknown record type {kind}")));
            };
            let mut body = [0; 112];
            let body = &mut body[..*length];
            log.fill(body)?;
            if log.offset > end {
                return Err(log.damaged("a record exceeds its block"));
            }
            match kind {
                END_OF_LOG => return Ok(true),
                END_OF_BLOCK => {
                    log.skip(end - log.offset)?;
                    return Ok(false);
                }
                _ => self.record(log, preamble, kind, &header, body)?,
            }
        }
    }

    fn record(
        &mut self,
        log: &Log,
        preamble: &Preamble,
        kind: i32,
        header: &[u8; 24],
        body: &[u8],
    ) -> Result<(), FileError> {
        let word = |place: usize| preamble.word(&body[4 * place..]);
        if [BARE_EVENT, CARGO_EVENT, MESSAGE].contains(&kind) {
            let time = preamble.time(header);
            if !time.is_finite() {
                return Err(log.damaged("a time is not a number"));
            }
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        if kind == MESSAGE && word(0) == SEND {
            let source = self.place((preamble.word(&header[8..]), preamble.word(&header[12..])));
            let destination = self.place((word(1), word(2)));
            let bytes = u64::try_from(word(4)).map_err(|_| log.damaged("a message has a negative size"))?;
            let edge = Edge { source, destination, messages: 1, bytes };
            self.messages
                .add(edge)
                .map_err(|overflow| FileError::new(overflow.to_string(), "").in_file(&log.path))?;
        } else if kind == COMMUNICATOR && CREATIONS.contains(&word(0)) {
            let (place, rank) = ((word(1), word(2)), word(3));
            let rank = u32::try_from(rank).ok().filter(|rank| *rank < preamble.ranks).ok_or_else(|| {
                log.damaged(format!("rank {rank} is not below the {} of the preamble", preamble.ranks))
            })?;
            if *self.ranks.entry(place).or_insert(rank) != rank {
                let (communicator, rank) = place;
                return Err(
                    log.damaged(format!("two processes are rank {rank} of communicator {communicator}"))
                );
            }
        }
        Ok(())
    }

    fn place(&mut self, place: CommunicatorRank) -> u32 {
        let next = to_u32(self.places.len());
        *self.places.entry(place).or_insert(next)
    }

    /// Replaces ranks within communicators by world ranks.
    fn into_graph(self, log: &Log, preamble: &Preamble) -> Result<TaskGraph, FileError> {
        let mut ranks = vec![0; self.places.len()];
        for (place, number) in &self.places {
            ranks[*number as usize] = *self.ranks.get(place).ok_or_else(|| {
                let (communicator, rank) = place;
                log.damaged(format!(
                    "a message has rank {rank} of communicator {communicator} as an end, but no record defines it"
                ))
            })?;
        }
        let mut accumulator = Accumulator::default();
        accumulator.see(preamble.ranks - 1);
        for edge in self.messages.into_edges() {
            let [source, destination] = [edge.source, edge.destination].map(|place| ranks[place as usize]);
            accumulator
                .add(Edge { source, destination, ..edge })
                .map_err(|overflow| FileError::new(overflow.to_string(), "").in_file(&log.path))?;
        }
        let duration_s = self.span.map(|(first, last)| last - first);
        Ok(TaskGraph { duration_s, ..accumulator.into_graph() })
    }
}
