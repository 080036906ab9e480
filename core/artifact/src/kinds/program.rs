//! Programs as operations of ranks:
//!
//! - `program`: tables `operations` and `communicators`. Columns without a meaning for an operation are null.

use std::ops::Range;
use std::time::Duration;

use hopmap_model::{
    APPROXIMATE, Action, Collective, CollectiveOperation, Envelope, Interned, Operation, OperationKind,
    Program, ProgramTotals, to_u32,
};

use super::task_graph::{Member, decode_communicators, encode_communicators};
use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;
use crate::table::{Columns, Table};

/// Rows of a part of the table `operations` in memory.
const ROWS: usize = 1 << 16;

impl Codec for Program {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "What every rank of a program computes, sends and receives, in order.";
    const TABLES: &'static [TableForm] = &[OperationRow::TABLE, Member::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("ranks", "number of ranks"),
        ("operations", "number of operations of all ranks"),
        ("messages", "number of point-to-point messages"),
        ("bytes", "sum of their lengths"),
        ("collectives", "calls of collective operations, each counted once per rank"),
        ("compute_s", "seconds of computation of all ranks"),
        (
            "left_out_s",
            "if operations are missing: time of all ranks from their first missing operation to their end",
        ),
        ("recorded_s", "run time of the traced program, if the trace has it"),
        (
            "approximate",
            "1 if communication is left out, or threads call MPI at the same time: no bound holds for the program",
        ),
    ];

    fn encode(&self) -> Contents {
        let all = self.operations.len();
        let part = |begin: usize| operations(self, begin..all.min(begin + ROWS));
        let others = (ROWS..all).step_by(ROWS).map(part);
        let ProgramTotals { messages, bytes, collectives, compute_s } = self.totals();
        let contents = Contents::new()
            .table_in_parts(part(0), others)
            .table(encode_communicators(&self.communicators))
            .metric("ranks", f64::from(self.ranks()))
            .metric("operations", all as f64)
            .metric("messages", messages as f64)
            .metric("bytes", bytes as f64)
            .metric("collectives", collectives as f64)
            .metric("compute_s", compute_s);
        let contents = match self.left_out.is_zero() {
            true => contents,
            false => contents.metric("left_out_s", self.left_out.as_secs_f64()),
        };
        let contents = match self.recorded {
            None => contents,
            Some(recorded) => contents.metric("recorded_s", recorded.as_secs_f64()),
        };
        if self.is_approximate { contents.metric(APPROXIMATE, 1.0) } else { contents }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let mut communicators = decode_communicators(folder)?;
        if communicators.is_empty() {
            communicators.push(Vec::new());
        }
        let mut reading = Reading {
            starts: vec![0],
            operations: Vec::new(),
            envelopes: Interned::new(),
            collectives: Interned::new(),
        };
        for part in folder.stream("operations")?.columns() {
            reading.part(&part?, communicators[0].len())?;
        }
        let Reading { mut starts, operations, envelopes, collectives } = reading;
        starts.resize(communicators[0].len() + 1, operations.len());
        let (envelopes, collectives) = (envelopes.into_values(), collectives.into_values());
        let metrics = &folder.description().metrics;
        let duration =
            |name| metrics.get(name).map(|&seconds| Duration::try_from_secs_f64(seconds)).transpose();
        let recorded = duration("recorded_s").map_err(|error| folder.invalid(error))?;
        let left_out = duration("left_out_s").map_err(|error| folder.invalid(error))?.unwrap_or_default();
        let is_approximate = metrics.contains_key(APPROXIMATE);
        let program = Self {
            starts,
            operations,
            envelopes,
            collectives,
            communicators,
            left_out,
            recorded,
            is_approximate,
        };
        program.check().map_err(|error| folder.invalid(error))?;
        Ok(program)
    }
}

table_rows!("operations": struct OperationRow {
    rank: u32 = "MPI rank",
    index: u64 = "number of the operation of this rank, from 0",
    kind: OperationKind = "`compute`, `send`, `isend`, `recv`, `irecv`, `wait`, `waitall`, `test` or `collective`",
    peer: Option<u32> = "rank that receives or sends the message, in MPI_COMM_WORLD",
    tag: Option<u32> = "MPI tag",
    communicator: Option<u32> = "number of the communicator; 0 is MPI_COMM_WORLD",
    bytes: Option<u64> = "length of the message, or of a block of the collective operation",
    operation: Option<CollectiveOperation> = "collective operation, such as `allreduce`",
    root: Option<u32> = "its root, as a rank in the communicator",
    seconds: Option<f64> = "seconds of computation",
    request: Option<u32> = "request of a nonblocking operation, unique while it is active",
});

value_names!(OperationKind = &OperationKind::NAMES);

/// The values of a row that depend on the kind of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Row {
    envelope: Option<Envelope>,
    collective: Option<Collective>,
    bytes: Option<u64>,
    seconds: Option<f64>,
    request: Option<u32>,
}

impl Row {
    fn of(program: &Program, operation: Operation) -> Self {
        let envelope = |place: u32| Some(program.envelopes[place as usize]);
        let none = Self::default();
        match operation.action() {
            Action::Compute { seconds } => Self { seconds: Some(seconds), ..none },
            Action::Send { envelope: place, bytes } | Action::Recv { envelope: place, bytes } => {
                Self { envelope: envelope(place), bytes: Some(bytes), ..none }
            }
            Action::Isend { envelope: place, bytes, request }
            | Action::Irecv { envelope: place, bytes, request } => {
                Self { envelope: envelope(place), bytes: Some(bytes), request: Some(request), ..none }
            }
            Action::Wait { request } | Action::Test { request } => Self { request: Some(request), ..none },
            Action::Waitall => none,
            Action::Collective { collective, bytes } => {
                let collective = Some(program.collectives[collective as usize]);
                Self { collective, bytes: Some(bytes), ..none }
            }
        }
    }

