//! The events of one stream.
//!
//! A number on a line sets the time, and `*N` the process. Every other line is a record of that process at
//! that time (`OTF_Parse.c`, `OTF_RBuffer_getRecord`). Counters of groups have a group in place of the
//! process. 1.12.5 is the final version of OTF 1, so unknown records are damage.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{Context, to_u32};
use hopmap_text::FileError;

use super::definitions::Processes;
use super::fields::{Fault, Fields, in_record, open_lines};
use crate::call_stack::{Activity, CallStack};
use crate::numbering::Numbering;
use crate::selection::{Class, RegionKind, Selection};

/// Comment that libotf writes in place of everything after a decreasing timestamp
/// (`OTF_WBuffer_setTimeAndProcess`).
const GIVEN_UP: &str = "error due to unsorted time stamp";

/// Records of one process in a stream.
#[derive(Debug)]
pub(super) struct ProcessRecord {
    pub(super) process: u32,
    /// Sent messages.
    pub(super) sent: Vec<Sent>,
    pub(super) activity: Activity,
    /// First and last time.
    pub(super) span: (u64, u64),
}

/// Messages of one class to one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Rank of the receiver.
    pub(super) destination: u32,
    /// Their class.
    pub(super) class: Class,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Counters of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) events: u64,
    pub(super) messages: u64,
    /// Messages from or to processes that are not ranks.
    pub(super) without_rank: u64,
    pub(super) collectives: u64,
    pub(super) remote_accesses: u64,
    /// Processes without an end event.
    pub(super) unfinished: u64,
    /// Timestamps that decrease.
    pub(super) backwards: u64,
}

/// Contents of a stream.
#[derive(Debug)]
pub(super) struct StreamRecord {
    pub(super) processes: Vec<ProcessRecord>,
    pub(super) counts: Counts,
}

/// The first time in a stream, if any.
pub(super) fn first_time(path: &Path) -> Result<Option<u64>, FileError> {
    let mut lines = open_lines(path)?;
    while let Some(line) = lines.next_bytes()? {
        let mut fields = Fields::new(line.text);
        if let Some(b'0'..=b'9' | b'a'..=b'f') = fields.first() {
            return fields.number().map(Some).map_err(|what| line.error(in_record(line.text, what)));
        }
    }
    Ok(None)
}

/// Reads the events of a stream; `None` if interrupted.
pub(super) fn read(
    path: &Path,
    (processes, selection): (&Processes, Option<&Selection>),
    kinds: &HashMap<u32, RegionKind>,
    cx: &Context<'_>,
) -> Result<Option<StreamRecord>, FileError> {
    let mut lines = open_lines(path)?;
    let mut stream = Stream::new(processes, kinds, selection);
    while !cx.should_stop() {
        let passed = stream.line_number;
        let Some(block) = lines.block()? else {
            return stream.finish(|line, what| lines.error_at(line, what)).map(Some);
        };
        let wrong = stream.lines(block).map_err(|(offset, what)| in_record(&block[offset..], what));
        wrong.map_err(|what| lines.error_at(stream.line_number, what))?;
        lines.count(stream.line_number - passed);
    }
    Ok(None)
}

/// Messages to one receiver.
#[derive(Debug)]
struct Traffic {
    /// Index of the sender in `members`.
    sender: u32,
    receiver: u32,
    class: Class,
    messages: u64,
    bytes: u64,
    /// Line of the first message.
    line: usize,
}

/// A process of a stream.
#[derive(Debug)]
struct Member<'a> {
    process: u32,
    stack: CallStack<'a>,
    first: u64,
    last: u64,
    began: bool,
    ended: bool,
}

/// The process of the following records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    /// None yet.
    None,
    /// Its index in `members`.
    Member(usize),
    /// An undefined process.
    Unknown,
}

struct Stream<'a> {
    processes: &'a Processes,
    selection: Option<&'a Selection>,
    kinds: &'a HashMap<u32, RegionKind>,
    time: Option<u64>,
    id: u32,
    current: Current,
    places: HashMap<u32, usize>,
    members: Vec<Member<'a>>,
    pairs: Numbering<(u32, u32, u32)>,
    traffic: Vec<Traffic>,
    counts: Counts,
    /// The current line, counted from one.
    line_number: usize,
}

