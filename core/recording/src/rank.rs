//! `rank-N.bin`, the file of a rank; the module of the crate describes the format.

use hopmap_model::to_u32;
use std::collections::HashMap;
use std::path::Path;

use hopmap_text::FileError;

use crate::collective::CollectiveKind;
use crate::error::RecordingError;
use crate::lengths::at_least;

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"HOPREC1\0";

/// Largest file of a rank: 30 million pairs.
const MOST_BYTES: u64 = 1 << 30;

/// Longest name of a host, and longest command line.
const LONGEST_TEXT: u32 = 4096;

/// Most cores of a rank.
const MOST_CORES: u32 = 1 << 20;

/// Largest length class: messages from 2⁶³ bytes.
const LONGEST: u32 = 64;

const FINALIZED: u32 = 1;
const TIMES: u32 = 2;
const DROPPED: u32 = 4;
const FOREIGN: u32 = 8;
const PROGRAM: u32 = 16;
const NO_ROOT: u32 = u32::MAX;

/// Largest number of ranks: it limits the memory that `record.json` can claim.
pub const MAX_RANKS: u32 = 1 << 20;

/// How bytes get from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Messages to the partner.
    PointToPoint,
    /// One-sided operations that move bytes to the partner.
    Put,
    /// One-sided operations that move bytes from the partner to this rank.
    Get,
    /// Messages of collective operations to the partner: those that Open MPI's monitoring counts, and those
    /// of neighbourhood collectives.
    Collective,
}

impl Kind {
    const ALL: [Self; 4] = [Self::PointToPoint, Self::Put, Self::Get, Self::Collective];
}

/// Traffic with a partner, in messages of similar length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// World rank of the partner.
    pub partner: u32,
    /// Kind of the traffic.
    pub kind: Kind,
    /// 0 for messages without bytes, else 1 + ⌊log₂ bytes⌋.
    pub log2_bytes: u32,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

/// Calls of a collective operation by a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Number of the communicator in this file.
    pub communicator: u64,
    /// The operation.
    pub kind: CollectiveKind,
    /// Rank of the root in the communicator, if the operation has one.
    pub root: Option<u32>,
    /// Bytes that this rank sent in all calls.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
    /// Size of the communicator.
    pub size: u32,
}

/// A communicator of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Its number in this file.
    pub number: u64,
    /// World ranks of its members.
    pub members: Vec<u32>,
}

/// Content of the file of a rank.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of the format")]
pub struct RankFile {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Whether `MPI_Finalize` was reached.
    pub finalized: bool,
    /// Whether something was dropped for lack of memory or disk space.
    pub dropped: bool,
    /// Whether messages or collective operations with processes outside of `MPI_COMM_WORLD` are missing.
    pub foreign: bool,
    /// Seconds between `MPI_Init` and `MPI_Finalize`, and of these inside MPI, if recorded.
    pub times: Option<(f64, f64)>,
    /// Name of the host; empty if unknown.
    pub host: String,
    /// The cores of the rank.
    pub cores: Vec<u32>,
    /// Command line of its program, or the begin of it; empty if unknown.
    pub program: String,
    /// Traffic with partners.
    pub pairs: Vec<Pair>,
    /// Collective operations.
    pub operations: Vec<Operation>,
    /// Communicators of these operations.
    pub communicators: Vec<Communicator>,
    /// Whether the file ends too early; the rest is what was before.
    pub truncated: bool,
}

/// Why parsing stops.
enum Stop {
    /// At the end of the file.
    End,
    /// At a wrong value.
    Wrong(String),
}

/// The bytes that are not parsed yet.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Stop> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Stop::End)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Stop::End)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &str) -> Result<String, Stop> {
        let length = self.u32()?;
        check(length <= LONGEST_TEXT, || format!("the {what} has {length} bytes"))?;
        let text = self.take(length.next_multiple_of(4) as usize)?;
        Ok(String::from_utf8_lossy(&text[..length as usize]).into_owned())
    }

    fn f64(&mut self) -> Result<f64, Stop> {
        self.array().map(f64::from_le_bytes)
    }

    /// A list of items of at least `size` bytes. Memory is reserved for what the file can hold.
    fn list<T>(
        &mut self,
        (length, size): (u64, usize),
        list: &mut Vec<T>,
        mut item: impl FnMut(&mut Self) -> Result<T, Stop>,
    ) -> Result<(), Stop> {
        list.reserve_exact(usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len() / size));
        (0..length).try_for_each(|_| {
            let rest = self.rest;
            // The offset of an error is that of the item.
            list.push(item(self).inspect_err(|_| self.rest = rest)?);
            Ok(())
        })
    }

    /// The length of such a list. One that no file can hold is not that of a truncated file.
    fn length(&mut self, size: usize, what: &str) -> Result<u64, Stop> {
        let rest = self.rest;
        let length = self.u64()?;
        let fits = length <= MOST_BYTES / size as u64;
        check(fits, || format!("it has {length} {what}")).inspect_err(|_| self.rest = rest)?;
        Ok(length)
    }
}