    /// The values of a row; `None` for only a part of an envelope or collective operation.
    fn of_columns(row: &OperationRow) -> Option<Self> {
        let &OperationRow { bytes, seconds, request, .. } = row;
        let (envelope, collective) = match (row.peer, row.tag, row.communicator, row.operation, row.root) {
            (None, None, None, None, None) => (None, None),
            (Some(peer), Some(tag), Some(communicator), None, None) => {
                (Some(Envelope { peer, tag, communicator }), None)
            }
            (None, None, Some(communicator), Some(operation), root) => {
                (None, Some(Collective { communicator, operation, root }))
            }
            _ => return None,
        };
        Some(Self { envelope, collective, bytes, seconds, request })
    }
}

/// The rows of operations at these places.
fn operations(program: &Program, places: Range<usize>) -> Table {
    let rank_of = |place| to_u32(program.starts.partition_point(|start| *start <= place) - 1);
    let mut rank = if places.is_empty() { 0 } else { rank_of(places.start) };
    let row = |place: usize| {
        while program.starts[rank as usize + 1] <= place {
            rank += 1;
        }
        let operation = program.operations[place];
        let Row { envelope, collective, bytes, seconds, request } = Row::of(program, operation);
        let communicator = envelope.map(|envelope| envelope.communicator);
        OperationRow {
            rank,
            index: (place - program.starts[rank as usize]) as u64,
            kind: operation.kind(),
            peer: envelope.map(|envelope| envelope.peer),
            tag: envelope.map(|envelope| envelope.tag),
            communicator: communicator.or(collective.map(|collective| collective.communicator)),
            bytes,
            operation: collective.map(|collective| collective.operation),
            root: collective.and_then(|collective| collective.root),
            seconds,
            request,
        }
    };
    OperationRow::table(&places.map(row).collect::<Vec<_>>())
}

/// A program while its operations are read.
struct Reading {
    starts: Vec<usize>,
    operations: Vec<Operation>,
    envelopes: Interned<Envelope>,
    collectives: Interned<Collective>,
}

impl Reading {
    /// Adds rows of a program with this number of ranks.
    fn part(&mut self, table: &Columns, ranks: usize) -> Result<(), ArtifactError> {
        // Doubling would waste up to half of the memory.
        self.operations.reserve_exact(table.rows());
        for row in OperationRow::read(table)? {
            let OperationRow { rank, index, kind, .. } = row;
            if rank as usize >= ranks {
                let reason = format!("has rank {rank}, but MPI_COMM_WORLD has {ranks} members");
                return Err(table.error("rank", reason));
            }
            if (rank as usize) < self.starts.len() - 1 {
                return Err(table.error("rank", "is out of order"));
            }
            self.starts.resize(rank as usize + 1, self.operations.len());
            if index != (self.operations.len() - self.starts[rank as usize]) as u64 {
                return Err(table.error("index", "does not number the operations of a rank from zero"));
            }
            let row = Row::of_columns(&row).ok_or_else(|| {
                table.error("communicator", "does not fit the peer, tag, operation or root")
            })?;
            let operation = self.operation(kind, row).ok_or_else(|| {
                let reason = format!("is `{}` in a row that lacks values, or has others", kind.name());
                table.error("kind", reason)
            })?;
            self.operations.push(operation);
        }
        Ok(())
    }

    /// The operation of a row; `None` if it has other values than those of its kind.
    fn operation(&mut self, kind: OperationKind, row: Row) -> Option<Operation> {
        let Row { envelope, collective, bytes, seconds, request } = row;
        let mut number = || Some(self.envelopes.number(envelope?));
        let none = Row::default();
        let (action, expected) = match kind {
            OperationKind::Compute => (Action::Compute { seconds: seconds? }, Row { seconds, ..none }),
            OperationKind::Send => {
                let action = Action::Send { envelope: number()?, bytes: bytes? };
                (action, Row { envelope, bytes, ..none })
            }
            OperationKind::Recv => {
                let action = Action::Recv { envelope: number()?, bytes: bytes? };
                (action, Row { envelope, bytes, ..none })
            }
            OperationKind::Isend => {
                let action = Action::Isend { envelope: number()?, bytes: bytes?, request: request? };
                (action, Row { envelope, bytes, request, ..none })
            }
            OperationKind::Irecv => {
                let action = Action::Irecv { envelope: number()?, bytes: bytes?, request: request? };
                (action, Row { envelope, bytes, request, ..none })
            }
            OperationKind::Wait => (Action::Wait { request: request? }, Row { request, ..none }),
            OperationKind::Test => (Action::Test { request: request? }, Row { request, ..none }),
            OperationKind::Waitall => (Action::Waitall, none),
            OperationKind::Collective => {
                let action =
                    Action::Collective { collective: self.collectives.number(collective?), bytes: bytes? };
                (action, Row { collective, bytes, ..none })
            }
        };
        // NaN differs from itself, and is rejected here as well.
        (row == expected).then(|| Operation::new(action))
    }
}