impl<'a> Stream<'a> {
    fn new(
        processes: &'a Processes,
        kinds: &'a HashMap<u32, RegionKind>,
        selection: Option<&'a Selection>,
    ) -> Self {
        Self {
            processes,
            selection,
            kinds,
            time: None,
            id: 0,
            current: Current::None,
            places: HashMap::new(),
            members: Vec::new(),
            pairs: Numbering::new(),
            traffic: Vec::new(),
            counts: Counts::default(),
            line_number: 0,
        }
    }

    /// Reads complete lines. Errors have the offset of their line.
    fn lines(&mut self, block: &[u8]) -> Result<(), (usize, Fault)> {
        let mut rest = block;
        while !rest.is_empty() {
            self.line_number += 1;
            let mut fields = Fields::new(rest);
            self.line(&mut fields).map_err(|what| (block.len() - rest.len(), what))?;
            rest = fields.lines_behind();
        }
        Ok(())
    }

    #[inline]
    fn line(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        match fields.first() {
            Some(b'0'..=b'9' | b'a'..=b'f') => {
                let time = fields.number()?;
                self.counts.backwards += u64::from(self.time.is_some_and(|last| time < last));
                self.time = Some(time);
                fields.end()
            }
            Some(b'*') => {
                fields.take(b'*');
                self.process(fields.short()?);
                fields.end()
            }
            Some(b'\n') | None => Ok(()),
            Some(_) => self.record(fields),
        }
    }

    #[inline]
    fn process(&mut self, id: u32) {
        if id != self.id || self.current == Current::None {
            self.id = id;
            self.current = match self.places.get(&id) {
                Some(place) => Current::Member(*place),
                None if self.processes.is_known(id) => self.add(id),
                None => Current::Unknown,
            };
        }
    }

    fn add(&mut self, process: u32) -> Current {
        let place = self.members.len();
        self.places.insert(process, place);
        let stack = CallStack::new(self.kinds, self.selection);
        self.members.push(Member { process, stack, first: u64::MAX, last: 0, began: false, ended: false });
        Current::Member(place)
    }

    /// Process and time of a record.
    #[inline]
    fn here(&mut self) -> Result<(usize, u64), Fault> {
        let time = self.time.ok_or("missing time before it")?;
        match self.current {
            Current::Member(place) => {
                let member = &mut self.members[place];
                member.first = member.first.min(time);
                member.last = member.last.max(time);
                Ok((place, time))
            }
            Current::Unknown => Err("its process is not defined"),
            Current::None => Err("missing process before it"),
        }
    }

    fn record(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let keyword = fields.keyword();
        match keyword {
            b"E" | b"ENTER" => {
                let (place, time) = self.here()?;
                let function = fields.short()?;
                self.members[place].stack.enter(function, time);
                fields.end_or_source()?;
            }
            b"L" | b"LEAVE" => {
                let (place, time) = self.here()?;
                // Without a function it leaves the current one.
                let function = if fields.is_empty() { 0 } else { fields.short()? };
                match function {
                    0 => self.members[place].stack.leave_innermost(time),
                    _ => self.members[place].stack.leave(function, time),
                }
                fields.end_or_source()?;
            }
            b"S" | b"SEND" => self.send(fields)?,
            b"R" | b"RECEIVE" => {
                self.here()?;
                message(fields)?;
            }
            b"PB" | b"PROCESSBEGIN" => {
                let (place, _) = self.here()?;
                self.members[place].began = true;
            }
            b"PE" | b"PROCESSEND" => {
                let (place, _) = self.here()?;
                self.members[place].ended = true;
            }
            _ => return self.other_record(keyword, fields),
        }
        self.counts.events += 1;
        Ok(())
    }

    fn send(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let (place, time) = self.here()?;
        let Message { peer: receiver, communicator, bytes } = message(fields)?;
        self.members[place].stack.send();
        let class = match self.selection {
            None => Some(Class::ALL),
            Some(selection) => {
                let inside = self.members[place].stack.inside();
                selection.class_of_message(Some(communicator), bytes, inside, || time)
            }
        };
        let Some(class) = class else { return Ok(()) };
        let sender = to_u32(place);
        let pair = self.pairs.of((sender, receiver, class.number())) as usize;
        if pair == self.traffic.len() {
            let line = self.line_number;
            self.traffic.push(Traffic { sender, receiver, class, messages: 0, bytes: 0, line });
        }
        let traffic = &mut self.traffic[pair];
        traffic.messages += 1;
        traffic.bytes =
            traffic.bytes.checked_add(bytes).ok_or("the bytes sent to one process exceed 64 bits")?;
        Ok(())
    }

