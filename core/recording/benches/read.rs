//! Reading and merging the files of 4096 ranks: a three-dimensional halo exchange, reductions and broadcasts.

use divan::{Bencher, black_box};
use hopmap_recording::{
    Choice, CollectiveKind, Communicator, Description, Kind, Method, Operation, Pair, RankFile, Recording,
};

const RANKS: u32 = 4096;

fn main() {
    divan::main();
}

/// The file of a rank in a grid of 16 × 16 × 16.
fn file(rank: u32) -> RankFile {
    let neighbours = (1..27).map(|step| (rank + step * 151) % RANKS);
    let pair = |partner, log2_bytes| Pair {
        partner,
        kind: Kind::PointToPoint,
        log2_bytes,
        messages: 1000,
        bytes: 1000 << (log2_bytes - 1),
    };
    let operation = |name: &str, bytes| Operation {
        communicator: 7,
        kind: CollectiveKind::of_name(name).unwrap_or(CollectiveKind::ALL[0]),
        root: (name == "bcast").then_some(0),
        bytes,
        calls: 1000,
        size: RANKS,
    };
    RankFile {
        rank,
        ranks: RANKS,
        finalized: true,
        times: Some((100.0, 7.0)),
        host: format!("node{}", rank / 64),
        cores: vec![rank % 64],
        pairs: neighbours.flat_map(|partner| [pair(partner, 4), pair(partner, 17)]).collect(),
        operations: vec![operation("barrier", 0), operation("bcast", 8000), operation("allreduce", 8000)],
        communicators: vec![Communicator { number: 7, members: (0..RANKS).collect() }],
        ..RankFile::default()
    }
}

fn recorded() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let description = serde_json::to_string(&Description::new(Method::Preload, RANKS))?;
    std::fs::write(folder.path().join("record.json"), description)?;
    for rank in 0..RANKS {
        std::fs::write(folder.path().join(format!("rank-{rank}.bin")), file(rank).encode())?;
    }
    Ok(folder)
}

/// Reads the files of all ranks.
#[divan::bench(sample_count = 10)]
fn read(bencher: Bencher<'_, '_>) {
    let Ok(folder) = recorded() else { return };
    bencher.bench_local(|| black_box(Recording::read(folder.path())).is_ok());
}

/// Converts them into a task graph.
#[divan::bench(sample_count = 10)]
fn task_graph(bencher: Bencher<'_, '_>) {
    let Ok(folder) = recorded() else { return };
    let Ok(recording) = Recording::read(folder.path()) else { return };
    let choice = Choice::Expand(hopmap_collectives::Algorithms::default());
    bencher.bench_local(|| black_box(recording.task_graph(choice)).is_ok());
}
