//! CLOG-2 files.

use super::Files;

const BLOCK_BYTES: usize = 512;

/// Builds a log.
struct Log {
    is_big_endian: bool,
    blocks: Vec<Vec<u8>>,
}

impl Log {
    fn new(is_big_endian: bool) -> Self {
        Self { is_big_endian, blocks: vec![Vec::new()] }
    }

    fn word(&self, word: i32) -> [u8; 4] {
        if self.is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    /// A record whose body starts with these words, padded with zeros.
    fn record(&mut self, time: f64, place: (i32, i32), kind: i32, words: &[i32], bytes: usize) {
        let time = if self.is_big_endian { time.to_be_bytes() } else { time.to_le_bytes() };
        let mut record = time.to_vec();
        for word in [place.0, place.1, 0, kind].iter().chain(words) {
            record.extend(self.word(*word));
        }
        record.resize(24 + bytes, 0);
        let block = self.blocks.last_mut().unwrap();
        // Leave room for the end of the block.
        if block.len() + record.len() + 24 > BLOCK_BYTES {
            self.end(1);
            self.blocks.push(Vec::new());
        }
        self.blocks.last_mut().unwrap().extend(record);
    }

    /// Ends the block, or the log.
    fn end(&mut self, kind: i32) {
        let mut record = vec![0; 20];
        record.extend(self.word(kind));
        let block = self.blocks.last_mut().unwrap();
        block.extend(record);
        block.resize(BLOCK_BYTES, 0xee);
    }

    fn creates(&mut self, kind: i32, communicator: i32, rank: i32, world: i32) {
        self.record(0.5, (0, world), 9, &[kind, communicator, rank, world], 48);
    }

    fn sends(&mut self, time: f64, from: (i32, i32), to: (i32, i32), bytes: i32) {
        self.record(time, from, 7, &[-101, to.0, to.1, 42, bytes], 24);
    }

    fn bytes(mut self, version: &str, changes: &[(&str, &str)]) -> Vec<u8> {
        self.end(0);
        let endian = if self.is_big_endian { "TRUE " } else { "FALSE" };
        let size = BLOCK_BYTES.to_string();
        let mut texts = vec![
            ("is_big_endian=", endian),
            ("is_finalzed=", "TRUE "),
            ("block_size=", &size),
            ("num_buffered_blocks=", "128"),
            ("max_comm_world_size=", "4"),
            ("max_thread_count=", "1"),
        ];
        for (name, value) in changes {
            texts.iter_mut().find(|(known, _)| known == name).unwrap().1 = value;
        }
        let mut bytes = version.as_bytes().to_vec();
        bytes.push(0);
        for (name, value) in texts {
            bytes.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
        }
        bytes.resize(1024, 0);
        bytes.extend(self.blocks.concat());
        // The table of communicators, which is ignored.
        bytes.extend([7; 40]);
        bytes
    }
}

/// Four ranks; communicator 5 has ranks 3 and 1, in this order. Its messages precede its definition.
fn sample_log(is_big_endian: bool) -> Log {
    let mut log = Log::new(is_big_endian);
    for rank in 0..4 {
        log.creates(0, 0, rank, rank);
        log.creates(1, 1 + rank, 0, rank);
    }
    log.record(0.5, (0, 0), 2, &[1, 2, 3], 112);
    log.record(0.5, (0, 0), 3, &[1], 104);
    log.record(0.5, (0, 0), 4, &[1], 40);
    log.record(1.0, (0, 0), 5, &[1], 8);
    log.sends(1.5, (0, 0), (0, 1), 100);
    log.sends(1.75, (0, 0), (0, 1), 28);
    log.sends(2.0, (5, 0), (5, 1), 7);
    log.creates(100, 5, 0, 3);
    log.creates(100, 5, 1, 1);
    // An intercommunicator: the remote rank of the writer is ignored.
    log.creates(102, 6, -1, -1);
    log.record(2.5, (0, 1), 7, &[-102, 0, 0, 42, 100], 24);
    log.record(3.0, (0, 1), 6, &[1], 40);
    log.record(3.0, (0, 1), 8, &[1], 16);
    log.record(3.0, (0, 1), 10, &[1], 48);
    log.record(9.0, (0, 1), 11, &[1], 8);
    log
}

pub(crate) fn sample() -> Files {
    Files::one(sample_log(true).bytes("CLOG-02.44", &[]))
}

#[test]
fn messages_are_counted_at_the_sender_and_ranks_translated() {
    for is_big_endian in [true, false] {
        for version in ["CLOG-02.44", "CLOG-02.40"] {
            let read = Files::one(sample_log(is_big_endian).bytes(version, &[])).auto();
            assert_eq!(read.pairs(), [(0, 1, 2, 128), (3, 1, 1, 7)]);
            assert_eq!(read.graph().ranks(), 4);
            assert_eq!(read.graph().duration_s, Some(2.0));
            assert_eq!(read.log, ["format: clog2"]);
        }
    }
}

#[test]
fn invalid_files_are_rejected_with_a_position() {
    let refused = |version: &str, changes: &[(&str, &str)]| {
        Files::one(sample_log(true).bytes(version, changes)).refused()
    };
    for (version, changes, what) in [
        ("CLOG-02.20", &[][..], ": version `CLOG-02.20` is not supported, only CLOG-02.4 and its revisions"),
        ("CLOG-02.44", &[("is_finalzed=", "FALSE")], ": the program ended before it finished the log"),
        (
            "CLOG-02.44",
            &[("block_size=", "0")],
            ": damaged at byte 0: `block_size=` is not between 1 and 1073741824",
        ),
        (
            "CLOG-02.44",
            &[("max_comm_world_size=", "99999999")],
            ": damaged at byte 0: `max_comm_world_size=` is not between 1 and 16777216",
        ),
    ] {
        assert_eq!(refused(version, changes), format!("trace{what}"));
    }
    let two = refused("CLOG-02.44", &[("max_comm_world_size=", "2")]);
    assert!(two.ends_with("rank 2 is not below the 2 of the preamble"), "{two}");
    let short = refused("CLOG-02.44", &[("block_size=", "100")]);
    assert_eq!(short, "trace: damaged at byte 1096: a record exceeds its block");
    let complete = sample_log(true).bytes("CLOG-02.44", &[]);
    for (length, what) in [(1000, "0: the file is truncated"), (1060, "1024: the file is truncated")] {
        let refused = Files::one(&complete[..length]).refused();
        assert_eq!(refused, format!("trace: damaged at byte {what}"));
    }
}

#[test]
fn inconsistent_records_are_rejected() {
    let refused = |change: fn(&mut Log)| {
        let mut log = sample_log(false);
        change(&mut log);
        let refused = Files::one(log.bytes("CLOG-02.44", &[])).refused();
        refused.splitn(3, ": ").last().unwrap().to_owned()
    };
    assert_eq!(
        refused(|log| log.sends(1.0, (0, 0), (77, 1), 8)),
        "a message has rank 1 of communicator 77 as an end, but no record defines it"
    );
    assert_eq!(refused(|log| log.creates(100, 5, 0, 2)), "two processes are rank 0 of communicator 5");
    assert_eq!(refused(|log| log.sends(1.0, (0, 0), (0, 1), -8)), "a message has a negative size");
    assert_eq!(refused(|log| log.sends(f64::NAN, (0, 0), (0, 1), 8)), "a time is not a number");
    assert_eq!(refused(|log| log.record(1.0, (0, 0), 12, &[], 0)), "unknown record type 12");
    assert_eq!(refused(|log| log.record(1.0, (0, 0), -1, &[], 0)), "unknown record type -1");
}
