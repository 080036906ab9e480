//! Writes events as the recorder does in C: the format as the documentation of `events.rs` has it, without its code.

use std::collections::BTreeMap;

use hopmap_recording::{Call, CollectiveCall, Event, EventCommunicator, Message};

const MAGIC: &[u8; 8] = b"HOPEVT1\0";
const HEADER: usize = 48;
const BLOCK_HEADER: usize = 48;
/// Where the checksum is in the header of the file, and of a block.
const HEADER_CHECKSUM: usize = 20;
const BLOCK_CHECKSUM: usize = 40;
/// Bit of the kind of a record that belongs to the call before.
const SAME_CALL: u8 = 0x80;

/// Kinds of blocks.
const RECORDS: u32 = 0;
const COMMUNICATOR: u32 = 1;
const END: u32 = 2;

/// Length of a block from which on it is written.
const FULL: usize = 64 << 10;

/// The file of a rank with these events, whose times are rounded to nanoseconds. Events of a thread are in order.
pub(crate) fn encode_events(
    rank: u32,
    ranks: u32,
    communicators: &[EventCommunicator],
    events: &[Event],
) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend([2, rank, ranks, 0].into_iter().flat_map(u32::to_le_bytes));
    file.extend([0; 24]);
    for (number, communicator) in (0..).zip(communicators) {
        let mut content = communicator.id.to_le_bytes().to_vec();
        let members = &communicator.members;
        let words = [0, members.len() as u32];
        content.extend(words.iter().chain(members).flat_map(|word| word.to_le_bytes()));
        put_block(&mut file, COMMUNICATOR, number, members.len() as u32, (0, 0), &content);
    }
    let mut threads: BTreeMap<u32, Thread<'_>> = BTreeMap::new();
    for event in events {
        let new = || Thread { communicators, content: Vec::new(), records: 0, first: 0, last: 0 };
        let thread = threads.entry(event.thread).or_insert_with(new);
        thread.put(event);
        if thread.content.len() >= FULL {
            thread.flush(event.thread, &mut file);
        }
    }
    threads.iter_mut().for_each(|(number, thread)| thread.flush(*number, &mut file));
    let end = events.iter().map(|event| ticks(event.leave)).max().unwrap_or(0);
    put_block(&mut file, END, 0, 1, (0, end), &[]);
    seal_events(&mut file);
    file
}

/// Sets the checksums of the header and of all blocks.
pub(crate) fn seal_events(file: &mut [u8]) {
    if file.len() < HEADER {
        return;
    }
    let (header, mut rest) = file.split_at_mut(HEADER);
    header[HEADER_CHECKSUM..][..4].fill(0);
    let sum = (checksum(&[header]) >> 32) as u32;
    header[HEADER_CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
    while rest.len() >= BLOCK_HEADER {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let length = length.min(rest.len() - BLOCK_HEADER);
        let (block, others) = rest.split_at_mut(BLOCK_HEADER + length);
        let sum = checksum(&[&block[..BLOCK_CHECKSUM], &block[BLOCK_HEADER..]]);
        block[BLOCK_CHECKSUM..BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
        rest = others;
    }
}

/// FNV-1a over words of eight bytes, the last one of each part filled with zeros.
fn checksum(parts: &[&[u8]]) -> u64 {
    let words = parts.iter().flat_map(|part| part.chunks(8)).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    words.fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| (sum ^ word).wrapping_mul(0x100_0000_01b3))
}

fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn put_block(file: &mut Vec<u8>, kind: u32, thread: u32, records: u32, times: (u64, u64), content: &[u8]) {
    let (first, tick) = times;
    file.extend([kind, content.len() as u32, thread, records].into_iter().flat_map(u32::to_le_bytes));
    file.extend([first, tick, tick, 0].into_iter().flat_map(u64::to_le_bytes));
    file.extend(content);
}

struct Thread<'a> {
    communicators: &'a [EventCommunicator],
    content: Vec<u8>,
    records: u32,
    /// Ticks before the block, and at the end of the last call.
    first: u64,
    last: u64,
}

impl Thread<'_> {
    fn flush(&mut self, number: u32, file: &mut Vec<u8>) {
        if self.records > 0 {
            put_block(file, RECORDS, number, self.records, (self.first, self.last), &self.content);
        }
        self.content.clear();
        (self.records, self.first) = (0, self.last);
    }

    fn put(&mut self, event: &Event) {
        let (kind, numbers) = self.record(event);
        self.records += 1;
        self.content.push(if event.continues { kind | SAME_CALL } else { kind });
        let mut times = Vec::new();
        if !event.continues {
            let (enter, leave) = (ticks(event.enter), ticks(event.leave));
            let gap = enter.saturating_sub(self.last);
            let own = gap.saturating_sub(ticks(event.outside)) / 16;
            times = vec![gap, own, leave.saturating_sub(enter)];
            self.last = leave.max(enter).max(self.last);
        }
        for mut number in times.into_iter().chain(numbers) {
            while number >= 0x80 {
                self.content.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.content.push(number as u8);
        }
    }

    /// Kind and numbers of a record.
    fn record(&self, event: &Event) -> (u8, Vec<u64>) {
        let of = |message: &Message| self.message(message);
        let request = |request: u32| u64::from(request);
        match &event.call {
            Call::Other(class) => (0, vec![*class as u64]),
            Call::Polls { calls, outside } => {
                let span = ticks(event.leave).saturating_sub(ticks(event.enter));
                (1, vec![*calls, span.saturating_sub(ticks(*outside))])
            }
            Call::Send { mode, message } => (2 + *mode as u8, started(message, None, of(message))),
            Call::Recv { message } => (6, started(message, None, of(message))),
            Call::Isend { mode, message, request } => {
                (7 + *mode as u8, started(message, Some(*request), of(message)))
            }
            Call::Irecv { communicator, request: number } => {
                (11, vec![u64::from(*communicator), request(*number)])
            }
            Call::Sendrecv { sent, received } => {
                (12, [started(sent, None, of(sent)), of(received).to_vec()].concat())
            }
            Call::Collective(operation) => (13, collective(operation, None)),
            Call::Icollective { operation, request } => (14, collective(operation, Some(*request))),
            Call::Wait => (15, Vec::new()),
            Call::Test => (16, Vec::new()),
            Call::Sent { request: number } => (17, vec![request(*number)]),
            Call::Received { request: number, message } => {
                (18, [vec![request(*number)], started(message, None, of(message))].concat())
            }
            Call::Cancelled { request: number } => (19, vec![request(*number)]),
            Call::Freed { request: number } => (20, vec![request(*number)]),
            Call::Finalize => (21, Vec::new()),
        }
    }

    /// Rank in the communicator, tag and bytes.
    fn message(&self, message: &Message) -> [u64; 3] {
        let communicator = &self.communicators[message.communicator as usize];
        let rank = communicator.members.iter().position(|member| *member == message.peer).unwrap();
        [rank as u64, u64::from(message.tag), message.bytes]
    }
}

fn started(message: &Message, request: Option<u32>, rest: [u64; 3]) -> Vec<u64> {
    let communicator = u64::from(message.communicator);
    [communicator].into_iter().chain(request.map(u64::from)).chain(rest).collect()
}

fn collective(operation: &CollectiveCall, request: Option<u32>) -> Vec<u64> {
    let CollectiveCall { communicator, kind, root, bytes } = *operation;
    let rest = [u64::from(kind.number()), root.map_or(0, |root| u64::from(root) + 1), bytes];
    [u64::from(communicator)].into_iter().chain(request.map(u64::from)).chain(rest).collect()
}
