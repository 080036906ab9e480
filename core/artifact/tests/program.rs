//! Programs survive a round trip, also in several parts, and rows that contradict each other are rejected.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use hopmap_artifact::{Codec, Contents, Folder, Table};
use hopmap_model::{Artifact, Collective, CollectiveOperation, Envelope, Program, ProgramBuilder};

/// Every kind of operation, with ranks that do nothing around the others.
fn program() -> Program {
    let mut builder = ProgramBuilder::new(6);
    let pair = builder.communicator(vec![3, 1]);
    let to = |peer, communicator| Envelope { peer, tag: 9, communicator };
    builder.compute(1, 0.1);
    let request = builder.irecv(1, to(3, pair), 10);
    builder.send(1, to(3, 0), 20);
    builder.test(1, request);
    builder.wait(1, request);
    builder.recv(3, to(1, 0), 20);
    builder.isend(3, to(1, pair), 10);
    builder.waitall(3);
    for rank in [1, 3] {
        let operation = CollectiveOperation::Broadcast;
        builder.collective(rank, Collective { communicator: pair, operation, root: Some(1) }, 8);
    }
    builder.finish().unwrap()
}

fn round_trip(program: &Program) -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let written = Folder::write(folder.path(), program).unwrap();
    assert_eq!(&Folder::read::<Program>(folder.path()).unwrap(), program);
    written
}

#[test]
fn programs_survive_a_round_trip() {
    let written = round_trip(&program());
    let metrics = &written.description().metrics;
    assert_eq!((metrics["messages"], metrics["bytes"], metrics["collectives"]), (2.0, 30.0, 2.0));
    round_trip(&ProgramBuilder::new(0).finish().unwrap());
    round_trip(&ProgramBuilder::new(3).finish().unwrap());
}

#[test]
fn programs_of_several_parts_survive_a_round_trip() {
    let mut builder = ProgramBuilder::new(3);
    for tag in 0..100_000 {
        builder.send(0, Envelope { peer: 2, tag: tag % 7, communicator: 0 }, u64::from(tag));
        builder.recv(2, Envelope { peer: 0, tag: tag % 7, communicator: 0 }, u64::from(tag));
    }
    let program = builder.finish().unwrap();
    assert_eq!(round_trip(&program).description().tables["operations"].rows, 200_000);
}

/// A row of the table `operations`.
#[derive(Debug, Clone, Default)]
struct Row {
    rank: u32,
    index: u64,
    kind: &'static str,
    peer: Option<u32>,
    tag: Option<u32>,
    communicator: Option<u32>,
    bytes: Option<u64>,
    operation: Option<&'static str>,
    root: Option<u32>,
    seconds: Option<f64>,
    request: Option<u32>,
}

/// Rows as a program of two ranks, whatever they are.
struct Rows(Vec<Row>);

impl Artifact for Rows {
    const KIND: &'static str = Program::KIND;
}

impl Codec for Rows {
    const SCHEMA: u32 = Program::SCHEMA;
    const CONTENTS: &'static str = Program::CONTENTS;

    fn encode(&self) -> Contents {
        let rows = || self.0.iter();
        let operations = Table::new("operations")
            .column("rank", rows().map(|row| row.rank))
            .column("index", rows().map(|row| row.index))
            .column("kind", rows().map(|row| row.kind.to_owned()))
            .column("peer", rows().map(|row| row.peer))
            .column("tag", rows().map(|row| row.tag))
            .column("communicator", rows().map(|row| row.communicator))
            .column("bytes", rows().map(|row| row.bytes))
            .column("operation", rows().map(|row| row.operation.map(str::to_owned)))
            .column("root", rows().map(|row| row.root))
            .column("seconds", rows().map(|row| row.seconds))
            .column("request", rows().map(|row| row.request));
        let communicators =
            Table::new("communicators").column("communicator", [0, 0u32]).column("rank", [0, 1u32]);
        Contents::new().table(operations).table(communicators)
    }

    fn decode(_: &Folder) -> Result<Self, hopmap_artifact::ArtifactError> {
        Ok(Self(Vec::new()))
    }
}

fn read(rows: Vec<Row>) -> Result<Program, String> {
    let folder = tempfile::tempdir().unwrap();
    Folder::write(folder.path(), &Rows(rows)).unwrap();
    let place = folder.path().display().to_string();
    Folder::read(folder.path()).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{error}{}", source.unwrap_or_default()).replace(&place, "ARTIFACT")
    })
}

fn compute() -> Row {
    Row { kind: "compute", seconds: Some(1.0), ..Row::default() }
}

fn send() -> Row {
    let (peer, tag, communicator) = (Some(1), Some(4), Some(0));
    Row { kind: "send", peer, tag, communicator, bytes: Some(8), ..Row::default() }
}

#[test]
fn rows_out_of_order_are_rejected() {
    assert_eq!(read(vec![compute(), Row { index: 1, ..compute() }]).unwrap().of_rank(0).len(), 2);
    let operations = "ARTIFACT/operations.parquet: column";
    let twice = read(vec![compute(), compute()]).unwrap_err();
    assert_eq!(twice, format!("{operations} `index` does not number the operations of a rank from zero"));
    let back = read(vec![Row { rank: 1, ..compute() }, compute()]).unwrap_err();
    assert_eq!(back, format!("{operations} `rank` is out of order"));
    let stranger = read(vec![Row { rank: 2, ..compute() }]).unwrap_err();
    assert_eq!(stranger, format!("{operations} `rank` has rank 2, but MPI_COMM_WORLD has 2 members"));
}

#[test]
fn rows_with_values_of_another_kind_are_rejected() {
    let wrong = [
        Row { kind: "sleep", ..compute() },
        Row { seconds: None, ..compute() },
        Row { seconds: Some(f64::NAN), ..compute() },
        Row { request: Some(0), ..compute() },
        Row { tag: None, ..send() },
        Row { seconds: Some(1.0), ..send() },
        Row { request: Some(0), ..send() },
        Row { kind: "isend", ..send() },
        Row { operation: Some("barrier"), ..send() },
        Row { kind: "collective", communicator: Some(0), ..Row::default() },
        Row { kind: "waitall", communicator: Some(0), operation: Some("barrier"), ..Row::default() },
    ];
    for row in wrong {
        let error = read(vec![row.clone()]).unwrap_err();
        assert!(error.starts_with("ARTIFACT/operations.parquet: column"), "{row:?}: {error}");
    }
}

#[test]
fn inconsistent_programs_are_rejected() {
    let lost = read(vec![send()]).unwrap_err();
    let expected = "ARTIFACT is inconsistent: rank 0 sends 1 messages to rank 1 with tag 4 in communicator 0, which receives 0";
    assert_eq!(lost, expected);
    let negative = read(vec![Row { seconds: Some(-1.0), ..compute() }]).unwrap_err();
    assert!(negative.ends_with("operation 0 of rank 0: it computes for -1.0 seconds"), "{negative}");
}
