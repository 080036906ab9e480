//! Recordings of `hopmap record`, and profiles of Open MPI's monitoring.

use std::fs;

use hopmap_model::{Context, InputPath, Process, Stage, TaskGraph};
use hopmap_recording::{CollectiveKind, Communicator, Description, Kind, Method, Operation, Pair, RankFile};
use hopmap_trace::{Algorithm, Algorithms, Collectives, Format, Import, ImportParams};

use super::{Files, import_path, pairs};

/// Every rank sends 100 bytes to the next one and takes part in two allreduces of 8 bytes.
fn file(rank: u32, ranks: u32) -> RankFile {
    let partner = (rank + 1) % ranks;
    let kind = CollectiveKind::of_name("allreduce").unwrap();
    RankFile {
        rank,
        ranks,
        finalized: true,
        times: Some((10.0, 2.5)),
        host: format!("node{rank}"),
        pairs: vec![Pair { partner, kind: Kind::PointToPoint, log2_bytes: 7, messages: 1, bytes: 100 }],
        operations: vec![Operation { communicator: 9, kind, root: None, bytes: 16, calls: 2, size: ranks }],
        communicators: vec![Communicator { number: 9, members: (0..ranks).collect() }],
        ..RankFile::default()
    }
}

/// A recording of three ranks.
pub(super) fn sample() -> Files {
    let description = serde_json::to_vec(&Description::new(Method::Preload, 3)).unwrap();
    let ranks = (0..3).map(|rank| (format!("rank-{rank}.bin"), file(rank, 3).encode()));
    let all: Vec<(String, Vec<u8>)> =
        [("record.json".into(), description)].into_iter().chain(ranks).collect();
    Files::new(&all.iter().map(|(name, bytes)| (&name[..], bytes)).collect::<Vec<_>>())
}

/// Profiles of two ranks.
pub(super) fn profiles() -> Files {
    Files::new(&[
        (
            "x.0.prof",
            "# POINT TO POINT\nE\t0\t1\t10 bytes\t1 msgs sent\t1,0,0,0,1\nI\t0\t1\t0 bytes\t1 msgs sent\n# COLLECTIVES\n",
        ),
        (
            "x.1.prof",
            "# POINT TO POINT\n# OSC\nR\t1\t0\t32 bytes\t1 msgs sent\n# COLLECTIVES\nC\t1\t0\t9 bytes\t1 msgs sent\n",
        ),
    ])
}

#[test]
fn a_recording_is_a_task_graph() {
    let files = sample();
    let read = files.auto();
    // Two allreduces by recursive doubling: rank 0 hands its part to rank 1 and gets the result.
    let expected = [(0, 1, 3, 116), (1, 0, 2, 16), (1, 2, 3, 116), (2, 0, 1, 100), (2, 1, 2, 16)];
    assert_eq!(read.pairs(), expected);
    let graph = read.graph();
    let process = Process {
        host: Some("node0".into()),
        compute_s: Some(7.5),
        communication_s: Some(2.5),
        collective_s: None,
    };
    assert_eq!((graph.duration_s, &graph.processes[0]), (Some(10.0), &process));
    assert_eq!((graph.collectives.calls.len(), graph.collectives.calls[0].calls), (1, 2));
    assert!(graph.sizes.iter().any(|bin| bin.at_least_bytes == 64 && bin.messages == 1));
    assert!(read.log.is_empty(), "{:?}", read.log);
}

#[test]
fn collectives_count_as_selected() {
    let files = sample();
    let with = |collectives| files.read(|params| params.collectives = collectives);
    assert_eq!(with(Collectives::Ignore).pairs(), [(0, 1, 1, 100), (1, 2, 1, 100), (2, 0, 1, 100)]);
    assert!(with(Collectives::Ignore).graph().collectives.is_empty());
    let kept = with(Collectives::Keep);
    assert_eq!((kept.pairs().len(), kept.graph().collectives.operations()), (3, 2));
    let algorithms = Algorithms { allreduce: Some(Algorithm::Ring), ..Algorithms::default() };
    let ring = files.read(|params| params.algorithms = algorithms);
    assert_ne!(ring.log, Vec::<String>::new(), "8 bytes are too few for a ring of three ranks");
    let useless = ImportParams {
        collectives: Collectives::Keep,
        algorithms,
        ..ImportParams::new(InputPath::new(files.trace()))
    };
    assert!(Import::check(&useless).unwrap_err().to_string().contains("has no effect"));
}

#[test]
fn an_incomplete_recording_is_read_with_a_warning() {
    let files = sample();
    fs::remove_file(files.path("rank-1.bin")).unwrap();
    let read = files.auto();
    assert_eq!(read.log[0], "warning: the recording is incomplete: no file of rank 1");
    assert!(read.graph().is_incomplete && !sample().auto().graph().is_incomplete);
    assert_eq!(read.graph().ranks(), 3);
}

#[test]
fn profiles_are_found_by_folder_file_and_prefix() {
    let files = profiles();
    let read = files.auto();
    assert_eq!(read.pairs(), [(0, 1, 3, 42)]);
    assert_eq!(read.log, ["format: openmpi-monitoring"]);
    for name in ["x", "x.0.prof"] {
        assert_eq!(pairs(&import_path(&files.path(name), Format::Auto).unwrap()), [(0, 1, 3, 42)]);
    }
    let ignored = files.read(|params| params.collectives = Collectives::Ignore);
    assert_eq!(ignored.pairs(), [(0, 1, 2, 42)]);
}

#[test]
fn archives_and_stored_task_graphs_are_recordings_too() {
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/rows-columns-16");
    let by_folder = import_path(&sample, Format::Auto).unwrap();
    assert_eq!(by_folder, import_path(&sample.join("eztrace_log.otf2"), Format::Auto).unwrap());
    let params = hopmap_trace::Otf2Params::new(InputPath::new(&sample));
    let direct = crate::support::graph::<hopmap_trace::Otf2>(params, &Context::detached()).unwrap();
    assert_eq!(by_folder, direct);
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("graph");
    hopmap_artifact::Folder::write::<TaskGraph>(&stored, &direct).unwrap();
    assert_eq!(import_path(&stored, Format::Auto).unwrap(), direct);
}
