//! The records of a file of events, one after the other.

use super::file::{Block, EventFile};
use super::{Call, CollectiveCall, Event, Message, Mode, OtherCall, SAME_CALL};
use crate::collective::CollectiveKind;
use crate::error::RecordingError;

/// Numbers of requests are smaller.
const MOST_REQUESTS: u64 = 1 << 24;

impl EventFile {
    /// The events of all threads, in order of their begin. After an error there are no more.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        let threads =
            self.threads.iter().map(|(thread, blocks)| Thread::new(self, *thread, blocks)).collect();
        Events { threads, is_done: false }
    }
}

/// The events of a rank. It holds one block per thread.
#[derive(Debug)]
pub struct Events<'a> {
    threads: Vec<Thread<'a>>,
    is_done: bool,
}

impl Iterator for Events<'_> {
    type Item = Result<Event, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let mut first: Option<(f64, usize)> = None;
        for (at, thread) in self.threads.iter_mut().enumerate() {
            match thread.peek() {
                Ok(Some(event)) if first.is_none_or(|(enter, _)| event.enter < enter) => {
                    first = Some((event.enter, at));
                }
                Ok(_) => {}
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
        }
        first.and_then(|(_, at)| self.threads[at].next.take()).map(Ok)
    }
}

/// The events of a thread.
#[derive(Debug)]
struct Thread<'a> {
    file: &'a EventFile,
    number: u32,
    blocks: std::slice::Iter<'a, Block>,
    bytes: Vec<u8>,
    at: usize,
    /// Of the block, in the file.
    offset: u64,
    /// Ticks at which the last call has begun and returned.
    call: (u64, u64),
    next: Option<Event>,
}

impl<'a> Thread<'a> {
    fn new(file: &'a EventFile, number: u32, blocks: &'a [Block]) -> Self {
        let (bytes, blocks) = (Vec::new(), blocks.iter());
        Self { file, number, blocks, bytes, at: 0, offset: 0, call: (0, 0), next: None }
    }