/// Sums of a file, which must fit into 64 bits.
#[derive(Default)]
struct Sums {
    count: u64,
    bytes: u64,
}

impl Sums {
    fn add(&mut self, count: u64, bytes: u64, what: &str) -> Result<(), Stop> {
        let sums = self.count.checked_add(count).zip(self.bytes.checked_add(bytes));
        let overflow = || Stop::Wrong(format!("the {what} or bytes up to here exceed 64 bits"));
        (self.count, self.bytes) = sums.ok_or_else(overflow)?;
        Ok(())
    }
}

fn check(holds: bool, problem: impl FnOnce() -> String) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::Wrong(problem())) }
}

impl RankFile {
    /// Reads the file of a rank of a program with this many ranks.
    pub fn read(path: &Path, rank: u32, ranks: u32) -> Result<Self, RecordingError> {
        let bytes = hopmap_text::read(path, MOST_BYTES)?;
        Self::parse(&bytes, path, rank, ranks)
    }

    /// Parses the file of a rank of a program with this many ranks; the path is for errors. A file that ends
    /// too early gives what it has.
    pub fn parse(bytes: &[u8], path: &Path, rank: u32, ranks: u32) -> Result<Self, RecordingError> {
        let mut file = Self { rank, ranks, ..Self::default() };
        let mut cursor = Cursor { rest: bytes };
        let (before, version) = (bytes.get(..8), bytes.get(8..12));
        if before.is_some_and(|magic| magic != MAGIC) {
            let help = "a file of a rank begins with `HOPREC1`";
            return Err(FileError::new("not the file of a rank", help).in_file(path).into());
        }
        if let Some(version) = version.and_then(|version| Some(u32::from_le_bytes(version.try_into().ok()?)))
            && version != 1
        {
            return Err(RecordingError::Version { path: path.into(), version, reads: 1 });
        }
        match file.fill(&mut cursor) {
            Ok(checksum) => {
                let (content, _) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
                let (offset, what) =
                    (content.len() as u64, "the checksum is that of other content".to_owned());
                match checksum == fnv_1a(content) {
                    true => Ok(file),
                    false => Err(RecordingError::Damaged { path: path.into(), offset, what }),
                }
            }
            Err(Stop::End) => Ok(Self { truncated: true, ..file }),
            Err(Stop::Wrong(what)) => {
                let offset = (bytes.len() - cursor.rest.len()) as u64;
                Err(RecordingError::Damaged { path: path.into(), offset, what })
            }
        }
    }

    /// Reads everything; the checksum at the end.
    fn fill(&mut self, cursor: &mut Cursor<'_>) -> Result<u64, Stop> {
        self.header(cursor)?;
        let length = cursor.length(PAIR_BYTES, "pairs")?;
        let pairs = cursor.rest;
        let mut sums = Sums::default();
        cursor.list((length, PAIR_BYTES), &mut self.pairs, |cursor| pair(cursor, self.ranks, &mut sums))?;
        if let Some(place) = repeated(&self.pairs) {
            cursor.rest = &pairs[place * PAIR_BYTES..];
            let Pair { partner, kind, log2_bytes, .. } = self.pairs[place];
            let kind = kind as u32;
            return Err(Stop::Wrong(format!(
                "a pair with rank {partner}, kind {kind} and length class {log2_bytes} is there twice"
            )));
        }
        let length = cursor.length(OPERATION_BYTES, "collective operations")?;
        let operations = cursor.rest;
        let mut sums = Sums::default();
        let item = |cursor: &mut Cursor<'_>| operation(cursor, self.ranks, &mut sums);
        cursor.list((length, OPERATION_BYTES), &mut self.operations, item)?;
        let length = cursor.length(16, "communicators")?;
        let mut sizes = HashMap::new();
        let item = |cursor: &mut Cursor<'_>| communicator(cursor, self.ranks, &mut sizes);
        cursor.list((length, 16), &mut self.communicators, item)?;
        check(cursor.rest.len() <= CHECKSUM_BYTES, || "more bytes than the file should have".into())?;
        let checksum = cursor.u64()?;
        for (place, operation) in self.operations.iter().enumerate() {
            let Operation { communicator, size, kind, .. } = operation;
            let name = kind.name();
            check(sizes.get(communicator) == Some(size), || {
                format!("`{name}` is on communicator {communicator:#x} of {size} ranks, which is not listed")
            })
            .inspect_err(|_| cursor.rest = &operations[place * OPERATION_BYTES..])?;
        }
        Ok(checksum)
    }

