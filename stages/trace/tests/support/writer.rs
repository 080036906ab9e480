//! Writes small OTF2 archives by hand, for cases that samples do not cover.
#![allow(clippy::unwrap_used, reason = "tests may")]
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fs;
use std::path::Path;

/// Type numbers of records (see `record_schema.rs`).
pub(crate) mod kind {
    pub(crate) const MAPPING_TABLE: u8 = 5;
    pub(crate) const CLOCK_OFFSET: u8 = 6;
    pub(crate) const CLOCK_PROPERTIES: u8 = 5;
    pub(crate) const STRING: u8 = 10;
    pub(crate) const LOCATION_GROUP: u8 = 13;
    pub(crate) const LOCATION: u8 = 14;
    pub(crate) const REGION: u8 = 15;
    pub(crate) const GROUP: u8 = 18;
    pub(crate) const COMM: u8 = 22;
    pub(crate) const RMA_WIN: u8 = 24;
    pub(crate) const CALLING_CONTEXT: u8 = 34;
    pub(crate) const INTER_COMM: u8 = 43;
}

/// A number in the compressed form of archives: a length byte and the bytes without leading zeros.
fn compressed(number: u64) -> Vec<u8> {
    if number == u64::MAX {
        return vec![255];
    }
    let length = 8 - number.leading_zeros() as usize / 8;
    [&[length as u8], &number.to_le_bytes()[..length]].concat()
}

/// A part of a record.
pub(crate) enum Part<'a> {
    /// Compressed.
    Number(u64),
    Byte(u8),
    Word(u64),
    Text(&'a str),
}

use Part::{Byte, Number, Text, Word};