    /// Records that are irrelevant for messages.
    fn other_record(&mut self, keyword: &[u8], fields: &mut Fields<'_>) -> Result<(), Fault> {
        match keyword {
            // A key-value of the following record; snapshots.
            b"K" | b"KEY" | b"TE" | b"TENTER" | b"TS" | b"TSEND" | b"TOF" | b"TOPENFILE" | b"TBC"
            | b"TBEGINCOLLOP" | b"TBF" | b"TBEGINFILEOP" | b"TCOC" | b"TCOLLOPCOUNT" | b"TCNT"
            | b"TCOUNTER" | b"TC" | b"TCOMMENT" => {
                return Ok(());
            }
            b"#" | b"#EVTCOMMENT" => {
                if fields.text()?.starts_with(GIVEN_UP) {
                    return Err("the writer stopped here, so the rest of the stream is missing");
                }
            }
            b"COP" | b"COLLOP" | b"COPB" | b"COLLOPBEGIN" => self.counts.collectives += 1,
            b"T" | b"TRMAPUT" | b"G" | b"GRMAGET" => self.counts.remote_accesses += 1,
            b"COPE" | b"COLLOPEND" | b"U" | b"URMAPUTRE" | b"M" | b"MRMAEND" | b"CNT" | b"COUNTER" | b"N"
            | b"NOOP" | b"F" | b"FILEOP" | b"FA" | b"FILEOPBEGINNEW" | b"FF" | b"FILEOPENDNEW" | b"FB"
            | b"FILEOPBEGIN" | b"FE" | b"FILEOPEND" => {}
            _ => return Err("not an event of OTF 1"),
        }
        self.counts.events += 1;
        if self.current != Current::Unknown {
            self.here()?;
        }
        Ok(())
    }

    fn finish(mut self, wrong: impl Fn(usize, String) -> FileError) -> Result<StreamRecord, FileError> {
        let mut sent = Vec::new();
        sent.resize_with(self.members.len(), Vec::new);
        for traffic in &self.traffic {
            let receiver = traffic.receiver;
            if !self.processes.is_known(receiver) {
                let what = format!("it sends to process {receiver:x}, which is not defined");
                return Err(wrong(traffic.line, what));
            }
            let sender = self.members[traffic.sender as usize].process;
            self.counts.messages += traffic.messages;
            match (self.processes.rank(sender), self.processes.rank(receiver)) {
                (Some(_), Some(rank)) => {
                    let Traffic { class, messages, bytes, .. } = *traffic;
                    sent[traffic.sender as usize].push(Sent { destination: rank, class, messages, bytes });
                }
                _ => self.counts.without_rank += traffic.messages,
            }
        }
        self.counts.unfinished =
            self.members.iter().filter(|member| member.began && !member.ended).count() as u64;
        let members = self.members.into_iter().zip(sent).filter(|(member, _)| member.first <= member.last);
        let processes = members.map(|(member, sent)| ProcessRecord {
            process: member.process,
            sent,
            activity: member.stack.finish((member.first, member.last)),
            span: (member.first, member.last),
        });
        Ok(StreamRecord { processes: processes.collect(), counts: self.counts })
    }
}

/// A message from the view of one end.
struct Message {
    peer: u32,
    communicator: u32,
    bytes: u64,
}

#[inline]
fn message(fields: &mut Fields<'_>) -> Result<Message, Fault> {
    let peer = fields.short()?;
    fields.expect(&[b"L", b"LEN"], "missing length")?;
    let bytes = fields.short()?;
    fields.expect(&[b"T", b"TAG"], "missing tag")?;
    fields.short()?;
    fields.expect(&[b"C", b"COMM"], "missing communicator")?;
    let communicator = fields.short()?;
    fields.end_or_source()?;
    Ok(Message { peer, communicator, bytes: u64::from(bytes) })
}