    fn header(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        cursor.take(MAGIC.len() + 4)?;
        let (rank, ranks) = (cursor.u32()?, cursor.u32()?);
        check((rank, ranks) == (self.rank, self.ranks), || {
            format!("it is of rank {rank} of {ranks}, not of rank {} of {}", self.rank, self.ranks)
        })?;
        let flags = cursor.u32()?;
        check(flags < 2 * PROGRAM, || format!("unknown flags {flags:#x}"))?;
        let times = (cursor.f64()?, cursor.f64()?);
        if flags & TIMES != 0 {
            let valid = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
            check(valid(times.0) && valid(times.1), || "a time is negative or not finite".into())?;
            self.times = Some(times);
        }
        self.dropped = flags & DROPPED != 0;
        self.foreign = flags & FOREIGN != 0;
        self.host = cursor.text("name of the host")?;
        let cores = cursor.u32()?;
        check(cores <= MOST_CORES, || format!("it has {cores} cores"))?;
        cursor.list((u64::from(cores), 4), &mut self.cores, Cursor::u32)?;
        if flags & PROGRAM != 0 {
            self.program = cursor.text("command line")?;
        }
        self.finalized = flags & FINALIZED != 0;
        Ok(())
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.finalized, FINALIZED)
            | flag(self.times.is_some(), TIMES)
            | flag(self.dropped, DROPPED)
            | flag(self.foreign, FOREIGN)
            | flag(!self.program.is_empty(), PROGRAM);
        for number in [1, self.rank, self.ranks, flags] {
            bytes.extend(number.to_le_bytes());
        }
        let (seconds, inside) = self.times.unwrap_or_default();
        bytes.extend([seconds, inside].into_iter().flat_map(f64::to_le_bytes));
        encode_text(&self.host, &mut bytes);
        bytes.extend((to_u32(self.cores.len())).to_le_bytes());
        bytes.extend(self.cores.iter().flat_map(|core| core.to_le_bytes()));
        if !self.program.is_empty() {
            encode_text(&self.program, &mut bytes);
        }
        bytes.extend((self.pairs.len() as u64).to_le_bytes());
        self.pairs.iter().for_each(|pair| pair.encode(&mut bytes));
        bytes.extend((self.operations.len() as u64).to_le_bytes());
        self.operations.iter().for_each(|operation| operation.encode(&mut bytes));
        bytes.extend((self.communicators.len() as u64).to_le_bytes());
        for Communicator { number, members } in &self.communicators {
            bytes.extend(number.to_le_bytes());
            bytes.extend((to_u32(members.len())).to_le_bytes());
            bytes.extend(members.iter().flat_map(|rank| rank.to_le_bytes()));
        }
        let checksum = fnv_1a(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

/// The length of a text, and the text, up to a multiple of 4 bytes.
fn encode_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend(to_u32(text.len()).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

impl Pair {
    fn encode(&self, bytes: &mut Vec<u8>) {
        for number in [self.partner, self.kind as u32, self.log2_bytes, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([self.messages, self.bytes].into_iter().flat_map(u64::to_le_bytes));
    }
}

impl Operation {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.communicator.to_le_bytes());
        bytes.extend(self.kind.number().to_le_bytes());
        bytes.extend(self.root.unwrap_or(NO_ROOT).to_le_bytes());
        bytes.extend([self.bytes, self.calls].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([self.size, 0].into_iter().flat_map(u32::to_le_bytes));
    }
}

/// The hash FNV-1a of 64 bits (Fowler, Noll and Vo): it needs no table, so the recorder computes it as it writes.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

const CHECKSUM_BYTES: usize = 8;
const PAIR_BYTES: usize = 32;
const OPERATION_BYTES: usize = 40;

fn pair(cursor: &mut Cursor<'_>, ranks: u32, sums: &mut Sums) -> Result<Pair, Stop> {
    let [partner, kind, log2_bytes, _] = [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
    let (messages, bytes) = (cursor.u64()?, cursor.u64()?);
    check(partner < ranks, || format!("a partner is rank {partner}, but there are {ranks} ranks"))?;
    check(log2_bytes <= LONGEST, || format!("unknown length class {log2_bytes}"))?;
    let found = Kind::ALL.get(kind as usize).copied();
    let kind = found.ok_or_else(|| Stop::Wrong(format!("unknown kind {kind} of traffic")))?;
    let least = u128::from(messages) * u128::from(at_least(log2_bytes));
    let most = if log2_bytes == 0 { 0 } else { (2 * least).saturating_sub(u128::from(messages)) };
    check((least..=most).contains(&u128::from(bytes)), || {
        format!("length class {log2_bytes} contradicts messages = {messages}, bytes = {bytes}")
    })?;
    sums.add(messages, bytes, "messages")?;
    Ok(Pair { partner, kind, log2_bytes, messages, bytes })
}

/// The place of a pair whose partner, kind and length another one before it has.
fn repeated(pairs: &[Pair]) -> Option<usize> {
    let key = |pair: &Pair| (pair.partner, pair.kind, pair.log2_bytes);
    if pairs.is_sorted_by(|one, next| key(one) < key(next)) {
        return None;
    }
    let mut keys: Vec<_> = pairs.iter().map(key).zip(0..to_u32(pairs.len())).collect();
    keys.sort_unstable();
    let twice = keys.windows(2).filter(|two| two[0].0 == two[1].0);
    twice.map(|two| two[1].1 as usize).min()
}

fn operation(cursor: &mut Cursor<'_>, ranks: u32, sums: &mut Sums) -> Result<Operation, Stop> {
    let communicator = cursor.u64()?;
    let (kind, root) = (cursor.u32()?, cursor.u32()?);
    let (bytes, calls) = (cursor.u64()?, cursor.u64()?);
    let (size, _) = (cursor.u32()?, cursor.u32()?);
    check((1..=ranks).contains(&size), || format!("a communicator has {size} of {ranks} ranks"))?;
    let found = CollectiveKind::of_number(kind);
    let kind = found.ok_or_else(|| Stop::Wrong(format!("unknown collective operation {kind}")))?;
    let root = Some(root).filter(|root| *root != NO_ROOT);
    check(calls > 0 || bytes == 0, || format!("`{}` without a call has {bytes} bytes", kind.name()))?;
    sums.add(calls, bytes, "calls")?;
    Ok(Operation { communicator, kind, root, bytes, calls, size })
}

fn communicator(
    cursor: &mut Cursor<'_>,
    ranks: u32,
    sizes: &mut HashMap<u64, u32>,
) -> Result<Communicator, Stop> {
    let (number, size) = (cursor.u64()?, cursor.u32()?);
    check((1..=ranks).contains(&size), || format!("a communicator has {size} of {ranks} ranks"))?;
    let bytes = cursor.take(size as usize * 4)?;
    let members = bytes.chunks_exact(4).map(|rank| u32::from_le_bytes([rank[0], rank[1], rank[2], rank[3]]));
    let members: Vec<u32> = members.collect();
    check_members(&members, ranks)?;
    let is_new = sizes.insert(number, size).is_none();
    check(is_new, || format!("communicator {number:#x} is there twice"))?;
    Ok(Communicator { number, members })
}

fn check_members(members: &[u32], ranks: u32) -> Result<(), Stop> {
    // In order, as most are: one pass, as the lists of all ranks have millions of members.
    let is_sorted = members.windows(2).all(|two| two[0] < two[1]);
    if is_sorted && members.last().is_none_or(|last| *last < ranks) {
        return Ok(());
    }
    let stranger = members.iter().find(|rank| **rank >= ranks);
    let stranger =
        stranger.map(|rank| format!("a communicator has rank {rank}, but there are {ranks} ranks"));
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    let mut twice = sorted.windows(2).filter(|two| two[0] == two[1]);
    let twice = twice.next().map(|two| format!("a communicator has rank {} twice", two[0]));
    stranger.or(twice).map_or(Ok(()), |what| Err(Stop::Wrong(what)))
}