fn record(kind: u8, parts: &[Part<'_>]) -> Vec<u8> {
    let data: Vec<u8> = parts
        .iter()
        .flat_map(|part| match part {
            Number(number) => compressed(*number),
            Byte(byte) => vec![*byte],
            Word(word) => word.to_le_bytes().into(),
            Text(text) => [text.as_bytes(), &[0]].concat(),
        })
        .collect();
    [&[kind, u8::try_from(data.len()).unwrap()], &data[..]].concat()
}

fn file(events: u64, records: &[u8]) -> Vec<u8> {
    [&[3, 0x42][..], &1u64.to_le_bytes(), &events.to_le_bytes(), records, &[2, 1]].concat()
}

/// One location of an archive.
#[derive(Default)]
pub(crate) struct Location {
    id: u64,
    definitions: Vec<u8>,
    events: Vec<u8>,
    count: u64,
}

impl Location {
    fn event(&mut self, time: u64, record: &[u8]) -> &mut Self {
        self.events.push(5);
        self.events.extend(time.to_le_bytes());
        self.events.extend(record);
        self.count += 1;
        self
    }

    pub(crate) fn enter(&mut self, time: u64, region: u64) -> &mut Self {
        self.event(time, &[&[12], &compressed(region)[..]].concat())
    }

    pub(crate) fn leave(&mut self, time: u64, region: u64) -> &mut Self {
        self.event(time, &[&[13], &compressed(region)[..]].concat())
    }

    pub(crate) fn send(&mut self, time: u64, communicator: u64, receiver: u64, bytes: u64) -> &mut Self {
        self.event(time, &record(14, &[Number(receiver), Number(communicator), Number(7), Number(bytes)]))
    }

    pub(crate) fn isend(&mut self, time: u64, communicator: u64, receiver: u64, bytes: u64) -> &mut Self {
        let parts = [Number(receiver), Number(communicator), Number(7), Number(bytes), Number(1)];
        self.event(time, &record(15, &parts))
    }

    /// A nonblocking send with a request.
    pub(crate) fn isend_with(&mut self, time: u64, receiver: u64, bytes: u64, request: u64) -> &mut Self {
        let parts = [Number(receiver), Number(0), Number(7), Number(bytes), Number(request)];
        self.event(time, &record(15, &parts))
    }

    /// A record of any kind.
    pub(crate) fn any(&mut self, time: u64, kind: u8, parts: &[Part<'_>]) -> &mut Self {
        self.event(time, &record(kind, parts))
    }

    /// A record with one number, such as a request that is posted or completed (16, 17).
    pub(crate) fn request(&mut self, time: u64, kind: u8, request: u64) -> &mut Self {
        self.event(time, &[&[kind], &compressed(request)[..]].concat())
    }

    /// An event with an attribute, without a new time.
    pub(crate) fn enter_with_attribute(&mut self, region: u64) -> &mut Self {
        // One attribute of id 0 and type 1, the byte 9.
        self.events.extend([6, 5, 1, 1, 0, 1, 9]);
        self.events.push(12);
        self.events.extend(compressed(region));
        self.count += 1;
        self
    }

    pub(crate) fn calling_context(&mut self, time: u64, enter: bool, context: u64) -> &mut Self {
        let parts = [Number(context), Number(1)];
        self.event(time, &if enter { record(66, &parts) } else { record(67, &parts[..1]) })
    }

    /// Maps the ids of communicators in the events, from zero, to these.
    pub(crate) fn communicators_are(&mut self, ids: &[u64]) -> &mut Self {
        const COMMUNICATORS: u8 = 6;
        self.map_ids(COMMUNICATORS, ids)
    }

    /// Maps ids of some kind in the events, from zero, to these.
    pub(crate) fn map_ids(&mut self, kind: u8, ids: &[u64]) -> &mut Self {
        let mut parts = vec![Byte(kind), Number(ids.len() as u64), Byte(0)];
        parts.extend(ids.iter().map(|id| Number(*id)));
        self.definitions.extend(record(self::kind::MAPPING_TABLE, &parts));
        self
    }

    /// Maps ids of some kind in the events, given in pairs.
    pub(crate) fn map_some_ids(&mut self, kind: u8, ids: &[(u64, u64)]) -> &mut Self {
        let mut parts = vec![Byte(kind), Number(ids.len() as u64), Byte(1)];
        parts.extend(ids.iter().flat_map(|(local, global)| [Number(*local), Number(*global)]));
        self.definitions.extend(record(kind::MAPPING_TABLE, &parts));
        self
    }

    pub(crate) fn clock_is_off(&mut self, time: u64, offset: i64) -> &mut Self {
        let parts = [Word(time), Number(offset.cast_unsigned()), Word(0)];
        self.definitions.extend(record(kind::CLOCK_OFFSET, &parts));
        self
    }
}

/// An archive.
#[derive(Default)]
pub(crate) struct Archive {
    creator: Option<String>,
    definitions: Vec<u8>,
    count: u64,
    strings: u64,
    locations: Vec<Location>,
}

impl Archive {
    pub(crate) fn define(&mut self, kind: u8, parts: &[Part<'_>]) -> &mut Self {
        self.definitions.extend(record(kind, parts));
        self.count += 1;
        self
    }

    /// The name of the program that recorded it.
    pub(crate) fn creator(&mut self, name: &str) -> &mut Self {
        self.creator = Some(name.to_owned());
        self
    }

    pub(crate) fn string(&mut self, text: &str) -> u64 {
        self.define(kind::STRING, &[Number(self.strings), Text(text)]);
        self.strings += 1;
        self.strings - 1
    }

    pub(crate) fn clock(&mut self, ticks_per_second: u64) -> &mut Self {
        self.define(kind::CLOCK_PROPERTIES, &[Number(ticks_per_second), Number(0), Number(0), Number(0)])
    }

    /// A region without role or paradigm.
    pub(crate) fn region(&mut self, id: u64, name: &str) -> &mut Self {
        let name = Number(self.string(name));
        let none = || Number(0);
        self.define(
            kind::REGION,
            &[Number(id), name, none(), Byte(0), none(), none(), none(), none(), Byte(0), Byte(0), none()],
        )
    }

    pub(crate) fn process(&mut self, id: u64) -> &mut Self {
        self.define(
            kind::LOCATION_GROUP,
            &[Number(id), Number(0), Byte(1), Number(0), Number(u32::MAX.into())],
        )
    }

    /// A thread of a process.
    pub(crate) fn thread(&mut self, id: u64, process: u64) -> &mut Location {
        self.define(kind::LOCATION, &[Number(id), Number(0), Byte(1), Number(1), Number(process)]);
        self.locations.push(Location { id, ..Location::default() });
        self.locations.last_mut().unwrap()
    }

    /// A group of MPI processes: 4 locations, 5 ranks, 6 self.
    pub(crate) fn group(&mut self, kind: u8, id: u64, flags: u64, members: &[u64]) -> &mut Self {
        const MPI: u8 = 4;
        self.group_of(MPI, kind, id, flags, members)
    }

    /// A group of any paradigm.
    pub(crate) fn group_of(
        &mut self,
        paradigm: u8,
        kind: u8,
        id: u64,
        flags: u64,
        members: &[u64],
    ) -> &mut Self {
        let mut parts = vec![Number(id), Number(0), Byte(0), Number(members.len() as u64)];
        parts.extend(members.iter().map(|member| Number(*member)));
        parts.extend([Byte(kind), Byte(paradigm), Number(flags)]);
        self.define(self::kind::GROUP, &parts)
    }

    pub(crate) fn communicator(&mut self, id: u64, group: u64) -> &mut Self {
        self.define(kind::COMM, &[Number(id), Number(0), Number(group), Number(0), Number(0)])
    }

    pub(crate) fn named_communicator(&mut self, id: u64, name: &str, group: u64) -> &mut Self {
        let name = self.string(name);
        self.define(kind::COMM, &[Number(id), Number(name), Number(group), Number(0), Number(0)])
    }

    /// A window of remote memory.
    pub(crate) fn window(&mut self, id: u64, communicator: u64) -> &mut Self {
        self.define(kind::RMA_WIN, &[Number(id), Number(0), Number(communicator), Number(0)])
    }

    pub(crate) fn write(&self, folder: &Path) {
        let text = |text: &str| [text.as_bytes(), &[0]].concat();
        let chunk = (1u64 << 18).to_le_bytes();
        let anchor = [
            &[3, 0x42][..],
            b"OTF2\0",
            // Format of the anchor file, of the trace, and version of the library.
            &[3, 2, 3, 0, 2],
            &chunk,
            &chunk,
            // Plain files, not compressed.
            &[1, 1],
            &(self.locations.len() as u64).to_le_bytes(),
            &self.count.to_le_bytes(),
            &text(""),
            &text(self.creator.as_deref().unwrap_or("by hand")),
            &text(""),
            // No properties, an identifier, no snapshots, no thumbnails, the end.
            &[0; 4 + 8 + 4 + 4],
            &[2, 1],
        ];
        fs::create_dir_all(folder.join("trace")).unwrap();
        fs::write(folder.join("trace.otf2"), anchor.concat()).unwrap();
        fs::write(folder.join("trace.def"), file(0, &self.definitions)).unwrap();
        for location in &self.locations {
            let path = |extension: &str| folder.join("trace").join(format!("{}.{extension}", location.id));
            fs::write(path("def"), file(0, &location.definitions)).unwrap();
            fs::write(path("evt"), file(location.count, &location.events)).unwrap();
        }
    }
}

/// Ranks on locations 1, 2, …; communicator 0 is all of them. Regions 1 `main`, 2 `MPI_Any`. A tick is 1 ms.
pub(crate) fn ranks(count: u64) -> Archive {
    let mut archive = Archive::default();
    archive.string("");
    archive.clock(1000);
    for process in 0..count {
        archive.process(process);
    }
    let locations: Vec<u64> = (1..=count).collect();
    let members: Vec<u64> = (0..count).collect();
    archive.group(4, 0, 0, &locations).group(5, 1, 0, &members);
    archive.named_communicator(0, "world", 1).region(1, "main").region(2, "MPI_Any");
    archive
}

/// Fields of a receive from a rank in communicator 0 with tag 7.
pub(crate) fn receive(from: u64, bytes: u64) -> [Part<'static>; 4] {
    [Number(from), Number(0), Number(7), Number(bytes)]
}