    fn peek(&mut self) -> Result<Option<&Event>, RecordingError> {
        while self.next.is_none() {
            if self.at < self.bytes.len() {
                let at = self.offset + self.at as u64;
                let event = self.record().map_err(|what| self.file.damaged(at, what))?;
                self.next = Some(event);
            } else {
                let Some(block) = self.blocks.next() else { break };
                self.bytes.resize(block.length as usize, 0);
                self.file.read_at(&mut self.bytes, block.offset)?;
                self.file.check_content(block.offset, block.checksum, &self.bytes)?;
                (self.at, self.offset) = (0, block.offset);
                if self.call.1 != block.first {
                    self.call = (block.first, block.first);
                }
            }
        }
        Ok(self.next.as_ref())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = *self.bytes.get(self.at).ok_or("the last record of a block is cut off")?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let fits = shift < 63 || byte < 2;
                return if fits { Ok(number) } else { Err("a number is too large".into()) };
            }
        }
        Err("a number is too long".into())
    }

    fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.file.nanoseconds_per_tick * 1e-9
    }

    /// Seconds since the begin; ticks of other cores may be a little earlier.
    fn time(&self, tick: u64) -> f64 {
        let elapsed = self.seconds(tick.abs_diff(self.file.begin));
        if tick < self.file.begin { -elapsed } else { elapsed }
    }

    fn record(&mut self) -> Result<Event, String> {
        let kind = self.byte()?;
        let continues = kind & SAME_CALL != 0;
        let mut outside = 0.0;
        if !continues {
            let (gap, own) = (self.number()?, self.number()?);
            let inside = self.number()?;
            let enter = self.call.1.checked_add(gap);
            let leave = enter.and_then(|enter| enter.checked_add(inside));
            self.call = enter.zip(leave).ok_or("a time is too large")?;
            outside = self.seconds(gap.saturating_sub(own.saturating_mul(16)));
        }
        let call = self.call(kind & !SAME_CALL)?;
        let (enter, leave) = (self.time(self.call.0), self.time(self.call.1));
        Ok(Event { thread: self.number, enter, leave, outside, continues, call })
    }

    fn call(&mut self, kind: u8) -> Result<Call, String> {
        Ok(match kind {
            0 => {
                let class = self.number()?;
                let found = usize::try_from(class).ok().and_then(|class| OtherCall::ALL.get(class));
                Call::Other(*found.ok_or_else(|| format!("unknown class {class} of calls"))?)
            }
            1 => {
                let (calls, inside) = (self.number()?, self.number()?);
                let span = self.call.1 - self.call.0;
                Call::Polls { calls, outside: self.seconds(span.saturating_sub(inside)) }
            }
            2..=5 => {
                let communicator = self.communicator()?;
                Call::Send { mode: Mode::ALL[usize::from(kind) - 2], message: self.message(communicator)? }
            }
            6 => {
                let communicator = self.communicator()?;
                Call::Recv { message: self.message(communicator)? }
            }
            7..=10 => {
                let (communicator, request) = (self.communicator()?, self.request()?);
                let mode = Mode::ALL[usize::from(kind) - 7];
                Call::Isend { mode, message: self.message(communicator)?, request }
            }
            11 => Call::Irecv { communicator: self.communicator()?, request: self.request()? },
            12 => {
                let communicator = self.communicator()?;
                Call::Sendrecv { sent: self.message(communicator)?, received: self.message(communicator)? }
            }
            13 => {
                let communicator = self.communicator()?;
                Call::Collective(self.collective(communicator)?)
            }
            14 => {
                let (communicator, request) = (self.communicator()?, self.request()?);
                Call::Icollective { operation: self.collective(communicator)?, request }
            }
            15 => Call::Wait,
            16 => Call::Test,
            17 => Call::Sent { request: self.request()? },
            18 => {
                let (request, communicator) = (self.request()?, self.communicator()?);
                Call::Received { request, message: self.message(communicator)? }
            }
            19 => Call::Cancelled { request: self.request()? },
            20 => Call::Freed { request: self.request()? },
            21 => Call::Finalize,
            _ => return Err(format!("unknown kind {kind} of record")),
        })
    }

    fn communicator(&mut self) -> Result<u32, String> {
        let number = self.number()?;
        let index = u32::try_from(number).ok().and_then(|number| self.file.indices.get(&number));
        index.copied().ok_or_else(|| format!("communicator {number} is not in the file"))
    }

    fn request(&mut self) -> Result<u32, String> {
        let number = self.number()?;
        let request = u32::try_from(number).ok().filter(|_| number < MOST_REQUESTS);
        request.ok_or_else(|| format!("request {number} is too large"))
    }

    fn message(&mut self, communicator: u32) -> Result<Message, String> {
        let (peer, tag, bytes) = (self.number()?, self.number()?, self.number()?);
        let found = self.file.communicators()[communicator as usize].peer(peer);
        let peer = found.ok_or_else(|| format!("rank {peer} is not in the communicator of its message"))?;
        let tag = u32::try_from(tag).map_err(|_| format!("tag {tag} is too large"))?;
        Ok(Message { peer, tag, communicator, bytes })
    }

    fn collective(&mut self, communicator: u32) -> Result<CollectiveCall, String> {
        let (kind, root, bytes) = (self.number()?, self.number()?, self.number()?);
        let found = u32::try_from(kind).ok().and_then(CollectiveKind::of_number);
        let kind = found.ok_or_else(|| format!("unknown collective operation {kind}"))?;
        let root = match root.checked_sub(1) {
            Some(root) => {
                let members = self.file.communicators()[communicator as usize].members.len();
                let known = u32::try_from(root).ok().filter(|root| (*root as usize) < members);
                Some(known.ok_or_else(|| format!("the root {root} is not in its communicator"))?)
            }
            None => None,
        };
        Ok(CollectiveCall { communicator, kind, root, bytes })
    }
}
