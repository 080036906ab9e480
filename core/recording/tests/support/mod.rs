//! Recordings written by tests.

pub(crate) mod body;
pub(crate) mod encode;

use std::path::Path;

use hopmap_recording::{CollectiveKind, Communicator, Description, Kind, Method, Operation, Pair, RankFile};

pub(crate) fn kind(name: &str) -> CollectiveKind {
    CollectiveKind::of_name(name).unwrap()
}

/// The file of a rank that sends a message of 100 bytes to the next one, puts 8 and gets 32, and takes part
/// in an allreduce and a broadcast.
pub(crate) fn file(rank: u32, ranks: u32) -> RankFile {
    let partner = (rank + 1) % ranks;
    let pair = |kind, log2_bytes, bytes| Pair { partner, kind, log2_bytes, messages: 1, bytes };
    let operation = |name: &str, root, bytes| Operation {
        communicator: 0x1234,
        kind: kind(name),
        root,
        bytes,
        calls: 2,
        size: ranks,
    };
    RankFile {
        rank,
        ranks,
        finalized: true,
        dropped: false,
        foreign: false,
        times: Some((10.0, 1.0)),
        host: format!("node{rank}"),
        cores: vec![rank, rank + 8],
        program: format!("./app {}", if rank == 0 { "-in a" } else { "-in bc" }),
        pairs: vec![
            pair(Kind::PointToPoint, 7, 100),
            pair(Kind::PointToPoint, 0, 0),
            pair(Kind::Put, 4, 8),
            pair(Kind::Get, 6, 32),
        ],
        operations: vec![
            operation("allreduce", None, 16),
            operation("bcast", Some(1), if rank == 1 { 2000 } else { 0 }),
        ],
        communicators: vec![Communicator { number: 0x1234, members: (0..ranks).collect() }],
        truncated: false,
    }
}

/// Writes a recording with these files.
pub(crate) fn write(folder: &Path, description: &Description, files: &[RankFile]) {
    std::fs::write(folder.join("record.json"), serde_json::to_string(description).unwrap()).unwrap();
    for file in files {
        std::fs::write(folder.join(format!("rank-{}.bin", file.rank)), file.encode()).unwrap();
    }
}

/// A recording of some ranks, and its folder.
pub(crate) fn recorded(ranks: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<RankFile> = (0..ranks).map(|rank| file(rank, ranks)).collect();
    write(folder.path(), &Description::new(Method::Preload, ranks), &files);
    folder
}
